//! The folder that holds the results of one process.
//!
//! Several processes may be given the same folder: each takes a place in it that no other has, and finds there what an
//! earlier one left.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::id::ResultId;
use super::manifest::{BlockFacts, ManifestLine, ResultHeader};

/// Processes that may share a folder.
const PROCESSES_MAX: usize = 64;
/// Bytes of a line of a manifest; a longer one is none of ours.
const LINE_BYTES_MAX: usize = 1024 * 1024;
const LOCK_FILE: &str = "lock";
const KEY_FILE: &str = "key";
const MANIFEST_FILE: &str = "manifest.jsonl";

/// The place of this process.
#[derive(Debug)]
pub(super) struct ProcessFolder {
    path: PathBuf,
    /// Held as long as the place is.
    _lock: File,
}

/// What an earlier process left of one result.
pub(super) struct RecoveredResult {
    pub(super) head: ResultHeader,
    /// Those that follow each other and lie in the folder as long as they were.
    pub(super) blocks: Vec<BlockFacts>,
    /// None if it never came to its end.
    pub(super) end: Option<Option<String>>,
    /// Whether the manifest names more blocks than these.
    pub(super) is_truncated: bool,
    /// How long the lines of the manifest are that are whole.
    manifest_bytes: u64,
}

/// The folder of a result that is being written: its blocks and its manifest. Nothing comes after its end.
#[derive(Debug)]
pub(super) struct ResultFiles {
    folder: PathBuf,
    /// None before the first line.
    manifest: Option<File>,
    /// How long the manifest is as far as its lines are whole.
    manifest_bytes: u64,
    has_ended: bool,
}

impl ProcessFolder {
    /// Takes the first free place in `root`.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub(super) fn claim(root: &Path) -> io::Result<Self> {
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What signs cursors and links; made when there is none.
    pub(super) fn read_or_create_key(&self) -> io::Result<Vec<u8>> {
        let path = self.path.join(KEY_FILE);
        if let Some(key) = fs::read(&path).ok().filter(|key| key.len() == 32) {
            return Ok(key);
        }
        // Two random identifiers have 244 random bits.
        let key = [*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes()].concat();
        open_private_file(&path, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(&key)?;
        Ok(key)
    }

    /// What an earlier process left; what cannot be read as a result is taken away.
    pub(super) fn recover_results(&self) -> io::Result<Vec<RecoveredResult>> {
        let mut results = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(id) = entry.file_name().to_string_lossy().parse::<ResultId>() else { continue };
            match read_manifest(&entry.path()).filter(|found| found.head.id == id) {
                Some(found) => results.push(found),
                // What cannot be taken away is none of ours, and harms nobody.
                None => drop(fs::remove_dir_all(entry.path())),
            }
        }
        Ok(results)
    }

    /// Takes away what processes that have ended left in other places, and whose time is over at `now_ms`: nobody else
    /// may ever take these places again.
    pub(super) fn remove_expired_in_other_folders(&self, now_ms: u64) {
        let root = self.path.parent().unwrap_or(&self.path);
        for path in (0..PROCESSES_MAX).map(|number| root.join(number.to_string())).filter(|path| *path != self.path) {
            let Ok(lock) = File::open(path.join(LOCK_FILE)) else { continue };
            if lock.try_lock().is_err() {
                continue;
            }
            let place = Self { path, _lock: lock };
            let found = place.recover_results().unwrap_or_default().into_iter();
            for late in found.filter(|found| found.head.expires_at_ms <= now_ms) {
                let _ = fs::remove_dir_all(place.result_path(late.head.id));
            }
        }
    }

    /// Where the result `id` lies.
    pub(super) fn result_path(&self, id: ResultId) -> PathBuf {
        self.path.join(id.to_string())
    }
}

impl ResultFiles {
    /// Those of a result that has none yet, in `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, manifest: None, manifest_bytes: 0, has_ended: false }
    }

    /// Makes the folder and a manifest whose head is written.
    pub(super) fn create(&mut self, head: ResultHeader) -> io::Result<()> {
        // Where the place has vanished it is not made again: another process may take one of the same name.
        fs::DirBuilder::new().mode(0o700).create(&self.folder)?;
        let mut options = OpenOptions::new();
        self.manifest =
            Some(open_private_file(&self.folder.join(MANIFEST_FILE), options.append(true).create_new(true))?);
        self.append_line(&ManifestLine::Head(Box::new(head)))
    }

    /// The files of an earlier process, to say its end. What it did not finish is cut off.
    pub(super) fn reopen(folder: PathBuf, found: &RecoveredResult) -> io::Result<Self> {
        let manifest = open_private_file(&folder.join(MANIFEST_FILE), OpenOptions::new().append(true))?;
        manifest.set_len(found.manifest_bytes)?;
        Ok(Self { folder, manifest: Some(manifest), manifest_bytes: found.manifest_bytes, has_ended: false })
    }

    /// Adds the block `index`: first its bytes, then the line that makes it exist.
    pub(super) fn add_block(&mut self, index: usize, bytes: &[u8], facts: &BlockFacts) -> io::Result<()> {
        self.check_open()?;
        let path = block_path(&self.folder, index);
        let mut options = OpenOptions::new();
        let written = open_private_file(&path, options.write(true).create(true).truncate(true))
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| self.append_line(&ManifestLine::Block(facts.clone())));
        // A part of it would only take the room of others.
        written.inspect_err(|_| drop(fs::remove_file(path)))
    }

    /// Says how it ended. Nothing comes after that, even if it could not be said.
    pub(super) fn write_end(&mut self, incomplete: Option<String>) -> io::Result<()> {
        self.check_open()?;
        self.has_ended = true;
        self.append_line(&ManifestLine::End { incomplete })
    }

    fn check_open(&self) -> io::Result<()> {
        if self.has_ended { Err(io::Error::other("the result has ended")) } else { Ok(()) }
    }

    /// Adds a line, whole or not at all.
    fn append_line(&mut self, line: &ManifestLine) -> io::Result<()> {
        let manifest = self.manifest.as_mut().ok_or_else(|| io::Error::other("there is no manifest"))?;
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        manifest.write_all(&text).inspect_err(|_| drop(manifest.set_len(self.manifest_bytes)))?;
        self.manifest_bytes += text.len() as u64;
        Ok(())
    }
}

/// The bytes of the block `index` of the result in `folder`, and no more than tell that they are not those of `facts`.
pub(super) fn read_block(folder: &Path, index: usize, facts: &BlockFacts) -> io::Result<Vec<u8>> {
    let file = File::open(block_path(folder, index))?;
    let mut bytes = Vec::new();
    file.take(facts.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn block_path(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index}.arrow"))
}

/// Reads a manifest as far as it is whole: the line at which its writer was interrupted says nothing.
fn read_manifest(folder: &Path) -> Option<RecoveredResult> {
    let mut reader = BufReader::new(File::open(folder.join(MANIFEST_FILE)).ok()?);
    let (ManifestLine::Head(head), mut whole_bytes) = read_line(&mut reader)? else { return None };
    let (mut blocks, mut end): (Vec<BlockFacts>, _) = (Vec::new(), None);
    while let (None, Some((line, bytes))) = (&end, read_line(&mut reader)) {
        match line {
            ManifestLine::Head(_) => return None,
            ManifestLine::Block(facts) => blocks.push(facts),
            ManifestLine::End { incomplete } => end = Some(incomplete),
        }
        whole_bytes += bytes;
    }
    let named = blocks.len();
    blocks.truncate(count_contiguous_blocks(folder, &blocks));
    // Without a block there is not even a first row, and nobody knows the columns.
    let found =
        RecoveredResult { is_truncated: blocks.len() < named, head: *head, blocks, end, manifest_bytes: whole_bytes };
    (!found.blocks.is_empty()).then_some(found)
}

/// How many of `blocks` follow each other, from the first one on, and lie in `folder`: after a failure of the machine
/// the manifest may name what never reached the disk.
fn count_contiguous_blocks(folder: &Path, blocks: &[BlockFacts]) -> usize {
    let mut rows = 0_u64;
    let next = |(index, facts): &(usize, &BlockFacts)| {
        let is_next = facts.first_row == rows;
        rows = rows.saturating_add(facts.rows);
        let file = || fs::metadata(block_path(folder, *index)).ok();
        is_next && file().is_some_and(|file| file.is_file() && file.len() == facts.bytes)
    };
    blocks.iter().enumerate().take_while(next).count()
}

/// The next line, if it is whole, and how long it is.
fn read_line(reader: &mut impl BufRead) -> Option<(ManifestLine, u64)> {
    let mut text = Vec::new();
    let mut bounded = Read::take(reader, LINE_BYTES_MAX as u64);
    bounded.read_until(b'\n', &mut text).ok()?;
    let whole = text.strip_suffix(b"\n")?;
    Some((serde_json::from_slice(whole).ok()?, text.len() as u64))
}

fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // A folder that was there before may be open to others.
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

fn open_private_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.mode(0o600).open(path)
}
