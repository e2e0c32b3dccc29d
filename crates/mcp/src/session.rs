//! What a legacy client's handshake settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tidegate_core::{Abilities, LogLevel, Watch};

use crate::in_flight::InFlight;
use crate::questions::Questions;
use crate::revision::Revision;

/// No message at all is wanted; above every level.
const SILENT: u8 = u8::MAX;

/// A legacy session: the revision that was agreed on, and what it has said since.
#[derive(Debug)]
pub struct Session {
    revision: Revision,
    log_level: AtomicU8,
    in_flight: Arc<InFlight>,
    abilities: Abilities,
    questions: Questions,
    watch: Arc<Watch>,
}

impl Session {
    pub(crate) fn new(revision: Revision, abilities: Abilities, in_flight: Arc<InFlight>, watch: Watch) -> Self {
        Self {
            revision,
            log_level: AtomicU8::new(SILENT),
            in_flight,
            abilities,
            questions: Questions::default(),
            watch: Arc::new(watch),
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

    /// The changes that it wants to hear of.
    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
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
