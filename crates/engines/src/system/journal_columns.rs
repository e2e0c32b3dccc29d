//! The columns of a journal.
//!
//! The usual fields are columns with a type and a short name. The other fields that the files contain when the table is
//! opened are columns with their own names in lower case, so that they can be filtered and counted as any column. Fields
//! that come later, further values of a field, and values that are not text are in `fields`.

use tidegate_log_formats::{ENTRY_OFFSET, PARSE_ERROR};
use tidegate_system::{SystemColumn, SystemColumnType};

/// The maximum number of fields that are columns although they are not among the usual ones.
const FURTHER_COLUMNS_MAX: usize = 200;

/// The columns with the field that each of them has. The others are described in [`describe`].
const FIELD_COLUMNS: [(&str, &str, SystemColumnType, &str); 14] = [
    ("message", "MESSAGE", SystemColumnType::Text, "Text of the entry"),
    ("priority", "PRIORITY", SystemColumnType::Integer, "Severity of syslog: 0 is emergency, 6 is info, 7 is debug"),
    ("unit", "_SYSTEMD_UNIT", SystemColumnType::Text, "Unit of systemd"),
    ("identifier", "SYSLOG_IDENTIFIER", SystemColumnType::Text, "Name that the program gave itself"),
    ("pid", "_PID", SystemColumnType::Integer, "Process id"),
    ("uid", "_UID", SystemColumnType::Integer, "User id"),
    ("command", "_COMM", SystemColumnType::Text, "Name of the process"),
    ("executable", "_EXE", SystemColumnType::Text, "Path of the program"),
    ("command_line", "_CMDLINE", SystemColumnType::Text, "Command line"),
    ("transport", "_TRANSPORT", SystemColumnType::Text, "How the entry came: journal, syslog, stdout, kernel"),
    ("facility", "SYSLOG_FACILITY", SystemColumnType::Integer, "Facility of syslog"),
    ("message_id", "MESSAGE_ID", SystemColumnType::Text, "Id of the kind of message"),
    ("hostname", "_HOSTNAME", SystemColumnType::Text, "Name of the machine"),
    ("boot_id", "_BOOT_ID", SystemColumnType::Text, "Id of the boot"),
];
const TIME: &str = "time";
const SOURCE_TIME: &str = "source_time";
pub(super) const SOURCE_TIME_FIELD: &str = "_SOURCE_REALTIME_TIMESTAMP";
const FIELDS: &str = "fields";

/// How a column gets its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ColumnSource {
    Time,
    Field(String),
    /// All fields as JSON.
    AllFields,
    /// What cannot be read.
    Defect,
    Position,
}

/// The columns with their sources. `fields` are the names of the fields in the files.
pub(super) fn describe(fields: impl Iterator<Item = String>) -> Vec<(SystemColumn, ColumnSource)> {
    let time =
        SystemColumn::new(TIME, SystemColumnType::Timestamp, "When the journal received the entry").good_filter();
    let mut columns = vec![(time, ColumnSource::Time)];
    for (name, field, kind, text) in FIELD_COLUMNS {
        let column = SystemColumn::new(name, kind, format!("{text} ({field})"));
        let column = if is_sensitive_field(field) { column.sensitive() } else { column };
        columns.push((column, ColumnSource::Field(field.to_owned())));
    }
    let text = format!("When the program made the entry ({SOURCE_TIME_FIELD})");
    let source_time = SystemColumn::new(SOURCE_TIME, SystemColumnType::Timestamp, text);
    columns.push((source_time, ColumnSource::Field(SOURCE_TIME_FIELD.to_owned())));
    let is_known = |field: &str| {
        field == SOURCE_TIME_FIELD
            || FIELD_COLUMNS.iter().any(|(_, known, ..)| *known == field)
            || !is_field_name(field)
    };
    let reserved = [FIELDS, PARSE_ERROR, ENTRY_OFFSET];
    for field in fields.filter(|field| !is_known(field)).take(FURTHER_COLUMNS_MAX) {
        let name = field.to_ascii_lowercase();
        let is_taken = reserved.contains(&name.as_str()) || columns.iter().any(|(column, _)| column.name == name);
        let name = if is_taken { field.clone() } else { name };
        let column = SystemColumn::new(name, SystemColumnType::Text, format!("Field {field}"));
        let column = if is_sensitive_field(&field) { column.sensitive() } else { column };
        columns.push((column, ColumnSource::Field(field)));
    }
    let text = SystemColumnType::Text;
    columns.extend([
        (SystemColumn::new(FIELDS, text, "All fields, as a JSON object"), ColumnSource::AllFields),
        (SystemColumn::new(PARSE_ERROR, text, "What cannot be read in this place"), ColumnSource::Defect),
        (
            SystemColumn::new(ENTRY_OFFSET, SystemColumnType::Unsigned, "Position among entries of the same time"),
            ColumnSource::Position,
        ),
    ]);
    columns
}

/// Names of fields that programs can write. Others would not be names of columns.
fn is_field_name(field: &str) -> bool {
    field.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Command lines and environments contain secrets, also those of crashed programs.
pub(super) fn is_sensitive_field(field: &str) -> bool {
    field.ends_with("CMDLINE") || field.ends_with("ENVIRON")
}
