//! A scan of the paths of a database: which files and folders are there.

use std::path::{Path, PathBuf};

use tidegate_core::{Error, ErrorKind};

use super::delta_table::{DeltaFolders, DeltaLog};
use super::file_version::{FileVersion, PathVersion};
use super::glob::Glob;
use super::layout::{Layout, LayoutProblem};
use super::limits::FileLimits;
use super::path_sandbox::{PathSandbox, io_error_reason};
use super::skipped_files::SkippedFiles;
use super::table_options::TableDeclarations;
use super::walk::{FolderLink, Walker};

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
}

/// Also returns the Delta tables. The logs of those in `known_delta` are read again only if they have changed.
pub(super) fn scan_paths(
    paths: &[FilesPath],
    limits: FileLimits,
    declarations: &TableDeclarations,
    known_delta: DeltaFolders,
) -> Result<(FolderScan, DeltaFolders), Error> {
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
    let roots = paths.iter().map(FilesPath::root).zip(&real);
    let linked = roots.filter_map(|(path, real)| Some((path.to_path_buf(), real.clone()?)));
    layout.links = linked.filter(|(path, real)| path != real).chain(walker.links).collect();
    let (problems, skipped, links) = (layout.problems.clone(), layout.skipped.clone(), layout.links.clone());
    let delta = walker.delta;
    let delta_logs = delta.values().map(|folder| folder.log.clone()).collect();
    let found = ScanSummary { files, folders, links, problems, skipped, delta_logs };
    Ok((FolderScan { sandbox, layout, found }, delta))
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
