//! The current time, injected so that tests need not wait for a key to expire.

use std::sync::Arc;

use chrono::{DateTime, Utc};

/// A source of the current time. The default is the system clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// A clock that calls `now`.
    pub fn new(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    pub fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(Utc::now)
    }
}

tidegate_core::impl_debug!(Clock, "Clock");
