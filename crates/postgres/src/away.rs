//! What is remembered of a server that could not be reached.
//!
//! Many may ask at once, a thousand declared tools at the start among them. Each would wait for the connect timeout in
//! turn; instead they are told what the last one was told, until it is worth another try.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a failure speaks for the tries after it.
const REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// The last failure to connect.
#[derive(Default)]
pub(crate) struct Away {
    last: Mutex<Option<(Instant, Failure)>>,
}

/// Why a server could not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{for_owner}")]
pub(crate) struct Failure {
    /// For the caller.
    pub(crate) told: String,
    /// For the log.
    pub(crate) for_owner: String,
}

impl Away {
    /// Remembers `failure`, which was met at `now`.
    pub(crate) fn remember(&self, failure: Failure, now: Instant) {
        *self.last.lock() = Some((now, failure));
    }

    /// The failure that still speaks for a try at `now`.
    pub(crate) fn recent(&self, now: Instant) -> Option<Failure> {
        let last = self.last.lock();
        let (at, failure) = last.as_ref()?;
        (now.saturating_duration_since(*at) < REMEMBERED_FOR).then(|| failure.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_speaks_for_a_while() {
        let (away, now) = (Away::default(), Instant::now());
        assert_eq!(away.recent(now), None);
        let failure = Failure { told: "refused".into(), for_owner: "db:5432 refused".into() };
        away.remember(failure.clone(), now);
        assert_eq!(away.recent(now), Some(failure));
        assert_eq!(away.recent(now + REMEMBERED_FOR), None);
    }
}
