//! Which column of a table is the time, the message and the severity of its rows, by their names and types.

use crate::schema::{EntryColumnRole, EntryColumnType};
use crate::severity::may_be_severity;

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
}
