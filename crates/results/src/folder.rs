//! The folder with the results of one process.
//!
//! Several processes may share the same root folder. Each claims a subfolder that no other process uses, and recovers
//! the results that an earlier process left there.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::manifest::{BlockMetadata, ManifestLine, ResultHeader, ResultId};

const PROCESSES_MAX: usize = 64;
const LINE_BYTES_MAX: usize = 1024 * 1024;
const LOCK_FILE: &str = "lock";
const KEY_FILE: &str = "key";
const MANIFEST_FILE: &str = "manifest.jsonl";

#[derive(Debug)]
pub(crate) struct ProcessFolder {
    path: PathBuf,
    _lock: File,
}

pub(crate) struct RecoveredResult {
    pub(crate) head: ResultHeader,
    /// The blocks without gaps that exist in the folder with the recorded length.
    pub(crate) blocks: Vec<BlockMetadata>,
    /// `None` if the result never reached its end.
    pub(crate) end: Option<Option<String>>,
    /// Whether the manifest lists more blocks than these.
    pub(crate) is_truncated: bool,
    manifest_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct ResultFiles {
    folder: PathBuf,
    /// `None` before the first line.
    manifest: Option<File>,
    manifest_bytes: u64,
    has_ended: bool,
}

impl ProcessFolder {
    pub(crate) fn claim(root: &Path) -> io::Result<Self> {
        for number in 0..PROCESSES_MAX {
            let path = root.join(number.to_string());
            create_private_folder(&path)?;
            let lock =
                open_private_file(&path.join(LOCK_FILE), OpenOptions::new().write(true).create(true).truncate(false))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path, _lock: lock }),
                Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other(format!("all {PROCESSES_MAX} subfolders are in use by other processes")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The key that signs cursors; it is created if it does not exist.
    pub(crate) fn read_or_create_key(&self) -> io::Result<Vec<u8>> {
        let path = self.path.join(KEY_FILE);
        if let Some(key) = fs::read(&path).ok().filter(|key| key.len() == 32) {
            return Ok(key);
        }
        // Two random UUIDs contain 244 random bits.
        let key = [*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes()].concat();
        open_private_file(&path, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(&key)?;
        Ok(key)
    }

    /// Reads the results of an earlier process. Folders that are not a readable result are deleted.
    pub(crate) fn recover_results(&self) -> io::Result<Vec<RecoveredResult>> {
        let mut results = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(id) = entry.file_name().to_string_lossy().parse::<ResultId>() else { continue };
            match read_manifest(&entry.path()).filter(|found| found.head.id == id) {
                Some(found) => results.push(found),
                // A folder that cannot be deleted does no harm.
                None => drop(delete_result(&entry.path())),
            }
        }
        Ok(results)
    }

    /// Deletes the results that expired before `now_ms` from the subfolders of processes that have ended. No process
    /// may ever claim these subfolders again.
    pub(crate) fn remove_expired_in_other_folders(&self, now_ms: u64) {
        let root = self.path.parent().unwrap_or(&self.path);
        for path in (0..PROCESSES_MAX).map(|number| root.join(number.to_string())).filter(|path| *path != self.path) {
            let Ok(lock) = File::open(path.join(LOCK_FILE)) else { continue };
            if lock.try_lock().is_err() {
                continue;
            }
            let folder = Self { path, _lock: lock };
            let found = folder.recover_results().unwrap_or_default().into_iter();
            for late in found.filter(|found| found.head.expires_at_ms <= now_ms) {
                let _ = delete_result(&folder.result_path(late.head.id));
            }
        }
    }

    pub(crate) fn result_path(&self, id: ResultId) -> PathBuf {
        self.path.join(id.to_string())
    }
}

/// Deletes the files of a result, the manifest first: if the process is killed here, the next start finds no result
/// that lacks blocks, only a folder without a manifest, and deletes it.
pub(crate) fn delete_result(folder: &Path) -> io::Result<()> {
    let _ = fs::remove_file(folder.join(MANIFEST_FILE));
    fs::remove_dir_all(folder)
}

impl ResultFiles {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, manifest: None, manifest_bytes: 0, has_ended: false }
    }

    pub(crate) fn create(&mut self, head: ResultHeader) -> io::Result<()> {
        // If the parent folder has vanished, it is not created again: another process may claim one of the same name.
        fs::DirBuilder::new().mode(0o700).create(&self.folder)?;
        let mut options = OpenOptions::new();
        self.manifest =
            Some(open_private_file(&self.folder.join(MANIFEST_FILE), options.append(true).create_new(true))?);
        self.append_line(&ManifestLine::Head(Box::new(head)))
    }

    /// Opens the files of an earlier process to append the end line. An incomplete last line is cut off.
    pub(crate) fn reopen(folder: PathBuf, found: &RecoveredResult) -> io::Result<Self> {
        let manifest = open_private_file(&folder.join(MANIFEST_FILE), OpenOptions::new().append(true))?;
        manifest.set_len(found.manifest_bytes)?;
        Ok(Self { folder, manifest: Some(manifest), manifest_bytes: found.manifest_bytes, has_ended: false })
    }

    /// Adds the block `index`: first its bytes, then the manifest line that makes it visible.
    pub(crate) fn add_block(&mut self, index: usize, bytes: &[u8], metadata: &BlockMetadata) -> io::Result<()> {
        self.check_open()?;
        let path = block_path(&self.folder, index);
        let mut options = OpenOptions::new();
        let written = open_private_file(&path, options.write(true).create(true).truncate(true))
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| self.append_line(&ManifestLine::Block(metadata.clone())));
        // An incomplete block would only use space.
        written.inspect_err(|_| drop(fs::remove_file(path)))
    }

    /// Writes the end line. Nothing can be written after it, even if the write fails.
    pub(crate) fn write_end(&mut self, incomplete: Option<String>) -> io::Result<()> {
        self.check_open()?;
        self.has_ended = true;
        self.append_line(&ManifestLine::End { incomplete })
    }

    fn check_open(&self) -> io::Result<()> {
        if self.has_ended { Err(io::Error::other("the result has ended")) } else { Ok(()) }
    }

    fn append_line(&mut self, line: &ManifestLine) -> io::Result<()> {
        let manifest = self.manifest.as_mut().ok_or_else(|| io::Error::other("there is no manifest"))?;
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        manifest.write_all(&text).inspect_err(|_| drop(manifest.set_len(self.manifest_bytes)))?;
        self.manifest_bytes += text.len() as u64;
        Ok(())
    }
}

/// Reads the bytes of the block `index` of the result in `folder`. It reads at most one byte more than `metadata`
/// records, which is enough to detect a wrong length.
pub(crate) fn read_block(folder: &Path, index: usize, metadata: &BlockMetadata) -> io::Result<Vec<u8>> {
    let file = File::open(block_path(folder, index))?;
    let bytes_max = metadata.bytes.saturating_add(1);
    // The manifest may be damaged: no more is reserved than the file has.
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(bytes_max)).unwrap_or_default() + 1);
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn block_path(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index}.arrow"))
}

/// Reads the complete lines of a manifest. A line whose write was interrupted is ignored.
fn read_manifest(folder: &Path) -> Option<RecoveredResult> {
    let mut reader = BufReader::new(File::open(folder.join(MANIFEST_FILE)).ok()?);
    let (ManifestLine::Head(head), mut whole_bytes) = read_line(&mut reader)? else { return None };
    let (mut blocks, mut end): (Vec<BlockMetadata>, _) = (Vec::new(), None);
    while let (None, Some((line, bytes))) = (&end, read_line(&mut reader)) {
        match line {
            ManifestLine::Head(_) => return None,
            ManifestLine::Block(metadata) => blocks.push(metadata),
            ManifestLine::End { incomplete } => end = Some(incomplete),
        }
        whole_bytes += bytes;
    }
    let named = blocks.len();
    blocks.truncate(count_contiguous_blocks(folder, &blocks));
    // Without a block the columns are unknown.
    let found =
        RecoveredResult { is_truncated: blocks.len() < named, head: *head, blocks, end, manifest_bytes: whole_bytes };
    (!found.blocks.is_empty()).then_some(found)
}

/// Counts the `blocks` without gaps, from the first one, that exist in `folder`. After a machine failure the manifest
/// may list blocks that never reached the disk.
fn count_contiguous_blocks(folder: &Path, blocks: &[BlockMetadata]) -> usize {
    let mut rows = 0_u64;
    let next = |(index, metadata): &(usize, &BlockMetadata)| {
        let is_next = metadata.first_row == rows;
        rows = rows.saturating_add(metadata.rows);
        let file = || fs::metadata(block_path(folder, *index)).ok();
        is_next && file().is_some_and(|file| file.is_file() && file.len() == metadata.bytes)
    };
    blocks.iter().enumerate().take_while(next).count()
}

/// Reads the next line, if it is complete, and returns its length.
fn read_line(reader: &mut impl BufRead) -> Option<(ManifestLine, u64)> {
    let mut text = Vec::new();
    let mut bounded = Read::take(reader, LINE_BYTES_MAX as u64);
    bounded.read_until(b'\n', &mut text).ok()?;
    let whole = text.strip_suffix(b"\n")?;
    Some((serde_json::from_slice(whole).ok()?, text.len() as u64))
}

fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // An existing folder may be accessible to others.
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

fn open_private_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.mode(0o600).open(path)
}

/// The bytes that are available to this process on the disk of `folder`; `None` if unknown.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(folder).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}
