//! The entries of systemd journals, read from their files.
//!
//! The usual fields are columns with a type and a short name. The other fields that the files contain when the table
//! is opened are columns with their own names in lower case, so that they can be filtered and counted as any column.
//! Fields that come later, further values of a field, and values that are not text are in `fields`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use tidegate_core::{Error, ErrorKind};
use tidegate_log_formats::journal::{
    CheckedFiles, EntryHead, FieldMatch, FieldSelection, FieldValue, Id128, Journal, JournalError, JournalQuery,
    ReadEntry, is_journal_path, list_files, position,
};
use tidegate_log_formats::{ENTRY_OFFSET, PARSE_ERROR};
use tidegate_system::{
    MASK, ReadOptions, ReadSummary, SystemColumn, SystemColumnType, SystemTableDescription, SystemValue,
};

use super::live_table::{ColumnCondition, ColumnTest, LiveTable, ReadContext, RowCallback};

/// The name of the table.
const ENTRIES: &str = "entries";
/// The maximum number of values of one condition that select entries.
const SELECTED_VALUES_MAX: usize = 64;
/// Entries between two checks whether the call still runs.
const ENTRIES_PER_CHECK: usize = 1_024;
/// The table `entries` of the journal files in folders, those of all machines in the order of the journal.
#[derive(Debug)]
pub struct JournalTable {
    folders: Vec<PathBuf>,
    description: SystemTableDescription,
    sources: Vec<JournalColumn>,
    checked: CheckedFiles,
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
        let checked = CheckedFiles::default();
        // A journal that cannot be read now is an error of each reading.
        let fields = Journal::open(&folders, &checked).map(|journal| journal.field_names()).unwrap_or_default();
        let columns = describe(fields.into_iter());
        let (columns, sources): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let description = SystemTableDescription {
            name: Cow::Borrowed(ENTRIES),
            description: Cow::Borrowed("Entries of the systemd journal, the oldest first."),
            columns,
            parameters: Vec::new(),
        };
        Ok(Self { folders, description, sources, checked })
    }

    /// Whether `folder` contains files of a journal, directly or in the folder of a machine.
    pub fn is_journal_folder(folder: &Path) -> bool {
        // Other data files would be left out without a word.
        let is_alone = || {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let is_part = |path: PathBuf| {
                path.is_dir()
                    || path.extension().is_some_and(|extension| extension == "journal" || extension == "journal~")
            };
            entries.map(|entry| entry.path()).all(is_part)
        };
        folder.is_dir() && is_journal_path(folder) && is_alone()
    }

    fn query(&self, conditions: &[ColumnCondition], fields: FieldSelection) -> JournalQuery {
        let mut query = JournalQuery { fields, ..JournalQuery::default() };
        for ColumnCondition { column, test } in conditions {
            let source = self.description.columns.iter().position(|known| known.name == *column);
            let source = source.and_then(|position| Some((self.sources.get(position)?, position)));
            match (test, source) {
                (ColumnTest::AtLeast(time), Some((JournalColumn::Time, _))) => {
                    let time = u64::try_from(*time).unwrap_or_default();
                    query.since = Some(query.since.map_or(time, |since| since.max(time)));
                }
                (ColumnTest::AtMost(time), Some((JournalColumn::Time, _))) => {
                    let time = u64::try_from(time.saturating_add(1)).unwrap_or_default();
                    query.until = Some(query.until.map_or(time, |until| until.min(time)));
                }
                (ColumnTest::OneOf(values), Some((JournalColumn::Field(field), position)))
                    if values.len() <= SELECTED_VALUES_MAX
                        && !self.is_sensitive(position)
                        && field != SOURCE_TIME_FIELD =>
                {
                    let values = values.iter().map(|value| value.clone().into_bytes()).collect();
                    query.matches.push(FieldMatch { field: field.clone(), values });
                }
                _ => {}
            }
        }
        query
    }

    fn is_sensitive(&self, position: usize) -> bool {
        self.description.columns.get(position).is_some_and(|column| column.is_sensitive)
    }
}

impl LiveTable for JournalTable {
    fn description(&self) -> &SystemTableDescription {
        &self.description
    }

    fn rows_max(&self) -> usize {
        usize::MAX
    }

    fn notes(&self) -> Vec<String> {
        match Journal::open(&self.folders, &self.checked) {
            Ok(journal) => journal.defects.iter().map(|defect| format!("the journal file {defect}")).collect(),
            Err(error) => vec![format!("the journal {error}")],
        }
    }

    fn stored_bytes(&self) -> Option<u64> {
        let files = list_files(&self.folders).ok()?;
        Some(files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum())
    }

    /// Journals have an index of the values of each field, and are ordered by time.
    fn indexed_columns(&self) -> Vec<String> {
        let is_indexed = |(column, source): &(&SystemColumn, &JournalColumn)| match source {
            JournalColumn::Time => true,
            JournalColumn::Field(field) => !column.is_sensitive && field != SOURCE_TIME_FIELD,
            _ => false,
        };
        let columns = self.description.columns.iter().zip(&self.sources).filter(is_indexed);
        columns.map(|(column, _)| column.name.clone().into_owned()).collect()
    }

    /// The column with all fields has those that are columns of their own, and some fields repeat others.
    fn revealed_columns(&self) -> Vec<Vec<usize>> {
        let positions = |is_revealed: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let fields = self.sources.iter().enumerate().filter_map(|(position, source)| match source {
                JournalColumn::Field(field) => Some((position, field)),
                _ => None,
            });
            fields.filter(|(_, field)| is_revealed(field)).map(|(position, _)| position).collect()
        };
        let revealed_by = |source: &JournalColumn| match source {
            JournalColumn::AllFields => positions(&|_| true),
            JournalColumn::Field(field) => {
                let repeated = REPEATING_FIELDS.iter().filter(|(repeating, _)| repeating == field);
                let repeated: Vec<&str> = repeated.flat_map(|(_, others)| others.iter().copied()).collect();
                positions(&|other| repeated.contains(&other))
            }
            _ => Vec::new(),
        };
        self.sources.iter().map(revealed_by).collect()
    }

    /// journald changes the time of a file with each write.
    fn rows_version(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        for file in list_files(&self.folders).ok()? {
            let metadata = file.metadata().ok();
            let version = metadata.map(|metadata| (metadata.len(), metadata.modified().ok()));
            (file, version).hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    fn read(
        &self,
        context: &ReadContext,
        options: &ReadOptions,
        on_row: RowCallback<'_>,
    ) -> Result<ReadSummary, Error> {
        let journal = Journal::open(&self.folders, &self.checked).map_err(|error| to_core_error(&error))?;
        let rows = JournalRows::new(self, options);
        let mut reader = journal.read(self.query(&context.conditions, rows.fields()));
        let mut unopened = journal.defects.iter();
        let (mut values, mut count, mut last_time) = (Vec::new(), 0_usize, None);
        loop {
            if count.is_multiple_of(ENTRIES_PER_CHECK) && context.job.cancellation().is_cancelled() {
                return Err(Error::cancelled());
            }
            if count >= options.rows_max {
                return Ok(ReadSummary { rows: count, is_truncated: true });
            }
            let row = match unopened.next() {
                Some(defect) => rows.defect(defect, last_time),
                None => match reader.next_entry(&mut values).map_err(|error| to_core_error(&error))? {
                    None => return Ok(ReadSummary { rows: count, is_truncated: false }),
                    Some(ReadEntry::Defect(defect)) => rows.defect(&defect, last_time),
                    Some(ReadEntry::Entry { head, seqnum_id, oversized_values }) => {
                        last_time = Some(head.realtime);
                        rows.entry(&head, seqnum_id, &values, oversized_values)
                    }
                },
            };
            count += 1;
            if on_row(row).is_break() {
                return Ok(ReadSummary { rows: count, is_truncated: false });
            }
        }
    }
}

/// Makes rows of entries, with the values that a statement needs.
struct JournalRows<'a> {
    table: &'a JournalTable,
    is_needed: Vec<bool>,
    grants_sensitive: bool,
    /// The columns by their field.
    columns: BTreeMap<&'a str, usize>,
    /// The columns of the fields that are read, unless all are.
    read: Option<Vec<usize>>,
}

impl<'a> JournalRows<'a> {
    fn new(table: &'a JournalTable, options: &ReadOptions) -> Self {
        let is_named = |column: &SystemColumn| {
            options.columns.as_ref().is_none_or(|names| names.iter().any(|name| *name == *column.name))
        };
        let is_needed: Vec<bool> = table.description.columns.iter().map(is_named).collect();
        let needs = |position: &usize| is_needed.get(*position).copied().unwrap_or_default();
        let fields = table.sources.iter().enumerate().filter_map(|(position, source)| match source {
            JournalColumn::Field(field) => Some((field.as_str(), position)),
            _ => None,
        });
        let needs_all =
            table.sources.iter().zip(&is_needed).any(|(source, needed)| *needed && *source == JournalColumn::AllFields);
        let columns: BTreeMap<&str, usize> = fields.filter(|(_, position)| needs(position)).collect();
        let read = (!needs_all).then(|| columns.values().copied().collect());
        Self { table, grants_sensitive: options.grants_sensitive, columns, read, is_needed }
    }

    /// The fields that are read, in the order of `read`.
    fn fields(&self) -> FieldSelection {
        match self.read {
            None => FieldSelection::All,
            Some(_) => FieldSelection::Names(self.columns.keys().map(|field| (*field).to_owned()).collect()),
        }
    }

    fn entry(&self, head: &EntryHead, seqnum_id: Id128, values: &[FieldValue], oversized: usize) -> Vec<SystemValue> {
        let mut row = vec![SystemValue::Null; self.table.sources.len()];
        for value in values {
            let column = match &self.read {
                Some(columns) => columns.get(value.field as usize),
                None => self.columns.get(value.name()),
            };
            // A field with several values has the first one in its column, and all of them in `fields`.
            if let Some(cell) = column.and_then(|column| row.get_mut(*column))
                && *cell == SystemValue::Null
            {
                *cell = self.cell(column.copied().unwrap_or_default(), value.bytes());
            }
        }
        for ((cell, source), is_needed) in row.iter_mut().zip(&self.table.sources).zip(&self.is_needed) {
            match source {
                JournalColumn::Time => *cell = time(head.realtime),
                JournalColumn::AllFields if *is_needed => *cell = self.all_fields(values).into(),
                JournalColumn::Defect if oversized > 0 => {
                    *cell = format!("{oversized} values are missing, because they are too large").into();
                }
                JournalColumn::Position => *cell = SystemValue::Unsigned(position(seqnum_id, head)),
                _ => {}
            }
        }
        row
    }

    /// A row in the place of what cannot be read. The path of the file stays in the log.
    fn defect(&self, defect: &JournalError, last_time: Option<u64>) -> Vec<SystemValue> {
        tracing::warn!("the journal file {defect}");
        let file = defect.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let place = if defect.offset() > 0 { format!(", at byte {}", defect.offset()) } else { String::new() };
        let cell = |source: &JournalColumn| match source {
            JournalColumn::Time => last_time.map_or(SystemValue::Null, time),
            JournalColumn::Defect => SystemValue::Text(format!("{file}{place}: {}", defect.reason())),
            JournalColumn::Position => SystemValue::Unsigned(defect.offset()),
            _ => SystemValue::Null,
        };
        self.table.sources.iter().map(cell).collect()
    }

    fn cell(&self, position: usize, bytes: &[u8]) -> SystemValue {
        let Some(column) = self.table.description.columns.get(position) else { return SystemValue::Null };
        let number = || std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok());
        match column.column_type {
            _ if column.is_sensitive && !self.grants_sensitive => SystemValue::Text(MASK.to_owned()),
            SystemColumnType::Integer => number().map_or(SystemValue::Null, SystemValue::Integer),
            SystemColumnType::Timestamp => number().map_or(SystemValue::Null, SystemValue::Timestamp),
            _ => SystemValue::Text(text(bytes)),
        }
    }

    /// The fields with their values as a JSON object. A field with several values is a list.
    fn all_fields(&self, values: &[FieldValue]) -> String {
        let mut fields = serde_json::Map::new();
        for value in values {
            if is_sensitive_field(value.name()) && !self.grants_sensitive {
                fields.insert(value.name().to_owned(), MASK.into());
                continue;
            }
            let text = serde_json::Value::String(text(value.bytes()));
            match fields.get_mut(value.name()) {
                None => {
                    fields.insert(value.name().to_owned(), text);
                }
                Some(serde_json::Value::Array(several)) => several.push(text),
                Some(first) => *first = serde_json::Value::Array(vec![first.take(), text]),
            }
        }
        serde_json::Value::Object(fields).to_string()
    }
}

fn time(microseconds: u64) -> SystemValue {
    i64::try_from(microseconds).map_or(SystemValue::Null, SystemValue::Timestamp)
}

/// A value that is no UTF-8 is written with escapes, as `\xff`.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

/// The path stays in the log.
fn to_core_error(error: &JournalError) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the journal cannot be read: {}", error.reason()))
        .with_detail(error.to_string())
}

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
/// Fields that contain the values of others, each with those others.
///
/// [systemd.journal-fields](https://www.freedesktop.org/software/systemd/man/latest/systemd.journal-fields.html)
const REPEATING_FIELDS: [(&str, &[&str]); 6] = [
    ("SYSLOG_RAW", &["MESSAGE", "PRIORITY", "SYSLOG_FACILITY", "SYSLOG_IDENTIFIER", "SYSLOG_PID", "_PID"]),
    ("SYSLOG_PID", &["_PID"]),
    ("_PID", &["SYSLOG_PID"]),
    ("_CMDLINE", &["_EXE", "_COMM"]),
    ("_EXE", &["_COMM"]),
    (
        "_SYSTEMD_CGROUP",
        &["_SYSTEMD_UNIT", "_SYSTEMD_USER_UNIT", "_SYSTEMD_SLICE", "_SYSTEMD_SESSION", "_SYSTEMD_OWNER_UID", "_UID"],
    ),
];
const TIME: &str = "time";
const SOURCE_TIME: &str = "source_time";
const SOURCE_TIME_FIELD: &str = "_SOURCE_REALTIME_TIMESTAMP";
const FIELDS: &str = "fields";

/// How a column gets its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JournalColumn {
    Time,
    Field(String),
    /// All fields as JSON.
    AllFields,
    /// What cannot be read.
    Defect,
    Position,
}

/// The columns with their sources. `fields` are the names of the fields in the files.
pub(super) fn describe(fields: impl Iterator<Item = String>) -> Vec<(SystemColumn, JournalColumn)> {
    let time =
        SystemColumn::new(TIME, SystemColumnType::Timestamp, "When the journal received the entry").good_filter();
    let mut columns = vec![(time, JournalColumn::Time)];
    for (name, field, kind, text) in FIELD_COLUMNS {
        let column = SystemColumn::new(name, kind, format!("{text} ({field})"));
        let column = if is_sensitive_field(field) { column.sensitive() } else { column };
        columns.push((column, JournalColumn::Field(field.to_owned())));
    }
    let text = format!("When the program made the entry ({SOURCE_TIME_FIELD})");
    let source_time = SystemColumn::new(SOURCE_TIME, SystemColumnType::Timestamp, text);
    columns.push((source_time, JournalColumn::Field(SOURCE_TIME_FIELD.to_owned())));
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
        columns.push((column, JournalColumn::Field(field)));
    }
    let text = SystemColumnType::Text;
    columns.extend([
        (SystemColumn::new(FIELDS, text, "All fields, as a JSON object"), JournalColumn::AllFields),
        (SystemColumn::new(PARSE_ERROR, text, "What cannot be read in this place"), JournalColumn::Defect),
        (
            SystemColumn::new(ENTRY_OFFSET, SystemColumnType::Unsigned, "Position among entries of the same time"),
            JournalColumn::Position,
        ),
    ]);
    columns
}

/// Names of fields that programs can write. Others would not be names of columns.
fn is_field_name(field: &str) -> bool {
    field.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Command lines and environments contain secrets, also those of crashed programs.
fn is_sensitive_field(field: &str) -> bool {
    field.ends_with("CMDLINE") || field.ends_with("ENVIRON")
}
