//! Severities: one scale of names for the numbers and words of syslog, OpenTelemetry and common log libraries.

/// How serious an entry is, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names of syslog and OpenTelemetry say it")]
pub enum Severity {
    Trace,
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// What the numbers of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeverityScale {
    /// Priorities of syslog and journald: 0 is `emergency`, 7 is `debug`.
    Syslog,
    /// Severity numbers of OpenTelemetry: 1 to 4 are `trace`, 21 to 24 are fatal.
    OpenTelemetry,
    /// Status codes of HTTP, by their first digit.
    HttpStatus,
}

/// The priorities of syslog in their order.
const SYSLOG: [Severity; 8] = [
    Severity::Emergency,
    Severity::Alert,
    Severity::Critical,
    Severity::Error,
    Severity::Warning,
    Severity::Notice,
    Severity::Info,
    Severity::Debug,
];

/// Each severity with its name, and further words that mean it.
const WORDS: [(Severity, &str, &[&str]); 9] = [
    (Severity::Trace, "trace", &["trc", "verbose", "finest", "finer"]),
    (Severity::Debug, "debug", &["dbg", "d", "fine", "debug1", "debug2", "debug3", "debug4", "debug5"]),
    (Severity::Info, "info", &["inf", "i", "information", "informational", "log"]),
    (Severity::Notice, "notice", &["n"]),
    (Severity::Warning, "warning", &["warn", "wrn", "w"]),
    (Severity::Error, "error", &["err", "e", "severe"]),
    (Severity::Critical, "critical", &["crit", "c", "fatal", "f", "ftl"]),
    (Severity::Alert, "alert", &[]),
    (Severity::Emergency, "emergency", &["emerg", "panic"]),
];

impl Severity {
    /// The name, as answers show it.
    pub fn name(self) -> &'static str {
        WORDS.iter().find(|(severity, ..)| *severity == self).map_or("", |(_, name, _)| name)
    }

    /// The severity that a word such as `WARN` or `err` means.
    pub fn from_word(word: &str) -> Option<Self> {
        let matches = |other: &&str| word.eq_ignore_ascii_case(other);
        let found = WORDS.iter().find(|(_, name, words)| matches(name) || words.iter().any(matches));
        found.map(|(severity, ..)| *severity)
    }
}

impl SeverityScale {
    /// The scale of a column, where its name makes it clear.
    pub fn from_column_name(name: &str) -> Option<Self> {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        match name.as_str() {
            "priority" | "syslogpriority" | "syslogseverity" | "logsyslogseveritycode" => Some(Self::Syslog),
            "severitynumber" => Some(Self::OpenTelemetry),
            "httpstatus" | "httpstatuscode" | "httpresponsestatuscode" | "statuscode" => Some(Self::HttpStatus),
            _ => None,
        }
    }

    /// The severity of a number of this scale. Status codes of HTTP have none, because a 404 may be normal.
    pub fn severity(self, value: &str) -> Option<Severity> {
        let number: usize = value.parse().ok()?;
        match self {
            Self::Syslog => SYSLOG.get(number).copied(),
            Self::OpenTelemetry => match number {
                1..=4 => Some(Severity::Trace),
                5..=8 => Some(Severity::Debug),
                9..=12 => Some(Severity::Info),
                13..=16 => Some(Severity::Warning),
                17..=20 => Some(Severity::Error),
                21..=24 => Some(Severity::Critical),
                _ => None,
            },
            Self::HttpStatus => None,
        }
    }

    /// The display name beside a raw value, such as `info` for priority 6. `None` if the value has none.
    pub fn display_name(self, value: &str) -> Option<&'static str> {
        if self != Self::HttpStatus {
            return self.severity(value).map(Severity::name);
        }
        match value.parse::<u16>().ok()? {
            100..=199 => Some("informational"),
            200..=299 => Some("success"),
            300..=399 => Some("redirection"),
            400..=499 => Some("client error"),
            500..=599 => Some("server error"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_names() {
        assert_eq!(SeverityScale::Syslog.display_name("6"), Some("info"));
        assert_eq!(SeverityScale::Syslog.display_name("0"), Some("emergency"));
        assert_eq!(SeverityScale::Syslog.display_name("8"), None);
        assert_eq!(SeverityScale::OpenTelemetry.display_name("9"), Some("info"));
        assert_eq!(SeverityScale::OpenTelemetry.display_name("-"), None);
        assert_eq!(SeverityScale::HttpStatus.display_name("503"), Some("server error"));
    }

    #[test]
    fn words_and_columns_are_recognized() {
        assert_eq!(Severity::from_word("WARN"), Some(Severity::Warning));
        assert_eq!(Severity::from_word("Fatal"), Some(Severity::Critical));
        assert_eq!(Severity::from_word("lots"), None);
        assert_eq!(SeverityScale::from_column_name("PRIORITY"), Some(SeverityScale::Syslog));
        assert_eq!(SeverityScale::from_column_name("severity_number"), Some(SeverityScale::OpenTelemetry));
        assert_eq!(SeverityScale::from_column_name("level"), None);
        assert!(Severity::Error > Severity::Warning);
    }
}
