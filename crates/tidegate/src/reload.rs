//! A configuration that is followed: a changed file, or SIGHUP, changes the running node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{Assembly, Loaded};

/// Editors write a file in several steps; so long nothing may happen before it is read.
const QUIET_FOR: Duration = Duration::from_millis(100);

/// Follows the file of `loaded` until `ended` fires.
pub(crate) fn follow(assembly: Arc<Assembly>, loaded: &Loaded, ended: CancellationToken) -> anyhow::Result<()> {
    let (changed, mut changes) = mpsc::channel(1);
    let file = loaded.path().to_owned();
    let mut watched = Watched::new(changed.clone())?;
    watched.watch(loaded)?;
    listen_to_hang_up(changed)?;
    let mut files = loaded.files();
    let mut seen = contents(&files);
    tokio::spawn(async move {
        loop {
            let is_asked = tokio::select! {
                biased;
                () = ended.cancelled() => return,
                change = changes.recv() => match change {
                    Some(change) => change == Change::Asked,
                    None => return,
                },
            };
            while tokio::time::timeout(QUIET_FOR, changes.recv()).await.is_ok_and(|change| change.is_some()) {}
            // Other files of the folder change too, the log among them.
            let now = contents(&files);
            if now == seen && !is_asked {
                continue;
            }
            seen = now;
            match Loaded::read(&file) {
                Ok(loaded) => {
                    files = loaded.files();
                    seen = contents(&files);
                    enter(&assembly, &loaded).await;
                    if let Err(error) = watched.watch(&loaded) {
                        tracing::warn!("changes of the configuration may go unseen: {error:#}");
                    }
                }
                Err(broken) => tracing::error!("the configuration stays as it was: {broken}"),
            }
        }
    });
    Ok(())
}

async fn enter(assembly: &Assembly, loaded: &Loaded) {
    match assembly.enter(loaded).await {
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

/// Why the configuration is to be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Something happened in a folder.
    Seen,
    /// Somebody sent SIGHUP.
    Asked,
}

/// What the files of a configuration hold: only a difference is a change.
fn contents(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|file| std::fs::read(file).ok()).collect()
}

/// The folders that are watched: a file that is replaced is another one, but its folder stays.
struct Watched {
    watcher: notify::RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
}

impl Watched {
    fn new(changed: mpsc::Sender<Change>) -> anyhow::Result<Self> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                // One that waits already says it too.
                let _ = changed.try_send(Change::Seen);
            }
        });
        Ok(Self {
            watcher: watcher.context("cannot watch for changes of the configuration")?,
            folders: BTreeSet::new(),
        })
    }

    fn watch(&mut self, loaded: &Loaded) -> anyhow::Result<()> {
        for file in loaded.files() {
            let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
            if folder.is_dir() && self.folders.insert(folder.clone()) {
                let watching = self.watcher.watch(&folder, RecursiveMode::NonRecursive);
                watching.with_context(|| format!("cannot watch {}", folder.display()))?;
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn listen_to_hang_up(changed: mpsc::Sender<Change>) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            if changed.send(Change::Asked).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn listen_to_hang_up(_changed: mpsc::Sender<Change>) -> anyhow::Result<()> {
    Ok(())
}
