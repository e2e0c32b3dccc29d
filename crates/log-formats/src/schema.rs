//! The columns of a file: those of its format, and those that are inferred from the members of a sample. How the members of its
//! entries get into them, with the type of the column.

use std::collections::HashMap;
use std::sync::Arc;

use crate::column::{
    EntryColumn, EntryColumnRole, EntryColumnType, SeverityNumberScale, is_time_name, recognize_roles,
};
use crate::entry::{EntryFields, EntryValue, ParsedEntry, Slot};
use crate::format::LogFormat;
use crate::parse::json::write_json_text;
use crate::reader::{EndOfInput, LogFileReader};
use crate::time::{EPOCH_SECONDS_MIN, TimeContext, TimeResolver};

/// The members without a column, as one JSON object.
pub const OTHER_FIELDS: &str = "other_fields";
/// The name of the normalized severity.
pub const NORMALIZED_SEVERITY: &str = "normalized_severity";
/// The number of the normalized severity, which grows with it.
pub const NORMALIZED_SEVERITY_NUMBER: &str = "normalized_severity_number";
/// The whole entry as text.
pub const ENTRY_TEXT: &str = "entry_text";
/// Why the entry did not fit, or null.
pub const PARSE_ERROR: &str = "parse_error";
/// The offset of the entry in its decompressed file, in bytes.
pub const ENTRY_OFFSET: &str = "entry_offset";
/// The identity of the file, which stays the same when the file is renamed, compressed or grows. With the offset, it is
/// the position of the entry in the log.
pub const ENTRY_FILE_ID: &str = "entry_file_id";

const RESERVED_NAMES: [&str; 7] = [
    OTHER_FIELDS,
    NORMALIZED_SEVERITY,
    NORMALIZED_SEVERITY_NUMBER,
    ENTRY_TEXT,
    PARSE_ERROR,
    ENTRY_OFFSET,
    ENTRY_FILE_ID,
];

/// Whether the name belongs to a column that is made for every format.
pub(crate) fn is_reserved_name(name: &str) -> bool {
    RESERVED_NAMES.contains(&name)
}

/// The columns of a file: those of its format, those inferred for its members, and those that every file has.
#[derive(Debug, Clone)]
pub struct EntrySchema {
    format: LogFormat,
    columns: Vec<EntryColumn>,
    /// The columns of members by name.
    member_columns: HashMap<String, usize>,
    other_fields: Option<usize>,
    time: Option<usize>,
    message: Option<usize>,
    severity: Option<usize>,
    severity_scale: SeverityNumberScale,
    generated: GeneratedColumns,
    /// For each column, those whose values can be read from it.
    revealed: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct GeneratedColumns {
    /// The index of the first.
    first: usize,
    normalized_severity: Option<usize>,
    severity_number: Option<usize>,
    text: usize,
    parse_error: usize,
    offset: usize,
    file_id: usize,
}

impl EntrySchema {
    /// The columns that do not depend on the content of files. Members go into `other_fields`.
    #[must_use]
    pub fn new(format: LogFormat) -> Self {
        Self::with_members(format, Vec::new())
    }

    /// The columns of the format and of the members of the entries in `samples`, usually the first bytes of the oldest and
    /// of the newest file. Members that are in no sample, or whose values do not have the type of their column, go into
    /// `other_fields`. Groups of a pattern that only have the name of a time are text if their values are none.
    #[must_use]
    pub fn infer(format: LogFormat, samples: &[&[u8]], context: &TimeContext) -> Self {
        if let LogFormat::Pattern(pattern) = &format {
            return Self::new(LogFormat::Pattern(pattern.fitted_to(samples, context)));
        }
        if !format.properties().has_members {
            return Self::new(format);
        }
        let base = Self::new(format.clone());
        let members = infer_members(&base, samples, context);
        Self::with_members(format, members)
    }

    /// The columns of several files of one format: those of the first schema, then those that only the next ones have. A
    /// column whose types differ is a float if all of them are numbers, else text. Members beyond the maximum of one
    /// schema get no column. `None` if there is no schema.
    #[must_use]
    pub fn merge(schemas: &[&Self]) -> Option<Self> {
        let first = schemas.first()?;
        let mut members: Vec<(String, EntryColumnType)> = Vec::new();
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for schema in schemas {
            for column in schema.columns.iter().filter(|column| schema.member_columns.contains_key(&column.name)) {
                if let Some(position) = positions.get(column.name.as_str()) {
                    if let Some((_, column_type)) = members.get_mut(*position) {
                        *column_type = column_type.widened_to(column.column_type);
                    }
                } else if members.len() < MEMBER_COLUMNS_MAX {
                    positions.insert(&column.name, members.len());
                    members.push((column.name.clone(), column.column_type));
                }
            }
        }
        Some(Self::with_members(first.format.clone(), members))
    }

    fn with_members(format: LogFormat, members: Vec<(String, EntryColumnType)>) -> Self {
        let mut columns: Vec<EntryColumn> = match &format {
            LogFormat::Pattern(pattern) => pattern.columns().to_vec(),
            _ => {
                let fixed = format.properties().columns.iter();
                fixed.map(|(name, kind, role)| EntryColumn::new(*name, *kind, *role)).collect()
            }
        };
        let mut member_columns = HashMap::new();
        for (name, role, column_type) in members_with_roles(&columns, members) {
            member_columns.insert(name.clone(), columns.len());
            columns.push(EntryColumn::new(name, column_type, role));
        }
        let with_role = |role| columns.iter().position(|column: &EntryColumn| column.role == role);
        let time = with_role(EntryColumnRole::Time);
        let message = with_role(EntryColumnRole::Message);
        let severity = with_role(EntryColumnRole::Severity);
        let severity_name = severity.and_then(|index| columns.get(index)).map_or("", |column| column.name.as_str());
        let severity_scale = SeverityNumberScale::from_column_name(severity_name);
        let mut push = |name: &str, column_type| {
            columns.push(EntryColumn::new(name, column_type, EntryColumnRole::Field));
            columns.len() - 1
        };
        let other_fields = format.properties().has_members.then(|| push(OTHER_FIELDS, EntryColumnType::Text));
        let normalized_severity = severity.map(|_| push(NORMALIZED_SEVERITY, EntryColumnType::Text));
        let severity_number = severity.map(|_| push(NORMALIZED_SEVERITY_NUMBER, EntryColumnType::Integer));
        let text = push(ENTRY_TEXT, EntryColumnType::Text);
        let parse_error = push(PARSE_ERROR, EntryColumnType::Text);
        let offset = push(ENTRY_OFFSET, EntryColumnType::Integer);
        let file_id = push(ENTRY_FILE_ID, EntryColumnType::Integer);
        let first = normalized_severity.unwrap_or(text);
        let generated =
            GeneratedColumns { first, normalized_severity, severity_number, text, parse_error, offset, file_id };
        let revealed = Vec::new();
        let schema = Self {
            format,
            columns,
            member_columns,
            other_fields,
            time,
            message,
            severity,
            severity_scale,
            generated,
            revealed,
        };
        Self { revealed: schema.find_revealed_columns(), ..schema }
    }

    fn find_revealed_columns(&self) -> Vec<Vec<usize>> {
        let text = self.generated.text;
        let of_text = (0..text).map(|parsed| (text, parsed));
        // A value that does not have the type of its column is there.
        let of_other_fields = self.other_fields.into_iter().flat_map(|other_fields| {
            let members = self.member_columns.values();
            members.map(move |member| (other_fields, *member))
        });
        let repeating = self.format.properties().repeating_columns.iter();
        let repeats = repeating.flat_map(|(column, others)| others.iter().map(move |other| (*column, *other)));
        let of_repeats =
            repeats.filter_map(|(column, other)| Some((self.column_index(column)?, self.column_index(other)?)));
        let overlaps = self.overlapping_columns();
        let of_overlaps = overlaps.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]);
        let mut revealed = vec![Vec::new(); self.columns.len()];
        for (column, other) in of_text.chain(of_other_fields).chain(of_repeats).chain(of_overlaps) {
            if let Some(others) = revealed.get_mut(column) {
                others.push(other);
            }
        }
        revealed
    }

    /// Pairs of columns that contain the same values, or parts of them.
    fn overlapping_columns(&self) -> Vec<(usize, usize)> {
        let mut overlaps: Vec<(usize, usize)> = match &self.format {
            LogFormat::Pattern(pattern) => pattern.nested_columns().to_vec(),
            format => {
                let names = format.properties().overlapping_columns.iter();
                names.filter_map(|(one, other)| Some((self.column_index(one)?, self.column_index(other)?))).collect()
            }
        };
        let Some(severity) = self.severity else { return overlaps };
        // The normalized severity is the same value in other words.
        let beside_severity = |(one, other): &(usize, usize)| match (*one == severity, *other == severity) {
            (true, _) => Some(*other),
            (_, true) => Some(*one),
            _ => None,
        };
        let mut alike: Vec<usize> = overlaps.iter().filter_map(beside_severity).chain([severity]).collect();
        for normalized in [self.generated.normalized_severity, self.generated.severity_number].into_iter().flatten() {
            overlaps.extend(alike.iter().map(|other| (normalized, *other)));
            alike.push(normalized);
        }
        overlaps
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> &LogFormat {
        &self.format
    }

    /// All columns, in the order of the indexes that [`ParsedEntry::value`] takes.
    #[must_use]
    pub fn columns(&self) -> &[EntryColumn] {
        &self.columns
    }

    /// The index of the column with this name.
    #[must_use]
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// For each column, the indexes of the other columns whose values, or parts of them, can be read from its values.
    /// For the text of an entry, these are all that are parsed from it.
    #[must_use]
    pub fn revealed_columns(&self) -> &[Vec<usize>] {
        &self.revealed
    }

    /// The index of the time of the entries.
    #[must_use]
    pub fn time_column(&self) -> Option<usize> {
        self.time
    }

    /// The index of the text for people.
    #[must_use]
    pub fn message_column(&self) -> Option<usize> {
        self.message
    }

    /// The index of the severity as written.
    #[must_use]
    pub fn severity_column(&self) -> Option<usize> {
        self.severity
    }

    /// What numbers in the column of the severity mean.
    #[must_use]
    pub fn severity_scale(&self) -> SeverityNumberScale {
        self.severity_scale
    }

    /// The value of a column that every file has, or `None` if the column is another.
    pub(crate) fn generated_value<'a>(&self, entry: &ParsedEntry<'a>, column: usize) -> Option<EntryValue<'a>> {
        let generated = self.generated;
        if column < generated.first {
            return None;
        }
        let severity = || entry.fits().then(|| entry.severity()).flatten();
        Some(if column == generated.text {
            EntryValue::Text(entry.text())
        } else if column == generated.parse_error {
            entry.parse_error().map_or(EntryValue::Null, EntryValue::Text)
        } else if column == generated.offset {
            EntryValue::Integer(i64::try_from(entry.offset()).unwrap_or(i64::MAX))
        } else if column == generated.file_id {
            entry.file_id.map_or(EntryValue::Null, EntryValue::Integer)
        } else if Some(column) == generated.normalized_severity {
            severity().map_or(EntryValue::Null, |severity| EntryValue::Text(severity.name()))
        } else if Some(column) == generated.severity_number {
            severity().map_or(EntryValue::Null, |severity| EntryValue::Integer(severity.number()))
        } else {
            EntryValue::Null
        })
    }

    /// Gives the members of the entry to their columns, and the others to `other_fields`.
    pub(crate) fn assign_members(&self, text: &str, fields: &mut EntryFields, times: &mut TimeResolver) {
        let mut others = String::new();
        for index in 0..fields.members() {
            let Some(member) = fields.member(index) else { break };
            let column = self.member_columns.get(fields.resolve(member.name, text)).copied();
            let column = column.and_then(|index| Some((index, self.columns.get(index)?.column_type)));
            let value = column.and_then(|(index, column_type)| {
                typed(member.value, column_type, text, fields, times).map(|value| (index, value))
            });
            if let Some((index, value)) = value {
                fields.set(index, value);
                continue;
            }
            if member.value != Slot::Null {
                others.push(if others.is_empty() { '{' } else { ',' });
                write_json_text(fields.resolve(member.name, text), &mut others);
                others.push(':');
                write_json_value(member.value, text, fields, &mut others);
            }
        }
        if let Some(column) = self.other_fields.filter(|_| !others.is_empty()) {
            others.push('}');
            let piece = fields.write_scratch(|scratch| scratch.push_str(&others));
            fields.set(column, Slot::Text(piece));
        }
    }
}

/// The members that become columns. Those with a role come first; the fixed columns of a format keep their roles.
fn members_with_roles(
    fixed: &[EntryColumn],
    members: Vec<(String, EntryColumnType)>,
) -> Vec<(String, EntryColumnRole, EntryColumnType)> {
    let is_free = |name: &str| !is_reserved_name(name) && fixed.iter().all(|column| column.name != name);
    let members: Vec<_> = members.into_iter().filter(|(name, _)| is_free(name)).collect();
    let mut roles = Vec::new();
    if fixed.is_empty() {
        let described: Vec<_> = members.iter().map(|(name, column_type)| (name.as_str(), *column_type)).collect();
        let is_certain = |(index, role): &(usize, EntryColumnRole)| {
            *role != EntryColumnRole::Time
                || members.get(*index).is_some_and(|(_, column_type)| *column_type == EntryColumnType::Timestamp)
        };
        roles.extend(recognize_roles(&described).in_order().filter(is_certain));
    }
    let rest = (0..members.len()).filter(|index| roles.iter().all(|(with_role, _)| with_role != index));
    let rest: Vec<_> = rest.map(|index| (index, EntryColumnRole::Field)).collect();
    let order = roles.into_iter().chain(rest);
    order.filter_map(|(index, role)| members.get(index).map(|(name, kind)| (name.clone(), role, *kind))).collect()
}

fn write_json_value(value: Slot, text: &str, fields: &EntryFields, out: &mut String) {
    match value {
        Slot::Json(piece) => out.push_str(fields.resolve(piece, text)),
        Slot::Number(piece) if is_json_number(fields.resolve(piece, text)) => {
            out.push_str(fields.resolve(piece, text));
        }
        Slot::Number(piece) | Slot::Text(piece) => write_json_text(fields.resolve(piece, text), out),
        Slot::Boolean(boolean) => out.push_str(if boolean { "true" } else { "false" }),
        Slot::Null | Slot::Integer(_) | Slot::Float(_) | Slot::Timestamp(_) => out.push_str("null"),
    }
}

/// The value with the type of its column, or `None` if it has no such value.
fn typed(
    value: Slot,
    column_type: EntryColumnType,
    text: &str,
    fields: &mut EntryFields,
    times: &mut TimeResolver,
) -> Option<Slot> {
    let piece = match value {
        Slot::Null => return Some(Slot::Null),
        Slot::Boolean(boolean) => {
            return match column_type {
                EntryColumnType::Boolean => Some(value),
                EntryColumnType::Text => {
                    let word = if boolean { "true" } else { "false" };
                    Some(Slot::Text(fields.write_scratch(|scratch| scratch.push_str(word))))
                }
                _ => None,
            };
        }
        Slot::Json(piece) => return (column_type == EntryColumnType::Text).then_some(Slot::Text(piece)),
        Slot::Text(piece) | Slot::Number(piece) => piece,
        Slot::Integer(_) | Slot::Float(_) | Slot::Timestamp(_) => return None,
    };
    let content = fields.resolve(piece, text);
    match column_type {
        EntryColumnType::Text => Some(Slot::Text(piece)),
        EntryColumnType::Integer => is_integer(content).then(|| content.parse().ok()).flatten().map(Slot::Integer),
        EntryColumnType::Float => is_json_number(content).then(|| content.parse().ok()).flatten().map(Slot::Float),
        EntryColumnType::Boolean => content.parse().ok().map(Slot::Boolean),
        EntryColumnType::Timestamp => times.any_time(content).map(Slot::Timestamp),
    }
}

/// Whether a text is an integer in the form that integers are written in, so that no text such as `007` loses a part.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
    !digits.is_empty() && !has_leading_zero && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a number of JSON.
fn is_json_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(position) => {
            let (mantissa, exponent) = text.split_at_checked(position).unwrap_or((text, ""));
            let exponent = exponent.get(1..).unwrap_or_default();
            (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        }
        None => (text, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    is_integer(whole) && fraction.is_none_or(is_digits) && exponent.is_none_or(is_digits)
}

/// The maximum number of columns for members. The most frequent members get them.
const MEMBER_COLUMNS_MAX: usize = 200;
/// The maximum number of names that are counted.
const NAMES_MAX: usize = 5_000;
/// Longer names get no column.
const NAME_BYTES_MAX: usize = 128;

/// What the values of one member were.
#[derive(Debug, Default)]
struct ObservedMember {
    name: String,
    /// Whether the name is usual for a time.
    is_time: bool,
    entries: usize,
    has_integer: bool,
    has_float: bool,
    has_boolean: bool,
    has_time: bool,
    has_text: bool,
    /// Numbers that are too small for times since 1970.
    has_small_number: bool,
}

/// The names and types of the members that get columns, in the order in which they first occur.
fn infer_members(schema: &EntrySchema, samples: &[&[u8]], context: &TimeContext) -> Vec<(String, EntryColumnType)> {
    let times = TimeResolver::new(context.clone());
    let mut observed = Observations { times, members: Vec::new(), by_name: HashMap::new() };
    let schema = Arc::new(schema.clone());
    for sample in samples {
        let mut reader = LogFileReader::new(schema.clone(), context.clone());
        reader.push(sample, |entry| observed.observe(entry));
        reader.finish(EndOfInput::Complete, |entry| observed.observe(entry));
    }
    let mut order: Vec<usize> = (0..observed.members.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(observed.members.get(*index).map_or(0, |member| member.entries)));
    order.truncate(MEMBER_COLUMNS_MAX);
    order.sort_unstable();
    order.into_iter().filter_map(|index| observed.members.get(index)).map(ObservedMember::column).collect()
}

struct Observations {
    times: TimeResolver,
    members: Vec<ObservedMember>,
    by_name: HashMap<String, usize>,
}

impl Observations {
    fn observe(&mut self, entry: &ParsedEntry<'_>) {
        if !entry.fits() {
            return;
        }
        for index in 0..entry.fields.members() {
            let Some(member) = entry.fields.member(index) else { break };
            let name = entry.fields.resolve(member.name, entry.text);
            let Some(index) = self.index(name) else { continue };
            let Some(observed) = self.members.get_mut(index) else { continue };
            observed.entries += 1;
            match member.value {
                Slot::Null => {}
                Slot::Boolean(_) => observed.has_boolean = true,
                Slot::Number(piece) => observed.observe_word(entry.fields.resolve(piece, entry.text), &mut self.times),
                Slot::Text(piece) => observed.observe_text(entry.fields.resolve(piece, entry.text), &mut self.times),
                Slot::Json(_) | Slot::Integer(_) | Slot::Float(_) | Slot::Timestamp(_) => observed.has_text = true,
            }
        }
    }

    fn index(&mut self, name: &str) -> Option<usize> {
        if let Some(index) = self.by_name.get(name) {
            return Some(*index);
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX || self.members.len() >= NAMES_MAX {
            return None;
        }
        let is_time = is_time_name(name);
        self.members.push(ObservedMember { name: name.to_owned(), is_time, ..ObservedMember::default() });
        self.by_name.insert(name.to_owned(), self.members.len() - 1);
        Some(self.members.len() - 1)
    }
}

impl ObservedMember {
    /// A number of JSON, or a word of logfmt.
    fn observe_word(&mut self, content: &str, times: &mut TimeResolver) {
        if is_json_number(content) {
            let is_small = content.parse::<f64>().is_ok_and(|number| number < EPOCH_SECONDS_MIN as f64);
            self.has_small_number |= is_small;
            if !is_integer(content) {
                self.has_float = true;
            } else if content.parse::<i64>().is_ok() {
                self.has_integer = true;
            } else {
                // An identifier would lose digits as a floating-point number.
                self.has_text = true;
            }
        } else if matches!(content, "true" | "false") {
            self.has_boolean = true;
        } else {
            self.observe_text(content, times);
        }
    }

    fn observe_text(&mut self, content: &str, times: &mut TimeResolver) {
        let is_time = if self.is_time { times.any_time(content) } else { times.whole_iso_time(content) };
        if is_time.is_some() { self.has_time = true } else { self.has_text = true }
    }

    fn column(&self) -> (String, EntryColumnType) {
        let has_number = self.has_integer || self.has_float;
        let column_type = match (self.has_time, has_number, self.has_boolean) {
            _ if self.has_text => EntryColumnType::Text,
            (true, false, false) => EntryColumnType::Timestamp,
            (_, true, false) if self.is_time && !self.has_small_number => EntryColumnType::Timestamp,
            (false, true, false) if self.has_float => EntryColumnType::Float,
            (false, true, false) => EntryColumnType::Integer,
            (false, false, true) => EntryColumnType::Boolean,
            _ => EntryColumnType::Text,
        };
        (self.name.clone(), column_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_numbers() {
        for text in ["0", "-1", "123"] {
            assert!(is_integer(text) && is_json_number(text), "{text}");
        }
        for text in ["1.5", "-0.25", "1e3", "1.5E-3"] {
            assert!(!is_integer(text) && is_json_number(text), "{text}");
        }
        for text in ["", "-", "007", "+1", ".5", "1.", "1e", "NaN", "0x1", "1_000"] {
            assert!(!is_integer(text) && !is_json_number(text), "{text}");
        }
    }
}
