//! Names for the numbers of columns whose name says what they count.

use tidegate_log_formats::{NormalizedSeverity, SeverityNumberScale};

/// What the numbers of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeScale {
    /// Severities.
    Severity(SeverityNumberScale),
    /// Status codes of HTTP, by their first digit. They have no severity, because a 404 may be normal.
    HttpStatus,
}

impl CodeScale {
    /// The scale of a column, where its name makes it clear.
    pub fn from_column_name(name: &str) -> Option<Self> {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        match name.as_str() {
            "priority" | "syslogpriority" | "syslogseverity" | "logsyslogseveritycode" => {
                Some(Self::Severity(SeverityNumberScale::Syslog))
            }
            "severitynumber" => Some(Self::Severity(SeverityNumberScale::OpenTelemetry)),
            "httpstatus" | "httpstatuscode" | "httpresponsestatuscode" | "statuscode" => Some(Self::HttpStatus),
            _ => None,
        }
    }

    /// The severity of a number of this scale.
    pub fn severity(self, value: &str) -> Option<NormalizedSeverity> {
        match self {
            Self::Severity(scale) => NormalizedSeverity::from_number(value.parse().ok()?, scale),
            Self::HttpStatus => None,
        }
    }

    /// The display name beside a raw value, such as `info` for priority 6. `None` if the value has none.
    pub fn display_name(self, value: &str) -> Option<&'static str> {
        if self != Self::HttpStatus {
            return self.severity(value).map(NormalizedSeverity::name);
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
        let display_name = |column, value| CodeScale::from_column_name(column).unwrap().display_name(value);
        assert_eq!(display_name("PRIORITY", "6"), Some("info"));
        assert_eq!(display_name("PRIORITY", "0"), Some("emergency"));
        assert_eq!(display_name("PRIORITY", "8"), None);
        assert_eq!(display_name("severity_number", "9"), Some("info"));
        assert_eq!(display_name("severity_number", "10"), Some("notice"));
        assert_eq!(display_name("severity_number", "-"), None);
        assert_eq!(display_name("http_status_code", "503"), Some("server error"));
        assert_eq!(CodeScale::from_column_name("level"), None);
    }
}
