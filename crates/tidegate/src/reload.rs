//! Reloads the configuration when a file changes, or at SIGHUP. Applies it again when a folder opens that could not be opened.
//!
//! File system events only trigger a comparison of the contents, so other files in the folders do no harm. Polling finds
//! changes without events, for example on network file systems and in replaced folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::join_all;
use notify::{RecursiveMode, Watcher as _};
use tidegate_core::Backoff;
use tidegate_postgres_handlers::HandlerWatcher;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigApplier, FileHashes, LoadedConfig};
use crate::ingest::REOPEN_LONGEST;

/// Editors write a file in several steps. It is read when it was stable for this time.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// After so many waits, the files are read as they are.
const DEBOUNCE_TRIES_MAX: usize = 10;
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The first time after which a closed folder is tried again.
const REOPEN_FIRST: Duration = Duration::from_secs(2);

/// Reloads the configuration `file` when a file of `file_hashes` changes, until `ended` fires.
pub(crate) fn spawn_reloader(
    applier: Arc<ConfigApplier>,
    file: &Path,
    file_hashes: FileHashes,
    ended: CancellationToken,
) -> anyhow::Result<()> {
    let (sender, events) = mpsc::channel(1);
    let mut folder_watcher = FolderWatcher::new(sender)?;
    folder_watcher.watch(&file_hashes);
    let sighup = Sighup::listen()?;
    let reloader = ConfigReloader { applier, file: file.to_owned(), file_hashes, folder_watcher };
    tokio::spawn(reloader.run(events, sighup, ended));
    Ok(())
}

struct ConfigReloader {
    applier: Arc<ConfigApplier>,
    file: PathBuf,
    file_hashes: FileHashes,
    folder_watcher: FolderWatcher,
}

impl ConfigReloader {
    async fn run(mut self, mut events: mpsc::Receiver<()>, mut sighup: Sighup, ended: CancellationToken) {
        let mut reopening = FolderReopening { backoff: Backoff::new(REOPEN_FIRST, REOPEN_LONGEST), next_try: None };
        loop {
            let is_requested = tokio::select! {
                biased;
                () = ended.cancelled() => return,
                () = sighup.recv() => true,
                Some(()) = events.recv() => false,
                () = tokio::time::sleep(POLL_INTERVAL) => false,
            };
            if self.wait_until_stable().await != self.file_hashes || is_requested {
                self.reload().await;
            } else {
                // Limits how often the files are hashed in a busy folder.
                tokio::time::sleep(DEBOUNCE).await;
            }
            reopening.try_if_due(&self.applier).await;
        }
    }

    /// The hashes of the files when they are stable, or after the last wait.
    async fn wait_until_stable(&self) -> FileHashes {
        let mut last = self.current_hashes().await;
        for _ in 0..DEBOUNCE_TRIES_MAX {
            if last == self.file_hashes {
                break;
            }
            tokio::time::sleep(DEBOUNCE).await;
            let now = self.current_hashes().await;
            if now == last {
                break;
            }
            last = now;
        }
        last
    }

    async fn current_hashes(&self) -> FileHashes {
        let hashes = self.file_hashes.clone();
        tokio::task::spawn_blocking(move || hashes.rehash()).await.unwrap_or_else(|_| self.file_hashes.clone())
    }

    /// Reloads the keys first, because they apply even if the configuration is invalid.
    async fn reload(&mut self) {
        let before = self.current_hashes().await;
        self.applier.reload_authenticator();
        let mut hashes = FileHashes::default();
        match LoadedConfig::read_tracking_files(&self.file, &mut hashes) {
            Ok(loaded) => apply_config(&self.applier, &Arc::new(loaded)).await,
            Err(error) => tracing::error!("the configuration stays as it was: {error}"),
        }
        // While a new configuration is invalid, the files of the applied one are watched too.
        for file in self.applier.current_config().iter().flat_map(|applied| applied.files()) {
            hashes.record(&file);
        }
        self.file_hashes = hashes.with_hashes_of(&before);
        self.folder_watcher.watch(&self.file_hashes);
    }
}

/// When folders of tables that take rows are tried again, which were closed for a reason that may pass.
struct FolderReopening {
    backoff: Backoff,
    next_try: Option<Instant>,
}

impl FolderReopening {
    async fn try_if_due(&mut self, applier: &ConfigApplier) {
        if !applier.has_folder_to_try_again() {
            self.backoff.reset();
            self.next_try = None;
            return;
        }
        if self.next_try.is_some_and(|next_try| next_try > Instant::now()) {
            return;
        }
        // The first time, it has just been tried.
        if self.next_try.is_some()
            && let Some(loaded) = applier.try_folders_again().await
        {
            apply_config(applier, &loaded).await;
        }
        self.next_try = Some(Instant::now() + self.backoff.next_delay());
    }
}

async fn apply_config(applier: &ConfigApplier, loaded: &Arc<LoadedConfig>) {
    match applier.apply_config(loaded).await {
        Ok(report) => {
            let (databases, tools) = (report.databases, report.tools);
            tracing::info!(databases, tools, "the configuration was read again");
            for warning in report.warnings {
                tracing::warn!("{warning}");
            }
        }
        Err(error) => tracing::error!("the configuration stays as it was: {error}"),
    }
}

/// Watches the folders of files, because a replaced file is a new file.
struct FolderWatcher {
    watcher: notify::RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
}

impl FolderWatcher {
    fn new(sender: mpsc::Sender<()>) -> anyhow::Result<Self> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                // If the channel is full, an event is pending already.
                let _ = sender.try_send(());
            }
        });
        Ok(Self {
            watcher: watcher.context("cannot watch for changes of the configuration")?,
            folders: BTreeSet::new(),
        })
    }

    /// Watches these folders and those that links lead to, each one again, because it may have been replaced.
    fn watch(&mut self, hashes: &FileHashes) {
        for folder in std::mem::take(&mut self.folders) {
            // Fails if the folder was removed.
            let _ = self.watcher.unwatch(&folder);
        }
        let behind_links = hashes.paths().filter_map(|path| path.canonicalize().ok());
        let files = hashes.paths().map(Path::to_owned).chain(behind_links);
        self.folders =
            files.filter_map(|file| file.parent().filter(|folder| folder.is_dir()).map(Path::to_owned)).collect();
        for folder in &self.folders {
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::warn!("changes in {} are noticed a little later: {error}", folder.display());
            }
        }
    }
}

pub(crate) fn spawn_handler_watcher(applier: Arc<ConfigApplier>, ended: CancellationToken) {
    tokio::spawn(async move {
        tokio::select! {
            () = ended.cancelled() => {}
            () = watch_all(&applier) => {}
        }
    });
}

async fn watch_all(applier: &ConfigApplier) {
    let mut generations = applier.generations();
    loop {
        let generation = *generations.borrow_and_update();
        let watchers = applier.handler_changes().into_iter();
        let watching = watchers.map(|(name, changes)| watch_one(applier, generation, name, changes));
        tokio::select! {
            changed = generations.changed() => if changed.is_err() {
                return;
            },
            // Watching never ends; without watchers, only the next configuration matters.
            _ = async { join_all(watching).await; std::future::pending::<()>().await } => {}
        }
    }
}

async fn watch_one(applier: &ConfigApplier, generation: u64, name: String, mut changes: HandlerWatcher) {
    loop {
        let catalog = changes.next_change().await;
        applier.refresh_handlers(generation, &name, catalog);
    }
}

/// SIGHUP, which requests a reload. Signals that arrive during a reload count as one.
struct Sighup(Signal);

impl Sighup {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    async fn recv(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
