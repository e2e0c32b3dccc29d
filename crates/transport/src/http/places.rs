//! Places: how many sessions there may be at once, over all transports together, and how many of them one principal
//! and the principals of one tenant may have.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::event::{Event, Events};
use tidegate_core::{Caller, Level, Owner, Shares, TransportKind};

/// All places of the door.
pub(super) struct Places {
    places_max: usize,
    events: Events,
    taken: Mutex<Shares>,
}

/// One place, free again when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    holder: Owner,
    transport: TransportKind,
}

impl Places {
    pub(super) fn new(places_max: usize, events: Events) -> Arc<Self> {
        Arc::new(Self { places_max, events, taken: Mutex::default() })
    }

    /// A place for a session of `caller`. One principal has `of_one_max`; none where callers cannot be told apart.
    ///
    /// # Errors
    /// Who has too many.
    pub(super) fn take(self: &Arc<Self>, caller: &Caller, of_one_max: Option<usize>) -> Result<Place, Level> {
        let (holder, transport) = (Owner::counted(caller), caller.origin.transport);
        self.taken.lock().take(&holder, self.places_max, of_one_max)?;
        self.events.tell(Event::SessionOpened { transport });
        Ok(Place { places: self.clone(), holder, transport })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.lock().give_back(&self.holder);
        self.places.events.tell(Event::SessionClosed { transport: self.transport });
    }
}
