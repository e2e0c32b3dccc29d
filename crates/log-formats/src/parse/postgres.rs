//! PostgreSQL's logs: `csvlog`, `jsonlog` and text.
//!
//! - `csvlog`: version 12 has 23 columns, 13 adds the type of the backend, 14 to 18 add the process ID of the leader of a
//!   parallel group and the identifier of the query.
//! - `jsonlog`, since version 15. Keys that are unknown become members.
//! - Lines of text begin as `2024-03-01 12:00:00.123 CET [1234] user@db LOG:  `. What is between the time and the label
//!   depends on `log_line_prefix`. The process ID is a number in brackets or follows `pid=`; the user and the database are
//!   `user@db` or follow `user=` and `db=`. Labels have the language of the server. A line with a label such as `DETAIL`
//!   belongs to the line before it of the same process.

use super::json::{JsonText, JsonValue};
use super::{EntryText, declare_columns};
use crate::column::{EntryColumnRole as Role, EntryColumnType as Type, FixedColumn};
use crate::entry::{EntryFields, Misfit, Piece, Slot};
use crate::time::{Cursor, TimeResolver};

pub(crate) const CSV_COLUMNS: &[FixedColumn] = &[
    ("log_time", Type::Timestamp, Role::Time),
    ("user_name", Type::Text, Role::Field),
    ("database_name", Type::Text, Role::Field),
    ("process_id", Type::Integer, Role::Field),
    ("connection_from", Type::Text, Role::Field),
    ("session_id", Type::Text, Role::Field),
    ("session_line_num", Type::Integer, Role::Field),
    ("command_tag", Type::Text, Role::Field),
    ("session_start_time", Type::Timestamp, Role::Field),
    ("virtual_transaction_id", Type::Text, Role::Field),
    ("transaction_id", Type::Integer, Role::Field),
    ("error_severity", Type::Text, Role::Severity),
    ("sql_state_code", Type::Text, Role::Field),
    ("message", Type::Text, Role::Message),
    ("detail", Type::Text, Role::Field),
    ("hint", Type::Text, Role::Field),
    ("internal_query", Type::Text, Role::Field),
    ("internal_query_pos", Type::Integer, Role::Field),
    ("context", Type::Text, Role::Field),
    ("query", Type::Text, Role::Field),
    ("query_pos", Type::Integer, Role::Field),
    ("location", Type::Text, Role::Field),
    ("application_name", Type::Text, Role::Field),
    ("backend_type", Type::Text, Role::Field),
    ("leader_pid", Type::Integer, Role::Field),
    ("query_id", Type::Integer, Role::Field),
];

/// The session ID is the start of the session and the process ID as hexadecimal numbers.
pub(crate) const CSV_OVERLAPPING_COLUMNS: &[(&str, &str)] =
    &[("session_id", "process_id"), ("session_id", "session_start_time")];

/// Messages have statements, and what is known of a connection: `connection authorized: user=ann database=shop`, and
/// `process 7 still waiting for ShareLock`. Details have it, too: `Role "ann" does not exist.`, `Process 7: DELETE FROM t`.
/// The context of an error has the statements within functions.
pub(crate) const CSV_REPEATING_COLUMNS: &[(&str, &[&str])] = &[
    (
        "message",
        &["user_name", "database_name", "process_id", "connection_from", "application_name", "query", "internal_query"],
    ),
    ("detail", &["user_name", "process_id", "connection_from", "query"]),
    ("context", &["query", "internal_query"]),
];

/// The columns of the oldest version that is read.
const COLUMNS_MIN: usize = 23;
/// Columns of later versions, which become members. More are not read.
const FURTHER_COLUMNS_MAX: usize = 32;

pub(crate) fn parse_csv(text: &str, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let mut position = 0;
    let mut column = 0;
    loop {
        let start = position;
        let value = read_value(text, &mut position, fields)?;
        match CSV_COLUMNS.get(column) {
            Some((_, column_type, _)) => {
                let value = typed_value(value, *column_type, text, start, times, fields)?;
                fields.set(column, value);
            }
            None if column < CSV_COLUMNS.len() + FURTHER_COLUMNS_MAX => {
                let number = column + 1 - CSV_COLUMNS.len();
                let name = fields.write_scratch(|scratch| {
                    scratch.push_str("extra_");
                    scratch.push_str(&number.to_string());
                });
                fields.push_member(name, value);
            }
            None => return Err(Misfit::expected("the end of the line after the last column", start)),
        }
        column += 1;
        match text.as_bytes().get(position) {
            None if column >= COLUMNS_MIN => return Ok(()),
            None => return Err(Misfit::expected("at least 23 columns before the end", position)),
            Some(b',') => position += 1,
            Some(_) => return Err(Misfit::expected("a comma after the value", position)),
        }
    }
}

/// A value in quotes, or the bytes before the next comma. An empty value without quotes is null, and so is `""`, which
/// PostgreSQL writes for some empty values.
fn read_value(text: &str, position: &mut usize, fields: &mut EntryFields) -> Result<Slot, Misfit> {
    let bytes = text.as_bytes();
    let start = *position;
    if bytes.get(start) != Some(&b'"') {
        let rest = bytes.get(start..).unwrap_or_default();
        let end = start + memchr::memchr(b',', rest).unwrap_or(rest.len());
        *position = end;
        return Ok(if end > start { Slot::Text(Piece::of_text(start, end)) } else { Slot::Null });
    }
    let start = start + 1;
    let mut end = start;
    let mut has_quotes = false;
    loop {
        let found = memchr::memchr(b'"', bytes.get(end..).unwrap_or_default());
        end += found.ok_or(Misfit::expected("a closing quote", bytes.len()))?;
        if bytes.get(end + 1) != Some(&b'"') {
            break;
        }
        has_quotes = true;
        end += 2;
    }
    *position = end + 1;
    if start == end {
        return Ok(Slot::Null);
    }
    if !has_quotes {
        return Ok(Slot::Text(Piece::of_text(start, end)));
    }
    let raw = text.get(start..end).unwrap_or_default();
    Ok(Slot::Text(fields.write_scratch(|scratch| {
        let mut parts = raw.split("\"\"");
        scratch.push_str(parts.next().unwrap_or_default());
        for part in parts {
            scratch.push('"');
            scratch.push_str(part);
        }
    })))
}

/// The value with the type of its column.
fn typed_value(
    value: Slot,
    column_type: Type,
    text: &str,
    start: usize,
    times: &mut TimeResolver,
    fields: &EntryFields,
) -> Result<Slot, Misfit> {
    let piece = match value {
        Slot::Null => return Ok(Slot::Null),
        Slot::Text(piece) | Slot::Number(piece) => piece,
        Slot::Json(piece) if column_type == Type::Text => piece,
        _ => return Err(Misfit::expected("a text or a number", start)),
    };
    let content = fields.resolve(piece, text);
    Ok(match column_type {
        Type::Integer => {
            let number = content.parse().map_err(|_| Misfit::expected("an integer", start))?;
            Slot::Integer(number)
        }
        Type::Timestamp => {
            let time = times.whole_iso_time(content);
            Slot::Timestamp(time.ok_or(Misfit::expected("a time with a zone that is known or declared", start))?)
        }
        _ => Slot::Text(piece),
    })
}

/// The maximum length of the zone of a time.
const ZONE_BYTES_MAX: usize = 40;

/// Whether a line begins as an entry does: with a time, the user and the database in quotes or nothing, and the process
/// ID. A line within a message has its quotes twice, so that it does not.
pub(crate) fn begins_csv_entry(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    let has_date = cursor.number(4, 4).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take(b' ');
    if !has_date || cursor.time_of_day().is_none() {
        return false;
    }
    let Some(zone_bytes) = memchr::memchr(b',', cursor.rest()).filter(|bytes| *bytes <= ZONE_BYTES_MAX) else {
        return false;
    };
    cursor.advance(zone_bytes + 1);
    for _ in ["user", "database"] {
        if cursor.take(b'"') {
            let Some(end) = memchr::memchr(b'"', cursor.rest()) else { return false };
            cursor.advance(end + 1);
        }
        if !cursor.take(b',') {
            return false;
        }
    }
    cursor.number(0, 18).is_some() && cursor.take(b',')
}

/// The columns in the order in which PostgreSQL writes them.
pub(crate) const JSON_COLUMNS: &[FixedColumn] = &[
    ("timestamp", Type::Timestamp, Role::Time),
    ("user", Type::Text, Role::Field),
    ("dbname", Type::Text, Role::Field),
    ("pid", Type::Integer, Role::Field),
    ("remote_host", Type::Text, Role::Field),
    ("remote_port", Type::Integer, Role::Field),
    ("session_id", Type::Text, Role::Field),
    ("line_num", Type::Integer, Role::Field),
    ("ps", Type::Text, Role::Field),
    ("session_start", Type::Timestamp, Role::Field),
    ("vxid", Type::Text, Role::Field),
    ("txid", Type::Integer, Role::Field),
    ("error_severity", Type::Text, Role::Severity),
    ("state_code", Type::Text, Role::Field),
    ("message", Type::Text, Role::Message),
    ("detail", Type::Text, Role::Field),
    ("hint", Type::Text, Role::Field),
    ("internal_query", Type::Text, Role::Field),
    ("internal_position", Type::Integer, Role::Field),
    ("context", Type::Text, Role::Field),
    ("statement", Type::Text, Role::Field),
    ("cursor_position", Type::Integer, Role::Field),
    ("func_name", Type::Text, Role::Field),
    ("file_name", Type::Text, Role::Field),
    ("file_line_num", Type::Integer, Role::Field),
    ("application_name", Type::Text, Role::Field),
    ("backend_type", Type::Text, Role::Field),
    ("leader_pid", Type::Integer, Role::Field),
    ("query_id", Type::Integer, Role::Field),
];

/// The session ID is the start of the session and the process ID as hexadecimal numbers.
pub(crate) const JSON_OVERLAPPING_COLUMNS: &[(&str, &str)] = &[("session_id", "pid"), ("session_id", "session_start")];

/// As in `csvlog`.
pub(crate) const JSON_REPEATING_COLUMNS: &[(&str, &[&str])] = &[
    (
        "message",
        &["user", "dbname", "pid", "remote_host", "remote_port", "application_name", "statement", "internal_query"],
    ),
    ("detail", &["user", "pid", "remote_host", "statement"]),
    ("context", &["statement", "internal_query"]),
];

pub(crate) fn parse_json(line: &str, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let mut json = JsonText::new(line);
    json.skip_blanks();
    json.expect(b'{', "a JSON object")?;
    let mut next_column = 0;
    loop {
        json.skip_blanks();
        let name = json.string(fields)?;
        json.skip_blanks();
        json.expect(b':', "a colon after the name")?;
        json.skip_blanks();
        let start = json.position();
        // Objects are not written by any version, so that one is a member as a whole.
        let JsonValue::Scalar(value) = json.value(true, fields)? else {
            return Err(Misfit::expected("a JSON value", start));
        };
        match column_index(fields.resolve(name, line), next_column) {
            Some(column) => {
                let column_type = JSON_COLUMNS.get(column).map_or(Type::Text, |(_, column_type, _)| *column_type);
                let value = typed_value(value, column_type, line, start, times, fields)?;
                fields.set(column, value);
                next_column = column + 1;
            }
            None => fields.push_member(name, value),
        }
        json.skip_blanks();
        if json.take(b'}') {
            break;
        }
        json.expect(b',', "a comma or the end of the object")?;
    }
    json.skip_blanks();
    if json.position() < line.len() {
        return Err(Misfit::expected("the end of the line after the object", json.position()));
    }
    Ok(())
}

/// The index of a column, which is usually one of the next.
fn column_index(name: &str, next: usize) -> Option<usize> {
    let (before, after) = JSON_COLUMNS.split_at_checked(next).unwrap_or((JSON_COLUMNS, &[]));
    let position = |columns: &[FixedColumn]| columns.iter().position(|(column, _, _)| *column == name);
    position(after).map(|index| index + next).or_else(|| position(before))
}

declare_columns! {
    TEXT_COLUMNS:
    TIME "log_time" Timestamp Time,
    USER "user_name" Text Field,
    DATABASE "database_name" Text Field,
    PROCESS_ID "process_id" Integer Field,
    LEVEL "error_severity" Text Severity,
    MESSAGE "message" Text Message,
    _ "detail" Text Field,
    _ "hint" Text Field,
    _ "internal_query" Text Field,
    _ "context" Text Field,
    _ "query" Text Field,
    _ "location" Text Field,
    _ "backtrace" Text Field,
}

/// As in `csvlog`.
pub(crate) const TEXT_REPEATING_COLUMNS: &[(&str, &[&str])] = &[
    ("message", &["user_name", "database_name", "process_id", "query", "internal_query"]),
    ("detail", &["user_name", "process_id", "query"]),
    ("context", &["query", "internal_query"]),
];

/// The labels of further lines of an entry, and their columns.
const FURTHER_LABELS: [(&str, usize); 7] =
    [("DETAIL", 6), ("HINT", 7), ("QUERY", 8), ("CONTEXT", 9), ("STATEMENT", 10), ("LOCATION", 11), ("BACKTRACE", 12)];
/// The first bytes of each line.
const TIME_BYTES: usize = "2024-03-01 12:00:00".len();

/// What a line has before its text.
struct LineStart<'a> {
    /// Between the time and the label.
    prefix: &'a str,
    label: &'a str,
    /// Where the text begins.
    text: usize,
}

impl<'a> LineStart<'a> {
    fn find(line: &'a str) -> Option<Self> {
        if !begins_with_time(line.as_bytes()) {
            return None;
        }
        let after_time = line.get(TIME_BYTES..)?;
        after_time.match_indices(':').find_map(|(colon, _)| {
            let (before, after) = after_time.split_at_checked(colon)?;
            let after = after.get(1..)?;
            let has_blanks = after.starts_with("  ");
            // A query may begin with a line break, and lines come without their last blanks.
            if !has_blanks && !after.trim_ascii_start().is_empty() {
                return None;
            }
            let prefix = before.trim_end_matches(char::is_alphanumeric);
            let label = before.get(prefix.len()..)?;
            let is_label = label.starts_with(char::is_alphabetic) && !label.contains(char::is_lowercase);
            is_label.then_some(Self { prefix, label, text: TIME_BYTES + colon + if has_blanks { 3 } else { 1 } })
        })
    }

    /// The column of the text, if the line belongs to the one before it.
    fn further_column(&self) -> Option<usize> {
        FURTHER_LABELS.iter().find(|(label, _)| *label == self.label).map(|(_, column)| *column)
    }

    /// The parts of the prefix.
    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.prefix.split([' ', ',', ':', ';', '|'])
    }

    fn process_id(&self) -> Option<i64> {
        self.words().find_map(|word| {
            // With the number of the line in its session, as `[1234-1]`.
            let in_brackets = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
            let number = in_brackets.or_else(|| word.strip_prefix("pid="))?;
            number.split('-').next()?.parse().ok()
        })
    }

    fn named(&self, names: [&str; 2]) -> Option<&'a str> {
        let value = |word: &'a str, name: &str| word.strip_prefix(name)?.strip_prefix('=');
        self.words().find_map(|word| names.into_iter().find_map(|name| value(word, name)))
    }

    fn user_and_database(&self) -> (Option<&'a str>, Option<&'a str>) {
        let (user, database) = (self.named(["user", "usr"]), self.named(["db", "database"]));
        let both = self.words().filter(|word| !word.contains('=')).find_map(|word| word.split_once('@'));
        (user.or(both.map(|(user, _)| user)), database.or(both.map(|(_, database)| database)))
    }
}

pub(crate) fn parse_text(
    text: EntryText<'_>,
    times: &mut TimeResolver,
    fields: &mut EntryFields,
) -> Result<(), Misfit> {
    let line = text.first_line;
    let mut cursor = Cursor::new(line.as_bytes());
    let time = times.iso_time(&mut cursor);
    let time = time.ok_or(Misfit::expected("a time such as 2024-03-01 12:00:00.123 UTC", 0))?;
    let head = LineStart::find(line);
    let head = head.ok_or(Misfit::expected("a level and two blanks, such as LOG:", cursor.position()))?;
    fields.set(TIME, Slot::Timestamp(time));
    let process_id = head.process_id();
    fields.set(PROCESS_ID, process_id.map_or(Slot::Null, Slot::Integer));
    let (user, database) = head.user_and_database();
    for (column, value) in [(USER, user), (DATABASE, database), (LEVEL, Some(head.label))] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let value = fields.write_scratch(|scratch| scratch.push_str(value));
            fields.set(column, Slot::Text(value));
        }
    }
    let (mut column, mut start) = (head.further_column().unwrap_or(MESSAGE), head.text);
    let mut line_start = 0;
    for line in text.whole.split_inclusive('\n') {
        let next = Some(line_start).filter(|start| *start > 0).and_then(|_| LineStart::find(line));
        // A line of another process stays in the text.
        let next = next.filter(|next| next.process_id() == process_id);
        if let Some((next, next_column)) = next.and_then(|next| Some((next.text, next.further_column()?)))
            && next_column != column
            && fields.slot(next_column) == Slot::Null
        {
            set_part(text.whole, column, (start, line_start), fields);
            (column, start) = (next_column, line_start + next);
        }
        line_start += line.len();
    }
    set_part(text.whole, column, (start, text.end_of_message()), fields);
    Ok(())
}

/// Sets a column to a part of the text, without the tabs that PostgreSQL writes at the beginning of further lines.
fn set_part(whole: &str, column: usize, (start, end): (usize, usize), fields: &mut EntryFields) {
    let part = whole.get(start..end).unwrap_or_default().trim_end_matches(['\r', '\n']);
    let value = match part.contains("\n\t") {
        false => Piece::of_text(start, start + part.len()),
        true => fields.write_scratch(|scratch| {
            for (index, line) in part.split("\n\t").enumerate() {
                scratch.push_str(if index > 0 { "\n" } else { "" });
                scratch.push_str(line);
            }
        }),
    };
    fields.set(column, if value.is_empty() { Slot::Null } else { Slot::Text(value) });
}

fn begins_with_time(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    cursor.number(4, 4).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take_any(b" T")
        && cursor.time_of_day().is_some()
}

/// Whether a line begins an entry: with a time, and no label of a further line.
pub(crate) fn begins_text_entry(line: &[u8]) -> bool {
    let is_further = |line: &str| LineStart::find(line).is_some_and(|start| start.further_column().is_some());
    begins_with_time(line) && !std::str::from_utf8(line).is_ok_and(is_further)
}

/// Whether a line has a label and a process, which other logs do not have in this form. Lines of syslog have the program, too:
/// `postgres[712]: [3-1]`.
pub(crate) fn is_usual(line: &str) -> bool {
    let is_program = |word: &str| word.ends_with(']') && word.split_once('[').is_some_and(|(name, _)| !name.is_empty());
    LineStart::find(line).is_some_and(|start| start.process_id().is_some() && !start.words().any(is_program))
}
