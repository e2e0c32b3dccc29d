//! The tables as they are now: looks again when the last look is old, and reads only what changed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::{Error, ErrorKind};
use tokio::sync::Mutex;

use super::glob::Glob;
use super::layout::{Layout, Problem};
use super::limits::FileLimits;
use super::probe::probe;
use super::skipped::Skipped;
use super::snapshot::{Assembly, ProbeResult, Snapshot};
use super::table::Learned;
use super::told::Told;
use super::unite::location_of;
use super::walk::{Fingerprint, FoundFile, Walker};
use super::wall::{Wall, reason_of};
use crate::embedded::engine::Engine;
use crate::embedded::store::CatalogStore;

/// How many times as long as a look took we wait at least until the next.
const PAUSE_PER_LOOK: u32 = 10;

/// The files of a database and the tables that they make.
#[derive(Debug)]
pub(crate) struct Files {
    paths: Vec<FilesPath>,
    limits: FileLimits,
    told: Told,
    engine: Engine,
    learned: Arc<Learned>,
    state: Mutex<State>,
}

/// Where files are.
#[derive(Debug, Clone)]
pub(crate) enum FilesPath {
    /// A folder or a file.
    Plain(PathBuf),
    /// Those of a folder that fit.
    Glob(Glob),
}

impl FilesPath {
    /// The path that must be there.
    pub(crate) fn root(&self) -> &Path {
        match self {
            Self::Plain(path) => path,
            Self::Glob(glob) => glob.folder(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    snapshot: Option<Arc<Snapshot>>,
    fresh_until: Option<Instant>,
    /// What `snapshot` was made from.
    made_from: Option<Found>,
    lessons: u64,
    probes: HashMap<String, (Fingerprint, ProbeResult)>,
}

/// What one look found, to be compared with another.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// The location and fingerprint of each file, in their order.
    files: Vec<(String, Option<Fingerprint>)>,
    problems: Vec<Problem>,
    skipped: Skipped,
}

/// What one look found, to make tables from.
struct Look {
    wall: Wall,
    layout: Layout,
    found: Found,
}

impl Files {
    pub(crate) fn new(paths: Vec<FilesPath>, limits: FileLimits, told: Told, engine: Engine) -> Self {
        Self { paths, limits, told, engine, learned: Arc::default(), state: Mutex::default() }
    }

    /// Where readers tell what rows taught them.
    pub(crate) fn learned(&self) -> &Arc<Learned> {
        &self.learned
    }

    /// What the owner tells of its tables.
    pub(crate) fn told(&self) -> &Told {
        &self.told
    }

    /// How far it looks.
    pub(crate) fn limits(&self) -> &FileLimits {
        &self.limits
    }

    /// The globs that no file fits now.
    pub(crate) fn idle_globs(&self) -> Vec<String> {
        let globs = self.paths.iter().filter_map(|path| match path {
            FilesPath::Glob(glob) => Some(glob),
            FilesPath::Plain(_) => None,
        });
        let is_idle = |glob: &&Glob| {
            let Ok(real) = std::fs::canonicalize(glob.folder()) else { return true };
            let wall = Wall::around(vec![real.clone()]);
            let mut layout = Layout::default();
            layout.add_root(Walker::new(&wall, self.limits).folder_of(glob, &real, "", ""));
            layout.files().next().is_none()
        };
        globs.filter(is_idle).map(|glob| glob.pattern().to_owned()).collect()
    }

    /// The tables as they are now, whatever was looked at a moment ago.
    pub(crate) async fn looked_at_again(&self) -> Result<Arc<Snapshot>, Error> {
        self.state.lock().await.fresh_until = None;
        self.current().await
    }

    /// The tables as they are now, or were a moment ago.
    pub(crate) async fn current(&self) -> Result<Arc<Snapshot>, Error> {
        // Held while looking, so that many callers make one look.
        let mut state = self.state.lock().await;
        let lessons = self.learned.lessons();
        if let (Some(snapshot), Some(until)) = (&state.snapshot, state.fresh_until)
            && Instant::now() < until
            && lessons == state.lessons
        {
            return Ok(snapshot.clone());
        }
        let began = Instant::now();
        let look = self.look().await?;
        let pause = self.pause_after(began.elapsed());
        if let Some(snapshot) = &state.snapshot
            && state.made_from.as_ref() == Some(&look.found)
            && lessons == state.lessons
        {
            let snapshot = snapshot.clone();
            state.fresh_until = Some(Instant::now() + pause);
            return Ok(snapshot);
        }
        let snapshot = Arc::new(self.assemble(look, &mut state, lessons).await?);
        state.snapshot = Some(snapshot.clone());
        state.fresh_until = Some(Instant::now() + pause);
        Ok(snapshot)
    }

    fn pause_after(&self, look: Duration) -> Duration {
        match self.limits.rescan_after {
            Duration::ZERO => Duration::ZERO,
            least => least.max(look * PAUSE_PER_LOOK),
        }
    }

    async fn look(&self) -> Result<Look, Error> {
        let (paths, limits) = (self.paths.clone(), self.limits);
        self.engine.run_blocking(move || look(&paths, limits)).await
    }

    async fn assemble(&self, look: Look, state: &mut State, lessons: u64) -> Result<Snapshot, Error> {
        let Look { wall, layout, found } = look;
        let current: HashMap<&str, &Option<Fingerprint>> =
            found.files.iter().map(|(location, fingerprint)| (location.as_str(), fingerprint)).collect();
        if lessons > 0 {
            let there: HashSet<String> = current.keys().map(|location| location_of(location).to_string()).collect();
            self.learned.keep_only(|location| there.contains(location));
        }
        state.probes.retain(|location, (probed, _)| {
            current.get(location.as_str()).is_some_and(|now| now.as_ref() == Some(probed))
        });
        let mut layout = Some(layout);
        let mut missing = layout.as_ref().map(|layout| Assembly::to_probe(layout, &self.limits)).unwrap_or_default();
        // The second time all files of folders that fell apart have been looked into.
        loop {
            self.probe_all(missing, &wall, state).await?;
            let probes =
                state.probes.iter().map(|(location, (_, result))| (location.clone(), result.clone())).collect();
            let (learned, wall_of_store, told) = (self.learned.clone(), wall.clone(), self.told.clone());
            let batch_rows = self.engine.options().batch_rows;
            let Some(given) = layout.take() else {
                return Err(Error::internal("files of a folder were looked into and are missing all the same"));
            };
            let again = given.clone();
            let assembled = self
                .engine
                .run_blocking(move || {
                    let assembly = Assembly { probes: &probes, learned: &learned, told: &told, batch_rows };
                    Ok(assembly.assemble(given, |files| CatalogStore::new(wall_of_store, files)))
                })
                .await?;
            match assembled {
                Ok(snapshot) => {
                    state.made_from = Some(found);
                    state.lessons = lessons;
                    return Ok(snapshot);
                }
                Err(more) => {
                    missing = more;
                    layout = Some(again);
                }
            }
        }
    }

    /// Looks into those of `files` that are not known, on several threads.
    async fn probe_all(&self, files: Vec<FoundFile>, wall: &Wall, state: &mut State) -> Result<(), Error> {
        let unknown: Vec<FoundFile> =
            files.into_iter().filter(|file| !state.probes.contains_key(&file.location)).collect();
        let parts = self.engine.options().threads.max(1);
        let share = unknown.len().div_ceil(parts).max(1);
        let works = unknown.chunks(share).map(|files| {
            let (files, wall, limits, told) = (files.to_vec(), wall.clone(), self.limits, self.told.clone());
            self.engine.run_blocking(move || {
                Ok(files
                    .into_iter()
                    .filter_map(|file| {
                        let fingerprint = *file.fingerprint.as_ref().ok()?;
                        let result = probe(&file, &wall, &limits, &told).map(Arc::new);
                        Some((file.location, (fingerprint, result)))
                    })
                    .collect::<Vec<_>>())
            })
        });
        for probed in futures::future::try_join_all(works).await? {
            state.probes.extend(probed);
        }
        Ok(())
    }
}

fn look(paths: &[FilesPath], limits: FileLimits) -> Result<Look, Error> {
    let real: Vec<Option<PathBuf>> = paths.iter().map(|path| std::fs::canonicalize(path.root()).ok()).collect();
    if !paths.is_empty() && real.iter().all(Option::is_none) {
        let first = paths[0].root();
        let reason = std::fs::canonicalize(first).err().map(|error| reason_of(&error)).unwrap_or_default();
        let detail = format!("{}: {reason}", first.display());
        return Err(Error::new(ErrorKind::Unavailable, "the database's files are gone").with_detail(detail));
    }
    let wall = Wall::around(real.iter().flatten().cloned().collect());
    let mut walker = Walker::new(&wall, limits);
    let mut layout = Layout::default();
    let several = paths.len() > 1;
    for (index, (place, real)) in paths.iter().zip(&real).enumerate() {
        let path = place.root();
        let name = name_of(path, real.as_deref());
        // Folders of the same name are told apart by their number.
        let prefix = if several {
            format!("{}{name}/", if index == 0 { String::new() } else { format!("{}~", index + 1) })
        } else {
            String::new()
        };
        match (real, place) {
            (None, _) => layout.add_problem(&name, "the path is gone"),
            (Some(real), FilesPath::Glob(glob)) => layout.add_root(walker.folder_of(glob, real, &name, &prefix)),
            (Some(real), _) if real.is_dir() => layout.add_root(walker.folder(real, &name, &prefix)),
            (Some(real), _) => match walker.file(path, format!("{prefix}{}", file_name_of(path))) {
                Some(file) => layout.add_file(file),
                None => layout.add_problem(&name, &format!("{} is in no format that is known", file_name_of(real))),
            },
        }
    }
    let files = layout.files().map(|file| (file.location.clone(), file.fingerprint.as_ref().ok().copied())).collect();
    layout.skipped = walker.into_skipped();
    let found = Found { files, problems: layout.problems.clone(), skipped: layout.skipped.clone() };
    Ok(Look { wall, layout, found })
}

fn name_of(path: &Path, real: Option<&Path>) -> String {
    // `.` and `..` have no name of their own.
    let named = if path.file_name().is_some() { Some(path) } else { real };
    named.and_then(Path::file_name).map_or_else(|| "files".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn file_name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
