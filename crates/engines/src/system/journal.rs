//! The entries of systemd journals, read from their files.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sdjournal::{EntryRef, Journal, JournalConfig, JournalQuery, SdJournalError};
use tidegate_core::{Error, ErrorKind};
use tidegate_system::{
    MASK, ReadOptions, ReadSummary, SystemColumn, SystemColumnType, SystemTableDescription, SystemValue,
};

use super::conditions::{ColumnCondition, ColumnTest};
use super::live_table::{LiveTable, ReadContext, RowCallback};

/// The name of the table.
const ENTRIES: &str = "entries";
/// The maximum number of values of one condition that select entries.
const SELECTED_VALUES_MAX: usize = 64;
/// Entries between two checks whether the call still runs.
const ENTRIES_PER_CHECK: usize = 1_024;

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
/// The only sensitive column.
const COMMAND_LINE: &str = "command_line";

/// The table `entries` of the journal files in folders, those of all machines merged by time.
#[derive(Debug)]
pub struct JournalTable {
    folders: Vec<PathBuf>,
    description: SystemTableDescription,
}

impl JournalTable {
    /// The journals in `folders` and in the folders of machines in them.
    ///
    /// # Errors
    /// `InvalidArguments` when a folder does not exist, or without any.
    pub fn open(folders: Vec<PathBuf>) -> Result<Self, Error> {
        let refused = |message: String| Error::new(ErrorKind::InvalidArguments, message);
        if folders.is_empty() {
            return Err(refused("the database has no folder".to_owned()));
        }
        if let Some(missing) = folders.iter().find(|folder| !folder.is_dir()) {
            return Err(refused(format!("{}: no such folder", missing.display())));
        }
        Ok(Self { folders, description: describe() })
    }

    /// Whether `folder` contains files of a journal, directly or in the folder of a machine.
    pub fn is_journal_folder(folder: &Path) -> bool {
        let has_journal = |folder: &Path| {
            std::fs::read_dir(folder).is_ok_and(|entries| {
                entries.flatten().any(|entry| entry.path().extension().is_some_and(|extension| extension == "journal"))
            })
        };
        let is_machine = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        has_journal(folder)
            || std::fs::read_dir(folder).is_ok_and(|entries| {
                entries
                    .flatten()
                    .any(|entry| entry.file_name().to_str().is_some_and(is_machine) && has_journal(&entry.path()))
            })
    }

    fn query(&self, journal: &Journal, conditions: &[ColumnCondition]) -> JournalQuery {
        let mut query = journal.query();
        for ColumnCondition { column, test } in conditions {
            match test {
                ColumnTest::AtLeast(time) if column == "time" => {
                    query.since_realtime(u64::try_from(*time).unwrap_or_default());
                }
                ColumnTest::AtMost(time) if column == "time" => {
                    query.until_realtime(u64::try_from(*time).unwrap_or_default());
                }
                ColumnTest::OneOf(values) if values.len() <= SELECTED_VALUES_MAX && column != COMMAND_LINE => {
                    let Some((_, field, ..)) = FIELD_COLUMNS.iter().find(|(name, ..)| name == column) else { continue };
                    match values.as_slice() {
                        [value] => {
                            query.match_exact(field, value.as_bytes());
                        }
                        values => {
                            for value in values {
                                query.or_group(|group| {
                                    group.match_exact(field, value.as_bytes());
                                });
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        query
    }
}

impl LiveTable for JournalTable {
    fn description(&self) -> &SystemTableDescription {
        &self.description
    }

    fn rows_max(&self) -> usize {
        usize::MAX
    }

    fn read(
        &self,
        context: &ReadContext,
        options: &ReadOptions,
        on_row: RowCallback<'_>,
    ) -> Result<ReadSummary, Error> {
        let config = JournalConfig::default();
        let journal = match Journal::open_dirs_with_config(&self.folders, config) {
            Ok(journal) => journal,
            // No file is no entry.
            Err(SdJournalError::NotFound) => return Ok(ReadSummary { rows: 0, is_truncated: false }),
            Err(error) => return Err(to_core_error(&error)),
        };
        let is_needed: Vec<bool> = self
            .description
            .columns
            .iter()
            .map(|column| options.columns.as_ref().is_none_or(|names| names.iter().any(|name| *name == *column.name)))
            .collect();
        let entries = self.query(&journal, &context.conditions).iter().map_err(|error| to_core_error(&error))?;
        let mut rows = 0_usize;
        for entry in entries {
            if rows.is_multiple_of(ENTRIES_PER_CHECK) && context.job.cancellation().is_cancelled() {
                return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled"));
            }
            let entry = entry.map_err(|error| to_core_error(&error))?;
            rows += 1;
            if on_row(row(&entry, &is_needed, options.grants_sensitive)).is_break() {
                break;
            }
        }
        Ok(ReadSummary { rows, is_truncated: false })
    }
}

fn describe() -> SystemTableDescription {
    let column = |(name, field, kind, text): &(&'static str, &'static str, SystemColumnType, &'static str)| {
        let column = SystemColumn::new(*name, *kind, format!("{text} ({field})"));
        if *name == COMMAND_LINE { column.sensitive() } else { column }
    };
    let mut columns =
        vec![SystemColumn::new("time", SystemColumnType::Timestamp, "When the entry was written").good_filter()];
    columns.extend(FIELD_COLUMNS.iter().map(column));
    columns.push(SystemColumn::new("source_time", SystemColumnType::Timestamp, "When the program made the entry"));
    columns.push(SystemColumn::new("fields", SystemColumnType::Text, "All other fields, as a JSON object"));
    columns.push(SystemColumn::new("entry_offset", SystemColumnType::Unsigned, "Sequence number of the entry"));
    SystemTableDescription {
        name: Cow::Borrowed(ENTRIES),
        description: Cow::Borrowed("Entries of the systemd journal, the oldest first."),
        columns,
        parameters: Vec::new(),
    }
}

fn row(entry: &EntryRef, is_needed: &[bool], grants_sensitive: bool) -> Vec<SystemValue> {
    let time = |microseconds: u64| i64::try_from(microseconds).map_or(SystemValue::Null, SystemValue::Timestamp);
    let needs = |position: usize| is_needed.get(position).copied().unwrap_or_default();
    let mut values = Vec::with_capacity(is_needed.len());
    values.push(time(entry.realtime_usec()));
    for (index, (name, field, kind, _)) in FIELD_COLUMNS.iter().enumerate() {
        let bytes = if needs(index + 1) { entry.get(field) } else { None };
        values.push(match bytes {
            None => SystemValue::Null,
            Some(_) if *name == COMMAND_LINE && !grants_sensitive => SystemValue::Text(MASK.to_owned()),
            Some(bytes) if *kind == SystemColumnType::Integer => {
                let number = std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok());
                number.map_or(SystemValue::Null, SystemValue::Integer)
            }
            Some(bytes) => SystemValue::Text(text(bytes)),
        });
    }
    let first = FIELD_COLUMNS.len() + 1;
    let source =
        entry.get("_SOURCE_REALTIME_TIMESTAMP").and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok());
    values.push(source.map_or(SystemValue::Null, time));
    values.push(if needs(first + 1) { SystemValue::Text(other_fields(entry)) } else { SystemValue::Null });
    values.push(SystemValue::Unsigned(entry.seqnum()));
    values
}

/// A value that is no UTF-8 is written with escapes, as `\xff`.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

/// The fields without a column, and numbers that are none. A field with several values is a list.
fn other_fields(entry: &EntryRef) -> String {
    let mut fields: Vec<(&str, Vec<&[u8]>)> = Vec::new();
    for (name, value) in entry.iter_fields() {
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => fields.push((name, vec![value])),
        }
    }
    let is_other = |(name, values): &(&str, Vec<&[u8]>)| match FIELD_COLUMNS.iter().find(|(_, field, ..)| field == name)
    {
        Some((column, ..)) if *column == COMMAND_LINE => false,
        Some((_, _, kind, _)) => {
            let is_number =
                |value: &&[u8]| std::str::from_utf8(value).is_ok_and(|text| text.trim().parse::<i64>().is_ok());
            values.len() > 1 || (*kind == SystemColumnType::Integer && !values.iter().all(is_number))
        }
        None => *name != "_SOURCE_REALTIME_TIMESTAMP",
    };
    let quoted = |value: &[u8]| serde_json::Value::String(text(value)).to_string();
    let mut json = "{".to_owned();
    for (name, values) in fields.iter().filter(|field| is_other(field)) {
        if json.len() > 1 {
            json.push(',');
        }
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        // Writing to a text cannot fail.
        let _ = match values.as_slice() {
            [only] => write!(json, "{}:{only}", quoted(name.as_bytes())),
            several => write!(json, "{}:[{}]", quoted(name.as_bytes()), several.join(",")),
        };
    }
    json.push('}');
    json
}

/// The paths of files stay in the log.
fn to_core_error(error: &SdJournalError) -> Error {
    let (kind, message) = match error {
        SdJournalError::PermissionDenied { .. } => {
            (ErrorKind::Unavailable, "the journal cannot be read: permission denied")
        }
        SdJournalError::LimitExceeded { .. } => {
            (ErrorKind::TooLarge, "the journal has more files or fields than can be read")
        }
        SdJournalError::Corrupt { .. } => (ErrorKind::Unavailable, "a file of the journal is damaged"),
        SdJournalError::Transient { .. } => {
            (ErrorKind::Unavailable, "the journal changed while it was being read; retry")
        }
        _ => (ErrorKind::Unavailable, "the journal cannot be read"),
    };
    Error::new(kind, message).with_detail(error.to_string())
}
