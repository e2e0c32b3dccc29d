//! One task as it is held in memory: its facts, what it asks, and who wants to hear of it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use chrono::Utc;
use tidegate_core::{Asked, InputRequest, Job};
use tokio::sync::oneshot;

use super::listener::Listeners;
use super::record::{Ending, Facts, Status};
use crate::wire::input_requests;

/// One task.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) facts: Facts,
    /// While it goes on.
    pub(super) job: Option<Arc<Job>>,
    /// How it ended, where nothing is written down.
    pub(super) ending: Option<Ending>,
    /// What it asks and has no answer to, by the key that its client knows.
    asked: BTreeMap<String, Waiting>,
    /// The keys that its client knows or knew: it must never see one twice.
    used: HashSet<String>,
    pub(super) listeners: Listeners,
}

#[derive(Debug)]
struct Waiting {
    request: InputRequest,
    answer: oneshot::Sender<tidegate_core::InputAnswer>,
}

impl Entry {
    pub(super) fn new(facts: Facts, job: Option<Arc<Job>>) -> Self {
        let (asked, used) = (BTreeMap::new(), HashSet::new());
        Self { facts, job, ending: None, asked, used, listeners: Listeners::default() }
    }

    /// Takes a question of its handler.
    pub(super) fn ask(&mut self, asked: Asked) {
        let (mut key, mut times) = (asked.key.clone(), 1);
        while !self.used.insert(key.clone()) {
            times += 1;
            key = format!("{}-{times}", asked.key);
        }
        self.asked.insert(key, Waiting { request: asked.request, answer: asked.answer });
        self.change(Status::InputRequired, None);
    }

    /// Gives an answer to what was asked under `key`; nothing happens if nothing waits under it.
    ///
    /// # Errors
    /// What does not fit; the question stays.
    pub(super) fn answer(&mut self, key: &str, answer: tidegate_core::InputAnswer) -> Result<(), String> {
        let Some(waiting) = self.asked.get(key) else { return Ok(()) };
        waiting.request.check(&answer)?;
        if let Some(waiting) = self.asked.remove(key) {
            // An error means that the handler has ended meanwhile.
            let _ = waiting.answer.send(answer);
        }
        if self.asked.is_empty() {
            self.change(Status::Working, None);
        } else {
            self.tell();
        }
        Ok(())
    }

    /// Whether something is asked under `key`.
    pub(super) fn asks_for(&self, key: &str) -> bool {
        self.asked.contains_key(key)
    }

    /// How far it is, for people.
    pub(super) fn say(&mut self, message: String) {
        if self.facts.message.as_ref() != Some(&message) {
            self.change(self.facts.status, Some(message));
        }
    }

    /// Ends it as `facts` say; what is written down says `ending`, or else it is kept here.
    pub(super) fn end(&mut self, facts: Facts, ending: Option<Ending>) {
        self.job = None;
        self.asked.clear();
        self.used = HashSet::new();
        self.ending = ending;
        self.facts = facts;
        self.tell();
    }

    fn change(&mut self, status: Status, message: Option<String>) {
        self.facts.status = status;
        self.facts.message = message.or(self.facts.message.take());
        self.facts.updated = Utc::now();
        self.tell();
    }

    fn tell(&self) {
        self.listeners.mark(self.facts.id);
    }

    /// The members that what it asks adds to a `DetailedTask`, as JSON text that begins with a comma.
    pub(super) fn questions(&self) -> String {
        if self.facts.status != Status::InputRequired {
            return String::new();
        }
        let requests = self.asked.iter().map(|(key, waiting)| (key.as_str(), &waiting.request));
        format!(",\"inputRequests\":{}", input_requests(requests))
    }
}
