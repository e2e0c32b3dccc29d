//! The list of open sessions: legacy sessions over HTTP, connections that stay open, and subscriptions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use tidegate_core::Caller;

/// All open sessions, in the order in which they were opened. The transports bound their number.
#[derive(Debug, Default)]
pub struct Sessions {
    table: Mutex<SessionTable>,
}

#[derive(Debug, Default)]
struct SessionTable {
    opened: u64,
    open: BTreeMap<u64, SessionStatus>,
}

/// One open session.
#[derive(Debug, Clone)]
pub struct SessionStatus {
    /// Its number since the start of the process, from 1. The id that clients send is a secret.
    pub number: u64,
    /// The caller that opened it.
    pub caller: Caller,
    /// The time when it was opened.
    pub opened_at: SystemTime,
}

/// The entry of a session in the list; dropping it removes the entry.
#[derive(Debug)]
pub struct SessionEntry {
    sessions: Arc<Sessions>,
    number: u64,
}

impl Sessions {
    /// Adds a session of `caller`.
    pub fn open(self: &Arc<Self>, caller: &Caller) -> SessionEntry {
        // An old registry snapshot would be kept as long as the session.
        let caller = Caller { pinned_snapshot: None, ..caller.clone() };
        let mut table = self.table.lock();
        table.opened += 1;
        let number = table.opened;
        table.open.insert(number, SessionStatus { number, caller, opened_at: SystemTime::now() });
        SessionEntry { sessions: self.clone(), number }
    }

    /// The sessions that `caller` can see, oldest first: its own; all of its tenant if it has the access `operator`.
    pub fn list(&self, caller: &Caller) -> Vec<SessionStatus> {
        let table = self.table.lock();
        table.open.values().filter(|session| caller.can_see_activity_of(&session.caller)).cloned().collect()
    }
}

impl Drop for SessionEntry {
    fn drop(&mut self) {
        self.sessions.table.lock().open.remove(&self.number);
    }
}
