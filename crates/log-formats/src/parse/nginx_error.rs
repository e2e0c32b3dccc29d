//! The error log of nginx: the message, then what it was about, such as `client: 192.0.2.7, server: example.org`.

use super::{EntryText, declare_columns};
use crate::entry::{EntryFields, Misfit, Piece, Slot};
use crate::time::{Cursor, TimeResolver};

declare_columns! {
    COLUMNS:
    TIME "time" Timestamp Time,
    LEVEL "level" Text Severity,
    PROCESS_ID "process_id" Integer Field,
    THREAD_ID "thread_id" Integer Field,
    CONNECTION_ID "connection_id" Integer Field,
    MESSAGE "message" Text Message,
    // The first of the columns of [`SUBJECTS`].
    SUBJECT "client" Text Field,
    _ "server" Text Field,
    _ "request" Text Field,
    _ "subrequest" Text Field,
    _ "upstream" Text Field,
    _ "host" Text Field,
    _ "referrer" Text Field,
}

/// The names that nginx writes after a message of HTTP. Those of mail and of streams become members.
const SUBJECTS: [&str; 7] = ["client", "server", "request", "subrequest", "upstream", "host", "referrer"];
/// A message has the file of a path, or the address of a client that left: `open() "/srv/hidden" failed`. An upstream has
/// the path of its request.
pub(crate) const REPEATING_COLUMNS: &[(&str, &[&str])] = &[
    ("message", &SUBJECTS),
    ("subrequest", &["request"]),
    ("upstream", &["request", "subrequest"]),
    ("server", &["host"]),
    ("host", &["server"]),
    ("referrer", &["server", "host"]),
];

/// What is about a connection begins with this.
const CLIENT: &str = ", client: ";
/// Longer texts before a colon are not names.
const NAME_BYTES_MAX: usize = 40;

pub(crate) fn parse(text: EntryText<'_>, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let whole = text.whole;
    let mut cursor = Cursor::new(whole.as_bytes());
    let time = times.iso_time(&mut cursor).ok_or(Misfit::expected("a time such as 2024/03/01 12:00:00", 0))?;
    fields.set(TIME, Slot::Timestamp(time));
    let level = bracketed_level(&mut cursor).ok_or(Misfit::expected("the level in brackets", cursor.position()))?;
    fields.set_text(LEVEL, level.0, level.1);
    let ids = process_and_thread(&mut cursor);
    let (process, thread) = ids.ok_or(Misfit::expected("a process and a thread such as 12#12:", cursor.position()))?;
    fields.set(PROCESS_ID, Slot::Integer(process));
    fields.set(THREAD_ID, Slot::Integer(thread));
    if let Some(connection) = connection(&mut cursor) {
        fields.set(CONNECTION_ID, Slot::Integer(connection));
    }
    let message = cursor.position();
    // A message of an interpreter behind nginx may have several lines before its subjects.
    let end = subjects_start(whole, message).unwrap_or(whole.len());
    fields.set_text(MESSAGE, message, end);
    read_subjects(whole, end, fields);
    Ok(())
}

/// ` [error]`: where the word is.
fn bracketed_level(cursor: &mut Cursor<'_>) -> Option<(usize, usize)> {
    let mut ahead = *cursor;
    if !ahead.take(b' ') || !ahead.take(b'[') {
        return None;
    }
    let start = ahead.position();
    ahead.advance(ahead.rest().iter().take_while(|byte| byte.is_ascii_lowercase()).count());
    let end = ahead.position();
    if start == end || !ahead.take(b']') || !ahead.take(b' ') {
        return None;
    }
    *cursor = ahead;
    Some((start, end))
}

/// `12#12: ` as both numbers.
fn process_and_thread(cursor: &mut Cursor<'_>) -> Option<(i64, i64)> {
    let mut ahead = *cursor;
    let process = ahead.number(1, 18)?;
    let thread = ahead.take(b'#').then(|| ahead.number(1, 18)).flatten()?;
    if !ahead.take(b':') || !ahead.take(b' ') {
        return None;
    }
    *cursor = ahead;
    Some((process, thread))
}

/// `*5 ` as 5.
fn connection(cursor: &mut Cursor<'_>) -> Option<i64> {
    let mut ahead = *cursor;
    let number = ahead.take(b'*').then(|| ahead.number(1, 18)).flatten()?;
    if !ahead.take(b' ') {
        return None;
    }
    *cursor = ahead;
    Some(number)
}

/// Where `, client: ADDRESS` begins. The name of a file in the message may contain the same words, but no address.
fn subjects_start(whole: &str, message: usize) -> Option<usize> {
    let after = whole.as_bytes().get(message..)?;
    let is_start = |start: &usize| {
        let address = whole.get(start + CLIENT.len()..).unwrap_or_default();
        let address = address.split_once([',', '\n']).map_or(address, |(address, _)| address);
        let is_address_byte = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
        address == "unix:" || (!address.is_empty() && address.bytes().all(is_address_byte))
    };
    memchr::memmem::find_iter(after, CLIENT).map(|start| message + start).find(is_start)
}

/// `, name: value, name: "value"` to the end. Values in quotes have no escapes.
fn read_subjects(whole: &str, start: usize, fields: &mut EntryFields) {
    let mut position = start;
    while whole.get(position..).is_some_and(|rest| rest.starts_with(", ")) {
        let name_start = position + 2;
        let rest = whole.get(name_start..).unwrap_or_default();
        let Some(name_bytes) = rest.find(':').filter(|bytes| (1..=NAME_BYTES_MAX).contains(bytes)) else { return };
        let mut value_start = name_start + name_bytes + 1;
        value_start += usize::from(whole.as_bytes().get(value_start) == Some(&b' '));
        let rest = whole.get(value_start..).unwrap_or_default();
        let (value_end, next) = if rest.starts_with('"') {
            value_start += 1;
            let bytes = rest.get(1..).and_then(|rest| rest.find("\", ").or_else(|| rest.rfind('"')));
            let end = bytes.map_or(whole.len(), |bytes| value_start + bytes);
            (end, end + 1)
        } else {
            let end = rest.find(", ").map_or(whole.len(), |bytes| value_start + bytes);
            (end, end)
        };
        let name = whole.get(name_start..name_start + name_bytes).unwrap_or_default();
        match SUBJECTS.iter().position(|subject| *subject == name) {
            Some(_) if value_start == value_end => {}
            Some(index) => fields.set_text(SUBJECT + index, value_start, value_end),
            None => {
                let value = Slot::Text(Piece::of_text(value_start, value_end));
                fields.push_member(Piece::of_text(name_start, name_start + name_bytes), value);
            }
        }
        position = next;
    }
}

/// Whether a line begins as an entry does: with a time and a level.
pub(crate) fn begins_entry(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    cursor.number(4, 4).is_some()
        && cursor.take(b'/')
        && cursor.number(2, 2).is_some()
        && cursor.take(b'/')
        && cursor.number(2, 2).is_some()
        && cursor.take(b' ')
        && cursor.time_of_day().is_some()
        && bracketed_level(&mut cursor).is_some()
}
