//! A half-open range of time.

use thiserror::Error;

use super::{TimeInput, TimeParseError, format_time, parse_time};

/// The times from `start` (included) to `end` (excluded), in nanoseconds UTC. A bound that is absent is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRange {
    /// The first time of the range.
    pub start: Option<i64>,
    /// The first time after the range.
    pub end: Option<i64>,
}

/// Two bounds that are no range of time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeRangeError {
    /// A bound is no time.
    #[error("{bound}: {error}")]
    Bound {
        /// `after` or `before`.
        bound: &'static str,
        /// What is wrong with it.
        error: TimeParseError,
    },
    /// The range ends before it starts, or at the same time.
    #[error("the range of time is empty: after ({after}) is not earlier than before ({before}){covered}")]
    Reversed {
        /// The start.
        after: String,
        /// The end.
        before: String,
        /// The time covered by the source, as the end of a sentence.
        covered: String,
    },
    /// The range starts after the current time.
    #[error("the range of time is in the future: after is {after}, and now is {now}{covered}")]
    Future {
        /// The start.
        after: String,
        /// The current time.
        now: String,
        /// The time covered by the source, as the end of a sentence.
        covered: String,
    },
}

impl TimeRange {
    /// Reads the bounds of a call. `now` is the current time; `covered` is the time of the first and the last entry of
    /// the source, if it is known, which the messages contain. All are nanoseconds UTC.
    ///
    /// # Errors
    /// If a bound is no time, or the range is empty, or it starts after `now`.
    pub fn parse(
        after: Option<TimeInput<'_>>,
        before: Option<TimeInput<'_>>,
        now: i64,
        covered: Option<(i64, i64)>,
    ) -> Result<Self, TimeRangeError> {
        let parse = |bound, input: Option<TimeInput<'_>>| {
            let time = input.map(|input| parse_time(input, now)).transpose();
            time.map_err(|error| TimeRangeError::Bound { bound, error })
        };
        let range = Self { start: parse("after", after)?, end: parse("before", before)? };
        let covered = || match covered {
            Some((first, last)) => {
                format!("; the source covers {} to {}", format_time(first), format_time(last))
            }
            None => String::new(),
        };
        if let (Some(start), Some(end)) = (range.start, range.end)
            && start >= end
        {
            let (after, before) = (format_time(start), format_time(end));
            return Err(TimeRangeError::Reversed { after, before, covered: covered() });
        }
        match range.start {
            Some(start) if start > now => {
                let (after, now) = (format_time(start), format_time(now));
                Err(TimeRangeError::Future { after, now, covered: covered() })
            }
            _ => Ok(range),
        }
    }

    /// Whether `time` is in the range.
    pub fn contains(&self, time: i64) -> bool {
        self.start.is_none_or(|start| time >= start) && self.end.is_none_or(|end| time < end)
    }

    /// Whether every time is in the range; only then entries without a time are in it too.
    pub fn is_unbounded(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_772_368_200_000_000_000;

    fn range(after: &str, before: &str, covered: Option<(i64, i64)>) -> Result<TimeRange, String> {
        let text = |text| Some(TimeInput::Text(text)).filter(|input| *input != TimeInput::Text(""));
        TimeRange::parse(text(after), text(before), NOW, covered).map_err(|error| error.to_string())
    }

    #[test]
    fn bounds_are_half_open() {
        let range = range("-1h", "now", None).unwrap();
        assert!(range.contains(NOW - 1) && !range.contains(NOW));
        assert!(range.contains(NOW - 3_600_000_000_000) && !range.contains(NOW - 3_600_000_000_001));
        assert!(TimeRange::default().is_unbounded() && TimeRange::default().contains(i64::MIN));
    }

    #[test]
    fn impossible_ranges_are_errors() {
        let covered = Some((0, NOW));
        assert_eq!(
            range("now", "-1h", covered).unwrap_err(),
            "the range of time is empty: after (2026-03-01T12:30:00Z) is not earlier than before \
             (2026-03-01T11:30:00Z); the source covers 1970-01-01T00:00:00Z to 2026-03-01T12:30:00Z"
        );
        assert_eq!(
            range("+1h", "", None).unwrap_err(),
            "the range of time is in the future: after is 2026-03-01T13:30:00Z, and now is 2026-03-01T12:30:00Z"
        );
        assert!(range("", "soon", None).unwrap_err().starts_with("before: \"soon\" is not a time"));
        assert!(range("-1h", "+1h", None).is_ok());
    }
}
