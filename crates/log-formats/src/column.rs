//! The columns of a format: names, types and roles. By names and types, it is found which column of a table is the time, the
//! message and the severity of its rows.
//!
//! Severities become one list, from the words and numbers of many systems.

use NormalizedSeverity::{Alert, Critical, Emergency, Error, Info, Notice, Trace, Warning};

/// The type of a column, which all of its values have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryColumnType {
    /// UTF-8 text.
    Text,
    /// A signed integer of 64 bits.
    Integer,
    /// A floating-point number of 64 bits.
    Float,
    /// Nanoseconds since 1970-01-01 00:00:00 UTC.
    Timestamp,
    /// True or false.
    Boolean,
}

impl EntryColumnType {
    /// The name of the type, as error messages and the configuration write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Timestamp => "time",
            Self::Boolean => "boolean",
        }
    }

    /// The type that holds the values of both.
    pub(crate) fn widened_to(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Integer | Self::Float, Self::Integer | Self::Float) => Self::Float,
            _ => Self::Text,
        }
    }
}

/// What a column means for a search over logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryColumnRole {
    /// When the entry was written. At most one column has this role.
    Time,
    /// The text for people. At most one column has this role.
    Message,
    /// How severe the entry is, as written. At most one column has this role.
    Severity,
    /// Anything else.
    Field,
}

/// One column of the entries of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryColumn {
    /// The name, unique within the schema.
    pub name: String,
    /// The type of the values.
    pub column_type: EntryColumnType,
    /// The meaning of the column.
    pub role: EntryColumnRole,
}

/// A column that a format always has.
pub(crate) type FixedColumn = (&'static str, EntryColumnType, EntryColumnRole);

impl EntryColumn {
    pub(crate) fn new(name: impl Into<String>, column_type: EntryColumnType, role: EntryColumnRole) -> Self {
        Self { name: name.into(), column_type, role }
    }
}

/// Names of times, the best first, as [`normalized`] writes them.
const TIME_NAMES: &[&str] = &[
    "timestamp",
    "time",
    "ts",
    "timeunixnano",
    "sourcerealtimetimestamp",
    "realtimetimestamp",
    "eventtime",
    "eventtimestamp",
    "logtime",
    "logtimestamp",
    "loggedat",
    "occurredat",
    "occurredon",
    "datetime",
    "eventcreated",
    "createdat",
    "created",
    "createdon",
    "createtime",
    "timecreated",
    "timelocal",
    "timeiso8601",
    "timegenerated",
    "happenedat",
    "recordedat",
    "startedat",
    "startedon",
    "starttime",
    "beganat",
    "observedtimestamp",
    "observedtimeunixnano",
    "receivedat",
    "ingestedat",
    "insertedat",
    "instant",
    "when",
    "t",
    "dt",
    "date",
    "updatedat",
];

/// Names of numbers since 1970; other integers are no times.
const EPOCH_NAMES: &[&str] = &[
    "timestamp",
    "time",
    "ts",
    "timeunixnano",
    "sourcerealtimetimestamp",
    "realtimetimestamp",
    "observedtimeunixnano",
    "epoch",
    "unixtime",
];

/// Names of texts for people, the best first.
const MESSAGE_NAMES: &[&str] = &[
    "message",
    "msg",
    "body",
    "bodystring",
    "logmessage",
    "shortmessage",
    "log",
    "logline",
    "line",
    "text",
    "event",
    "eventmessage",
    "eventoriginal",
    "renderedmessage",
    "messagetemplate",
    "mt",
    "m",
    "textpayload",
    "rawmessage",
    "description",
    "details",
    "content",
    "request",
];

/// Names of severities, the best first. Texts are better than numbers.
const SEVERITY_NAMES: &[&str] = &[
    "severitytext",
    "severity",
    "level",
    "loglevel",
    "logseverity",
    "levelname",
    "lvl",
    "errorseverity",
    "syslogseverity",
    "logsyslogseverityname",
    "priority",
    "syslogpriority",
    "eventseverity",
    "severitynumber",
    "severitynum",
    "levelno",
    "logsyslogseveritycode",
    "l",
];

/// The columns whose names make their role clear, as indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecognizedRoles {
    /// When a row was written. An integer is a number since 1970 whose magnitude gives its unit.
    pub time: Option<usize>,
    /// The text for people.
    pub message: Option<usize>,
    /// How severe the row is.
    pub severity: Option<usize>,
}

impl RecognizedRoles {
    /// The columns with a role, in the order time, severity, message.
    pub(crate) fn in_order(self) -> impl Iterator<Item = (usize, EntryColumnRole)> {
        let with_role = |index: Option<usize>, role| index.map(|index| (index, role));
        let columns = [
            with_role(self.time, EntryColumnRole::Time),
            with_role(self.severity, EntryColumnRole::Severity),
            with_role(self.message, EntryColumnRole::Message),
        ];
        columns.into_iter().flatten()
    }
}

/// Recognises the roles of columns by the names of OpenTelemetry, ECS, syslog, journald and common loggers. Case,
/// underscores, dots and `@` do not matter. A single column of times is the time, whatever its name; of several, it is the
/// first that is named as `queued_at` or `queuedAt`.
#[must_use]
pub fn recognize_roles(columns: &[(&str, EntryColumnType)]) -> RecognizedRoles {
    let names: Vec<String> = columns.iter().map(|(name, _)| normalized(name)).collect();
    let find = |candidates: &[&str], is_possible: &dyn Fn(EntryColumnType) -> bool| {
        candidates.iter().find_map(|candidate| {
            names
                .iter()
                .zip(columns)
                .position(|(name, (_, column_type))| name == candidate && is_possible(*column_type))
        })
    };
    let is_time = |column_type| column_type == EntryColumnType::Timestamp;
    let mut times = columns.iter().enumerate().filter(|(_, (_, column_type))| is_time(*column_type));
    let only_time = times.next().map(|(index, _)| index).filter(|_| times.next().is_none());
    let first_instant =
        || columns.iter().position(|(name, column_type)| is_time(*column_type) && is_instant_name(name));
    let time = find(TIME_NAMES, &is_time).or(only_time).or_else(first_instant);
    let time = time.or_else(|| find(EPOCH_NAMES, &|column_type| column_type == EntryColumnType::Integer));
    RecognizedRoles {
        time,
        message: find(MESSAGE_NAMES, &|column_type| column_type == EntryColumnType::Text),
        severity: find(SEVERITY_NAMES, &may_be_severity),
    }
}

/// Whether the name is usual for the time of an entry.
pub fn is_time_name(name: &str) -> bool {
    let normalized = normalized(name);
    TIME_NAMES.contains(&normalized.as_str()) || EPOCH_NAMES.contains(&normalized.as_str())
}

fn is_instant_name(name: &str) -> bool {
    name.ends_with("_at") || name.ends_with("At")
}

/// How many of the names of messages are usual in logs only.
const USUAL_MESSAGE_NAMES: usize = 8;

/// Whether the name is usual for the message of a log, and not for a text in other data.
pub(crate) fn is_usual_message_name(name: &str) -> bool {
    let normalized = normalized(name);
    MESSAGE_NAMES.iter().take(USUAL_MESSAGE_NAMES).any(|usual| *usual == normalized)
}

/// Letters and digits in lower case.
fn normalized(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

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
fn may_be_severity(column_type: EntryColumnType) -> bool {
    matches!(column_type, EntryColumnType::Text | EntryColumnType::Integer)
}

#[cfg(test)]
mod tests {
    use EntryColumnType::{Float, Integer, Text, Timestamp};

    use super::*;

    fn roles<const N: usize>(columns: [(&str, EntryColumnType); N]) -> [Option<&str>; 3] {
        let roles = recognize_roles(&columns);
        [roles.time, roles.severity, roles.message].map(|index| columns.get(index?).map(|(name, _)| *name))
    }

    #[test]
    fn names_of_the_usual_systems() {
        let otel = [
            ("SeverityNumber", Integer),
            ("SeverityText", Text),
            ("Body", Text),
            ("Timestamp", Timestamp),
            ("ObservedTimestamp", Timestamp),
        ];
        assert_eq!(roles(otel), [Some("Timestamp"), Some("SeverityText"), Some("Body")]);
        let ecs = [("@timestamp", Timestamp), ("log.level", Text), ("message", Text), ("event.created", Timestamp)];
        assert_eq!(roles(ecs), [Some("@timestamp"), Some("log.level"), Some("message")]);
        let journald = [("__REALTIME_TIMESTAMP", Integer), ("PRIORITY", Integer), ("MESSAGE", Text)];
        assert_eq!(roles(journald), [Some("__REALTIME_TIMESTAMP"), Some("PRIORITY"), Some("MESSAGE")]);
        let table =
            [("id", Integer), ("updated_at", Timestamp), ("created_at", Timestamp), ("level", Text), ("body", Text)];
        assert_eq!(roles(table), [Some("created_at"), Some("level"), Some("body")]);
        assert_eq!(roles([("t", Text), ("finished", Timestamp), ("level", Float)]), [Some("finished"), None, None]);
        assert_eq!(roles([("id", Integer), ("amount", Integer)]), [None, None, None]);
        let job = [("finished_at", Timestamp), ("started_at", Timestamp), ("status", Text)];
        assert_eq!(roles(job), [Some("started_at"), None, None]);
        assert_eq!(roles([("dueAt", Timestamp), ("sentAt", Timestamp)]), [Some("dueAt"), None, None]);
        assert_eq!(roles([("valid_from", Timestamp), ("valid_to", Timestamp)]), [None, None, None]);
    }

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
