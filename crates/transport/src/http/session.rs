//! Legacy sessions: minted at `initialize`, named by a header, ended by DELETE or by idleness.
//!
//! [MCP 2025-11-25, Session Management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management)

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::Principal;
use tidegate_core::event::{Event, Events};
use tidegate_mcp::Session;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::replay::Replay;

/// Event streams that one session keeps for resumption; ended ones go first, oldest first.
const STREAMS_MAX: usize = 16;

/// All sessions of the door.
pub(super) struct Sessions {
    sessions_max: usize,
    idle_max: Duration,
    events: Events,
    by_id: Mutex<HashMap<String, Arc<HttpSession>>>,
}

/// One session and its event streams.
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    /// Who opened it; for everybody else it does not exist.
    owner: Arc<Principal>,
    pub(super) ended: CancellationToken,
    /// Replaced when a new connection listens for notifications; the old one ends.
    pub(super) listener: Mutex<CancellationToken>,
    last_used: Mutex<Instant>,
    next_stream: AtomicU64,
    streams: Mutex<BTreeMap<u64, Arc<Replay>>>,
}

impl Sessions {
    pub(super) fn new(sessions_max: usize, idle_max: Duration, events: Events) -> Self {
        Self { sessions_max, idle_max, events, by_id: Mutex::default() }
    }

    /// Opens a session and gives its unguessable name; `None` when there are too many, or more than `of_one_max` of
    /// this owner.
    pub(super) fn open(&self, session: Session, owner: Arc<Principal>, of_one_max: Option<usize>) -> Option<String> {
        self.end_idle();
        let mut by_id = self.by_id.lock();
        let of_owner = || by_id.values().filter(|session| session.owner.is_same_as(&owner)).count();
        if by_id.len() >= self.sessions_max || of_one_max.is_some_and(|of_one_max| of_owner() >= of_one_max) {
            return None;
        }
        let id = Uuid::new_v4().simple().to_string();
        by_id.insert(id.clone(), Arc::new(HttpSession::new(session, owner)));
        drop(by_id);
        self.events.tell(Event::SessionOpened);
        Some(id)
    }

    /// The session of that name that `principal` opened; it counts as used now.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<HttpSession>> {
        let session = self.by_id.lock().get(id).filter(|session| session.owner.is_same_as(principal)).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session and cancels what it has running; false when `principal` has none of that name.
    pub(super) fn end(&self, id: &str, principal: &Principal) -> bool {
        if self.get(id, principal).is_none() {
            return false;
        }
        let session = self.by_id.lock().remove(id);
        session.inspect(|session| self.close(session)).is_some()
    }

    /// Ends the sessions that were idle for too long. A session with an open request is not idle.
    pub(super) fn end_idle(&self) {
        let mut idle = Vec::new();
        self.by_id.lock().retain(|_, session| {
            let is_idle = session.last_used.lock().elapsed() > self.idle_max && session.session.in_flight().is_empty();
            if is_idle {
                idle.push(session.clone());
            }
            !is_idle
        });
        for session in idle {
            self.close(&session);
        }
    }

    /// Ends them all.
    pub(super) fn end_all(&self) {
        let all: Vec<_> = self.by_id.lock().drain().collect();
        for (_, session) in all {
            self.close(&session);
        }
    }

    fn close(&self, session: &HttpSession) {
        session.ended.cancel();
        session.session.in_flight().cancel_all();
        self.events.tell(Event::SessionClosed);
    }
}

impl HttpSession {
    fn new(session: Session, owner: Arc<Principal>) -> Self {
        Self {
            session: Arc::new(session),
            owner,
            ended: CancellationToken::new(),
            listener: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            next_stream: AtomicU64::new(1),
            streams: Mutex::default(),
        }
    }

    /// Counts as used now.
    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// A new event stream and its number; `None` when too many are open.
    pub(super) fn open_stream(&self) -> Option<(u64, Arc<Replay>)> {
        let mut streams = self.streams.lock();
        if streams.len() >= STREAMS_MAX {
            let oldest_ended = streams.iter().find(|(_, replay)| replay.has_ended()).map(|(number, _)| *number)?;
            streams.remove(&oldest_ended);
        }
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let replay = Arc::new(Replay::default());
        streams.insert(number, replay.clone());
        Some((number, replay))
    }

    /// The event stream of that number, if it is still kept.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Replay>> {
        self.streams.lock().get(&number).cloned()
    }
}
