//! The current tables of a database: scans again when the last scan is too old, and reads only files that changed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::{Error, ErrorKind};
use tokio::sync::Mutex;

use super::file_kind::NamedFormat;
use super::file_version::FileVersion;
use super::glob::Glob;
use super::layout::{Layout, LayoutProblem};
use super::limits::FileLimits;
use super::path_sandbox::{PathSandbox, io_error_reason};
use super::probe::probe_file;
use super::skipped_files::SkippedFiles;
use super::snapshot::{FileSnapshotBuilder, FileTablesSnapshot, ProbeResult};
use super::source_tables::{SourceSnapshots, TableSource};
use super::table::ColumnCorrections;
use super::table_builder::to_location;
use super::table_options::TableDeclarations;
use super::walk::{DataFile, Walker};
use crate::embedded::engine::Engine;

/// Minimum pause between scans, as a multiple of the duration of the last scan.
const PAUSE_PER_SCAN: u32 = 10;

#[derive(Debug)]
pub(crate) struct FileSnapshots {
    paths: Vec<FilesPath>,
    pub(crate) limits: FileLimits,
    pub(crate) declarations: TableDeclarations,
    engine: Engine,
    /// Where readers record column corrections.
    pub(crate) corrections: Arc<ColumnCorrections>,
    state: Mutex<RefreshState>,
    /// In place of the paths.
    source: Option<SourceSnapshots>,
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

#[derive(Debug, Default)]
struct RefreshState {
    snapshot: Option<Arc<FileTablesSnapshot>>,
    fresh_until: Option<Instant>,
    last_scan: Option<ScanSummary>,
    corrections_revision: u64,
    probes: HashMap<String, (FileVersion, ProbeResult)>,
}

/// The result of a scan, for comparison with the next one.
#[derive(Debug, PartialEq, Eq)]
struct ScanSummary {
    /// Location and version of each file, in order.
    files: Vec<(String, Option<FileVersion>)>,
    problems: Vec<LayoutProblem>,
    skipped: SkippedFiles,
}

/// The result of a scan, for building tables.
struct FolderScan {
    sandbox: PathSandbox,
    layout: Layout,
    found: ScanSummary,
}

impl FileSnapshots {
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn new(
        paths: Vec<FilesPath>,
        limits: FileLimits,
        declarations: TableDeclarations,
        engine: Engine,
    ) -> Self {
        Self { paths, limits, declarations, engine, corrections: Arc::default(), state: Mutex::default(), source: None }
    }

    /// Snapshots of the tables of `source`. No folder is scanned.
    pub(crate) fn of_source(source: Arc<dyn TableSource>, engine: Engine) -> Self {
        let source = SourceSnapshots::new(source, engine.options().batch_rows);
        let limits = FileLimits::default();
        Self { source: Some(source), ..Self::new(Vec::new(), limits, TableDeclarations::default(), engine) }
    }

    pub(crate) fn is_of_source(&self) -> bool {
        self.source.is_some()
    }

    pub(crate) async fn unused_table_options(&self) -> Result<Vec<String>, Error> {
        if self.declarations.is_empty() {
            return Ok(Vec::new());
        }
        let (paths, limits, declarations) = (self.paths.clone(), self.limits, self.declarations.clone());
        let scan = self.engine.run_blocking(move || scan_paths(&paths, limits, &declarations)).await?;
        Ok(self.declarations.unused(scan.layout.files().map(|file| file.location.as_str())))
    }

    /// Whether a file of the folders has the name of a log. Only walks the folders.
    pub(crate) async fn may_have_logs(&self) -> Result<bool, Error> {
        let (paths, limits, declarations) = (self.paths.clone(), self.limits, self.declarations.clone());
        let scan = self.engine.run_blocking(move || scan_paths(&paths, limits, &declarations)).await?;
        Ok(scan.layout.candidates.iter().any(|candidate| candidate.kind.format == NamedFormat::Log))
    }

    pub(crate) fn unmatched_globs(&self) -> Vec<String> {
        let globs = self.paths.iter().filter_map(|path| match path {
            FilesPath::Glob(glob) => Some(glob),
            FilesPath::Plain(_) => None,
        });
        let is_idle = |glob: &&Glob| {
            let Ok(real) = std::fs::canonicalize(glob.folder()) else { return true };
            let sandbox = PathSandbox::new(vec![real.clone()]);
            let mut layout = Layout::default();
            layout.add_root(Walker::new(&sandbox, self.limits, &self.declarations).walk_glob(glob, &real, "", ""));
            layout.files().next().is_none()
        };
        globs.filter(is_idle).map(|glob| glob.pattern().to_owned()).collect()
    }

    /// The current tables. Always scans.
    pub(crate) async fn rescan(self: &Arc<Self>) -> Result<Arc<FileTablesSnapshot>, Error> {
        self.state.lock().await.fresh_until = None;
        self.current_snapshot().await
    }

    /// The current tables, or those of the last scan if it is recent.
    pub(crate) async fn current_snapshot(self: &Arc<Self>) -> Result<Arc<FileTablesSnapshot>, Error> {
        if let Some(source) = &self.source {
            return Ok(source.current());
        }
        let fresh = self.fresh_snapshot(&*self.state.lock().await);
        match fresh {
            Some(snapshot) => Ok(snapshot),
            // A scan may take longer than its caller waits, and what it finds serves the next one.
            None => self.engine.run_shared(self.clone().scan()).await,
        }
    }

    fn fresh_snapshot(&self, state: &RefreshState) -> Option<Arc<FileTablesSnapshot>> {
        let is_fresh = state.fresh_until.is_some_and(|until| Instant::now() < until);
        let is_current = is_fresh && self.corrections.revision() == state.corrections_revision;
        state.snapshot.clone().filter(|_| is_current)
    }

    async fn scan(self: Arc<Self>) -> Result<Arc<FileTablesSnapshot>, Error> {
        // Held during the scan, so that concurrent callers share one scan.
        let mut state = self.state.lock().await;
        if let Some(snapshot) = self.fresh_snapshot(&state) {
            return Ok(snapshot);
        }
        let revision = self.corrections.revision();
        let (began, paths, limits) = (Instant::now(), self.paths.clone(), self.limits);
        let declarations = self.declarations.clone();
        let scan = self.engine.run_blocking(move || scan_paths(&paths, limits, &declarations)).await?;
        let pause = match limits.rescan_after {
            Duration::ZERO => Duration::ZERO,
            least => least.max(began.elapsed() * PAUSE_PER_SCAN),
        };
        let snapshot = match &state.snapshot {
            Some(snapshot)
                if state.last_scan.as_ref() == Some(&scan.found) && revision == state.corrections_revision =>
            {
                snapshot.clone()
            }
            _ => Arc::new(self.assemble(scan, &mut state, revision).await?),
        };
        state.snapshot = Some(snapshot.clone());
        state.fresh_until = Some(Instant::now() + pause);
        Ok(snapshot)
    }

    async fn assemble(
        &self,
        scan: FolderScan,
        state: &mut RefreshState,
        revision: u64,
    ) -> Result<FileTablesSnapshot, Error> {
        let FolderScan { sandbox, layout, found } = scan;
        let current: HashMap<&str, &Option<FileVersion>> =
            found.files.iter().map(|(location, version)| (location.as_str(), version)).collect();
        if revision > 0 {
            let there: HashSet<String> = current.keys().map(|location| to_location(location).to_string()).collect();
            self.corrections.retain(|location| there.contains(location));
        }
        state.probes.retain(|location, (probed, _)| {
            current.get(location.as_str()).is_some_and(|now| now.as_ref() == Some(probed))
        });
        let mut missing = FileSnapshotBuilder::files_to_probe(&layout, &self.limits);
        // In the second round, all files of folders that were split have been probed.
        loop {
            self.probe_all(missing, &sandbox, state).await?;
            let builder = FileSnapshotBuilder {
                probes: state.probes.iter().map(|(location, (_, result))| (location.clone(), result.clone())).collect(),
                corrections: self.corrections.clone(),
                declarations: self.declarations.clone(),
                batch_rows: self.engine.options().batch_rows,
            };
            let (layout, sandbox) = (layout.clone(), sandbox.clone());
            match self.engine.run_blocking(move || Ok(builder.assemble(layout, sandbox))).await? {
                Ok(snapshot) => {
                    state.last_scan = Some(found);
                    state.corrections_revision = revision;
                    return Ok(snapshot);
                }
                Err(more) => missing = more,
            }
        }
    }

    /// Probes those of `files` that are not known yet, on several threads.
    async fn probe_all(
        &self,
        files: Vec<DataFile>,
        sandbox: &PathSandbox,
        state: &mut RefreshState,
    ) -> Result<(), Error> {
        let unknown: Vec<DataFile> =
            files.into_iter().filter(|file| !state.probes.contains_key(&file.location)).collect();
        let parts = self.engine.options().threads.max(1);
        let share = unknown.len().div_ceil(parts).max(1);
        let works = unknown.chunks(share).map(|files| {
            let (sandbox, limits, declarations) = (sandbox.clone(), self.limits, self.declarations.clone());
            let probe = move |file: DataFile| {
                let version = *file.version.as_ref().ok()?;
                let result = probe_file(&file, &sandbox, &limits, &declarations).map(Arc::new);
                Some((file.location, (version, result)))
            };
            let files = files.to_vec();
            self.engine.run_blocking(move || Ok(files.into_iter().filter_map(probe).collect::<Vec<_>>()))
        });
        for probed in futures::future::try_join_all(works).await? {
            state.probes.extend(probed);
        }
        Ok(())
    }
}

fn scan_paths(paths: &[FilesPath], limits: FileLimits, declarations: &TableDeclarations) -> Result<FolderScan, Error> {
    let real: Vec<Option<PathBuf>> = paths.iter().map(|path| std::fs::canonicalize(path.root()).ok()).collect();
    if !paths.is_empty() && real.iter().all(Option::is_none) {
        let first = paths[0].root();
        let reason = std::fs::canonicalize(first).err().map(|error| io_error_reason(&error)).unwrap_or_default();
        let detail = format!("{}: {reason}", first.display());
        return Err(Error::new(ErrorKind::Unavailable, "the files of the database cannot be found").with_detail(detail));
    }
    let sandbox = PathSandbox::new(real.iter().flatten().cloned().collect());
    let mut walker = Walker::new(&sandbox, limits, declarations);
    let mut layout = Layout::default();
    let several = paths.len() > 1;
    for (index, (path, real)) in paths.iter().zip(&real).enumerate() {
        // `.` and `..` have no name of their own.
        let named = if path.root().file_name().is_some() { Some(path.root()) } else { real.as_deref() };
        let name = named.map(file_name_of).filter(|name| !name.is_empty()).unwrap_or_else(|| "files".to_owned());
        // A number distinguishes folders with the same name.
        let prefix = match index {
            _ if !several => String::new(),
            0 => format!("{name}/"),
            _ => format!("{}~{name}/", index + 1),
        };
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
    layout.skipped = walker.skipped;
    let found = ScanSummary { files, problems: layout.problems.clone(), skipped: layout.skipped.clone() };
    Ok(FolderScan { sandbox, layout, found })
}

fn file_name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
