//! The open event streams by the names under which messages are posted to them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::Principal;
use tokio::time::Instant;
use uuid::Uuid;

use crate::conversation::Conversation;

/// All event streams that are open.
#[derive(Default)]
pub(in crate::http) struct SseSessions {
    by_id: Mutex<HashMap<String, Arc<SseSession>>>,
}

/// What an event stream and the messages posted to it share.
pub(super) struct SseSession {
    pub(super) conversation: Conversation,
    /// Who opened it; for everybody else it does not exist.
    pub(super) owner: Arc<Principal>,
    /// The toolset through whose door it was opened.
    pub(super) toolset: Option<String>,
    last_used: Mutex<Instant>,
}

impl SseSessions {
    /// Gives the session an unguessable name.
    pub(super) fn insert(&self, session: Arc<SseSession>) -> String {
        let id = Uuid::new_v4().simple().to_string();
        self.by_id.lock().insert(id.clone(), session);
        id
    }

    /// The session of that name that `principal` opened.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<SseSession>> {
        self.by_id.lock().get(id).filter(|session| session.owner.is_same_identity(principal)).cloned()
    }

    /// Forgets the session of that name.
    pub(super) fn remove(&self, id: &str) {
        self.by_id.lock().remove(id);
    }
}

impl SseSession {
    pub(super) fn new(conversation: Conversation, owner: Arc<Principal>, toolset: Option<String>) -> Arc<Self> {
        Arc::new(Self { conversation, owner, toolset, last_used: Mutex::new(Instant::now()) })
    }

    /// Counts as used now.
    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// When a message came or left last. Comments are no messages.
    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }
}
