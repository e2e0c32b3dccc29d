//! What is remembered of a server that could not be reached.
//!
//! Many may ask at once, a thousand declared tools at the start among them. Each would wait for the connect timeout in
//! turn; instead they are told what the last one was told, until it is worth another try.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a failure speaks for the tries after it.
const FAILURE_MAX_AGE: Duration = Duration::from_secs(1);

/// The last failure to connect.
#[derive(Default)]
pub(crate) struct LastConnectFailure {
    recent_failure: Mutex<Option<(Instant, ConnectFailure)>>,
}

/// Why a server could not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{log_message}")]
pub(crate) struct ConnectFailure {
    /// For the caller.
    pub(crate) client_message: String,
    /// For the log.
    pub(crate) log_message: String,
}

impl LastConnectFailure {
    /// Remembers `failure`, which was met at `now`.
    pub(crate) fn remember(&self, failure: ConnectFailure, now: Instant) {
        *self.recent_failure.lock() = Some((now, failure));
    }

    /// The failure that still speaks for a try at `now`.
    pub(crate) fn recent(&self, now: Instant) -> Option<ConnectFailure> {
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
        let (last_connect_failure, now) = (LastConnectFailure::default(), Instant::now());
        assert_eq!(last_connect_failure.recent(now), None);
        let failure = ConnectFailure { client_message: "refused".into(), log_message: "db:5432 refused".into() };
        last_connect_failure.remember(failure.clone(), now);
        assert_eq!(last_connect_failure.recent(now), Some(failure));
        assert_eq!(last_connect_failure.recent(now + FAILURE_MAX_AGE), None);
    }
}
