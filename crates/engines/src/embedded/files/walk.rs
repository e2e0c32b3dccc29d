//! A limited scan of the paths of a database: which files and folders are there. It opens no data file.
//!
//! A folder of a lake format has bookkeeping that says which of its files have the rows of a table. Read as plain
//! files, it has rows that were deleted or replaced. Delta tables are read as their log says; folders of other formats
//! are refused by name.
//!
//! A glob is a folder from which only the files that match a pattern become tables. `*` and `?` match anything but
//! `/`, `[ab]` matches one of its characters, `**` matches any folders. A matching folder is included with all its
//! contents. The part before the first wildcard is an ordinary folder: it must exist, and it is the sandbox.

use std::fs::{self, DirEntry};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use glob::{MatchOptions, Pattern};
use tidegate_core::{Error, ErrorKind};

use super::file_kind::{Compression, FileKind, NamedFormat, log_table_name, parse_file_name};
use super::layout::{Layout, LayoutProblem};
use super::path_sandbox::{
    FileVersion, FolderLink, OpenRefusal, PathSandbox, PathVersion, ScanInputs, io_error_reason, is_local,
};
use super::recorded_tables::{DeltaFolder, DeltaFolders, DeltaLog};
use super::skipped_files::SkippedFiles;
use super::table_options::TableDeclarations;

/// The limits for the folders and files of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Maximum number of data files of a database. Further files are not read, and the catalog reports it.
    pub files_max: usize,
    /// Maximum number of folder entries of any kind that are read.
    pub entries_max: usize,
    /// Maximum depth of nested folders.
    pub depth_max: usize,
    /// Maximum number of files of one folder that are opened to detect its columns. In larger folders, evenly spaced
    /// files are chosen.
    pub probed_files_max: usize,
    /// Number of rows at the beginning of a text file that are read to detect its types, unless all are.
    pub inferred_rows: usize,
    /// The size up to which all rows of a text file are read to detect its types.
    pub fully_inferred_bytes: u64,
    /// Maximum number of bytes of one row of a text file.
    pub row_bytes_max: usize,
    /// Maximum number of columns of a table.
    pub columns_max: usize,
    /// How long the tables of a scan are used for statements whose own files are unchanged. After slow scans it is
    /// longer. Zero: each call scans, or compares all files.
    pub rescan_after: Duration,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            files_max: 20_000,
            entries_max: 100_000,
            depth_max: 16,
            probed_files_max: 64,
            inferred_rows: 2_000,
            fully_inferred_bytes: 8 << 20,
            row_bytes_max: 64 << 20,
            columns_max: 4_096,
            rescan_after: Duration::from_millis(200),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum FilesPath {
    /// A folder or a file.
    Plain(PathBuf),
    /// The files of a folder that match.
    Glob(Glob),
}

impl FilesPath {
    pub(crate) fn root(&self) -> &Path {
        match self {
            Self::Plain(path) => path,
            Self::Glob(glob) => glob.folder(),
        }
    }
}

/// The result of a scan, for comparison with the next one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScanSummary {
    /// Location and version of each file, in order.
    pub(super) files: Vec<(String, Option<FileVersion>)>,
    /// The folders of tables to which files may be added.
    folders: Vec<PathVersion>,
    links: Vec<FolderLink>,
    problems: Vec<LayoutProblem>,
    skipped: SkippedFiles,
    delta_logs: Vec<DeltaLog>,
}

/// The result of a scan, for building tables.
pub(super) struct FolderScan {
    pub(super) sandbox: PathSandbox,
    pub(super) layout: Layout,
    pub(super) found: ScanSummary,
    /// What it depends on, if that can be compared on the thread of a request.
    pub(super) inputs: Option<ScanInputs>,
}

/// Also returns the Delta tables. The logs of those in `known_delta` are read again only if they have changed.
pub(super) fn scan_paths(
    paths: &[FilesPath],
    limits: FileLimits,
    declarations: &TableDeclarations,
    known_delta: DeltaFolders,
) -> Result<(FolderScan, DeltaFolders), Error> {
    let roots: Vec<Option<PathVersion>> = paths.iter().map(|path| PathVersion::read(path.root()).ok()).collect();
    let real: Vec<Option<PathBuf>> = paths.iter().map(|path| std::fs::canonicalize(path.root()).ok()).collect();
    if !paths.is_empty() && real.iter().all(Option::is_none) {
        let first = paths[0].root();
        let reason = std::fs::canonicalize(first).err().map(|error| io_error_reason(&error)).unwrap_or_default();
        let detail = format!("{}: {reason}", first.display());
        return Err(Error::new(ErrorKind::Unavailable, "the files of the database cannot be found").with_detail(detail));
    }
    let sandbox = PathSandbox::new(real.iter().flatten().cloned().collect());
    let mut walker = Walker::new(&sandbox, limits, declarations, known_delta);
    let mut layout = Layout::default();
    for ((path, real), prefix) in paths.iter().zip(&real).zip(location_prefixes(paths)) {
        // `.` and `..` have no name of their own.
        let named = if path.root().file_name().is_some() { Some(path.root()) } else { real.as_deref() };
        let name = named.map(file_name_of).filter(|name| !name.is_empty()).unwrap_or_else(|| "files".to_owned());
        match (real, path) {
            (None, _) => layout.add_problem(&name, "the path no longer exists"),
            (Some(real), FilesPath::Glob(glob)) => layout.add_root(walker.walk_glob(glob, real, &name, &prefix)),
            (Some(real), _) if real.is_dir() => layout.add_root(walker.walk_folder(real, &name, &prefix)),
            (Some(real), FilesPath::Plain(path)) => {
                match walker.find_file(path, format!("{prefix}{}", file_name_of(path))) {
                    Some(file) => layout.add_file(file, ""),
                    None => layout.add_problem(&name, &format!("{} has an unsupported format", file_name_of(real))),
                }
            }
        }
    }
    let files = layout.files().map(|file| (file.location.clone(), file.version.as_ref().ok().copied())).collect();
    let folders = layout.candidates.iter().flat_map(|candidate| candidate.folders.iter().cloned()).collect();
    layout.skipped = walker.skipped;
    let linked = paths.iter().map(FilesPath::root).zip(&real);
    let linked = linked.filter_map(|(path, real)| Some((path.to_path_buf(), real.clone()?)));
    let linked = linked.filter(|(path, real)| path != real).map(|(path, real)| FolderLink::new(path, real));
    layout.links = linked.chain(walker.links).collect();
    let (problems, skipped, links) = (layout.problems.clone(), layout.skipped.clone(), layout.links.clone());
    let (delta, mut inputs) = (walker.delta, walker.inputs);
    let delta_logs = delta.values().map(|folder| folder.log.clone()).collect();
    let found = ScanSummary { files, folders, links, problems, skipped, delta_logs };
    let is_link = |root: &PathVersion| real.iter().flatten().all(|real| *real != root.path);
    roots.into_iter().flatten().filter(is_link).for_each(|root| inputs.add(|| Some(root)));
    add_files(&mut inputs, &layout, &delta);
    // A problem may go away without a trace in the metadata of other files.
    let inputs = inputs.if_quick().filter(|_| layout.problems.is_empty());
    Ok((FolderScan { sandbox, layout, found, inputs }, delta))
}

fn add_files(inputs: &mut ScanInputs, layout: &Layout, delta: &DeltaFolders) {
    for file in layout.files() {
        inputs.add(|| {
            let version = *file.version.as_ref().ok()?;
            Some(PathVersion { path: file.path.clone(), version, is_local: file.is_local })
        });
    }
    for folder in delta.values() {
        inputs.add(|| Some(folder.log.newest.clone()));
        inputs.add_absent(&folder.log.next);
    }
}

/// What the locations of the files of each path begin with: nothing if all are in one folder. Else a number and the name of
/// the folder, because several folders may have one name.
fn location_prefixes(paths: &[FilesPath]) -> Vec<String> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut numbers = Vec::with_capacity(paths.len());
    for path in paths {
        let folder = folder_of(path);
        let known = folders.iter().position(|other| *other == folder);
        numbers.push(known.unwrap_or(folders.len()));
        if known.is_none() {
            folders.push(folder);
        }
    }
    let prefix = |number: usize| match folders.len() {
        1 => String::new(),
        _ => format!("{}~{}/", number + 1, file_name_of(&folders[number])),
    };
    numbers.into_iter().map(prefix).collect()
}

/// The real folder that `path` is, or that it is in.
fn folder_of(path: &FilesPath) -> PathBuf {
    let folder: &Path = match path {
        FilesPath::Plain(file) if !file.is_dir() => match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        },
        FilesPath::Plain(folder) => folder,
        FilesPath::Glob(glob) => glob.folder(),
    };
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}

fn file_name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

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
    /// Folders and links on which the walk depends, and files that were opened.
    inputs: ScanInputs,
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
            inputs: ScanInputs::default(),
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
    fn walk_folder(&mut self, root: &Path, name: &str, prefix: &str) -> DataFolder {
        // Versions are of the time before the folder is read, so that what changes meanwhile has another one.
        let mut version = PathVersion::read(root).ok();
        self.inputs.add(|| version.clone());
        self.inputs.add_if_exists(|| PathVersion::read(&root.join(ICEBERG_FOLDER)).ok());
        if let Some(format) = LakeFormat::detect(root) {
            return self.read_lake_folder(format, root, name, prefix);
        }
        self.open_folders.push(root.to_path_buf());
        let mut folder = loop {
            let (counts, links) = ((self.files_left, self.entries_left, self.skipped.clone()), self.links.len());
            let modified = version.as_ref().map(|folder| folder.version.modified);
            let mut folder = DataFolder { name: name.to_owned(), version: version.take(), ..DataFolder::default() };
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
            version = PathVersion::read(root).ok();
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
    fn find_file(&self, path: &Path, location: String) -> Option<DataFile> {
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
        if file_type.is_symlink() {
            // It may lead elsewhere later, although its folder does not change.
            self.inputs.add(|| PathVersion::read(&path).ok());
        }
        let is_folder = if file_type.is_symlink() { path.is_dir() } else { file_type.is_dir() };
        if is_folder {
            if !name.starts_with('_')
                && self.matches_glob(&location, Glob::may_contain_matches)
                && let Some(real) = self.resolve_enterable(&path)
            {
                let inner = self.walk_folder(&real, &name, &format!("{location}/"));
                folder.folders.push(inner);
                if file_type.is_symlink() {
                    self.links.push(FolderLink::new(path, real));
                }
            }
            return Ok(());
        }
        if !self.matches_glob(&location, Glob::includes) {
            return Ok(());
        }
        let is_named = self.glob.is_some_and(|(glob, _)| glob.names_extension(&name));
        let Some(kind) = self.kind_of(&location, &name, is_named) else {
            let (sandbox, inputs) = (self.sandbox, &mut self.inputs);
            self.skipped.add(&location, || {
                inputs.add(|| PathVersion::read(&path).ok());
                sandbox.open(&path).ok()
            });
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

fn modified(folder: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(folder).ok()?.modified().ok()
}

/// A format of tables that consist of data files and bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LakeFormat {
    Delta,
    Hudi,
    Iceberg,
}

/// The folder with the files that describe an Iceberg table.
const ICEBERG_FOLDER: &str = "metadata";
/// The end of their names.
const ICEBERG_SUFFIX: &str = ".metadata.json";
/// How many files are searched for one.
const METADATA_FILES_MAX: usize = 10_000;

/// Whether a file has a name of Iceberg's: `v3.metadata.json`, or `00003-….metadata.json`.
fn is_iceberg_metadata(name: &str) -> bool {
    let version = name.strip_suffix(ICEBERG_SUFFIX).map(|stem| stem.strip_prefix('v').unwrap_or(stem));
    version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
}

impl LakeFormat {
    /// The format of the table in `folder`, by the folders in it.
    fn detect(folder: &Path) -> Option<Self> {
        if folder.join("_delta_log").is_dir() {
            return Some(Self::Delta);
        }
        if folder.join(".hoodie").is_dir() {
            return Some(Self::Hudi);
        }
        let files = fs::read_dir(folder.join(ICEBERG_FOLDER)).into_iter().flatten().take(METADATA_FILES_MAX).flatten();
        let mut names = files.map(|file| file.file_name());
        names.any(|name| is_iceberg_metadata(&name.to_string_lossy())).then_some(Self::Iceberg)
    }

    /// Why tables of this format are not read. `None` if they are.
    fn refusal(self) -> Option<String> {
        let name = match self {
            Self::Delta => return None,
            Self::Hudi => "Hudi",
            Self::Iceberg => "Iceberg",
        };
        Some(format!("{name} tables are not read; export its rows as Parquet files into a folder of their own"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    folder: PathBuf,
    whole: Pattern,
    /// The pattern of each path level; `None` for `**`.
    levels: Vec<Option<Pattern>>,
}

/// The folder of the glob `path`. `None` if `path` is not a glob.
pub fn glob_folder(path: &Path) -> Option<PathBuf> {
    is_glob(path).then(|| split(path).0)
}

/// An existing file whose name looks like a glob is that file.
fn is_glob(path: &Path) -> bool {
    has_wildcard(&path.to_string_lossy()) && path.symlink_metadata().is_err()
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Splits the path into the folder before the first wildcard and the remaining components.
fn split(path: &Path) -> (PathBuf, Vec<Component<'_>>) {
    let components: Vec<Component<'_>> = path.components().collect();
    let is_wild = |component: &Component<'_>| has_wildcard(&component.as_os_str().to_string_lossy());
    let (before, rest) = components.split_at(components.iter().position(is_wild).unwrap_or(components.len()));
    let mut folder = before.iter().collect::<PathBuf>();
    if folder.as_os_str().is_empty() {
        folder.push(".");
    }
    (folder, rest.to_vec())
}

impl Glob {
    /// Parses `path`. `None` if it is not a glob.
    pub(crate) fn parse(path: &Path) -> Result<Option<Self>, Error> {
        if !is_glob(path) {
            return Ok(None);
        }
        let invalid = |reason: &str| {
            Error::new(ErrorKind::InvalidArguments, format!("{}: invalid glob: {reason}", path.display()))
        };
        let (folder, rest) = split(path);
        if rest.contains(&Component::ParentDir) {
            return Err(invalid(".. is not allowed after a wildcard"));
        }
        let names: Vec<String> = rest.iter().map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
        let read = |text: &str| Pattern::new(text).map_err(|error| invalid(error.msg));
        let level = |name: &String| if name == "**" { Ok(None) } else { read(name).map(Some) };
        let levels = names.iter().map(level).collect::<Result<_, _>>()?;
        Ok(Some(Self { folder, whole: read(&names.join("/"))?, levels }))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn pattern(&self) -> &str {
        self.whole.as_str()
    }

    /// Whether the file at `location` (names below the folder, joined by `/`) or one of its parent folders matches.
    pub(crate) fn includes(&self, location: &str) -> bool {
        let mut ends = location.match_indices('/').map(|(end, _)| end).chain([location.len()]);
        ends.any(|end| self.whole.matches_with(&location[..end], OPTIONS))
    }

    /// Whether the glob has the extension of the file called `name`, as `*.txt` has it, but `app*` does not.
    fn names_extension(&self, name: &str) -> bool {
        let Some(Some(last)) = self.levels.last() else { return false };
        let extension = last.as_str().rsplit_once('.').map_or("", |(_, extension)| extension);
        !extension.is_empty() && !has_wildcard(extension) && last.matches_with(name, OPTIONS)
    }

    fn may_contain_matches(&self, location: &str) -> bool {
        // After `**`, and below a matching folder, everything may match.
        let mut levels = location.split('/').zip(&self.levels).map_while(|(name, level)| Some((name, level.as_ref()?)));
        levels.all(|(name, pattern)| pattern.matches_with(name, OPTIONS))
    }
}

const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_iceberg_count() {
        assert!(is_iceberg_metadata("v3.metadata.json"));
        assert!(is_iceberg_metadata("00003-5fba94ed-9794-4965-ba6e-6ee3c0d22af9.metadata.json"));
        assert!(!is_iceberg_metadata("app.metadata.json") && !is_iceberg_metadata("1.json"));
    }

    fn glob(text: &str) -> Glob {
        Glob::parse(Path::new(text)).unwrap().unwrap()
    }

    #[test]
    fn the_folder_ends_before_the_first_wildcard() {
        let split = |text: &str| (glob(text).folder().display().to_string(), glob(text).pattern().to_owned());
        assert_eq!(split("./data/2024-*.csv"), ("./data".to_owned(), "2024-*.csv".to_owned()));
        assert_eq!(split("/data/**/x/*.csv"), ("/data".to_owned(), "**/x/*.csv".to_owned()));
        assert_eq!(split("*.csv"), (".".to_owned(), "*.csv".to_owned()));
        assert_eq!(Glob::parse(Path::new("./data/2024.csv")).unwrap(), None);
    }

    #[test]
    fn wildcard_matches_one_path_level() {
        let fits = |text: &str, location: &str| glob(text).includes(location);
        assert!(fits("d/*.csv", "a.csv") && !fits("d/*.csv", "s/a.csv") && !fits("d/*.csv", "a.json"));
        assert!(fits("d/**/*.csv", "a.csv") && fits("d/**/*.csv", "s/t/a.csv"));
        assert!(fits("d/[ab]?.csv", "a1.csv") && !fits("d/[ab]?.csv", "c1.csv") && !fits("d/[ab]?.csv", "a.csv"));
        assert!(fits("d/2024-*", "2024-01/deep/a.csv"), "a folder that fits is seen whole");
        assert!(fits("d/**", "s/t/a.csv"));
    }

    #[test]
    fn a_glob_with_an_extension_names_it() {
        let names = |text: &str, name: &str| glob(text).names_extension(name);
        assert!(names("d/*.txt", "a.txt") && names("d/**/app.t*.txt", "app.t.txt"));
        assert!(!names("d/*.txt", "a.env") && !names("d/a*", "a.txt") && !names("d/*.t?t", "a.txt"));
        assert!(!names("d/*.*", "a.txt") && !names("d/*.d/**", "a.d") && !names("d/*.", "a."));
    }

    #[test]
    fn excludes_folders_without_matches() {
        let holds = |text: &str, location: &str| glob(text).may_contain_matches(location);
        assert!(!holds("d/*.csv", "s") && holds("d/*/x.csv", "s") && !holds("d/s*/x.csv", "t"));
        assert!(holds("d/s/**/x.csv".replace("s/", "s*/").as_str(), "s1/deep/deeper"));
        assert!(holds("d/2024-*", "2024-01/deep"));
    }

    #[test]
    fn rejects_invalid_globs() {
        for (text, words) in [("d/a**", "recursive wildcards"), ("d/*/../x.csv", ".."), ("d/[a", "range")] {
            let error = Glob::parse(Path::new(text)).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(text), "{error}");
        }
    }
}
