//! Chunks in files that are only appended to.
//!
//! A process begins a file of its own, so that an incomplete record at the end of an older file disturbs nothing: it is
//! skipped when the file is read. A file that has reached its size, or that could not be written, is followed by the
//! next one. The oldest files are removed when they are too old or when all files together are too large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::chunk::{self, FILE_MAGIC, MILLISECOND_NS, NextRecord, SampleChunk};
use crate::metrics::model::{Labels, TimeWindow};

const EXTENSION: &str = "chunks";
/// The maximum number of files that are read; more are a mistake in the choice of the folder.
const FILES_MAX: usize = 100_000;

/// The bounds of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderOptions {
    /// How old samples may become, in nanoseconds. Whole files are removed.
    pub age_ns_max: u64,
    /// The size of all files together, in bytes.
    pub bytes_max: u64,
    /// The size at which a file is followed by the next one, in bytes. A file is at most one record larger.
    pub file_bytes_max: u64,
}

impl Default for FolderOptions {
    /// 30 days, 1 GiB, and files of 8 MiB.
    fn default() -> Self {
        Self { age_ns_max: 30 * 86_400_000_000_000, bytes_max: 1 << 30, file_bytes_max: 8 << 20 }
    }
}

/// Why a folder or a file in it cannot be used.
#[derive(Debug, Error)]
pub enum ChunkFolderError {
    /// The operating system reports an error.
    #[error("the folder of recorded metrics: {} cannot be {action}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What failed, such as "read".
        action: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The name of a metric and its labels are longer than a record may be.
    #[error("the folder of recorded metrics: a series of {metric:?} has labels of more than one MiB")]
    TooLarge {
        /// The name of the metric.
        metric: String,
    },
    /// The folder has more files than a recorder writes.
    #[error("the folder of recorded metrics: {} has more than {FILES_MAX} files", path.display())]
    TooManyFiles {
        /// The folder.
        path: PathBuf,
    },
}

/// What was found in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// The number of files.
    pub files: usize,
    /// The number of chunks.
    pub chunks: u64,
    /// The number of samples.
    pub samples: u64,
    /// Files with a part that cannot be read.
    pub damaged: Vec<DamagedFile>,
}

/// A file with a part that cannot be read. What lies before that part is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// The position of the first byte that cannot be read.
    pub position: u64,
    /// The number of bytes from there to the end of the file.
    pub lost_bytes: u64,
    /// The reason.
    pub reason: &'static str,
}

/// A folder of chunks.
#[derive(Debug)]
pub struct ChunkFolder {
    path: PathBuf,
    options: FolderOptions,
    /// The files, oldest first.
    files: Vec<ChunkFile>,
    /// The last one of them, if this process began it and can write it.
    writer: Option<File>,
}

#[derive(Debug)]
struct ChunkFile {
    number: u64,
    path: PathBuf,
    bytes: u64,
    first_ms: i64,
    last_ms: i64,
}

impl ChunkFile {
    fn new(folder: &Path, number: u64) -> Self {
        let path = folder.join(format!("{number:012}.{EXTENSION}"));
        Self { number, path, bytes: 0, first_ms: i64::MAX, last_ms: i64::MIN }
    }

    fn include(&mut self, chunk: &SampleChunk) {
        self.first_ms = self.first_ms.min(chunk.first_ms());
        self.last_ms = self.last_ms.max(chunk.last_ms());
    }
}

impl ChunkFolder {
    /// Opens a folder, which is created if it does not exist, and calls `visit` for each chunk in it, the oldest file
    /// first.
    ///
    /// # Errors
    /// If the folder cannot be created, or it or a file in it cannot be read.
    pub fn open(
        path: &Path,
        options: FolderOptions,
        mut visit: impl FnMut(&str, Labels, SampleChunk),
    ) -> Result<(Self, ReloadReport), ChunkFolderError> {
        fs::create_dir_all(path).map_err(|source| io_error(path, "created", source))?;
        let mut report = ReloadReport::default();
        let mut files = Vec::new();
        for number in file_numbers(path)? {
            let mut file = ChunkFile::new(path, number);
            let bytes = read_file(&file.path)?;
            file.bytes = bytes.len() as u64;
            let file_path = file.path.clone();
            let damaged = visit_records(&file_path, &bytes, |record| {
                file.include(&record.chunk);
                report.chunks += 1;
                report.samples += u64::from(record.chunk.count());
                visit(&record.metric, record.labels, record.chunk);
                Ok::<(), ChunkFolderError>(())
            })?;
            report.damaged.extend(damaged);
            files.push(file);
        }
        report.files = files.len();
        Ok((Self { path: path.to_owned(), options, files, writer: None }, report))
    }

    /// Appends a chunk. It is in the operating system's cache when this returns.
    ///
    /// # Errors
    /// If it cannot be written; the next chunk begins a new file. `TooLarge` for labels of more than one MiB.
    pub fn append(&mut self, metric: &str, labels: &Labels, chunk: &SampleChunk) -> Result<(), ChunkFolderError> {
        let Some(record) = chunk::encode(metric, labels, chunk) else {
            return Err(ChunkFolderError::TooLarge { metric: metric.to_owned() });
        };
        let full = self.files.last().is_some_and(|file| file.bytes >= self.options.file_bytes_max);
        if self.writer.is_none() || full {
            self.begin_file()?;
        }
        let (Some(file), Some(writer)) = (self.files.last_mut(), &mut self.writer) else { return Ok(()) };
        if let Err(source) = writer.write_all(&record) {
            let error = io_error(&file.path, "written", source);
            // Nothing may follow a part of a record.
            if writer.set_len(file.bytes).is_err() {
                self.writer = None;
            }
            return Err(error);
        }
        file.bytes += record.len() as u64;
        file.include(chunk);
        self.remove_excess()
    }

    fn begin_file(&mut self) -> Result<(), ChunkFolderError> {
        self.sync()?;
        self.writer = None;
        let next = self.files.last().map_or(0, |file| file.number).saturating_add(1);
        // Another process may have begun files in the same folder.
        for number in next..next.saturating_add(FILES_MAX as u64) {
            let mut file = ChunkFile::new(&self.path, number);
            let mut writer = match OpenOptions::new().append(true).create_new(true).open(&file.path) {
                Ok(writer) => writer,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(source) => return Err(io_error(&file.path, "created", source)),
            };
            if let Err(source) = writer.write_all(&FILE_MAGIC) {
                // On a full disk, each attempt would leave an empty file. That it cannot be removed is the lesser error.
                let _ = fs::remove_file(&file.path);
                return Err(io_error(&file.path, "written", source));
            }
            file.bytes = FILE_MAGIC.len() as u64;
            self.files.push(file);
            self.writer = Some(writer);
            return Ok(());
        }
        Err(ChunkFolderError::TooManyFiles { path: self.path.clone() })
    }

    /// Waits until all chunks are on the disk.
    ///
    /// # Errors
    /// If the operating system cannot write them.
    pub fn sync(&mut self) -> Result<(), ChunkFolderError> {
        let (Some(file), Some(writer)) = (self.files.last(), &self.writer) else { return Ok(()) };
        writer.sync_data().map_err(|source| io_error(&file.path, "written", source))
    }

    /// Removes files whose last sample is too old.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn evict(&mut self, now_ns: i64) -> Result<(), ChunkFolderError> {
        let age_ns_max = i64::try_from(self.options.age_ns_max).unwrap_or(i64::MAX);
        let oldest_ms = now_ns.saturating_sub(age_ns_max).div_euclid(MILLISECOND_NS);
        while self.files.first().is_some_and(|file| file.last_ms < oldest_ms) {
            self.remove_oldest()?;
        }
        Ok(())
    }

    /// The last file stays, because it is being written.
    fn remove_excess(&mut self) -> Result<(), ChunkFolderError> {
        while self.files.len() > 1 && self.files.iter().map(|file| file.bytes).sum::<u64>() > self.options.bytes_max {
            self.remove_oldest()?;
        }
        Ok(())
    }

    fn remove_oldest(&mut self) -> Result<(), ChunkFolderError> {
        if self.files.len() <= 1 {
            self.writer = None;
        }
        let Some(file) = self.files.first() else { return Ok(()) };
        match fs::remove_file(&file.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(io_error(&file.path, "removed", source)),
            _ => {
                self.files.remove(0);
                Ok(())
            }
        }
    }

    /// Calls `visit` for each chunk with samples in the window, the oldest file first. Damaged parts are skipped.
    ///
    /// # Errors
    /// If a file cannot be read, and the errors of `visit`.
    pub fn read<E: From<ChunkFolderError>>(
        &self,
        window: TimeWindow,
        mut visit: impl FnMut(&str, Labels, SampleChunk) -> Result<(), E>,
    ) -> Result<(), E> {
        let after_ms = window.after_ns.div_euclid(MILLISECOND_NS);
        let before_ms = window.before_ns.div_euclid(MILLISECOND_NS);
        let overlaps = |first_ms: i64, last_ms: i64| first_ms <= before_ms && last_ms >= after_ms;
        for file in self.files.iter().filter(|file| overlaps(file.first_ms, file.last_ms)) {
            let bytes = read_file(&file.path)?;
            visit_records(&file.path, &bytes, |record| {
                if overlaps(record.chunk.first_ms(), record.chunk.last_ms()) {
                    visit(&record.metric, record.labels, record.chunk)
                } else {
                    Ok(())
                }
            })?;
        }
        Ok(())
    }

    /// The size of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Calls `visit` for the records of a file up to the first damage.
fn visit_records<E>(
    path: &Path,
    bytes: &[u8],
    mut visit: impl FnMut(chunk::ChunkRecord) -> Result<(), E>,
) -> Result<Option<DamagedFile>, E> {
    let damaged = |rest: &[u8], reason| {
        let position = (bytes.len() - rest.len()) as u64;
        Some(DamagedFile { path: path.to_owned(), position, lost_bytes: rest.len() as u64, reason })
    };
    let Some(mut rest) = bytes.strip_prefix(&FILE_MAGIC) else {
        return Ok(damaged(bytes, "it does not begin like a file of recorded metrics"));
    };
    loop {
        match chunk::decode_next(rest) {
            NextRecord::Record(record, following) => {
                visit(*record)?;
                rest = following;
            }
            NextRecord::End => return Ok(None),
            NextRecord::Damaged(reason) => return Ok(damaged(rest, reason)),
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, ChunkFolderError> {
    fs::read(path).map_err(|source| io_error(path, "read", source))
}

/// The numbers of the files in the folder, in order. Other files are ignored.
fn file_numbers(path: &Path) -> Result<Vec<u64>, ChunkFolderError> {
    let failed = |source| io_error(path, "read", source);
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(EXTENSION)?.strip_suffix('.'));
        let number: Option<u64> = stem.filter(|stem| stem.len() == 12).and_then(|stem| stem.parse().ok());
        numbers.extend(number);
        if numbers.len() > FILES_MAX {
            return Err(ChunkFolderError::TooManyFiles { path: path.to_owned() });
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn io_error(path: &Path, action: &'static str, source: io::Error) -> ChunkFolderError {
    ChunkFolderError::Io { path: path.to_owned(), action, source }
}
