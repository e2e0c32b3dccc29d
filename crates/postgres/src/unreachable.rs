//! What is remembered of a server that could not be reached.
//!
//! Many may ask at once, a thousand declared tools at the start among them. Each would wait for the connect timeout in
//! turn; instead they are told what the last one was told, until it is worth another try.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_core::Error;

/// How long a failure speaks for the tries after it.
const FAILURE_MAX_AGE: Duration = Duration::from_secs(1);

/// The last failure to connect.
#[derive(Default)]
pub(crate) struct LastConnectFailure {
    recent_failure: Mutex<Option<(Instant, Error)>>,
}

impl LastConnectFailure {
    /// Remembers `failure`, which was met at `now`.
    pub(crate) fn remember(&self, failure: Error, now: Instant) {
        *self.recent_failure.lock() = Some((now, failure));
    }

    /// The failure that still speaks for a try at `now`.
    pub(crate) fn recent(&self, now: Instant) -> Option<Error> {
        let last = self.recent_failure.lock();
        let (at, failure) = last.as_ref()?;
        (now.saturating_duration_since(*at) < FAILURE_MAX_AGE).then(|| failure.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_reused_for_one_second() {
        let (last_failure, now) = (LastConnectFailure::default(), Instant::now());
        let recent = |at| last_failure.recent(at).map(|error| error.to_string());
        assert_eq!(recent(now), None);
        last_failure.remember(Error::new(tidegate_core::ErrorKind::Unavailable, "refused"), now);
        assert_eq!(recent(now).as_deref(), Some("refused"));
        assert_eq!(recent(now + FAILURE_MAX_AGE), None);
    }
}
