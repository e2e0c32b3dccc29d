//! Severities: from the words and numbers of many systems to one list.

use crate::schema::EntryColumnType;

use NormalizedSeverity::{Alert, Critical, Emergency, Error, Info, Notice, Trace, Warning};

/// A severity with the same meaning in every log, from the least to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NormalizedSeverity {
    /// Finer than debug.
    Trace,
    /// For developers.
    Debug,
    /// Normal operation.
    Info,
    /// Normal, but significant.
    Notice,
    /// May become an error.
    Warning,
    /// An operation failed.
    Error,
    /// A part of the system failed.
    Critical,
    /// Requires action at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

/// What the numbers of a severity column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeverityNumberScale {
    /// 0 (emergency) to 7 (debug): syslog and journald.
    Syslog,
    /// 1 (trace) to 24 (fatal): OpenTelemetry.
    OpenTelemetry,
    /// 10 (debug) to 50 (critical): Python.
    Python,
    /// 10 (trace) to 60 (fatal), as bunyan and pino write it; numbers up to 7 are those of syslog (GELF).
    Level,
}

/// The words for severities in capital letters.
const WORDS: &[(&str, NormalizedSeverity)] = &[
    ("INFO", Info),
    ("ERROR", Error),
    ("WARN", Warning),
    ("WARNING", Warning),
    ("DEBUG", NormalizedSeverity::Debug),
    ("NOTICE", Notice),
    ("TRACE", Trace),
    ("FATAL", Critical),
    ("CRITICAL", Critical),
    ("ERR", Error),
    ("CRIT", Critical),
    ("ALERT", Alert),
    ("EMERG", Emergency),
    ("EMERGENCY", Emergency),
    ("PANIC", Emergency),
    ("LOG", Info),
    ("INFORMATION", Info),
    ("INFORMATIONAL", Info),
    ("WRN", Warning),
    ("INF", Info),
    ("DBG", NormalizedSeverity::Debug),
    ("DEBG", NormalizedSeverity::Debug),
    ("TRC", Trace),
    ("EROR", Error),
    ("FTL", Critical),
    ("DPANIC", Critical),
    ("SEVERE", Error),
    ("FAILURE", Error),
    ("CONFIG", NormalizedSeverity::Debug),
    ("FINE", NormalizedSeverity::Debug),
    ("FINER", Trace),
    ("FINEST", Trace),
    ("VERBOSE", Trace),
    ("SILLY", Trace),
    ("HTTP", Info),
    ("DEFAULT", Info),
    ("AUDIT", Notice),
    ("T", Trace),
    ("V", Trace),
    ("D", NormalizedSeverity::Debug),
    ("I", Info),
    ("N", Notice),
    ("W", Warning),
    ("E", Error),
    ("C", Critical),
    ("F", Critical),
    ("A", Alert),
];

const WORD_BYTES_MAX: usize = 13;
/// Words that may have a digit, such as `DEBUG5` (PostgreSQL), `trace8` (Apache) and `WARN2` (OpenTelemetry).
const NUMBERED_WORDS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

impl NormalizedSeverity {
    /// The severity that a raw value means: a word in any case, or a number of `scale`.
    #[must_use]
    pub fn from_raw(raw: &str, scale: SeverityNumberScale) -> Option<Self> {
        let raw = raw.trim_matches([' ', '[', ']', '<', '>', ':']);
        match raw.bytes().next()? {
            b'0'..=b'9' => Self::from_number(raw.parse().ok()?, scale),
            _ => Self::from_word(raw),
        }
    }

    /// The severity with this name in any case, in one of the forms that loggers use.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        if word.len() > WORD_BYTES_MAX {
            return None;
        }
        let numbered = word.strip_suffix(|last: char| last.is_ascii_digit());
        let word =
            numbered.filter(|word| NUMBERED_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))).unwrap_or(word);
        WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, severity)| *severity)
    }

    /// The severity with this number on `scale`.
    #[must_use]
    pub fn from_number(number: i64, scale: SeverityNumberScale) -> Option<Self> {
        Some(match (scale, number) {
            (SeverityNumberScale::Syslog, 0..=7) | (SeverityNumberScale::Level, 0..=7) => match number {
                0 => Emergency,
                1 => Alert,
                2 => Critical,
                3 => Error,
                4 => Warning,
                5 => Notice,
                6 => Info,
                _ => NormalizedSeverity::Debug,
            },
            (SeverityNumberScale::OpenTelemetry, 1..=24) => match number {
                1..=4 => Trace,
                5..=8 => NormalizedSeverity::Debug,
                9 => Info,
                10..=12 => Notice,
                13..=16 => Warning,
                17 => Error,
                18 => Critical,
                19..=20 => Alert,
                // 21 is the fatal of most senders, a word that means critical here.
                21..=23 => Critical,
                _ => Emergency,
            },
            (SeverityNumberScale::Python, 1..=9) | (SeverityNumberScale::Level, 8..=19) => Trace,
            (SeverityNumberScale::Python, 10..=19) | (SeverityNumberScale::Level, 20..=29) => NormalizedSeverity::Debug,
            (SeverityNumberScale::Python, 20..=29) | (SeverityNumberScale::Level, 30..=39) => Info,
            (SeverityNumberScale::Python, 30..=39) | (SeverityNumberScale::Level, 40..=49) => Warning,
            (SeverityNumberScale::Python, 40..=49) | (SeverityNumberScale::Level, 50..=59) => Error,
            (SeverityNumberScale::Python, 50..) | (SeverityNumberScale::Level, 60..) => Critical,
            _ => return None,
        })
    }

    /// The name in lower case, such as `warning`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Trace => "trace",
            NormalizedSeverity::Debug => "debug",
            Info => "info",
            Notice => "notice",
            Warning => "warning",
            Error => "error",
            Critical => "critical",
            Alert => "alert",
            Emergency => "emergency",
        }
    }

    /// The number of OpenTelemetry, which grows with the severity: trace 1, debug 5, info 9, notice 10, warning 13,
    /// error 17, critical 18, alert 19, emergency 24.
    #[must_use]
    pub fn number(self) -> i64 {
        match self {
            Trace => 1,
            NormalizedSeverity::Debug => 5,
            Info => 9,
            Notice => 10,
            Warning => 13,
            Error => 17,
            Critical => 18,
            Alert => 19,
            Emergency => 24,
        }
    }
}

impl SeverityNumberScale {
    /// The scale of the numbers in a column with this name.
    #[must_use]
    pub fn from_column_name(name: &str) -> Self {
        let lowered: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if lowered.contains("severitynumber") || lowered == "severitynum" {
            Self::OpenTelemetry
        } else if lowered == "levelno" {
            Self::Python
        } else if lowered.contains("priority") || lowered.contains("syslog") {
            Self::Syslog
        } else {
            Self::Level
        }
    }
}

/// The types that a column of severities may have.
pub(crate) fn may_be_severity(column_type: EntryColumnType) -> bool {
    matches!(column_type, EntryColumnType::Text | EntryColumnType::Integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_any_case() {
        let name = |raw| NormalizedSeverity::from_raw(raw, SeverityNumberScale::Level).map(NormalizedSeverity::name);
        assert_eq!(name("Warn"), Some("warning"));
        assert_eq!(name("[ERROR]"), Some("error"));
        assert_eq!(name("LOG"), Some("info"));
        assert_eq!(name("PANIC"), Some("emergency"));
        assert_eq!(name("DEBUG5"), Some("debug"));
        assert_eq!(name("trace8"), Some("trace"));
        assert_eq!(name("http2"), None);
        assert_eq!(name("I"), Some("info"));
        assert_eq!(name("fatal"), Some("critical"));
        assert_eq!(name("GET"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn numbers_have_the_scale_of_their_column() {
        let name = |raw, column| {
            NormalizedSeverity::from_raw(raw, SeverityNumberScale::from_column_name(column))
                .map(NormalizedSeverity::name)
        };
        assert_eq!(name("3", "PRIORITY"), Some("error"));
        assert_eq!(name("17", "SeverityNumber"), Some("error"));
        assert_eq!(name("30", "level"), Some("info"));
        assert_eq!(name("30", "levelno"), Some("warning"));
        assert_eq!(name("4", "level"), Some("warning"));
        assert_eq!(name("9", "PRIORITY"), None);
    }

    #[test]
    fn own_numbers_grow_with_the_severity_and_are_those_of_opentelemetry() {
        let all = [Trace, NormalizedSeverity::Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency];
        assert!(all.windows(2).all(|pair| pair.first().map(|a| a.number()) < pair.last().map(|b| b.number())));
        for severity in all {
            let number = severity.number();
            assert_eq!(NormalizedSeverity::from_number(number, SeverityNumberScale::OpenTelemetry), Some(severity));
            assert_eq!(NormalizedSeverity::from_word(severity.name()), Some(severity));
        }
    }
}
