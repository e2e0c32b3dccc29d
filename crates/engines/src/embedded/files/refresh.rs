//! The current tables of a database: scans again when the last scan is too old, and reads only files that changed.
//!
//! A statement is planned over tables as they are when it arrives. The metadata of their files is compared with that of
//! the last scan, and if something has changed, or if a table is unknown, the folders are scanned first. So a recent
//! scan is only trusted about tables that a statement does not name.
//!
//! A scan waits for a thread for file access. Before one, the metadata of everything that the last one depends on is
//! compared where the call runs, if that is quick. If nothing has changed, the tables of the last scan are current.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_core::Error;

use super::file_kind::NamedFormat;
use super::layout::Layout;
use super::log_table::LogDialect;
use super::path_sandbox::{FileVersion, PathSandbox, ScanInputs};
use super::probe::probe_file;
use super::recorded_tables::{DeltaFolders, RecordedSnapshots, TableRecorder};
use super::snapshot::{FileSnapshotBuilder, FileTablesSnapshot, ProbeResult};
use super::table::{ColumnCorrections, FileTable};
use super::table_options::TableDeclarations;
use super::walk::{DataFile, FileLimits, FilesPath, FolderScan, Glob, ScanSummary, Walker, scan_paths};
use crate::embedded::engine::Engine;

/// Minimum pause between scans, as a multiple of the duration of the last scan.
const PAUSE_PER_SCAN: u32 = 10;
/// A scan that takes less is repeated without a pause when a statement needs it. Timers are not more exact.
const SHORT_SCAN: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct FileSnapshots {
    paths: Vec<FilesPath>,
    pub(crate) limits: FileLimits,
    pub(crate) declarations: TableDeclarations,
    engine: Engine,
    /// Where readers record column corrections.
    pub(crate) corrections: Arc<ColumnCorrections>,
    latest: Mutex<Option<LatestScan>>,
    /// The Delta tables of the last walk.
    delta: Mutex<DeltaFolders>,
    /// Held during a scan.
    state: tokio::sync::Mutex<RefreshState>,
    /// The number of walks over the folders.
    walks: AtomicU64,
    /// In place of the paths.
    source: Option<RecordedSnapshots>,
}

/// The last scan that succeeded.
#[derive(Debug)]
struct LatestScan {
    snapshot: Arc<FileTablesSnapshot>,
    /// When it began, or the last comparison that found no change.
    began: Instant,
    /// What it depends on, if that can be compared on the thread of a request.
    inputs: Option<Arc<ScanInputs>>,
    /// Until when it is recent.
    fresh_until: Instant,
    /// When the next scan may begin if a statement needs one.
    pause_until: Instant,
    corrections_revision: u64,
}

/// What the next scan reuses.
#[derive(Debug, Default)]
struct RefreshState {
    last_scan: Option<ScanSummary>,
    probes: HashMap<String, (FileVersion, ProbeResult)>,
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
        let (corrections, latest, delta, state, walks) = Default::default();
        Self { paths, limits, declarations, engine, corrections, latest, delta, state, walks, source: None }
    }

    /// Snapshots of the tables of `source`. No folder is scanned.
    pub(crate) fn of_source(source: Arc<dyn TableRecorder>, engine: Engine) -> Self {
        let source = RecordedSnapshots::new(source, engine.options().batch_rows);
        let limits = FileLimits::default();
        Self { source: Some(source), ..Self::new(Vec::new(), limits, TableDeclarations::default(), engine) }
    }

    /// How often the folders were scanned.
    pub(crate) fn walks(&self) -> u64 {
        self.walks.load(Ordering::Relaxed)
    }

    pub(crate) fn is_of_source(&self) -> bool {
        self.source.is_some()
    }

    pub(crate) async fn unused_table_options(&self) -> Result<Vec<String>, Error> {
        if self.declarations.is_empty() {
            return Ok(Vec::new());
        }
        let scan = self.walk().await?;
        let files = scan.layout.files().map(|file| (file.location.as_str(), file.kind.format));
        Ok(self.declarations.problems(&files.collect::<Vec<_>>()))
    }

    /// What is wrong with the declared formats of log files. Reads no file if none is declared.
    pub(crate) async fn misread_logs(self: &Arc<Self>) -> Result<Vec<String>, Error> {
        if !self.declarations.has_log_formats() {
            return Ok(Vec::new());
        }
        let snapshot = self.rescan().await?;
        let problem = |(name, dialect): (&str, &LogDialect)| Some(format!("{name}: {}", dialect.problem.as_deref()?));
        Ok(snapshot.log_tables().into_iter().filter_map(problem).collect())
    }

    /// Whether a file of the folders has the name of a log. Only walks the folders.
    pub(crate) async fn may_have_logs(&self) -> Result<bool, Error> {
        let scan = self.walk().await?;
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
            let mut walker = Walker::new(&sandbox, self.limits, &self.declarations, self.delta.lock().clone());
            layout.add_root(walker.walk_glob(glob, &real, "", ""));
            layout.files().next().is_none()
        };
        globs.filter(is_idle).map(|glob| glob.pattern().to_owned()).collect()
    }

    /// The tables as they are now: those of a scan or comparison that begins after this call, which concurrent callers
    /// share.
    pub(crate) async fn rescan(self: &Arc<Self>) -> Result<Arc<FileTablesSnapshot>, Error> {
        self.snapshot_since(Some(Instant::now())).await
    }

    /// The current tables, or those of the last scan if it is recent.
    pub(crate) async fn recent_snapshot(self: &Arc<Self>) -> Result<Arc<FileTablesSnapshot>, Error> {
        self.snapshot_since(None).await
    }

    /// `snapshot`, if `tables` of it are still as they were scanned; else the tables of a scan or comparison that
    /// begins after `requested_at`. `tables` is `None` if the caller needs one that is not in the snapshot, or all.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        snapshot: Arc<FileTablesSnapshot>,
        tables: Option<Vec<Arc<FileTable>>>,
        requested_at: Instant,
    ) -> Result<Arc<FileTablesSnapshot>, Error> {
        if self.is_of_source() {
            return Ok(snapshot);
        }
        let is_current = match tables {
            Some(tables) => self.are_current(&snapshot, tables).await?,
            None => false,
        };
        if is_current { Ok(snapshot) } else { self.snapshot_since(Some(requested_at)).await }
    }

    /// Whether `tables` are still as they were scanned for `snapshot`. Reads only metadata.
    async fn are_current(
        &self,
        snapshot: &Arc<FileTablesSnapshot>,
        tables: Vec<Arc<FileTable>>,
    ) -> Result<bool, Error> {
        if snapshot.is_quick(&tables) {
            return Ok(snapshot.is_current(&tables));
        }
        let snapshot = snapshot.clone();
        self.engine.run_blocking(move || Ok(snapshot.is_current(&tables))).await
    }

    /// The tables of the last scan, if it began after `requested_at`, or is recent without one, or if nothing has
    /// changed since; else those of a new scan.
    async fn snapshot_since(self: &Arc<Self>, requested_at: Option<Instant>) -> Result<Arc<FileTablesSnapshot>, Error> {
        if let Some(source) = &self.source {
            return Ok(source.current());
        }
        if let Some(snapshot) = self.latest_snapshot(requested_at) {
            return Ok(snapshot);
        }
        if self.latest.lock().as_ref().is_some_and(|scan| scan.inputs.is_some()) {
            // All calls that can run arrive here before the first of them compares, so that they share a comparison.
            tokio::task::yield_now().await;
            if let Some(snapshot) = self.latest_snapshot(requested_at).or_else(|| self.compare_latest()) {
                return Ok(snapshot);
            }
        }
        // A scan may take longer than its caller waits, and what it finds serves the next one.
        self.engine.run_shared(self.clone().scan(requested_at)).await
    }

    /// The tables of the last scan, if nothing that it depends on has changed, and if that can be compared here.
    fn compare_latest(&self) -> Option<Arc<FileTablesSnapshot>> {
        let (inputs, began) = (self.latest.lock().as_ref()?.inputs.clone()?, Instant::now());
        if !inputs.are_unchanged() {
            return None;
        }
        let mut latest = self.latest.lock();
        let is_same = |scan: &&mut LatestScan| scan.inputs.as_ref().is_some_and(|now| Arc::ptr_eq(now, &inputs));
        let scan = latest.as_mut().filter(is_same)?;
        scan.began = scan.began.max(began);
        scan.fresh_until = scan.fresh_until.max(began + self.limits.rescan_after);
        (self.corrections.revision() == scan.corrections_revision).then(|| scan.snapshot.clone())
    }

    fn latest_snapshot(&self, requested_at: Option<Instant>) -> Option<Arc<FileTablesSnapshot>> {
        let latest = self.latest.lock();
        let is_new_enough = |scan: &&LatestScan| match requested_at {
            Some(requested_at) => scan.began >= requested_at,
            None => Instant::now() < scan.fresh_until,
        };
        let scan = latest.as_ref().filter(is_new_enough)?;
        (self.corrections.revision() == scan.corrections_revision).then(|| scan.snapshot.clone())
    }

    async fn scan(self: Arc<Self>, requested_at: Option<Instant>) -> Result<Arc<FileTablesSnapshot>, Error> {
        // Held during the scan, so that concurrent callers share one scan.
        let mut state = self.state.lock().await;
        if let Some(snapshot) = self.latest_snapshot(requested_at) {
            return Ok(snapshot);
        }
        let pause_until = self.latest.lock().as_ref().map(|scan| scan.pause_until);
        if requested_at.is_some()
            && let Some(pause_until) = pause_until
        {
            // Else statements with a misspelled name would keep a processor busy with scans.
            tokio::time::sleep_until(pause_until.into()).await;
        }
        let (revision, began) = (self.corrections.revision(), Instant::now());
        let mut scan = self.walk().await?;
        let inputs = scan.inputs.take().map(Arc::new);
        let took = began.elapsed();
        let last = self.latest.lock().as_ref().map(|scan| (scan.snapshot.clone(), scan.corrections_revision));
        let snapshot = match last {
            Some((snapshot, last)) if state.last_scan.as_ref() == Some(&scan.found) && revision == last => snapshot,
            _ => Arc::new(self.assemble(scan, &mut state, revision).await?),
        };
        let now = Instant::now();
        let pause = match self.limits.rescan_after {
            Duration::ZERO => Duration::ZERO,
            least => least.max(took * PAUSE_PER_SCAN),
        };
        *self.latest.lock() = Some(LatestScan {
            snapshot: snapshot.clone(),
            began,
            inputs,
            fresh_until: now + pause,
            pause_until: if took < SHORT_SCAN { now } else { now + took },
            corrections_revision: revision,
        });
        Ok(snapshot)
    }

    /// Walks over the folders. The log of a Delta table is read again only if it has changed.
    async fn walk(&self) -> Result<FolderScan, Error> {
        self.walks.fetch_add(1, Ordering::Relaxed);
        let (paths, limits, declarations) = (self.paths.clone(), self.limits, self.declarations.clone());
        let known = self.delta.lock().clone();
        let work = move || scan_paths(&paths, limits, &declarations, known);
        let (scan, delta) = self.engine.run_blocking(work).await?;
        *self.delta.lock() = delta;
        Ok(scan)
    }

    async fn assemble(
        &self,
        scan: FolderScan,
        state: &mut RefreshState,
        revision: u64,
    ) -> Result<FileTablesSnapshot, Error> {
        let FolderScan { sandbox, layout, found, .. } = scan;
        let current: HashMap<&str, &Option<FileVersion>> =
            found.files.iter().map(|(location, version)| (location.as_str(), version)).collect();
        if revision > 0 {
            self.corrections.retain(|location| current.contains_key(location));
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
