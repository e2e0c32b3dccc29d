//! All tasks of a node, their bounds, and where they are written down.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use parking_lot::Mutex;
use tidegate_core::{Caller, Owner, Registry};
use tokio_util::task::TaskTracker;

use super::entry::Entry;
use super::folder::TaskFolder;
use super::record::{Ending, Record, Status, TaskId};
use crate::jsonrpc::RpcError;

/// The bounds of tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskLimits {
    /// How long a task is kept, from when it was made.
    pub(crate) time_to_live: Duration,
    /// Tasks that are kept.
    pub(crate) kept_max: usize,
    /// Those of one owner.
    pub(crate) kept_of_one_max: usize,
    /// Those of one owner that go on.
    pub(crate) running_of_one_max: usize,
    /// A longer result becomes an error, in bytes.
    pub(crate) result_bytes_max: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            time_to_live: Duration::from_secs(2 * 60 * 60),
            kept_max: 40_000,
            kept_of_one_max: 20_000,
            running_of_one_max: 100,
            result_bytes_max: 1024 * 1024,
        }
    }
}

/// All tasks of a node.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(super) limits: TaskLimits,
    /// None where nothing is written down, and tasks live as long as the process.
    folder: Option<TaskFolder>,
    table: Mutex<Table>,
    pub(super) keepers: TaskTracker,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<TaskId, Entry>,
    kept_of: HashMap<Owner, usize>,
}

impl Tasks {
    /// The tasks that were written down in `folder`. Those that went on when their process ended have failed.
    pub(crate) fn open(folder: Option<TaskFolder>, limits: TaskLimits) -> Arc<Self> {
        let mut table = Table::default();
        let now = Utc::now();
        for mut facts in folder.as_ref().map(|folder| folder.found(now)).unwrap_or_default() {
            // Where the clock was set back meanwhile, its time would not end.
            facts.created = facts.created.min(now);
            let mut ending = None;
            if !facts.status.is_terminal() {
                let error = RpcError::new(RpcError::INTERNAL_ERROR, "the server was restarted while the task went on");
                facts.status = Status::Failed;
                facts.message = Some(error.message.clone());
                facts.updated = now;
                ending = Some(Ending { result: None, error: error.to_raw() });
            }
            let mut entry = Entry::new(facts, None);
            entry.ending = ending;
            table.insert(entry);
        }
        Arc::new(Self { limits, folder, table: Mutex::new(table), keepers: TaskTracker::new() })
    }

    /// Writes a new task down.
    ///
    /// # Errors
    /// When its owner has too many, or it cannot be written down.
    pub(super) async fn insert(&self, entry: Entry) -> Result<(), RpcError> {
        self.forget_over().await;
        let record = Record { facts: entry.facts.clone(), ending: Ending::default() };
        let id = entry.facts.id;
        {
            let mut table = self.table.lock();
            table.has_room(&entry.facts.owner, &self.limits)?;
            table.insert(entry);
        }
        if let Some(folder) = &self.folder
            && let Err(error) = folder.write(&record).await
        {
            self.table.lock().remove(id);
            told(&error);
            return Err(RpcError::new(RpcError::INTERNAL_ERROR, "the task could not be written down; try again later"));
        }
        Ok(())
    }

    /// Ends a task. Its end is told when it is written down.
    pub(super) async fn end(&self, id: TaskId, status: Status, message: Option<String>, ending: Ending) {
        let Some(mut facts) = self.with(id, |entry| entry.facts.clone()) else { return };
        (facts.status, facts.message, facts.updated) = (status, message, Utc::now());
        let record = Record { facts, ending };
        let is_written = match &self.folder {
            // An end that cannot be written down is told all the same, as long as the process lives.
            Some(folder) => folder.write(&record).await.inspect_err(told).is_ok(),
            None => false,
        };
        let Record { facts, ending } = record;
        self.with(id, |entry| entry.end(facts, (!is_written).then_some(ending)));
    }

    /// What `look` finds in the task `id`.
    pub(super) fn with<T>(&self, id: TaskId, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.table.lock().entries.get_mut(&id).map(look)
    }

    /// The task that `text` names, if it is one of `caller`, who may still call its tool, and is not over.
    ///
    /// # Errors
    /// `-32602`, the same for one that is another's and one that never was.
    pub(super) fn find(&self, text: &str, registry: &Registry, caller: &Caller) -> Result<TaskId, RpcError> {
        let owner = Owner::of(caller);
        let now = Utc::now();
        let id = TaskId::parse(text).filter(|id| {
            let tool = self.with(*id, |entry| {
                let facts = &entry.facts;
                (facts.owner == owner && !facts.is_over(now)).then(|| facts.tool.clone())
            });
            tool.flatten().is_some_and(|tool| registry.state_for(caller).tool(&tool, caller).is_ok())
        });
        id.ok_or_else(|| RpcError::invalid_params("there is no task of that id, or it has expired"))
    }

    /// The members of the task's `DetailedTask`, as JSON text without braces.
    ///
    /// # Errors
    /// When it has gone, or what was written down cannot be read.
    pub(super) async fn detailed(&self, id: TaskId) -> Result<String, RpcError> {
        let gone = || RpcError::invalid_params("there is no task of that id, or it has expired");
        let (facts, questions, ending) =
            self.with(id, |entry| (entry.facts.clone(), entry.questions(), entry.ending.clone())).ok_or_else(gone)?;
        let ending = match (&self.folder, ending) {
            (_, Some(ending)) => ending,
            (Some(folder), None) if facts.status.is_terminal() => match folder.read(id).await {
                Ok(record) => record.ending,
                Err(error) => {
                    tracing::warn!(%error, "a task cannot be read");
                    return Err(RpcError::new(RpcError::INTERNAL_ERROR, "the result of the task cannot be read"));
                }
            },
            _ => Ending::default(),
        };
        Ok(facts.members() + &questions + &ending.members())
    }

    /// Waits until no task goes on: their jobs must have been ended.
    pub(crate) async fn drain(&self) {
        self.keepers.close();
        self.keepers.wait().await;
    }

    async fn forget_over(&self) {
        let over = self.table.lock().take_over(Utc::now());
        if let Some(folder) = self.folder.as_ref().filter(|_| !over.is_empty()) {
            folder.remove(over).await;
        }
    }
}

fn told(error: &std::io::Error) {
    tracing::warn!(%error, "a task could not be written down");
}

impl Table {
    fn insert(&mut self, entry: Entry) {
        *self.kept_of.entry(entry.facts.owner.clone()).or_default() += 1;
        self.entries.insert(entry.facts.id, entry);
    }

    fn remove(&mut self, id: TaskId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        if let Some(kept) = self.kept_of.get_mut(&entry.facts.owner) {
            *kept -= 1;
            if *kept == 0 {
                self.kept_of.remove(&entry.facts.owner);
            }
        }
    }

    /// Takes away the tasks whose time is over; one that goes on stays until it has ended.
    fn take_over(&mut self, now: chrono::DateTime<Utc>) -> Vec<TaskId> {
        let is_over = |entry: &Entry| entry.facts.status.is_terminal() && entry.facts.is_over(now);
        let over: Vec<TaskId> =
            self.entries.values().filter(|entry| is_over(entry)).map(|entry| entry.facts.id).collect();
        for id in &over {
            self.remove(*id);
        }
        over
    }

    fn has_room(&self, owner: &Owner, limits: &TaskLimits) -> Result<(), RpcError> {
        let refuse = |what: String| Err(RpcError::new(RpcError::REFUSED, what));
        if self.entries.len() >= limits.kept_max {
            return refuse("too many tasks are kept; try again later".to_owned());
        }
        if self.kept_of.get(owner).is_some_and(|kept| *kept >= limits.kept_of_one_max) {
            return refuse(format!(
                "more than {} of your tasks are kept; wait until some expire",
                limits.kept_of_one_max
            ));
        }
        let running = self.entries.values().filter(|entry| entry.job.is_some() && entry.facts.owner == *owner).count();
        if running >= limits.running_of_one_max {
            return refuse(format!("more than {} of your tasks go on; wait until one ends", limits.running_of_one_max));
        }
        Ok(())
    }
}
