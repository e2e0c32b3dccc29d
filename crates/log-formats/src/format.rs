//! The formats of log files and their names.

use std::sync::Arc;

use thiserror::Error;
use tidegate_core::suggestion;

use crate::pattern::LinePattern;

/// The format of a log file: how its lines become entries.
#[derive(Debug, Clone)]
pub enum LogFormat {
    /// The Common Log Format of web servers, optionally with a virtual host before and further fields after it.
    Common,
    /// The Common Log Format, then the referer and the user agent, optionally with further fields.
    Combined,
    /// The error log of nginx.
    NginxError,
    /// The error log of Apache httpd 2.2 and 2.4.
    ApacheError,
    /// The HTTP, TCP and error formats of HAProxy.
    Haproxy,
    /// The logs of containers in Kubernetes.
    Cri,
    /// klog of Kubernetes and glog.
    Klog,
    /// RFC 3164, RFC 5424 and the lines of `/var/log/syslog`, recognised per line.
    Syslog,
    /// Pairs `key=value`, separated by blanks.
    Logfmt,
    /// One JSON object per line.
    Json,
    /// `csvlog` of PostgreSQL.
    PostgresCsv,
    /// `jsonlog` of PostgreSQL 15 and later.
    PostgresJson,
    /// The log of PostgreSQL in text, as it goes to `stderr`.
    PostgresText,
    /// A regular expression with named groups.
    Pattern(Arc<LinePattern>),
}

/// The names of all formats, as the configuration writes them.
pub const LOG_FORMAT_NAMES: [&str; 14] = [
    "common",
    "combined",
    "nginx_error",
    "apache_error",
    "haproxy",
    "cri",
    "klog",
    "syslog",
    "logfmt",
    "json",
    "csvlog",
    "jsonlog",
    "postgresql",
    "pattern",
];

/// Other names that are in use for the same formats.
const ALIASES: &[(&str, &str)] = &[
    ("clf", "common"),
    ("nginx", "combined"),
    ("apache", "combined"),
    ("vhost_combined", "combined"),
    ("httpd_error", "apache_error"),
    ("containerd", "cri"),
    ("glog", "klog"),
    ("rfc3164", "syslog"),
    ("rfc5424", "syslog"),
    ("jsonl", "json"),
    ("ndjson", "json"),
    ("postgres_csv", "csvlog"),
    ("postgres_json", "jsonlog"),
    ("postgres", "postgresql"),
    ("stderr", "postgresql"),
];

/// A name that is no format, or not one alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogFormatNameError {
    /// No format has this name.
    #[error("unknown log format \"{name}\"{suggestion}; the formats are {}", LOG_FORMAT_NAMES.join(", "))]
    Unknown {
        /// The name as it was given.
        name: String,
        /// A sentence part with the nearest name, or empty.
        suggestion: String,
    },
    /// The format `pattern` has no meaning without its regular expression.
    #[error(
        "the log format \"pattern\" needs a regular expression with named groups, such as (?<time>\\S+) (?<message>.*)"
    )]
    PatternMissing,
}

impl LogFormat {
    /// The format with this name, in any case. The format `pattern` is made of a [`LinePattern`] instead.
    ///
    /// # Errors
    ///
    /// If no format has the name, with the nearest name; and for `pattern`.
    pub fn from_name(name: &str) -> Result<Self, LogFormatNameError> {
        let lowered = name.trim().to_ascii_lowercase().replace('-', "_");
        let canonical = ALIASES.iter().find(|(alias, _)| *alias == lowered).map_or(lowered.as_str(), |(_, name)| name);
        Ok(match canonical {
            "common" => Self::Common,
            "combined" => Self::Combined,
            "nginx_error" => Self::NginxError,
            "apache_error" => Self::ApacheError,
            "haproxy" => Self::Haproxy,
            "cri" => Self::Cri,
            "klog" => Self::Klog,
            "syslog" => Self::Syslog,
            "logfmt" => Self::Logfmt,
            "json" => Self::Json,
            "csvlog" => Self::PostgresCsv,
            "jsonlog" => Self::PostgresJson,
            "postgresql" => Self::PostgresText,
            "pattern" => return Err(LogFormatNameError::PatternMissing),
            _ => {
                let candidates = LOG_FORMAT_NAMES.into_iter().chain(ALIASES.iter().map(|(alias, _)| *alias));
                return Err(LogFormatNameError::Unknown {
                    name: name.to_owned(),
                    suggestion: suggestion(name.trim(), candidates),
                });
            }
        })
    }

    /// The name of the format, one of [`LOG_FORMAT_NAMES`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Combined => "combined",
            Self::NginxError => "nginx_error",
            Self::ApacheError => "apache_error",
            Self::Haproxy => "haproxy",
            Self::Cri => "cri",
            Self::Klog => "klog",
            Self::Syslog => "syslog",
            Self::Logfmt => "logfmt",
            Self::Json => "json",
            Self::PostgresCsv => "csvlog",
            Self::PostgresJson => "jsonlog",
            Self::PostgresText => "postgresql",
            Self::Pattern(_) => "pattern",
        }
    }

    /// Whether entries have members beside the fixed columns of the format.
    pub(crate) fn has_members(&self) -> bool {
        !matches!(self, Self::ApacheError | Self::Cri | Self::Klog | Self::PostgresText | Self::Pattern(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_gives_its_format() {
        for name in LOG_FORMAT_NAMES.iter().filter(|name| **name != "pattern") {
            assert_eq!(LogFormat::from_name(name).expect("a format").name(), *name);
        }
        assert_eq!(LogFormat::from_name(" NDJSON").expect("an alias").name(), "json");
    }

    #[test]
    fn errors_name_the_nearest_format() {
        let error = LogFormat::from_name("combned").expect_err("no format");
        assert_eq!(
            error.to_string(),
            "unknown log format \"combned\"; did you mean \"combined\"?; the formats are common, combined, nginx_error, \
             apache_error, haproxy, cri, klog, syslog, logfmt, json, csvlog, jsonlog, postgresql, pattern"
        );
        assert!(LogFormat::from_name("pattern").expect_err("incomplete").to_string().contains("regular expression"));
    }
}
