//! Bodies that are refused, and records that are rejected.

use std::fmt;

/// How many reasons of rejected records are kept. Others are only counted.
pub const REPORTED_REASONS_MAX: usize = 10;

/// The longest reason that is kept, in bytes. Names and values of the sender occur in reasons.
const REASON_BYTES_MAX: usize = 512;

/// Why a body is refused. No record of it may be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The bytes are not in the format.
    #[error("{0}")]
    Malformed(String),
    /// The body exceeds one of [`crate::formats::TelemetryLimits`].
    #[error("{0}")]
    TooLarge(String),
    /// The body needs more memory than [`crate::formats::TelemetryLimits::decoded_bytes_max`].
    #[error("{0}")]
    OutOfMemory(String),
    /// The media type or the coding of the body is not one that is read.
    #[error("{0}")]
    Unsupported(String),
    /// The rows could not be built, which is an error of this crate.
    #[error("the rows could not be built: {0}")]
    Internal(String),
}

/// Records of a body that were left out, because a column does not hold them exactly or a limit does not admit them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RejectedRecords {
    /// How many there are.
    pub count: u64,
    /// Position and reason of the first of them, at most [`REPORTED_REASONS_MAX`].
    pub reasons: Vec<String>,
}

impl RejectedRecords {
    pub(crate) fn add(&mut self, count: u64, reason: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(count);
        if count > 0 && self.reasons.len() < REPORTED_REASONS_MAX {
            self.reasons.push(cut_text(&reason(), REASON_BYTES_MAX).to_owned());
        }
    }
}

impl fmt::Display for RejectedRecords {
    /// The reasons, separated by semicolons, and how many more there are. Empty if nothing was rejected.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count == 0 {
            return Ok(());
        }
        let records = if self.count == 1 { "record is" } else { "records are" };
        write!(formatter, "{} {records} rejected: {}", self.count, self.reasons.join("; "))?;
        if self.reasons.len() == REPORTED_REASONS_MAX && self.count > REPORTED_REASONS_MAX as u64 {
            formatter.write_str("; and others")?;
        }
        Ok(())
    }
}

/// Why one record has no row.
#[derive(Debug)]
pub(crate) enum RecordError {
    /// The record is rejected; others go on.
    Rejected(String),
    /// The body is refused.
    Refused(FormatError),
}

impl RecordError {
    pub(crate) fn rejected<T>(reason: impl Into<String>) -> Result<T, Self> {
        Err(Self::Rejected(reason.into()))
    }
}

impl From<FormatError> for RecordError {
    fn from(error: FormatError) -> Self {
        Self::Refused(error)
    }
}

/// The first bytes of `text`, at most `bytes_max`, with whole characters only.
pub(crate) fn cut_text(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_records_are_summarized() {
        let mut rejected = RejectedRecords::default();
        assert_eq!(rejected.to_string(), "");
        rejected.add(1, || "record 0: it is wrong".into());
        assert_eq!(rejected.to_string(), "1 record is rejected: record 0: it is wrong");
        for _ in 0..20 {
            rejected.add(1, || "x".repeat(1_000));
        }
        assert_eq!((rejected.count, rejected.reasons.len()), (21, REPORTED_REASONS_MAX));
        assert_eq!(rejected.reasons[1].len(), REASON_BYTES_MAX);
        assert!(rejected.to_string().ends_with("; and others"));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_text("aä", 2), "a");
        assert_eq!(cut_text("aä", 3), "aä");
    }
}
