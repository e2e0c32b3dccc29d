//! Legacy sessions: created at `initialize`, identified by a header, ended by DELETE or after an idle time. Session permits: the
//! maximum number of concurrent sessions over all transports, of one principal, and of the principals of one tenant.
//!
//! [MCP 2025-11-25, Session Management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management)

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{Caller, CallerIdentity, LimitLevel, Principal, ShareCounter, TransportKind};
use tidegate_mcp::McpSession;
use tidegate_runtime::event::{Event, EventDispatcher};
use tidegate_runtime::{SessionEntry, Sessions};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::sse::ReplayBuffer;
use crate::mcp_connection::McpConnection;

/// Maximum number of event streams that one session keeps for resumption. The oldest ended ones are removed first.
const STREAMS_MAX: usize = 16;

pub(super) struct HttpSessions {
    idle_max: Duration,
    by_id: Mutex<HashMap<String, (Arc<HttpSession>, SessionPermit)>>,
}

/// Requests and event streams hold it while they use it, so that a session without a holder is unused.
pub(super) struct HttpSession {
    pub(super) session: Arc<McpSession>,
    /// The principal that opened the session; for all others it does not exist.
    owner: Arc<Principal>,
    pub(super) ended: CancellationToken,
    /// Replaced when a new connection listens for notifications; the old one ends.
    pub(super) listener: Mutex<CancellationToken>,
    last_used: Mutex<Instant>,
    next_stream: AtomicU64,
    streams: Mutex<BTreeMap<u64, Arc<ReplayBuffer>>>,
}

impl HttpSessions {
    pub(super) fn new(idle_max: Duration) -> Self {
        Self { idle_max, by_id: Mutex::default() }
    }

    /// Opens a session that holds `permit`, and returns its unguessable id.
    pub(super) fn open(&self, session: McpSession, owner: Arc<Principal>, permit: SessionPermit) -> String {
        let id = Uuid::new_v4().simple().to_string();
        self.by_id.lock().insert(id.clone(), (Arc::new(HttpSession::new(session, owner)), permit));
        id
    }

    /// The session `id`, if `principal` opened it; marks it as used now.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<HttpSession>> {
        let by_id = self.by_id.lock();
        let session =
            by_id.get(id).map(|(session, _)| session).filter(|session| session.owner.is_same_identity(principal));
        let session = session.cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session and cancels its calls; false if `principal` has no session `id`.
    pub(super) fn end(&self, id: &str, principal: &Principal) -> bool {
        if self.get(id, principal).is_none() {
            return false;
        }
        let ended = self.by_id.lock().remove(id);
        ended.inspect(|(session, _)| session.close()).is_some()
    }

    /// Ends the sessions that were idle for too long. A session with an open request is not idle.
    pub(super) fn end_idle(&self) {
        let is_idle = |session: &HttpSession| {
            session.last_used.lock().elapsed() > self.idle_max && session.session.in_flight().is_empty()
        };
        let idle: Vec<_> = self.by_id.lock().extract_if(|_, (session, _)| is_idle(session)).collect();
        for (_, (session, _permit)) in idle {
            session.close();
        }
    }

    /// Ends the session that is unused for the longest time, to make room at `level` for one of `holder`: an own session
    /// if there is one, else one of its tenant or of anybody. A session that a request or an event stream uses is not
    /// ended. False if there is no such session.
    pub(super) fn end_oldest_unused(&self, level: LimitLevel, holder: &CallerIdentity) -> bool {
        let ended = {
            let mut by_id = self.by_id.lock();
            let oldest = |is_candidate: &dyn Fn(&CallerIdentity) -> bool| {
                let unused = by_id.iter().filter(|(_, (session, permit))| {
                    is_candidate(&permit.holder)
                        && Arc::strong_count(session) == 1
                        && session.session.in_flight().is_empty()
                });
                unused.min_by_key(|(_, (session, _))| *session.last_used.lock()).map(|(id, _)| id.clone())
            };
            let own = oldest(&|owner| owner == holder);
            let id = own.or_else(|| match level {
                LimitLevel::Principal => None,
                LimitLevel::Tenant => oldest(&|owner| owner.tenant == holder.tenant),
                LimitLevel::Tool | LimitLevel::Node => oldest(&|_| true),
            });
            id.and_then(|id| by_id.remove(&id))
        };
        ended.inspect(|(session, _permit)| session.close()).is_some()
    }

    pub(super) fn end_all(&self) {
        let all: Vec<_> = self.by_id.lock().drain().collect();
        for (_, (session, _permit)) in all {
            session.close();
        }
    }
}

impl HttpSession {
    fn new(session: McpSession, owner: Arc<Principal>) -> Self {
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

    fn close(&self) {
        self.ended.cancel();
        self.session.in_flight().cancel_all();
    }

    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// A new event stream and its number; `None` if too many are open.
    pub(super) fn open_stream(&self) -> Option<(u64, Arc<ReplayBuffer>)> {
        let mut streams = self.streams.lock();
        if streams.len() >= STREAMS_MAX {
            let oldest_ended = streams.iter().find(|(_, replay)| replay.has_ended()).map(|(number, _)| *number)?;
            streams.remove(&oldest_ended);
        }
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let replay = Arc::new(ReplayBuffer::default());
        streams.insert(number, replay.clone());
        Some((number, replay))
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<ReplayBuffer>> {
        self.streams.lock().get(&number).cloned()
    }
}

#[derive(Default)]
pub(super) struct SseSessions {
    by_id: Mutex<HashMap<String, Arc<SseSession>>>,
}

pub(super) struct SseSession {
    pub(super) connection: Arc<McpConnection>,
    /// The principal that opened the session; for all others it does not exist.
    pub(super) owner: Arc<Principal>,
    pub(super) toolset: Option<String>,
    /// Cancelled when another connection of the client takes over the stream. Each connection has its own.
    replaced: Mutex<CancellationToken>,
    last_used: Mutex<Instant>,
}

impl SseSessions {
    /// Adds a session and returns its unguessable id.
    pub(super) fn insert(&self, session: Arc<SseSession>) -> String {
        let id = Uuid::new_v4().simple().to_string();
        self.by_id.lock().insert(id.clone(), session);
        id
    }

    /// The session `id`, if `principal` opened it.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<SseSession>> {
        self.by_id.lock().get(id).filter(|session| session.owner.is_same_identity(principal)).cloned()
    }

    pub(super) fn remove(&self, id: &str) {
        self.by_id.lock().remove(id);
    }
}

impl SseSession {
    pub(super) fn new(connection: Arc<McpConnection>, owner: Arc<Principal>, toolset: Option<String>) -> Arc<Self> {
        let (replaced, last_used) = (Mutex::default(), Mutex::new(Instant::now()));
        Arc::new(Self { connection, owner, toolset, replaced, last_used })
    }

    /// Fires when another connection than the one that begins now takes over the stream.
    pub(super) fn begin_connection(&self) -> CancellationToken {
        let replaced = CancellationToken::new();
        *self.replaced.lock() = replaced.clone();
        replaced
    }

    /// Ends the connection that has the stream, which another one takes over.
    pub(super) fn replace_connection(&self) {
        self.replaced.lock().cancel();
    }

    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// The time of the last message in either direction. Comments are not messages.
    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }
}

pub(super) struct SessionPermits {
    sessions_max: usize,
    events: EventDispatcher,
    sessions: Arc<Sessions>,
    shares: Mutex<ShareCounter>,
}

/// One permit; dropping it releases the session.
pub(super) struct SessionPermit {
    permits: Arc<SessionPermits>,
    holder: CallerIdentity,
    transport: TransportKind,
    _entry: SessionEntry,
}

impl SessionPermits {
    pub(super) fn new(sessions_max: usize, events: EventDispatcher, sessions: Arc<Sessions>) -> Arc<Self> {
        Arc::new(Self { sessions_max, events, sessions, shares: Mutex::default() })
    }

    /// One principal may have `per_principal_max` sessions; `None` if callers cannot be distinguished.
    pub(super) fn acquire(
        self: &Arc<Self>,
        caller: &Caller,
        per_principal_max: Option<usize>,
    ) -> Result<SessionPermit, LimitLevel> {
        let (holder, transport) = (CallerIdentity::for_quota(caller), caller.origin.transport);
        self.shares.lock().acquire(&holder, self.sessions_max, per_principal_max)?;
        self.events.emit(Event::SessionOpened { transport });
        Ok(SessionPermit { permits: self.clone(), holder, transport, _entry: self.sessions.open(caller) })
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.permits.shares.lock().release(&self.holder);
        self.permits.events.emit(Event::SessionClosed { transport: self.transport });
    }
}
