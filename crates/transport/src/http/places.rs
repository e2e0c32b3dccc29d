//! Places: how many sessions there may be at once, over all transports together, and how many of them one principal
//! may have.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::event::{Event, Events};
use tidegate_core::{Principal, Proof, TransportKind};

/// All places of the door.
pub(super) struct Places {
    places_max: usize,
    /// Of one principal; none where callers cannot be told apart.
    of_one_max: Option<usize>,
    events: Events,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_holder: HashMap<Holder, usize>,
}

/// Somebody, as [`Principal::is_same_as`] tells them apart.
type Holder = (Proof, String, Option<String>);

/// One place, free again when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    holder: Holder,
    transport: TransportKind,
}

impl Places {
    pub(super) fn new(places_max: usize, of_one_max: Option<usize>, events: Events) -> Arc<Self> {
        Arc::new(Self { places_max, of_one_max, events, taken: Mutex::default() })
    }

    /// A place for a session of `principal` over `transport`; `None` when too many are taken, or too many by it.
    pub(super) fn take(self: &Arc<Self>, principal: &Principal, transport: TransportKind) -> Option<Place> {
        let holder = (principal.proof, principal.subject.clone(), principal.tenant.clone());
        let mut taken = self.taken.lock();
        let of_holder = taken.by_holder.get(&holder).copied().unwrap_or_default();
        if taken.all >= self.places_max || self.of_one_max.is_some_and(|of_one_max| of_holder >= of_one_max) {
            return None;
        }
        taken.all += 1;
        taken.by_holder.insert(holder.clone(), of_holder + 1);
        drop(taken);
        self.events.tell(Event::SessionOpened { transport });
        Some(Place { places: self.clone(), holder, transport })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all -= 1;
        if let Some(of_holder) = taken.by_holder.get_mut(&self.holder) {
            *of_holder -= 1;
            if *of_holder == 0 {
                taken.by_holder.remove(&self.holder);
            }
        }
        drop(taken);
        self.places.events.tell(Event::SessionClosed { transport: self.transport });
    }
}
