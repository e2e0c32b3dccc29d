//! The files of a journal.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::journal::file::{JournalError, JournalFile};
use crate::journal::order::CheckedFiles;

/// The maximum number of files of a journal. journald itself keeps 100 by default.
const FILES_MAX: usize = 4_096;
/// How often the folders are read again because files were renamed meanwhile.
const LISTINGS_MAX: usize = 5;

/// The files of a journal as they are at one moment.
#[derive(Debug, Clone)]
pub struct Journal {
    /// The files that can be read, each once.
    pub files: Vec<JournalFile>,
    /// Why other files cannot be read.
    pub defects: Vec<JournalError>,
    pub(crate) checked: CheckedFiles,
}

impl Journal {
    /// Opens the journal files at `paths`: files, or folders. Of a folder, the files with the endings `.journal` and
    /// `.journal~` in it and in its folders of machines (`/var/log/journal/MACHINE`, `/var/log/journal/MACHINE.NAMESPACE`).
    /// `checked` remembers what was found out about files.
    ///
    /// # Errors
    /// If a path cannot be read, or there are too many files. A file that cannot be read is a defect.
    pub fn open(paths: &[PathBuf], checked: &CheckedFiles) -> Result<Self, JournalError> {
        let mut listed = list_files(paths)?;
        let mut listings = 1;
        loop {
            let journal = Self::open_files(&listed, checked);
            // A file that is rotated between the listing and its opening has another name now.
            let again = list_files(paths)?;
            if again == listed || listings >= LISTINGS_MAX {
                return Ok(journal);
            }
            (listed, listings) = (again, listings + 1);
        }
    }

    fn open_files(paths: &BTreeSet<PathBuf>, checked: &CheckedFiles) -> Self {
        let mut journal =
            Self { files: Vec::with_capacity(paths.len()), defects: Vec::new(), checked: checked.clone() };
        let mut ids = BTreeSet::new();
        for path in paths {
            match JournalFile::open(path) {
                Ok(file) => {
                    if ids.insert(file.header.file_id) {
                        journal.files.push(file);
                    }
                }
                Err(error) => journal.defects.push(error),
            }
        }
        journal
    }

    /// The names of the fields of all files, sorted. Files whose index of fields is corrupted are left out.
    pub fn field_names(&self) -> BTreeSet<String> {
        self.files.iter().filter_map(|file| file.field_names().ok()).flatten().collect()
    }
}

/// Whether `path` is a journal file, or a folder with some.
pub fn is_journal_path(path: &Path) -> bool {
    if path.is_dir() {
        list_files(&[path.to_owned()]).is_ok_and(|files| !files.is_empty())
    } else {
        is_journal_name(path)
    }
}

/// The journal files in `paths` and in the folders of machines in them.
///
/// # Errors
/// If a folder cannot be read.
pub fn list_files(paths: &[PathBuf]) -> Result<BTreeSet<PathBuf>, JournalError> {
    let mut files = BTreeSet::new();
    for path in paths {
        let failed = |error: io::Error| JournalError::of_path(path, format!("cannot be read: {error}"));
        if !std::fs::metadata(path).map_err(failed)?.is_dir() {
            files.insert(path.clone());
            continue;
        }
        for folder in list_folder(path, &mut files)? {
            // Folders of other machines may be removed, or belong to others.
            match list_folder(&folder, &mut files) {
                Ok(_) => {}
                Err(error) if folder.exists() => return Err(error),
                Err(_) => {}
            }
        }
    }
    Ok(files)
}

/// Adds the journal files in `folder`, and returns its folders of machines.
fn list_folder(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<Vec<PathBuf>, JournalError> {
    let failed = |error: io::Error| JournalError::of_path(folder, format!("cannot be read: {error}"));
    let mut machines = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Links are not followed, so that nothing outside of the folder is read.
        let Ok(file_type) = entry.file_type() else { continue };
        let path = entry.path();
        if file_type.is_dir() && is_machine_name(&entry.file_name().to_string_lossy()) {
            machines.push(path);
        } else if file_type.is_file() && is_journal_name(&path) {
            if files.len() >= FILES_MAX {
                return Err(JournalError::of_path(folder, format!("has more than {FILES_MAX} journal files")));
            }
            files.insert(path);
        }
    }
    Ok(machines)
}

fn is_journal_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "journal" || ending == "journal~")
}

/// 32 hexadecimal digits, perhaps with a namespace.
fn is_machine_name(name: &str) -> bool {
    let id = name.split_once('.').map_or(name, |(id, _)| id);
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}
