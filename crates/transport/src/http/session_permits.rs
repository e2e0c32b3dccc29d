//! Session permits: the maximum number of concurrent sessions over all transports, of one principal, and of the
//! principals of one tenant.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::event::{Event, EventDispatcher};
use tidegate_core::{Caller, LimitLevel, Owner, ShareCounter, TransportKind};

/// The session permits of the server.
pub(super) struct SessionPermits {
    sessions_max: usize,
    events: EventDispatcher,
    shares: Mutex<ShareCounter>,
}

/// One permit; dropping it releases the session.
pub(super) struct SessionPermit {
    permits: Arc<SessionPermits>,
    holder: Owner,
    transport: TransportKind,
}

impl SessionPermits {
    pub(super) fn new(places_max: usize, events: EventDispatcher) -> Arc<Self> {
        Arc::new(Self { sessions_max: places_max, events, shares: Mutex::default() })
    }

    /// A permit for a session of `caller`. One principal may have `of_one_max` sessions; `None` if callers cannot be
    /// distinguished.
    ///
    /// # Errors
    /// The level whose limit is reached.
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
