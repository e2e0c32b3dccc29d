//! One task in memory: its metadata, pending input requests and listeners.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};

use chrono::Utc;
use parking_lot::Mutex;
use tidegate_core::InputRequest;
use tidegate_runtime::{Job, PendingInputRequest};
use tokio::sync::{Notify, oneshot};

use super::record::{TaskId, TaskMetadata, TaskResult, TaskStatus};
use crate::wire::encode_input_requests;

#[derive(Debug)]
pub(super) struct TaskEntry {
    pub(super) metadata: TaskMetadata,
    /// The job, while it runs.
    pub(super) job: Option<Arc<Job>>,
    /// The result, if it is not stored on disk.
    pub(super) ending: Option<TaskResult>,
    /// Pending input requests, by the key that the client received.
    pending_inputs: BTreeMap<String, PendingInput>,
    /// All keys that the client received: a key must not be used twice.
    used_keys: HashSet<String>,
    pub(super) listeners: TaskListeners,
}

#[derive(Debug)]
struct PendingInput {
    request: InputRequest,
    answer_sender: oneshot::Sender<tidegate_core::InputAnswer>,
}

impl TaskEntry {
    pub(super) fn new(metadata: TaskMetadata, job: Option<Arc<Job>>) -> Self {
        let (pending_inputs, used_keys) = (BTreeMap::new(), HashSet::new());
        Self { metadata, job, ending: None, pending_inputs, used_keys, listeners: TaskListeners::default() }
    }

    pub(super) fn add_input_request(&mut self, pending_input_request: PendingInputRequest) {
        let (mut key, mut times) = (pending_input_request.key.clone(), 1);
        while !self.used_keys.insert(key.clone()) {
            times += 1;
            key = format!("{}-{times}", pending_input_request.key);
        }
        self.pending_inputs.insert(
            key,
            PendingInput { request: pending_input_request.request, answer_sender: pending_input_request.answer_sender },
        );
        self.update_status(TaskStatus::InputRequired, None);
    }

    /// Passes an answer to the pending request `key`. Has no effect if there is none.
    ///
    /// # Errors
    /// Why the answer is invalid. The request stays pending.
    pub(super) fn accept_answer(&mut self, key: &str, answer: tidegate_core::InputAnswer) -> Result<(), String> {
        let Some(waiting) = self.pending_inputs.get(key) else { return Ok(()) };
        waiting.request.check(&answer)?;
        if let Some(waiting) = self.pending_inputs.remove(key) {
            // Sending fails only if the handler has ended meanwhile.
            let _ = waiting.answer_sender.send(answer);
        }
        if self.pending_inputs.is_empty() {
            self.update_status(TaskStatus::Working, None);
        } else {
            self.notify_listeners();
        }
        Ok(())
    }

    pub(super) fn has_pending_input(&self, key: &str) -> bool {
        self.pending_inputs.contains_key(key)
    }

    /// Sets the progress message for people.
    pub(super) fn set_message(&mut self, message: String) {
        if self.metadata.message.as_ref() != Some(&message) {
            self.update_status(self.metadata.status, Some(message));
        }
    }

    /// Ends the task with `metadata`. `ending` is set if the result is not stored on disk.
    pub(super) fn end(&mut self, metadata: TaskMetadata, ending: Option<TaskResult>) {
        self.job = None;
        self.pending_inputs.clear();
        self.used_keys = HashSet::new();
        self.ending = ending;
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

    /// The members of a `DetailedTask` for pending input requests, as JSON text that starts with a comma.
    pub(super) fn input_request_members(&self) -> String {
        if self.metadata.status != TaskStatus::InputRequired {
            return String::new();
        }
        let requests = self.pending_inputs.iter().map(|(key, waiting)| (key.as_str(), &waiting.request));
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

    /// The next task to report, with its number of changes.
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
