//! Options that the configuration declares for log files.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_log_formats::{DeclaredGroup, LinePattern, LogFormat, LogTimeZone, PatternGroupType};

/// The declared options of a log file. Everything that is not declared is detected.
#[derive(Debug, Clone, Default)]
pub struct LogTableOptions {
    format: Option<LogFormat>,
    groups: Vec<DeclaredGroup>,
    time_zone: Option<LogTimeZone>,
}

/// An option of a log file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptionProblem {
    /// The key of the option, such as `format` or `groups.status`.
    pub key: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl LogTableOptions {
    /// Parses the options as the configuration writes them: the name of a format; a regular expression with named
    /// groups, which is the format `pattern`; types of its groups (`integer`, `time`, `time %Y-%m-%d %T`); and the zone
    /// of times that name none.
    ///
    /// # Errors
    /// One problem for each wrong option.
    pub fn parse(
        format: Option<&str>,
        pattern: Option<&str>,
        groups: &BTreeMap<String, String>,
        time_zone: Option<&str>,
    ) -> Result<Self, Vec<LogOptionProblem>> {
        let mut problems = Vec::new();
        let mut report = |key: String, message: String| problems.push(LogOptionProblem { key, message });
        let mut declared = Vec::new();
        for (name, text) in groups {
            let (type_name, time_format) =
                text.split_once(' ').map_or((text.as_str(), None), |(a, b)| (a, Some(b.trim())));
            match PatternGroupType::from_name(type_name, time_format) {
                Ok(group_type) => declared.push(DeclaredGroup { name: name.clone(), group_type }),
                Err(error) => report(format!("groups.{name}"), error.to_string()),
            }
        }
        let time_zone = time_zone.and_then(|name| {
            LogTimeZone::from_name(name).map_err(|error| report("time_zone".to_owned(), error.to_string())).ok()
        });
        let is_pattern = format.is_none_or(|name| name.trim().eq_ignore_ascii_case("pattern"));
        let format = match (format, pattern) {
            (_, Some(pattern)) if is_pattern => match LinePattern::new(pattern, &declared) {
                Ok(pattern) => Some(LogFormat::Pattern(Arc::new(pattern))),
                Err(error) => {
                    report("pattern".to_owned(), error.to_string());
                    None
                }
            },
            (Some(name), Some(_)) => {
                report("pattern".to_owned(), format!("has no effect with format: {name}; write format: pattern"));
                None
            }
            (Some(name), None) => {
                LogFormat::from_name(name).map_err(|error| report("format".to_owned(), error.to_string())).ok()
            }
            (None, _) => None,
        };
        if pattern.is_none() && !groups.is_empty() {
            report(
                "groups".to_owned(),
                "declares types of the groups of a pattern, but there is no pattern".to_owned(),
            );
        }
        if problems.is_empty() { Ok(Self { format, groups: declared, time_zone }) } else { Err(problems) }
    }

    /// Whether no option is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.format.is_none() && self.time_zone.is_none()
    }

    pub(crate) fn format(&self) -> Option<&LogFormat> {
        self.format.as_ref()
    }

    pub(crate) fn time_zone(&self) -> LogTimeZone {
        self.time_zone.unwrap_or_else(LogTimeZone::utc)
    }
}

impl PartialEq for LogTableOptions {
    fn eq(&self, other: &Self) -> bool {
        let name = |options: &Self| options.format.as_ref().map(LogFormat::name);
        let same_pattern = match (&self.format, &other.format) {
            (Some(LogFormat::Pattern(a)), Some(LogFormat::Pattern(b))) => a.as_str() == b.as_str(),
            _ => true,
        };
        name(self) == name(other) && same_pattern && self.groups == other.groups && self.time_zone == other.time_zone
    }
}

impl Eq for LogTableOptions {}
