//! A limited walk over the paths of a database. It opens no data file.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use super::file_kind::{FileKind, parse_file_name};
use super::file_version::FileVersion;
use super::glob::Glob;
use super::limits::FileLimits;
use super::path_sandbox::{OpenRefusal, PathSandbox, io_error_reason};
use super::skipped_files::SkippedFiles;

#[derive(Debug, Clone)]
pub(crate) struct FoundFile {
    pub(crate) stem: String,
    pub(crate) kind: FileKind,
    /// The location in the database: names joined by `/`. Callers may see it.
    pub(crate) location: String,
    pub(crate) path: PathBuf,
    /// The version of the file, or why its metadata cannot be read.
    pub(crate) version: Result<FileVersion, String>,
}

/// A folder with its contents, sorted by name.
#[derive(Debug, Default)]
pub(crate) struct FoundFolder {
    pub(crate) name: String,
    pub(crate) files: Vec<FoundFile>,
    pub(crate) folders: Vec<FoundFolder>,
    /// Why it could not be read, or only in part.
    pub(crate) problem: Option<String>,
}

/// Walks over folders within the sandbox, and counts entries.
pub(crate) struct Walker<'a> {
    sandbox: &'a PathSandbox,
    limits: FileLimits,
    files_left: usize,
    entries_left: usize,
    /// The real paths of the current folder and its parents. A link to one of them is a loop.
    open_folders: Vec<PathBuf>,
    /// The glob that files must match, and the length of the prefix of their locations. `None`: all files.
    glob: Option<(&'a Glob, usize)>,
    /// The files that are not tables.
    pub(crate) skipped: SkippedFiles,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(sandbox: &'a PathSandbox, limits: FileLimits) -> Self {
        let (files_left, entries_left, skipped) = (limits.files_max, limits.entries_max, SkippedFiles::default());
        Self { sandbox, limits, files_left, entries_left, open_folders: Vec::new(), glob: None, skipped }
    }

    /// Walks over the folder at the real path `root`, with only the files that match `glob`.
    pub(crate) fn walk_glob(&mut self, glob: &'a Glob, root: &Path, name: &str, prefix: &str) -> FoundFolder {
        self.glob = Some((glob, prefix.len()));
        let folder = self.walk_folder(root, name, prefix);
        self.glob = None;
        folder
    }

    /// Walks over the folder at the real path `root`. Locations in it begin with `prefix`.
    pub(crate) fn walk_folder(&mut self, root: &Path, name: &str, prefix: &str) -> FoundFolder {
        let mut folder = FoundFolder { name: name.to_owned(), ..FoundFolder::default() };
        self.open_folders.push(root.to_path_buf());
        if let Err(problem) = self.read_folder(&mut folder, root, prefix) {
            folder.problem = Some(problem);
        }
        self.open_folders.pop();
        folder.files.sort_by(|a, b| a.location.cmp(&b.location));
        folder.folders.sort_by(|a, b| a.name.cmp(&b.name));
        folder
    }

    /// The single file at `path`, whatever its name.
    pub(crate) fn find_file(&mut self, path: &Path, location: String) -> Option<FoundFile> {
        let file_name = path.file_name()?.to_string_lossy().into_owned();
        let (stem, kind) = parse_file_name(&file_name)?;
        let version = self.read_version(path);
        Some(FoundFile { stem: stem.to_owned(), kind, location, path: path.to_path_buf(), version })
    }

    fn read_folder(&mut self, folder: &mut FoundFolder, path: &Path, prefix: &str) -> Result<(), String> {
        let entries = fs::read_dir(path).map_err(|error| io_error_reason(&error))?;
        for entry in entries {
            let entry = entry.map_err(|error| io_error_reason(&error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Hidden by the conventions of Unix, or of Hive and Spark for their bookkeeping files.
            if name.starts_with('.') {
                continue;
            }
            if self.entries_left == 0 {
                return Err(format!("more than {} entries; the rest is not read", self.limits.entries_max));
            }
            self.entries_left -= 1;
            self.add_entry(folder, &entry, name, prefix)?;
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        folder: &mut FoundFolder,
        entry: &DirEntry,
        name: String,
        prefix: &str,
    ) -> Result<(), String> {
        let path = entry.path();
        let location = format!("{prefix}{name}");
        let file_type = entry.file_type().map_err(|error| io_error_reason(&error))?;
        let is_folder = if file_type.is_symlink() { path.is_dir() } else { file_type.is_dir() };
        if is_folder {
            if !name.starts_with('_')
                && self.matches_glob(&location, Glob::may_contain_matches)
                && let Some(real) = self.resolve_enterable(&path)
            {
                let inner = self.walk_folder(&real, &name, &format!("{location}/"));
                folder.folders.push(inner);
            }
            return Ok(());
        }
        if !self.matches_glob(&location, Glob::includes) {
            return Ok(());
        }
        if parse_file_name(&name).is_none() {
            let sandbox = self.sandbox;
            self.skipped.add(&location, || sandbox.open(&path).ok());
            return Ok(());
        }
        if self.files_left == 0 {
            return Err(format!("more than {} data files; the rest is not read", self.limits.files_max));
        }
        self.files_left -= 1;
        folder.files.extend(self.find_file(&path, location));
        Ok(())
    }

    fn matches_glob(&self, location: &str, by: impl Fn(&Glob, &str) -> bool) -> bool {
        self.glob.is_none_or(|(glob, prefix)| by(glob, &location[prefix..]))
    }

    /// The real path of a folder that may be entered: within the sandbox, not too deep, not a loop.
    fn resolve_enterable(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(path).ok()?;
        let enterable = self.sandbox.contains(&real)
            && self.open_folders.len() <= self.limits.depth_max
            && !self.open_folders.contains(&real);
        if !enterable {
            tracing::debug!(folder = %path.display(), "folder skipped: link out of the database, loop, or too deep");
        }
        enterable.then_some(real)
    }

    fn read_version(&self, path: &Path) -> Result<FileVersion, String> {
        let inspect = || -> Result<FileVersion, OpenRefusal> {
            let plain = fs::symlink_metadata(path)?;
            let metadata = if plain.is_symlink() {
                if !self.sandbox.contains(&fs::canonicalize(path)?) {
                    return Err(OpenRefusal::Outside);
                }
                fs::metadata(path)?
            } else {
                plain
            };
            if metadata.is_file() { Ok(FileVersion::from_metadata(&metadata)) } else { Err(OpenRefusal::NotAFile) }
        };
        inspect().map_err(|refusal| refusal.reason())
    }
}
