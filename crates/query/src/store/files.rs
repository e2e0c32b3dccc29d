//! The folder that holds the results of one process.
//!
//! Several processes may be given the same folder: each takes a place in it that no other has, and finds there what an
//! earlier one left.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::id::ResultId;
use super::manifest::{BlockFacts, Head, Line};

/// Processes that may share a folder.
const PLACES_MAX: usize = 64;
/// Bytes of a line of a manifest; a longer one is none of ours.
const LINE_BYTES_MAX: usize = 1024 * 1024;
const LOCK: &str = "lock";
const KEY: &str = "key";
const MANIFEST: &str = "manifest.jsonl";

/// The place of this process.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Held as long as the place is.
    _lock: File,
}

/// What an earlier process left of one result.
pub(super) struct Found {
    pub(super) head: Head,
    pub(super) blocks: Vec<BlockFacts>,
    /// None if it never came to its end.
    pub(super) end: Option<Option<String>>,
}

/// A manifest that is being written. Nothing comes after its end.
#[derive(Debug)]
pub(super) struct ManifestFile {
    file: File,
    has_ended: bool,
}

impl Folder {
    /// Takes the first free place in `root`.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub(super) fn claim(root: &Path) -> io::Result<Self> {
        for number in 0..PLACES_MAX {
            let path = root.join(number.to_string());
            make_folder(&path)?;
            let lock = private_file(&path.join(LOCK), OpenOptions::new().write(true).create(true).truncate(false))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path, _lock: lock }),
                Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other(format!("all {PLACES_MAX} places in the folder are taken by other processes")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What signs cursors and links; made when there is none.
    pub(super) fn key(&self) -> io::Result<Vec<u8>> {
        let path = self.path.join(KEY);
        if let Some(key) = fs::read(&path).ok().filter(|key| key.len() == 32) {
            return Ok(key);
        }
        // Two random identifiers have 244 random bits.
        let key = [*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes()].concat();
        private_file(&path, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(&key)?;
        Ok(key)
    }

    /// What an earlier process left; what cannot be read as a result is taken away.
    pub(super) fn found(&self) -> io::Result<Vec<Found>> {
        let mut results = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(id) = entry.file_name().to_string_lossy().parse::<ResultId>() else { continue };
            match found(&entry.path()).filter(|found| found.head.id == id) {
                Some(found) => results.push(found),
                None => fs::remove_dir_all(entry.path())?,
            }
        }
        Ok(results)
    }

    /// Where the result `id` lies.
    pub(super) fn of(&self, id: ResultId) -> PathBuf {
        self.path.join(id.to_string())
    }
}

impl ManifestFile {
    /// A new manifest, whose head is written.
    pub(super) fn create(folder: &Path, head: Head) -> io::Result<Self> {
        make_folder(folder)?;
        let file = private_file(&folder.join(MANIFEST), OpenOptions::new().append(true).create_new(true))?;
        let mut manifest = Self { file, has_ended: false };
        manifest.append(&Line::Head(head))?;
        Ok(manifest)
    }

    /// The manifest of an earlier process, to say its end.
    pub(super) fn reopen(folder: &Path) -> io::Result<Self> {
        private_file(&folder.join(MANIFEST), OpenOptions::new().append(true))
            .map(|file| Self { file, has_ended: false })
    }

    /// Adds a line, at once and whole.
    pub(super) fn append(&mut self, line: &Line) -> io::Result<()> {
        if self.has_ended {
            return Err(io::Error::other("the manifest has ended"));
        }
        self.has_ended = matches!(line, Line::End { .. });
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}

/// Writes the block `index` of the result in `folder`.
pub(super) fn write_block(folder: &Path, index: usize, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    private_file(&block_path(folder, index), options.write(true).create(true).truncate(true))?.write_all(bytes)
}

/// The bytes of the block `index` of the result in `folder`.
pub(super) fn read_block(folder: &Path, index: usize) -> io::Result<Vec<u8>> {
    fs::read(block_path(folder, index))
}

fn block_path(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index}.arrow"))
}

/// Reads a manifest as far as it is whole: the line at which its writer was interrupted says nothing.
fn found(folder: &Path) -> Option<Found> {
    let mut reader = BufReader::new(File::open(folder.join(MANIFEST)).ok()?);
    let Some(Line::Head(head)) = next_line(&mut reader) else { return None };
    let mut found = Found { head, blocks: Vec::new(), end: None };
    while let (None, Some(line)) = (&found.end, next_line(&mut reader)) {
        match line {
            Line::Head(_) => return None,
            Line::Block(facts) => found.blocks.push(facts),
            Line::End { incomplete } => found.end = Some(incomplete),
        }
    }
    // Without a block there is not even a first row, and nobody knows the columns.
    (!found.blocks.is_empty()).then_some(found)
}

fn next_line(reader: &mut impl BufRead) -> Option<Line> {
    let mut text = Vec::new();
    let mut bounded = io::Read::take(reader, LINE_BYTES_MAX as u64);
    bounded.read_until(b'\n', &mut text).ok()?;
    let whole = text.strip_suffix(b"\n")?;
    serde_json::from_slice(whole).ok()
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // A folder that was there before may be open to others.
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

fn private_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.mode(0o600).open(path)
}
