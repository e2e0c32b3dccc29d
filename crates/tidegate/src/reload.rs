//! A configuration that is followed: a changed file, or SIGHUP, changes the running node.
//!
//! What the system tells of folders only wakes us: what counts is what the files hold. So a log that is written beside
//! them does no harm, and where nothing is told (a network file system, a folder that was replaced) looking every few
//! seconds does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::join_all;
use notify::{RecursiveMode, Watcher as _};
use tidegate_postgres_handlers::HandlerWatcher;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{FileHashes, LoadedConfig, NodeAssembler};

/// Editors write a file in several steps: it is read when it has stayed the same for so long.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How often that is waited for; then it is read as it is.
const DEBOUNCE_TRIES_MAX: usize = 10;
/// How often files are looked at though nothing was told of them.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Follows `file`, of which and with which `seen` was seen when it was entered, until `ended` fires.
pub(crate) fn spawn_reloader(
    assembly: Arc<NodeAssembler>,
    file: &Path,
    seen: FileHashes,
    ended: CancellationToken,
) -> anyhow::Result<()> {
    let (woken, events) = mpsc::channel(1);
    let mut watched = FolderWatcher::new(woken)?;
    watched.watch(&seen);
    let sighup = Sighup::listen()?;
    let follower = ConfigReloader { assembly, file: file.to_owned(), file_hashes: seen, folder_watcher: watched };
    tokio::spawn(follower.run(events, sighup, ended));
    Ok(())
}

struct ConfigReloader {
    assembly: Arc<NodeAssembler>,
    file: PathBuf,
    file_hashes: FileHashes,
    folder_watcher: FolderWatcher,
}

impl ConfigReloader {
    async fn run(mut self, mut events: mpsc::Receiver<()>, mut sighup: Sighup, ended: CancellationToken) {
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
                // Whatever happens in a folder, its files are not looked at more often than this.
                tokio::time::sleep(DEBOUNCE).await;
            }
        }
    }

    /// The files, when nobody writes them any more or it was waited for long enough.
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

    /// The files as they are now. A file system may take its time.
    async fn current_hashes(&self) -> FileHashes {
        let seen = self.file_hashes.clone();
        tokio::task::spawn_blocking(move || seen.rehash()).await.unwrap_or_else(|_| self.file_hashes.clone())
    }

    /// Makes the node what the files say. The keys come first, for they count whatever becomes of the rest.
    async fn reload(&mut self) {
        let before = self.current_hashes().await;
        self.assembly.reload_authenticator();
        let mut seen = FileHashes::default();
        match LoadedConfig::read_tracking_files(&self.file, &mut seen) {
            Ok(loaded) => apply_config(&self.assembly, &Arc::new(loaded)).await,
            Err(broken) => tracing::error!("the configuration stays as it was: {broken}"),
        }
        // Also while a new configuration is wrong the one in force has its keys.
        for file in self.assembly.current_config().iter().flat_map(|entered| entered.files()) {
            seen.record(&file);
        }
        self.file_hashes = seen.with_hashes_of(&before);
        self.folder_watcher.watch(&self.file_hashes);
    }
}

async fn apply_config(assembly: &NodeAssembler, loaded: &Arc<LoadedConfig>) {
    match assembly.apply_config(loaded).await {
        Ok(assembled) => {
            let (databases, tools) = (assembled.databases, assembled.tools);
            tracing::info!(databases, tools, "the configuration was read again");
            for warning in assembled.warnings {
                tracing::warn!("{warning}");
            }
        }
        Err(broken) => tracing::error!("the configuration stays as it was: {broken}"),
    }
}

/// The folders that are watched: a file that is replaced is another one, but its folder stays.
struct FolderWatcher {
    watcher: notify::RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
}

impl FolderWatcher {
    fn new(woken: mpsc::Sender<()>) -> anyhow::Result<Self> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                // One that waits already says it too.
                let _ = woken.try_send(());
            }
        });
        Ok(Self {
            watcher: watcher.context("cannot watch for changes of the configuration")?,
            folders: BTreeSet::new(),
        })
    }

    /// Watches the folders of the files in `seen`, those that links lead to as well, and no others. A folder is
    /// watched anew each time, as another one may have come into its place.
    fn watch(&mut self, seen: &FileHashes) {
        for folder in std::mem::take(&mut self.folders) {
            // One that is gone is no longer watched either.
            let _ = self.watcher.unwatch(&folder);
        }
        let behind_links = seen.paths().filter_map(|path| path.canonicalize().ok());
        let files = seen.paths().map(Path::to_owned).chain(behind_links);
        self.folders =
            files.filter_map(|file| file.parent().filter(|folder| folder.is_dir()).map(Path::to_owned)).collect();
        for folder in &self.folders {
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::warn!("changes in {} are noticed a little later: {error}", folder.display());
            }
        }
    }
}

/// Follows the handlers of all databases of whatever configuration is in force, until `ended` fires.
pub(crate) fn spawn_handler_watcher(assembly: Arc<NodeAssembler>, ended: CancellationToken) {
    tokio::spawn(async move {
        tokio::select! {
            () = ended.cancelled() => {}
            () = watch_all(&assembly) => {}
        }
    });
}

async fn watch_all(assembly: &NodeAssembler) {
    let mut generations = assembly.generations();
    loop {
        let generation = *generations.borrow_and_update();
        let following = assembly.handler_changes().into_iter();
        let following = following.map(|(name, changes)| watch_one(assembly, generation, name, changes));
        tokio::select! {
            entered = generations.changed() => if entered.is_err() {
                return;
            },
            // They never end; without any the next configuration is waited for.
            _ = async { join_all(following).await; std::future::pending::<()>().await } => {}
        }
    }
}

async fn watch_one(assembly: &NodeAssembler, generation: u64, name: String, mut changes: HandlerWatcher) {
    loop {
        let catalog = changes.next_change().await;
        assembly.refresh_handlers(generation, &name, catalog);
    }
}

/// SIGHUP, which requests a reload. Signals that arrive during a reload count as one.
#[cfg(unix)]
struct Sighup(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Sighup {
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::hangup())?))
    }

    async fn recv(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// There is no such signal on this system.
#[cfg(not(unix))]
struct Sighup;

#[cfg(not(unix))]
impl Sighup {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self)
    }

    async fn recv(&mut self) {
        std::future::pending::<()>().await;
    }
}
