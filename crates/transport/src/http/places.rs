//! Places: how many sessions there may be at once, over all transports together, and how many of them one principal
//! and the principals of one tenant may have.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::event::{Event, Events};
use tidegate_core::{Caller, Level, Owner, TransportKind, tenant_share};

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
    by_holder: HashMap<Owner, usize>,
    by_tenant: HashMap<String, usize>,
}

/// One place, free again when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    holder: Owner,
    transport: TransportKind,
}

impl Places {
    pub(super) fn new(places_max: usize, of_one_max: Option<usize>, events: Events) -> Arc<Self> {
        Arc::new(Self { places_max, of_one_max, events, taken: Mutex::default() })
    }

    /// A place for a session of `caller`.
    ///
    /// # Errors
    /// Who has too many.
    pub(super) fn take(self: &Arc<Self>, caller: &Caller) -> Result<Place, Level> {
        let (holder, transport) = (Owner::counted(caller), caller.origin.transport);
        self.taken.lock().take(&holder, self)?;
        self.events.tell(Event::SessionOpened { transport });
        Ok(Place { places: self.clone(), holder, transport })
    }
}

impl Taken {
    fn take(&mut self, holder: &Owner, places: &Places) -> Result<(), Level> {
        let of_holder = self.by_holder.get(holder).copied().unwrap_or_default();
        if places.of_one_max.is_some_and(|of_one_max| of_holder >= of_one_max) {
            return Err(Level::Principal);
        }
        let of_tenant = holder.tenant.as_ref().and_then(|tenant| self.by_tenant.get(tenant)).copied();
        if of_tenant.unwrap_or_default() >= tenant_share(places.places_max) {
            return Err(Level::Tenant);
        }
        if self.all >= places.places_max {
            return Err(Level::Node);
        }
        self.all += 1;
        *self.by_holder.entry(holder.clone()).or_default() += 1;
        if let Some(tenant) = &holder.tenant {
            *self.by_tenant.entry(tenant.clone()).or_default() += 1;
        }
        Ok(())
    }

    fn give_back(&mut self, holder: &Owner) {
        self.all -= 1;
        one_less(&mut self.by_holder, holder);
        if let Some(tenant) = &holder.tenant {
            one_less(&mut self.by_tenant, tenant);
        }
    }
}

/// Counts one less of `key`, and keeps none of whom there is nothing.
fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.lock().give_back(&self.holder);
        self.places.events.tell(Event::SessionClosed { transport: self.transport });
    }
}
