//! Reads files and shows their entries.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat};
use tidegate_log_formats::{
    EndOfInput, EntrySchema, EntryValue, LogFileReader, LogFormat, LogTimeZone, ParsedEntry, TimeContext,
};

/// UTC, and 2024-03-10 as the time at which files were last written.
pub(crate) fn context() -> TimeContext {
    context_in("UTC")
}

pub(crate) fn context_in(zone: &str) -> TimeContext {
    let reference = SystemTime::UNIX_EPOCH + Duration::from_secs(1_710_028_800);
    TimeContext::new(LogTimeZone::from_name(zone).expect("a zone"), reference)
}

pub(crate) fn format(name: &str) -> LogFormat {
    LogFormat::from_name(name).expect("a format")
}

/// The schema of a file that is its own sample.
pub(crate) fn schema_of(format: LogFormat, bytes: &[u8]) -> EntrySchema {
    EntrySchema::infer(format, &[bytes], &context())
}

/// The values of an entry that are not null, without those that every file has.
pub(crate) fn rendered(entry: &ParsedEntry<'_>) -> String {
    let mut values = Vec::new();
    for (index, column) in entry.schema().columns().iter().enumerate() {
        if ["entry_text", "entry_offset", "normalized_severity_number"].contains(&column.name.as_str()) {
            continue;
        }
        let value = match entry.value(index) {
            EntryValue::Null => continue,
            EntryValue::Text(text) => format!("{text:?}"),
            EntryValue::Integer(number) => number.to_string(),
            EntryValue::Float(number) => format!("{number:?}"),
            EntryValue::Timestamp(time) => time_text(time),
            EntryValue::Boolean(boolean) => boolean.to_string(),
        };
        values.push(format!("{}={value}", column.name));
    }
    values.join(" ")
}

pub(crate) fn time_text(nanoseconds: i64) -> String {
    DateTime::from_timestamp_nanos(nanoseconds).to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Reads a whole file and gives what `view` makes of each entry.
pub(crate) fn read<T>(
    schema: EntrySchema,
    context: TimeContext,
    bytes: &[u8],
    view: impl Fn(&ParsedEntry<'_>) -> T,
) -> Vec<T> {
    let mut entries = Vec::new();
    let mut reader = LogFileReader::new(Arc::new(schema), context);
    reader.push(bytes, |entry| entries.push(view(entry)));
    reader.finish(EndOfInput::Complete, |entry| entries.push(view(entry)));
    entries
}

/// The entries of a file that is its own sample.
pub(crate) fn entries(format_name: &str, text: &str) -> Vec<String> {
    let schema = schema_of(format(format_name), text.as_bytes());
    read(schema, context(), text.as_bytes(), rendered)
}

/// The only entry of a file.
pub(crate) fn entry(format_name: &str, text: &str) -> String {
    let entries = entries(format_name, text);
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.into_iter().next().expect("one entry")
}
