//! What a legacy client's handshake settled.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use tidegate_core::{Abilities, LogLevel};

use crate::in_flight::InFlight;
use crate::questions::Questions;
use crate::revision::Revision;

/// No message at all is wanted; above every level.
const SILENT: u8 = u8::MAX;
/// Resources that one session may subscribe to.
const SUBSCRIPTIONS_MAX: usize = 1_000;

/// A legacy session: the revision that was agreed on, and what it has said since.
#[derive(Debug)]
pub struct Session {
    revision: Revision,
    log_level: AtomicU8,
    in_flight: Arc<InFlight>,
    subscriptions: Mutex<BTreeSet<String>>,
    abilities: Abilities,
    questions: Questions,
}

impl Session {
    pub(crate) fn new(revision: Revision, abilities: Abilities, in_flight: Arc<InFlight>) -> Self {
        Self {
            revision,
            log_level: AtomicU8::new(SILENT),
            in_flight,
            subscriptions: Mutex::default(),
            abilities,
            questions: Questions::default(),
        }
    }

    /// The revision that was agreed on.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Its open requests.
    pub fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// What its client can do.
    pub(crate) fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// The questions that its client has yet to answer.
    pub(crate) fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Notes that it wants to hear of a resource; false when it wants to hear of too many.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        let has_room = subscriptions.len() < SUBSCRIPTIONS_MAX || subscriptions.contains(uri);
        if has_room {
            subscriptions.insert(uri.to_owned());
        }
        has_room
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.subscriptions.lock().remove(uri);
    }

    /// The resources that it wants to hear of.
    pub(crate) fn subscriptions(&self) -> BTreeSet<String> {
        self.subscriptions.lock().clone()
    }

    /// The least severe log message that it wants; none until it sets a level.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        // The levels are eight.
        self.log_level.store(level as u8, Ordering::Relaxed);
    }
}
