//! The error that a limit was reached.

use std::time::Duration;

use tidegate_core::{Error, ErrorKind, LimitLevel, LimitMeasure};

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    pub(crate) level: LimitLevel,
    pub(crate) measure: LimitMeasure,
    /// The limit: requests at once, calls, rows, bytes, seconds.
    pub(crate) bound: u64,
    /// The time after which the caller can try again.
    pub(crate) retry_after: Duration,
}

/// An estimate, because nobody knows when a call ends. It keeps clients from repeating requests without a pause.
const CALLS_RETRY_AFTER: Duration = Duration::from_secs(1);

impl ReachedLimit {
    /// The error that `bound` calls of `level` are open.
    pub(crate) fn open_calls(level: LimitLevel, bound: usize) -> Self {
        Self { level, measure: LimitMeasure::Calls, bound: bound as u64, retry_after: CALLS_RETRY_AFTER }
    }

    /// The error for the caller.
    pub(crate) fn to_error(self) -> Error {
        let Self { level, measure, bound, retry_after } = self;
        let of_today = |subject: &str| {
            let owner_key = level.possessive();
            format!("{owner_key} daily limit of {bound} {subject} is used up; it resets at 00:00 UTC")
        };
        let message = match (measure, level) {
            (LimitMeasure::Requests, _) => {
                let owner_key = match level {
                    LimitLevel::Principal => "from you",
                    LimitLevel::Tenant => "from your tenant",
                    LimitLevel::Tool => "to this tool",
                    LimitLevel::Node => "from all callers together",
                };
                let seconds = retry_after.as_secs_f64();
                format!("too many requests {owner_key}; try again in {seconds:.1} s")
            }
            (LimitMeasure::Calls, LimitLevel::Node) => format!("more than {bound} calls are open; try again later"),
            (LimitMeasure::Calls, _) => {
                format!("more than {bound} of {} calls are open; wait until one ends", level.possessive())
            }
            (LimitMeasure::Rows, _) => of_today("rows"),
            (LimitMeasure::Bytes, _) => of_today("bytes"),
            (LimitMeasure::Time, _) => of_today("seconds of calls"),
        };
        Error::new(ErrorKind::RateLimited, message).with_retry_after(retry_after)
    }
}
