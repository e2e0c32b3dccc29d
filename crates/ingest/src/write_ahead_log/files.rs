//! Files of the log, behind a trait, so that tests can replace the disk by one that fails.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

use tidegate_core::private_file;

use super::record::SEGMENT_SUFFIX;

/// A segment that is open for appending.
pub(crate) trait LogFile: Send {
    /// Appends some of the bytes, and returns how many.
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Makes everything durable that was appended.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file off behind `bytes`.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
}

impl LogFile for File {
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Write::write_vectored(self, parts)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}

pub(crate) fn open_log_file(path: &Path) -> io::Result<Box<dyn LogFile>> {
    Ok(Box::new(File::options().append(true).open(path)?))
}

/// Appends all bytes of `parts`.
pub(crate) fn write_all(file: &mut dyn LogFile, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Removes empty parts at the front, so that 0 written bytes are an error.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match file.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes created, renamed and deleted names in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The file of the segment whose first record has this sequence number.
pub(crate) fn segment_path(folder: &Path, first_sequence: u64) -> PathBuf {
    folder.join(format!("{first_sequence:020}{SEGMENT_SUFFIX}"))
}

/// Writes a segment file with `header` under its name. It has the name only when it is complete and synced.
pub(crate) fn create_segment(folder: &Path, first_sequence: u64, header: &[u8]) -> io::Result<PathBuf> {
    let path = segment_path(folder, first_sequence);
    let temporary = path.with_extension("new");
    let written = private_file::create(&temporary)
        .and_then(|mut file| file.write_all(header).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, &path));
    if let Err(error) = written {
        // It may not exist. The next start removes it otherwise.
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(path)
}
