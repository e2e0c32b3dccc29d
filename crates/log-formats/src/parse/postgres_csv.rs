//! PostgreSQL's `csvlog`. Version 12 has 23 columns, 13 adds the type of the backend, 14 to 18 add the process ID of
//! the leader of a parallel group and the identifier of the query.

use crate::column::{EntryColumnRole as Role, EntryColumnType as Type, FixedColumn};
use crate::defect::Misfit;
use crate::entry::{EntryFields, Piece, Slot};
use crate::time::{Cursor, TimeResolver};

pub(crate) const COLUMNS: &[FixedColumn] = &[
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
pub(crate) const OVERLAPPING_COLUMNS: &[(&str, &str)] =
    &[("session_id", "process_id"), ("session_id", "session_start_time")];

/// The columns of the oldest version that is read.
const COLUMNS_MIN: usize = 23;
/// Columns of later versions, which become members. More are not read.
const FURTHER_COLUMNS_MAX: usize = 32;

pub(crate) fn parse(text: &str, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let mut position = 0;
    let mut column = 0;
    loop {
        let start = position;
        let value = read_value(text, &mut position, fields)?;
        match COLUMNS.get(column) {
            Some((_, column_type, _)) => {
                let value = typed_value(value, *column_type, text, start, times, fields)?;
                fields.set(column, value);
            }
            None if column < COLUMNS.len() + FURTHER_COLUMNS_MAX => {
                let number = column + 1 - COLUMNS.len();
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
pub(crate) fn typed_value(
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
pub(crate) fn begins_entry(line: &[u8]) -> bool {
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
