//! The open event streams, by the session id that messages are posted to.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::Principal;
use tokio::time::Instant;
use uuid::Uuid;

use crate::conversation::Conversation;

/// All open event streams.
#[derive(Default)]
pub(in crate::http) struct SseSessions {
    by_id: Mutex<HashMap<String, Arc<SseSession>>>,
}

/// The state that an event stream and the messages posted to it share.
pub(super) struct SseSession {
    pub(super) conversation: Conversation,
    /// The principal that opened the session; for all others it does not exist.
    pub(super) owner: Arc<Principal>,
    /// The toolset of the endpoint at which the session was opened.
    pub(super) toolset: Option<String>,
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

    /// Removes the session `id`.
    pub(super) fn remove(&self, id: &str) {
        self.by_id.lock().remove(id);
    }
}

impl SseSession {
    pub(super) fn new(conversation: Conversation, owner: Arc<Principal>, toolset: Option<String>) -> Arc<Self> {
        Arc::new(Self { conversation, owner, toolset, last_used: Mutex::new(Instant::now()) })
    }

    /// Marks the session as used now.
    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// The time of the last message in either direction. Comments are not messages.
    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }
}
