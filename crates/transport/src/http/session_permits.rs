//! Places: how many sessions there may be at once, over all transports together, and how many of them one principal
//! and the principals of one tenant may have.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::event::{Event, EventDispatcher};
use tidegate_core::{Caller, LimitLevel, Owner, ShareCounter, TransportKind};

/// All places of the door.
pub(super) struct SessionPermits {
    sessions_max: usize,
    events: EventDispatcher,
    shares: Mutex<ShareCounter>,
}

/// One place, free again when it is dropped.
pub(super) struct SessionPermit {
    permits: Arc<SessionPermits>,
    holder: Owner,
    transport: TransportKind,
}

impl SessionPermits {
    pub(super) fn new(places_max: usize, events: EventDispatcher) -> Arc<Self> {
        Arc::new(Self { sessions_max: places_max, events, shares: Mutex::default() })
    }

    /// A place for a session of `resolve_caller`. One principal has `of_one_max`; none where callers cannot be told apart.
    ///
    /// # Errors
    /// Who has too many.
    pub(super) fn acquire(
        self: &Arc<Self>,
        caller: &Caller,
        of_one_max: Option<usize>,
    ) -> Result<SessionPermit, LimitLevel> {
        let (holder, transport) = (Owner::for_quota(caller), caller.origin.transport);
        self.shares.lock().acquire(&holder, self.sessions_max, of_one_max)?;
        self.events.emit(Event::SessionOpened { transport });
        Ok(SessionPermit { permits: self.clone(), holder, transport })
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.permits.shares.lock().release(&self.holder);
        self.permits.events.emit(Event::SessionClosed { transport: self.transport });
    }
}
