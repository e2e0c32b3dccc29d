//! One task as it is held in memory: its facts, what it asks, and who wants to hear of it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use chrono::Utc;
use tidegate_core::{InputRequest, Job, PendingInputRequest};
use tokio::sync::oneshot;

use super::listener::TaskListeners;
use super::record::{TaskFacts, TaskResult, TaskStatus};
use crate::wire::encode_input_requests;

/// One task.
#[derive(Debug)]
pub(super) struct TaskEntry {
    pub(super) facts: TaskFacts,
    /// While it goes on.
    pub(super) job: Option<Arc<Job>>,
    /// How it ended, where nothing is written down.
    pub(super) ending: Option<TaskResult>,
    /// What it asks and has no answer to, by the key that its client knows.
    pending_inputs: BTreeMap<String, PendingInput>,
    /// The keys that its client knows or knew: it must never see one twice.
    used_keys: HashSet<String>,
    pub(super) listeners: TaskListeners,
}

#[derive(Debug)]
struct PendingInput {
    request: InputRequest,
    answer_sender: oneshot::Sender<tidegate_core::InputAnswer>,
}

impl TaskEntry {
    pub(super) fn new(facts: TaskFacts, job: Option<Arc<Job>>) -> Self {
        let (pending_inputs, used_keys) = (BTreeMap::new(), HashSet::new());
        Self { facts, job, ending: None, pending_inputs, used_keys, listeners: TaskListeners::default() }
    }

    /// Takes a question of its handler.
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

    /// Gives an answer to what was asked under `key`; nothing happens if nothing waits under it.
    ///
    /// # Errors
    /// What does not fit; the question stays.
    pub(super) fn accept_answer(&mut self, key: &str, answer: tidegate_core::InputAnswer) -> Result<(), String> {
        let Some(waiting) = self.pending_inputs.get(key) else { return Ok(()) };
        waiting.request.check(&answer)?;
        if let Some(waiting) = self.pending_inputs.remove(key) {
            // An error means that the handler has ended meanwhile.
            let _ = waiting.answer_sender.send(answer);
        }
        if self.pending_inputs.is_empty() {
            self.update_status(TaskStatus::Working, None);
        } else {
            self.notify_listeners();
        }
        Ok(())
    }

    /// Whether something is asked under `key`.
    pub(super) fn has_pending_input(&self, key: &str) -> bool {
        self.pending_inputs.contains_key(key)
    }

    /// How far it is, for people.
    pub(super) fn set_message(&mut self, message: String) {
        if self.facts.message.as_ref() != Some(&message) {
            self.update_status(self.facts.status, Some(message));
        }
    }

    /// Ends it as `facts` say; what is written down says `ending`, or else it is kept here.
    pub(super) fn end(&mut self, facts: TaskFacts, ending: Option<TaskResult>) {
        self.job = None;
        self.pending_inputs.clear();
        self.used_keys = HashSet::new();
        self.ending = ending;
        self.facts = facts;
        self.notify_listeners();
    }

    fn update_status(&mut self, status: TaskStatus, message: Option<String>) {
        self.facts.status = status;
        self.facts.message = message.or(self.facts.message.take());
        self.facts.updated = Utc::now();
        self.notify_listeners();
    }

    fn notify_listeners(&self) {
        self.listeners.mark_changed(self.facts.id);
    }

    /// The members that what it asks adds to a `DetailedTask`, as JSON text that begins with a comma.
    pub(super) fn input_request_members(&self) -> String {
        if self.facts.status != TaskStatus::InputRequired {
            return String::new();
        }
        let requests = self.pending_inputs.iter().map(|(key, waiting)| (key.as_str(), &waiting.request));
        format!(",\"inputRequests\":{}", encode_input_requests(requests))
    }
}
