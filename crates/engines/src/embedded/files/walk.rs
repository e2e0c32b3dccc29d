//! A limited walk over the paths of a database. It opens no data file.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::delta_table::{DeltaFolder, DeltaFolders, DeltaLog};
use super::file_kind::{Compression, FileKind, NamedFormat, parse_file_name};
use super::file_version::{FileVersion, PathVersion};
use super::glob::Glob;
use super::lake_format::LakeFormat;
use super::limits::FileLimits;
use super::local_file_system::is_local;
use super::path_sandbox::{OpenRefusal, PathSandbox, io_error_reason};
use super::rotated_logs::log_table_name;
use super::skipped_files::SkippedFiles;
use super::table_options::TableDeclarations;

#[derive(Debug, Clone)]
pub(crate) struct DataFile {
    pub(crate) stem: String,
    pub(crate) kind: FileKind,
    /// The location in the database: names joined by `/`. Callers may see it.
    pub(crate) location: String,
    pub(crate) path: PathBuf,
    /// The version of the file, or why its metadata cannot be read.
    pub(crate) version: Result<FileVersion, String>,
    /// Whether it is on this machine.
    pub(crate) is_local: bool,
}

impl DataFile {
    pub(crate) fn file_name(&self) -> &str {
        self.location.rsplit('/').next().unwrap_or(&self.location)
    }
}

/// How often folders with logs are read again in one walk.
const ROTATION_RETRIES_MAX: usize = 8;

/// A folder with its contents, sorted by name.
#[derive(Debug, Default)]
pub(crate) struct DataFolder {
    pub(crate) name: String,
    pub(crate) files: Vec<DataFile>,
    pub(crate) folders: Vec<DataFolder>,
    /// The Delta table of the folder. Then `files` are those of its version, in their order.
    pub(crate) delta: Option<Arc<DeltaFolder>>,
    /// Why it could not be read, or only in part.
    pub(crate) problem: Option<String>,
    /// Its version before it was read.
    pub(crate) version: Option<PathVersion>,
}

/// A symbolic link to a folder, and the real path of that folder.
pub(crate) type FolderLink = (PathBuf, PathBuf);

/// Walks over folders within the sandbox, and counts entries.
pub(crate) struct Walker<'a> {
    sandbox: &'a PathSandbox,
    limits: FileLimits,
    declarations: &'a TableDeclarations,
    files_left: usize,
    entries_left: usize,
    /// The real paths of the current folder and its parents. A link to one of them is a loop.
    open_folders: Vec<PathBuf>,
    /// How often a folder may be read again because it changed meanwhile.
    rotation_retries_left: usize,
    /// The glob that files must match, and the length of the prefix of their locations. `None`: all files.
    glob: Option<(&'a Glob, usize)>,
    /// The files that are not tables.
    pub(crate) skipped: SkippedFiles,
    /// The links that were followed to folders.
    pub(crate) links: Vec<FolderLink>,
    /// The Delta tables of an earlier walk.
    known_delta: DeltaFolders,
    /// The Delta tables of this walk.
    pub(crate) delta: DeltaFolders,
}

impl<'a> Walker<'a> {
    /// The logs of the Delta tables in `known_delta` are read again only if they have changed.
    pub(crate) fn new(
        sandbox: &'a PathSandbox,
        limits: FileLimits,
        declarations: &'a TableDeclarations,
        known_delta: DeltaFolders,
    ) -> Self {
        let (files_left, entries_left, skipped) = (limits.files_max, limits.entries_max, SkippedFiles::default());
        let (open_folders, rotation_retries_left) = (Vec::new(), ROTATION_RETRIES_MAX);
        Self {
            sandbox,
            limits,
            declarations,
            files_left,
            entries_left,
            open_folders,
            rotation_retries_left,
            glob: None,
            skipped,
            links: Vec::new(),
            known_delta,
            delta: DeltaFolders::new(),
        }
    }

    /// Walks over the folder at the real path `root`, with only the files that match `glob`.
    pub(crate) fn walk_glob(&mut self, glob: &'a Glob, root: &Path, name: &str, prefix: &str) -> DataFolder {
        self.glob = Some((glob, prefix.len()));
        let folder = self.walk_folder(root, name, prefix);
        self.glob = None;
        folder
    }

    /// Walks over the folder at the real path `root`. Locations in it begin with `prefix`.
    pub(crate) fn walk_folder(&mut self, root: &Path, name: &str, prefix: &str) -> DataFolder {
        if let Some(format) = LakeFormat::detect(root) {
            return self.read_lake_folder(format, root, name, prefix);
        }
        self.open_folders.push(root.to_path_buf());
        let mut folder = loop {
            let (counts, links) = ((self.files_left, self.entries_left, self.skipped.clone()), self.links.len());
            let (name, version) = (name.to_owned(), folder_version(root));
            let modified = version.as_ref().map(|folder| folder.version.modified);
            let mut folder = DataFolder { name, version, ..DataFolder::default() };
            if let Err(problem) = self.read_folder(&mut folder, root, prefix) {
                folder.problem = Some(problem);
            }
            // Files may have been renamed by a rotation, so that one is missing or there twice.
            let has_logs = folder.files.iter().any(|file| file.kind.format == NamedFormat::Log);
            if !has_logs || self.rotation_retries_left == 0 || modified == self::modified(root) {
                break folder;
            }
            self.rotation_retries_left -= 1;
            (self.files_left, self.entries_left, self.skipped) = counts;
            self.links.truncate(links);
        };
        self.open_folders.pop();
        folder.files.sort_by(|a, b| a.location.cmp(&b.location));
        folder.folders.sort_by(|a, b| a.name.cmp(&b.name));
        folder
    }

    /// A folder whose bookkeeping says which files it has.
    fn read_lake_folder(&mut self, format: LakeFormat, root: &Path, name: &str, prefix: &str) -> DataFolder {
        let mut folder = DataFolder { name: name.to_owned(), problem: format.refusal(), ..DataFolder::default() };
        if folder.problem.is_none() {
            match self.read_delta_folder(root, prefix) {
                Ok(files) if self.glob.is_none() || files.iter().any(|file| self.matches_file(file)) => {
                    folder.files = files;
                    folder.delta = self.delta.get(root).cloned();
                }
                // The glob is for other files.
                Ok(_) => {}
                Err(problem) => folder.problem = Some(problem),
            }
        }
        folder
    }

    /// The files of the newest version of the Delta table at the real path `root`, in its order.
    fn read_delta_folder(&mut self, root: &Path, prefix: &str) -> Result<Vec<DataFile>, String> {
        let known = self.known_delta.get(root);
        let folder = DeltaFolder::open(root, self.sandbox, self.files_left, known)?;
        let columns = folder.version.schema.fields().len();
        if columns > self.limits.columns_max {
            return Err(format!("it has {columns} columns; the limit is {}", self.limits.columns_max));
        }
        let paths = folder.version.files.iter().map(|file| file.path.as_str());
        let files: Vec<DataFile> = paths.map(|path| self.delta_file(root, path, prefix, &folder.log)).collect();
        if files.len() > self.files_left {
            return Err(format!("it has more than {} data files", self.files_left));
        }
        self.files_left -= files.len();
        self.delta.insert(root.to_path_buf(), folder);
        Ok(files)
    }

    fn delta_file(&self, root: &Path, path: &str, prefix: &str, log: &DeltaLog) -> DataFile {
        let (location, path) = (format!("{prefix}{path}"), root.join(path));
        let kind = FileKind { format: NamedFormat::Parquet, compression: Compression::UNCOMPRESSED };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        self.data_file(stem, kind, location, path, Some(&log.newest))
    }

    /// The single file at `path`, which is one of the paths of the database.
    pub(crate) fn find_file(&self, path: &Path, location: String) -> Option<DataFile> {
        let file_name = path.file_name()?.to_string_lossy().into_owned();
        let kind = self.kind_of(&location, &file_name, true)?;
        Some(self.data_file(table_stem(&file_name, kind), kind, location, path.to_path_buf(), None))
    }

    /// The file at `path`. `beside` is a file or folder on the device that it is probably on.
    fn data_file(
        &self,
        stem: String,
        kind: FileKind,
        location: String,
        path: PathBuf,
        beside: Option<&PathVersion>,
    ) -> DataFile {
        let version = self.read_version(&path);
        let is_local = match (&version, beside) {
            (Ok(version), Some(beside)) if version.is_on_device_of(&beside.version) => beside.is_local,
            // It is a link, or mounted.
            _ => is_local(&path),
        };
        DataFile { stem, kind, location, path, version, is_local }
    }

    /// What the configuration declares, or else what the name indicates. `is_named`: a path of the database names the file
    /// with its extension.
    fn kind_of(&self, location: &str, file_name: &str, is_named: bool) -> Option<FileKind> {
        let declared = self.declarations.declared_log_kind(location, is_named);
        declared.or_else(|| parse_file_name(file_name).map(|(_, kind)| kind))
    }

    fn read_folder(&mut self, folder: &mut DataFolder, path: &Path, prefix: &str) -> Result<(), String> {
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
        folder: &mut DataFolder,
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
                if file_type.is_symlink() {
                    self.links.push((path, real));
                }
            }
            return Ok(());
        }
        if !self.matches_glob(&location, Glob::includes) {
            return Ok(());
        }
        let is_named = self.glob.is_some_and(|(glob, _)| glob.names_extension(&name));
        let Some(kind) = self.kind_of(&location, &name, is_named) else {
            let sandbox = self.sandbox;
            self.skipped.add(&location, || sandbox.open(&path).ok());
            return Ok(());
        };
        if self.files_left == 0 {
            return Err(format!("more than {} data files; the rest is not read", self.limits.files_max));
        }
        self.files_left -= 1;
        let file = self.data_file(table_stem(&name, kind), kind, location, path, folder.version.as_ref());
        folder.files.push(file);
        Ok(())
    }

    fn matches_file(&self, file: &DataFile) -> bool {
        self.matches_glob(&file.location, Glob::includes)
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

/// The name of the table of the file called `file_name`, without the folders.
fn table_stem(file_name: &str, kind: FileKind) -> String {
    match kind.format {
        NamedFormat::Log => log_table_name(file_name),
        _ => parse_file_name(file_name).map_or(file_name, |(stem, _)| stem).to_owned(),
    }
}

fn folder_version(path: &Path) -> Option<PathVersion> {
    let version = FileVersion::from_metadata(&fs::metadata(path).ok()?);
    Some(PathVersion { path: path.to_path_buf(), version, is_local: is_local(path) })
}

fn modified(folder: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(folder).ok()?.modified().ok()
}
