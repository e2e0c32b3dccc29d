//! All tasks of a node, their limits and their storage. Each has its metadata, pending input requests and listeners in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{Caller, CallerIdentity, tenant_share, tenant_share_of_bytes};
use tidegate_runtime::{Job, PendingInputRequest, Registry};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::record::{TaskFolder, TaskId, TaskMetadata, TaskRecord, TaskResult, TaskStatus};
use crate::jsonrpc::RpcError;
use crate::messages::{encode_input_requests, parse_input_answer};

const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// The limits of tasks. The principals of one tenant together can have half of the totals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskLimits {
    /// How long a task is stored after its creation, and at least after its end.
    pub(crate) time_to_live: Duration,
    kept_after_end: Duration,
    kept_max: usize,
    kept_per_owner_max: usize,
    running_per_owner_max: usize,
    /// The maximum length of a result in bytes; a longer one becomes an error.
    pub(crate) result_bytes_max: usize,
    /// The maximum size of all stored results in bytes; beyond it no task is created.
    kept_bytes_max: u64,
    kept_bytes_per_owner_max: u64,
}

impl TaskLimits {
    fn in_memory(self) -> Self {
        Self {
            kept_max: 1_000,
            kept_per_owner_max: 250,
            kept_bytes_max: 32 * 1024 * 1024,
            kept_bytes_per_owner_max: 8 * 1024 * 1024,
            ..self
        }
    }
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            time_to_live: Duration::from_secs(2 * 60 * 60),
            kept_after_end: Duration::from_secs(60 * 60),
            kept_max: 40_000,
            kept_per_owner_max: 20_000,
            running_per_owner_max: 100,
            result_bytes_max: 1024 * 1024,
            kept_bytes_max: 1024 * 1024 * 1024,
            kept_bytes_per_owner_max: 256 * 1024 * 1024,
        }
    }
}

#[derive(Debug)]
pub(crate) struct TaskStore {
    pub(super) limits: TaskLimits,
    /// `None` if tasks are stored in memory only and end with the process.
    folder: Option<TaskFolder>,
    table: Mutex<TaskTable>,
    pub(super) recorders: TaskTracker,
}

#[derive(Debug, Default)]
struct TaskTable {
    entries: HashMap<TaskId, TaskEntry>,
    usage: TaskUsage,
    owner_usage: HashMap<CallerIdentity, TaskUsage>,
    tenant_usage: HashMap<String, TaskUsage>,
    /// The time of the next check for expired tasks. Checking all tasks for each new one would be slow.
    next_expiry_check: Option<Instant>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TaskUsage {
    tasks: usize,
    running: usize,
    bytes: u64,
}

impl TaskStore {
    /// Opens the tasks stored in `folder`. Tasks that ran when their process ended have failed.
    pub(crate) fn open(folder: Option<TaskFolder>, limits: TaskLimits) -> Arc<Self> {
        let mut table = TaskTable::default();
        let now = Utc::now();
        let limits = if folder.is_some() { limits } else { limits.in_memory() };
        for mut metadata in folder.as_ref().map(|folder| folder.load_tasks(now)).unwrap_or_default() {
            // If the clock was set back meanwhile, the task would expire too late.
            metadata.created = metadata.created.min(now);
            let mut result = None;
            if !metadata.status.is_terminal() {
                let error =
                    RpcError::new(RpcError::INTERNAL_ERROR, "the server was restarted while the task was running");
                metadata.status = TaskStatus::Failed;
                metadata.message = Some(error.message.clone());
                metadata.updated = now;
                result = Some(TaskResult { result: None, error: error.to_raw() });
            }
            let mut entry = TaskEntry::new(metadata, None);
            entry.result = result;
            table.insert(entry);
        }
        Arc::new(Self { limits, folder, table: Mutex::new(table), recorders: TaskTracker::new() })
    }

    pub(super) async fn insert(&self, entry: TaskEntry) -> Result<(), RpcError> {
        self.remove_expired_tasks().await;
        let record = TaskRecord { metadata: entry.metadata.clone(), result: TaskResult::default() };
        let id = entry.metadata.id;
        {
            let mut table = self.table.lock();
            table.check_room(&entry.metadata.owner, &self.limits)?;
            table.insert(entry);
        }
        if let Some(folder) = &self.folder
            && let Err(error) = folder.write(&record).await
        {
            self.table.lock().remove(id);
            log_write_error(&error);
            return Err(RpcError::new(RpcError::INTERNAL_ERROR, "the task could not be stored; try again later"));
        }
        Ok(())
    }

    /// Ends a task. Its end becomes visible when it is stored.
    pub(super) async fn end(&self, id: TaskId, status: TaskStatus, message: Option<String>, result: TaskResult) {
        let metadata = self.with_entry(id, |entry| {
            let databases = entry.job.as_ref().map(|job| job.databases());
            TaskMetadata { databases: databases.unwrap_or_default(), ..entry.metadata.clone() }
        });
        let Some(mut metadata) = metadata else { return };
        (metadata.status, metadata.message, metadata.updated) = (status, message, Utc::now());
        metadata.bytes = result.bytes();
        metadata.extend_lifetime(self.limits.kept_after_end);
        let record = TaskRecord { metadata, result };
        let is_written = match &self.folder {
            // If the end cannot be written, the result stays in memory until the process ends.
            Some(folder) => folder.write(&record).await.inspect_err(log_write_error).is_ok(),
            None => false,
        };
        let TaskRecord { metadata, result } = record;
        self.table.lock().end(id, metadata, (!is_written).then_some(result));
    }

    pub(super) fn with_entry<T>(&self, id: TaskId, look: impl FnOnce(&mut TaskEntry) -> T) -> Option<T> {
        self.table.lock().entries.get_mut(&id).map(look)
    }

    /// Finds the task with the id `text`, if `caller` owns it, still has its roles and row policies, may call its tool
    /// and query its databases, and if it has not expired. The error does not reveal whether the task ever existed.
    pub(super) fn find(&self, text: &str, registry: &Registry, caller: &Caller) -> Result<TaskId, RpcError> {
        let (owner, now) = (CallerIdentity::from_caller(caller), Utc::now());
        let id = TaskId::parse(text).filter(|id| {
            let requirements = self.with_entry(*id, |TaskEntry { metadata, job, .. }| {
                let databases = job.as_ref().map_or_else(|| metadata.databases.clone(), |job| job.databases());
                let is_expired = job.is_none() && metadata.is_expired(now);
                let is_owned = metadata.owner == owner && metadata.roles.is_subset(&caller.principal.roles);
                (is_owned && !is_expired).then(|| (metadata.tool.clone(), databases, metadata.row_policies))
            });
            requirements.flatten().is_some_and(|(tool, databases, row_policies)| {
                let snapshot = registry.snapshot_for(caller);
                databases.iter().all(|name| snapshot.can_query_database(name, &caller.principal))
                    && snapshot.row_policies().fingerprint_for(&caller.principal) == row_policies
                    && snapshot.tool(&tool, caller).is_ok()
            })
        });
        id.ok_or_else(unknown_task)
    }

    /// The members of the task's `DetailedTask`, as JSON text without braces.
    pub(super) async fn encode_detailed(&self, id: TaskId) -> Result<String, RpcError> {
        let (metadata, input_requests, result) = self
            .with_entry(id, |entry| (entry.metadata.clone(), entry.input_request_members(), entry.result.clone()))
            .ok_or_else(unknown_task)?;
        let result = match (&self.folder, result) {
            (_, Some(result)) => result,
            (Some(folder), None) if metadata.status.is_terminal() => match folder.read(id).await {
                Ok(record) => record.result,
                Err(error) => {
                    tracing::warn!(%error, "cannot read a task file");
                    return Err(RpcError::new(RpcError::INTERNAL_ERROR, "the result of the task cannot be read"));
                }
            },
            _ => TaskResult::default(),
        };
        Ok(metadata.members() + &input_requests + &result.members())
    }

    /// Waits at most `within` until no task is running. Their jobs must have been cancelled or have ended before.
    pub(crate) async fn drain(&self, within: Duration) {
        self.recorders.close();
        let _ = tokio::time::timeout(within, self.recorders.wait()).await;
    }

    async fn remove_expired_tasks(&self) {
        let expired = self.table.lock().remove_expired(Utc::now());
        if let Some(folder) = self.folder.as_ref().filter(|_| !expired.is_empty()) {
            folder.remove(expired).await;
        }
    }
}

fn unknown_task() -> RpcError {
    RpcError::invalid_params("there is no task of that id, or it has expired")
}

fn log_write_error(error: &std::io::Error) {
    tracing::warn!(%error, "cannot write a task file");
}

impl TaskTable {
    fn insert(&mut self, entry: TaskEntry) {
        self.count(&entry.metadata.owner, |kept| {
            kept.tasks += 1;
            kept.running += usize::from(entry.job.is_some());
            kept.bytes += entry.metadata.bytes;
        });
        self.entries.insert(entry.metadata.id, entry);
    }

    fn remove(&mut self, id: TaskId) {
        let Some(TaskEntry { metadata, job, .. }) = self.entries.remove(&id) else { return };
        self.count(&metadata.owner, |kept| {
            kept.tasks -= 1;
            kept.running -= usize::from(job.is_some());
            kept.bytes -= metadata.bytes;
        });
        if self.owner_usage.get(&metadata.owner).is_some_and(|kept| kept.tasks == 0) {
            self.owner_usage.remove(&metadata.owner);
        }
        if let Some(tenant) = metadata.owner.tenant
            && self.tenant_usage.get(&tenant).is_some_and(|kept| kept.tasks == 0)
        {
            self.tenant_usage.remove(&tenant);
        }
    }

    fn end(&mut self, id: TaskId, metadata: TaskMetadata, result: Option<TaskResult>) {
        self.count(&metadata.owner, |kept| {
            kept.running -= 1;
            kept.bytes += metadata.bytes;
        });
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.end(metadata, result);
        }
    }

    fn count(&mut self, owner: &CallerIdentity, count: impl Fn(&mut TaskUsage)) {
        count(&mut self.usage);
        count(self.owner_usage.entry(owner.clone()).or_default());
        if let Some(tenant) = &owner.tenant {
            count(self.tenant_usage.entry(tenant.clone()).or_default());
        }
    }

    /// Removes expired tasks; a running task stays until it has ended.
    fn remove_expired(&mut self, now: DateTime<Utc>) -> Vec<TaskId> {
        if self.next_expiry_check.is_some_and(|at| Instant::now() < at) {
            return Vec::new();
        }
        self.next_expiry_check = Some(Instant::now() + EXPIRY_INTERVAL);
        let tasks = self.entries.values().map(|entry| &entry.metadata);
        let expired = tasks.filter(|task| task.status.is_terminal() && task.is_expired(now));
        let expired: Vec<TaskId> = expired.map(|task| task.id).collect();
        for id in &expired {
            self.remove(*id);
        }
        expired
    }

    fn check_room(&self, owner: &CallerIdentity, limits: &TaskLimits) -> Result<(), RpcError> {
        let refuse = |subject: String| Err(RpcError::new(RpcError::REFUSED, subject));
        let of_one = self.owner_usage.get(owner).copied().unwrap_or_default();
        if of_one.tasks >= limits.kept_per_owner_max || of_one.bytes >= limits.kept_bytes_per_owner_max {
            return refuse(format!(
                "you have reached your limit of stored tasks ({}); wait until some expire",
                of_one.tasks
            ));
        }
        if of_one.running >= limits.running_per_owner_max {
            return refuse(format!(
                "you have reached your limit of {} running tasks; wait until one ends",
                limits.running_per_owner_max
            ));
        }
        let of_tenant = owner.tenant.as_ref().and_then(|tenant| self.tenant_usage.get(tenant)).copied();
        let TaskUsage { tasks, bytes, .. } = of_tenant.unwrap_or_default();
        if tasks >= tenant_share(limits.kept_max) || bytes >= tenant_share_of_bytes(limits.kept_bytes_max) {
            return refuse(format!(
                "your tenant has reached its limit of stored tasks ({tasks}); wait until some expire"
            ));
        }
        if self.usage.tasks >= limits.kept_max || self.usage.bytes >= limits.kept_bytes_max {
            return refuse("the server has reached its limit of stored tasks; try again later".to_owned());
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct TaskEntry {
    pub(super) metadata: TaskMetadata,
    pub(super) job: Option<Arc<Job>>,
    /// The result, if it is not stored on disk.
    pub(super) result: Option<TaskResult>,
    /// Pending input requests, by the key that the client received.
    pending_inputs: BTreeMap<String, PendingInputRequest>,
    /// All keys that the client received: a key must not be used twice.
    used_keys: HashSet<String>,
    pub(super) listeners: TaskListeners,
}

impl TaskEntry {
    pub(super) fn new(metadata: TaskMetadata, job: Option<Arc<Job>>) -> Self {
        let (pending_inputs, used_keys) = (BTreeMap::new(), HashSet::new());
        Self { metadata, job, result: None, pending_inputs, used_keys, listeners: TaskListeners::default() }
    }

    pub(super) fn add_input_request(&mut self, pending: PendingInputRequest) {
        let (mut key, mut times) = (pending.key.clone(), 1);
        while !self.used_keys.insert(key.clone()) {
            times += 1;
            key = format!("{}-{times}", pending.key);
        }
        self.pending_inputs.insert(key, pending);
        self.update_status(TaskStatus::InputRequired, None);
    }

    /// Ignores answers to unknown and answered requests. If the answer is invalid, the request stays pending.
    pub(super) fn accept_answer(&mut self, key: &str, result: &Value) -> Result<(), String> {
        let Some(pending) = self.pending_inputs.get(key) else { return Ok(()) };
        let answer = parse_input_answer(result)?;
        pending.request.check(&answer)?;
        if let Some(pending) = self.pending_inputs.remove(key) {
            // Sending fails only if the handler has ended meanwhile.
            let _ = pending.answer_sender.send(answer);
        }
        if self.pending_inputs.is_empty() {
            self.update_status(TaskStatus::Working, None);
        } else {
            self.notify_listeners();
        }
        Ok(())
    }

    pub(super) fn set_message(&mut self, message: String) {
        if self.metadata.message.as_ref() != Some(&message) {
            self.update_status(self.metadata.status, Some(message));
        }
    }

    /// Ends the task with `metadata`. `result` is set if the result is not stored on disk.
    pub(super) fn end(&mut self, metadata: TaskMetadata, result: Option<TaskResult>) {
        self.job = None;
        self.pending_inputs.clear();
        self.used_keys = HashSet::new();
        self.result = result;
        self.metadata = metadata;
        self.notify_listeners();
    }

    fn update_status(&mut self, status: TaskStatus, message: Option<String>) {
        self.metadata.status = status;
        self.metadata.message = message.or(self.metadata.message.take());
        self.metadata.updated = Utc::now();
        self.notify_listeners();
    }

    fn notify_listeners(&self) {
        self.listeners.mark_changed(self.metadata.id);
    }

    fn input_request_members(&self) -> String {
        if self.metadata.status != TaskStatus::InputRequired {
            return String::new();
        }
        let requests = self.pending_inputs.iter().map(|(key, pending)| (key.as_str(), &pending.request));
        format!(",\"inputRequests\":{}", encode_input_requests(requests))
    }
}

/// The pending changes of one listener: a set of ids, so that a slow client uses no memory.
#[derive(Debug, Default)]
pub(super) struct TaskListener {
    /// The number of changes of each task since its last notification.
    changed: Mutex<BTreeMap<TaskId, u64>>,
    pub(super) woken: Notify,
}

impl TaskListener {
    pub(super) fn mark_changed(&self, id: TaskId) {
        *self.changed.lock().entry(id).or_default() += 1;
        self.woken.notify_one();
    }

    pub(super) fn next_changed(&self) -> Option<(TaskId, u64)> {
        self.changed.lock().first_key_value().map(|(id, times)| (*id, *times))
    }

    /// Removes the changes of `id` if none was added since the notification.
    pub(super) fn clear_delivered(&self, id: TaskId, times: u64) {
        let mut changed = self.changed.lock();
        if changed.get(&id) == Some(&times) {
            changed.remove(&id);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct TaskListeners(Vec<Weak<TaskListener>>);

impl TaskListeners {
    pub(super) fn push(&mut self, listener: Weak<TaskListener>) {
        self.0.retain(|listener| listener.strong_count() > 0);
        self.0.push(listener);
    }

    pub(super) fn mark_changed(&self, id: TaskId) {
        for listener in self.0.iter().filter_map(Weak::upgrade) {
            listener.mark_changed(id);
        }
    }
}
