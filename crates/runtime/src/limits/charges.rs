//! Charges the usage of a call to every meter with a daily limit. A call that exceeds a limit ends.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_core::{DailyLimits, Error, ErrorKind, LimitLevel, LimitMeasure};

use super::meter::UsageMeter;
use super::usage::{Calendar, UsageAmount};

#[derive(Default)]
pub(crate) struct UsageCharges {
    meters: Vec<ChargedMeter>,
    calendar: Option<Calendar>,
    /// Set when there is usage to write to the usage file.
    has_changed: Arc<AtomicBool>,
    exceeded: OnceLock<ReachedLimit>,
}

struct ChargedMeter {
    level: LimitLevel,
    meter: Arc<UsageMeter>,
    daily: DailyLimits,
    /// Whether its bytes and run time are charged by the call on whose behalf this one is made.
    charges_rows_only: bool,
}

impl UsageCharges {
    pub(super) fn new(calendar: Calendar, has_changed: Arc<AtomicBool>) -> Self {
        Self { calendar: Some(calendar), has_changed, ..Self::default() }
    }

    pub(super) fn add(
        &mut self,
        level: LimitLevel,
        meter: Arc<UsageMeter>,
        daily: DailyLimits,
        charges_rows_only: bool,
    ) {
        self.meters.push(ChargedMeter { level, meter, daily, charges_rows_only });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.meters.is_empty()
    }

    /// Charges `amount`. Returns false if a limit is exceeded.
    pub(crate) fn charge(&self, amount: UsageAmount) -> bool {
        let Some(calendar) = self.calendar.as_ref().filter(|_| !self.meters.is_empty()) else { return true };
        let day = calendar.day();
        self.has_changed.store(true, Ordering::Relaxed);
        for charged in &self.meters {
            let amount = match charged.charges_rows_only {
                true => UsageAmount { rows: amount.rows, ..UsageAmount::default() },
                false => amount,
            };
            let used_today = charged.meter.charge(day, amount);
            if let Some((measure, bound)) = used_today.exceeded_limit(&charged.daily) {
                let retry_after = calendar.until_tomorrow();
                self.exceeded.get_or_init(|| ReachedLimit { level: charged.level, measure, bound, retry_after });
            }
        }
        self.exceeded.get().is_none()
    }

    pub(crate) fn exceeded_limit(&self) -> Option<ReachedLimit> {
        self.exceeded.get().copied()
    }
}

impl fmt::Debug for UsageCharges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageCharges").field("meters", &self.meters.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    pub(crate) level: LimitLevel,
    pub(crate) measure: LimitMeasure,
    /// The limit: requests at once, calls, rows, bytes, seconds.
    pub(crate) bound: u64,
    pub(crate) retry_after: Duration,
}

/// An estimate, because the end of a call is not known. It keeps clients from repeating requests without a pause.
const CALLS_RETRY_AFTER: Duration = Duration::from_secs(1);

impl ReachedLimit {
    pub(crate) fn open_calls(level: LimitLevel, bound: usize) -> Self {
        Self { level, measure: LimitMeasure::Calls, bound: bound as u64, retry_after: CALLS_RETRY_AFTER }
    }

    pub(crate) fn to_error(self) -> Error {
        let Self { level, measure, bound, retry_after } = self;
        let daily_limit = |subject: &str| {
            let owner = level.possessive();
            format!("{owner} daily limit of {bound} {subject} is used up; it resets at 00:00 UTC")
        };
        let message = match (measure, level) {
            (LimitMeasure::Requests, _) => {
                let origin = match level {
                    LimitLevel::Principal => "from you",
                    LimitLevel::Tenant => "from your tenant",
                    LimitLevel::Tool => "to this tool",
                    LimitLevel::Node => "from all callers together",
                };
                let seconds = retry_after.as_secs_f64();
                format!("too many requests {origin}; try again in {seconds:.1} s")
            }
            (LimitMeasure::Calls, LimitLevel::Node) => format!("more than {bound} calls are open; try again later"),
            (LimitMeasure::Calls, _) => {
                format!("more than {bound} of {} calls are open; wait until one ends", level.possessive())
            }
            (LimitMeasure::Rows, _) => daily_limit("rows"),
            (LimitMeasure::Bytes, _) => daily_limit("bytes"),
            (LimitMeasure::Time, _) => daily_limit("seconds of calls"),
        };
        Error::new(ErrorKind::RateLimited, message).with_retry_after(retry_after)
    }
}
