//! The formats of log files and their names.

use std::sync::Arc;

use strum::{EnumIter, IntoEnumIterator as _};
use thiserror::Error;
use tidegate_core::suggestion;

use crate::column::FixedColumn;
use crate::parse::{access, apache_error, cri, haproxy, klog, nginx_error, postgres, syslog};
use crate::pattern::LinePattern;

/// The name of the only format that is no format alone.
const PATTERN: &str = "pattern";

/// The format of a log file: how its lines become entries.
#[derive(Debug, Clone, EnumIter)]
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
    #[strum(disabled)]
    Pattern(Arc<LinePattern>),
}

/// What a format is called, and what does not depend on the lines of a file.
pub(crate) struct LogFormatProperties {
    /// The name, then other names that are in use for the format.
    names: &'static [&'static str],
    /// The columns that entries always have; those of a pattern are in the pattern.
    pub(crate) columns: &'static [FixedColumn],
    /// Pairs of columns that contain the same values, or parts of them, which masks need; those of a pattern are in the
    /// pattern.
    pub(crate) overlapping_columns: &'static [(&'static str, &'static str)],
    /// Columns in whose text a program repeats the values of others, each with those others. Masks need them, too.
    pub(crate) repeating_columns: &'static [(&'static str, &'static [&'static str])],
    /// Whether entries have members beside the fixed columns.
    pub(crate) has_members: bool,
    /// Whether lines that do not begin an entry continue the one before, even without the form of a stack trace.
    pub(crate) joins_other_lines: bool,
}

impl LogFormatProperties {
    const fn new(names: &'static [&'static str], columns: &'static [FixedColumn]) -> Self {
        Self {
            names,
            columns,
            overlapping_columns: &[],
            repeating_columns: &[],
            has_members: true,
            joins_other_lines: false,
        }
    }
}

/// A name that is no format, or not one alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogFormatNameError {
    /// No format has this name.
    #[error("unknown log format \"{name}\"{suggestion}; the formats are {}", LogFormat::names().collect::<Vec<_>>().join(", "))]
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
        if lowered == PATTERN {
            return Err(LogFormatNameError::PatternMissing);
        }
        Self::iter().find(|format| format.properties().names.contains(&lowered.as_str())).ok_or_else(|| {
            let names = Self::iter().flat_map(|format| format.properties().names).copied();
            let suggestion = suggestion(name.trim(), names.chain([PATTERN]));
            LogFormatNameError::Unknown { name: name.to_owned(), suggestion }
        })
    }

    /// The names of all formats, as the configuration writes them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::iter().map(|format| format.name()).chain([PATTERN])
    }

    /// The name of the format, one of [`LogFormat::names`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.properties().names.first().copied().unwrap_or_default()
    }

    pub(crate) fn properties(&self) -> LogFormatProperties {
        match self {
            Self::Common => LogFormatProperties {
                overlapping_columns: access::OVERLAPPING_COLUMNS,
                ..LogFormatProperties::new(&["common", "clf"], access::COMMON_COLUMNS)
            },
            Self::Combined => LogFormatProperties {
                overlapping_columns: access::OVERLAPPING_COLUMNS,
                repeating_columns: access::REPEATING_COLUMNS,
                ..LogFormatProperties::new(&["combined", "nginx", "apache", "vhost_combined"], access::COMBINED_COLUMNS)
            },
            Self::NginxError => LogFormatProperties {
                repeating_columns: nginx_error::REPEATING_COLUMNS,
                joins_other_lines: true,
                ..LogFormatProperties::new(&["nginx_error"], nginx_error::COLUMNS)
            },
            Self::ApacheError => LogFormatProperties {
                overlapping_columns: apache_error::OVERLAPPING_COLUMNS,
                has_members: false,
                ..LogFormatProperties::new(&["apache_error", "httpd_error"], apache_error::COLUMNS)
            },
            Self::Haproxy => LogFormatProperties {
                overlapping_columns: haproxy::OVERLAPPING_COLUMNS,
                repeating_columns: haproxy::REPEATING_COLUMNS,
                ..LogFormatProperties::new(&["haproxy"], haproxy::COLUMNS)
            },
            Self::Cri => LogFormatProperties {
                has_members: false,
                ..LogFormatProperties::new(&["cri", "containerd"], cri::COLUMNS)
            },
            Self::Klog => LogFormatProperties {
                has_members: false,
                joins_other_lines: true,
                ..LogFormatProperties::new(&["klog", "glog"], klog::COLUMNS)
            },
            Self::Syslog => LogFormatProperties {
                overlapping_columns: syslog::OVERLAPPING_COLUMNS,
                joins_other_lines: true,
                ..LogFormatProperties::new(&["syslog", "rfc3164", "rfc5424"], syslog::COLUMNS)
            },
            Self::Logfmt => {
                LogFormatProperties { joins_other_lines: true, ..LogFormatProperties::new(&["logfmt"], &[]) }
            }
            Self::Json => LogFormatProperties::new(&["json", "jsonl", "ndjson"], &[]),
            Self::PostgresCsv => LogFormatProperties {
                overlapping_columns: postgres::CSV_OVERLAPPING_COLUMNS,
                repeating_columns: postgres::CSV_REPEATING_COLUMNS,
                ..LogFormatProperties::new(&["csvlog", "postgres_csv"], postgres::CSV_COLUMNS)
            },
            Self::PostgresJson => LogFormatProperties {
                overlapping_columns: postgres::JSON_OVERLAPPING_COLUMNS,
                repeating_columns: postgres::JSON_REPEATING_COLUMNS,
                ..LogFormatProperties::new(&["jsonlog", "postgres_json"], postgres::JSON_COLUMNS)
            },
            Self::PostgresText => LogFormatProperties {
                repeating_columns: postgres::TEXT_REPEATING_COLUMNS,
                has_members: false,
                joins_other_lines: true,
                ..LogFormatProperties::new(&["postgresql", "postgres", "stderr"], postgres::TEXT_COLUMNS)
            },
            Self::Pattern(_) => LogFormatProperties {
                has_members: false,
                joins_other_lines: true,
                ..LogFormatProperties::new(&[PATTERN], &[])
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_gives_its_format() {
        for name in LogFormat::names().filter(|name| *name != PATTERN) {
            assert_eq!(LogFormat::from_name(name).expect("a format").name(), name);
        }
        assert_eq!(LogFormat::from_name(" NDJSON").expect("an alias").name(), "json");
    }

    #[test]
    fn masks_name_columns_of_the_format() {
        for format in LogFormat::iter() {
            let LogFormatProperties { columns, overlapping_columns, repeating_columns, .. } = format.properties();
            let overlapping = overlapping_columns.iter().flat_map(|(one, other)| [*one, *other]);
            let repeating =
                repeating_columns.iter().flat_map(|(column, others)| others.iter().chain([column]).copied());
            for name in overlapping.chain(repeating) {
                assert!(columns.iter().any(|(column, _, _)| *column == name), "{}: {name}", format.name());
            }
        }
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
