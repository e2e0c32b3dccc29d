//! One task in memory: its metadata, pending input requests and listeners.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};

use chrono::Utc;
use parking_lot::Mutex;
use serde_json::Value;
use tidegate_runtime::{Job, PendingInputRequest};
use tokio::sync::Notify;

use super::record::{TaskId, TaskMetadata, TaskResult, TaskStatus};
use crate::messages::{encode_input_requests, parse_input_answer};

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

    pub(super) fn input_request_members(&self) -> String {
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
