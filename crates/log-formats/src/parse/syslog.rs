//! syslog: RFC 5424, RFC 3164, and lines of `/var/log/syslog`, which have no priority. The parameters of structured data
//! become members `id.name`.

use super::{EntryText, declare_columns};
use crate::entry::{EntryFields, Misfit, Piece, Slot};
use crate::time::{Cursor, TimeResolver};

declare_columns! {
    COLUMNS:
    TIME "time" Timestamp Time,
    HOST "host" Text Field,
    APP "app" Text Field,
    PROCESS_ID "process_id" Text Field,
    MESSAGE_ID "message_id" Text Field,
    FACILITY "facility" Text Field,
    SEVERITY "severity" Text Severity,
    PRIORITY "pri" Integer Field,
    MESSAGE "message" Text Message,
}

/// The priority is a number for the facility and the severity.
pub(crate) const OVERLAPPING_COLUMNS: &[(&str, &str)] = &[("pri", "facility"), ("pri", "severity")];

const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp",
    "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];
const SEVERITIES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
const PRIORITY_MAX: i64 = 191;
/// Longer words before a colon are text and not the name of a program.
const TAG_BYTES_MAX: usize = 96;

pub(crate) fn parse(text: EntryText<'_>, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let line = text.first_line;
    let mut cursor = Cursor::new(line.as_bytes());
    let priority = read_priority(&mut cursor);
    if let Some(priority) = priority {
        set_priority(priority, fields);
        let mut ahead = cursor;
        if ahead.number(1, 3) == Some(1) && ahead.take(b' ') {
            return parse_rfc5424(text, ahead.position(), times, fields);
        }
    }
    let after_priority = cursor.position();
    cursor.skip_blanks();
    // Some devices write a star or a dot before the time if their clock is not set.
    if priority.is_some() {
        cursor.take_any(b"*.");
    }
    let Some(time) = line_time(&mut cursor, times) else {
        if priority.is_none() {
            return Err(Misfit::expected("a priority such as <13>, or a time", 0));
        }
        fields.set_text(MESSAGE, after_priority, text.end_of_message());
        return Ok(());
    };
    fields.set(TIME, Slot::Timestamp(time));
    if !skip_blanks_after_time(&mut cursor) {
        return Err(Misfit::expected("a blank after the time", cursor.position()));
    }
    let head = HostAndTag::find(line, cursor.position());
    for (column, part) in [(HOST, head.host), (APP, head.app), (PROCESS_ID, head.process_id)] {
        if let Some((start, end)) = part {
            fields.set_text(column, start, end);
        }
    }
    fields.set_text(MESSAGE, head.message, text.end_of_message());
    Ok(())
}

/// The time and what is before the message in a line without priority, as it is in files of `/var/log`.
pub(crate) fn read_file_head(line: &str, times: &mut TimeResolver) -> Option<(i64, HostAndTag)> {
    let mut cursor = Cursor::new(line.as_bytes());
    let time = line_time(&mut cursor, times)?;
    skip_blanks_after_time(&mut cursor).then(|| (time, HostAndTag::find(line, cursor.position())))
}

fn line_time(cursor: &mut Cursor<'_>, times: &mut TimeResolver) -> Option<i64> {
    times.month_first_time(cursor).or_else(|| times.iso_time(cursor))
}

/// Whether a blank or the end is after the time.
fn skip_blanks_after_time(cursor: &mut Cursor<'_>) -> bool {
    cursor.take(b':');
    let is_end = cursor.take(b' ') || cursor.is_at_end();
    if is_end {
        cursor.skip_blanks();
    }
    is_end
}

/// `<34>` as 34.
fn read_priority(cursor: &mut Cursor<'_>) -> Option<i64> {
    let mut ahead = *cursor;
    let priority = ahead.take(b'<').then(|| ahead.number(1, 3)).flatten()?;
    if priority > PRIORITY_MAX || !ahead.take(b'>') {
        return None;
    }
    *cursor = ahead;
    Some(priority)
}

fn set_priority(priority: i64, fields: &mut EntryFields) {
    fields.set(PRIORITY, Slot::Integer(priority));
    let index = usize::try_from(priority).unwrap_or_default();
    let names = [(FACILITY, FACILITIES.get(index / 8)), (SEVERITY, SEVERITIES.get(index % 8))];
    for (column, name) in names {
        let name = fields.write_scratch(|scratch| scratch.push_str(name.copied().unwrap_or_default()));
        fields.set(column, Slot::Text(name));
    }
}

/// What is after the time: `host app[12]: text`. A local program writes no host, and some write no tag.
pub(crate) struct HostAndTag {
    pub(crate) host: Option<(usize, usize)>,
    app: Option<(usize, usize)>,
    pub(crate) process_id: Option<(usize, usize)>,
    /// Where the message begins.
    pub(crate) message: usize,
}

impl HostAndTag {
    fn find(line: &str, start: usize) -> Self {
        let mut found = Self { host: None, app: None, process_id: None, message: start };
        let rest = line.get(start..).unwrap_or_default();
        let first_end = start + memchr::memchr(b' ', rest.as_bytes()).unwrap_or(rest.len());
        let is_tag = tag(line, start).is_some_and(|tag| tag.is_certain);
        let mut position = start;
        if !is_tag && first_end > start {
            found.host = Some((start, first_end));
            position = first_end;
            while line.as_bytes().get(position) == Some(&b' ') {
                position += 1;
            }
        }
        if let Some(tag) = tag(line, position).filter(|tag| tag.is_certain) {
            found.app = Some((position, tag.name_end));
            found.process_id = tag.process_id;
            position = tag.end;
        }
        if line.as_bytes().get(position) == Some(&b' ') {
            position += 1;
        }
        Self { message: position, ..found }
    }
}

struct Tag {
    name_end: usize,
    process_id: Option<(usize, usize)>,
    end: usize,
    /// Whether a colon or a process ID marks it as a tag.
    is_certain: bool,
}

/// The tag `app:`, `app[12]:` or `app[12]` at `start`.
fn tag(line: &str, start: usize) -> Option<Tag> {
    let bytes = line.as_bytes();
    let rest = bytes.get(start..)?;
    let is_end = |byte: &u8| matches!(byte, b' ' | b'[' | b':');
    let mut name_bytes = rest.iter().take(TAG_BYTES_MAX).take_while(|byte| !is_end(byte)).count();
    // A colon within a word, as of an IPv6 address or `kernel::module`, ends no tag.
    while rest.get(name_bytes) == Some(&b':') && !matches!(rest.get(name_bytes + 1), None | Some(b' ')) {
        let more = rest.get(name_bytes + 1..)?.iter().take(TAG_BYTES_MAX).take_while(|byte| !is_end(byte)).count();
        name_bytes += 1 + more;
    }
    if name_bytes == 0 || name_bytes > TAG_BYTES_MAX {
        return None;
    }
    let name_end = start + name_bytes;
    match bytes.get(name_end) {
        Some(b':') => Some(Tag { name_end, process_id: None, end: name_end + 1, is_certain: true }),
        Some(b'[') => {
            let id_start = name_end + 1;
            let id_bytes = memchr::memchr(b']', bytes.get(id_start..)?)?;
            let id_end = id_start + id_bytes;
            let has_blank = line.get(id_start..id_end)?.contains(' ');
            let has_colon = bytes.get(id_end + 1) == Some(&b':');
            let end = id_end + 1 + usize::from(has_colon);
            (!has_blank).then_some(Tag { name_end, process_id: Some((id_start, id_end)), end, is_certain: true })
        }
        _ => Some(Tag { name_end, process_id: None, end: name_end, is_certain: false }),
    }
}

/// After `<34>1 `.
fn parse_rfc5424(
    text: EntryText<'_>,
    start: usize,
    times: &mut TimeResolver,
    fields: &mut EntryFields,
) -> Result<(), Misfit> {
    let line = text.first_line;
    let bytes = line.as_bytes();
    let mut position = start;
    for (column, what) in [
        (TIME, "a time of RFC 3339 or -"),
        (HOST, "the host or -"),
        (APP, "the name of the program or -"),
        (PROCESS_ID, "the process ID or -"),
        (MESSAGE_ID, "the message ID or -"),
    ] {
        let rest = bytes.get(position..).unwrap_or_default();
        let length = memchr::memchr(b' ', rest).filter(|length| *length > 0);
        let end = position + length.ok_or(Misfit::expected(what, position))?;
        let word = line.get(position..end).unwrap_or_default();
        if word != "-" {
            let value = if column == TIME {
                Slot::Timestamp(times.whole_iso_time(word).ok_or(Misfit::expected(what, position))?)
            } else {
                Slot::Text(Piece::of_text(position, end))
            };
            fields.set(column, value);
        }
        position = end + 1;
    }
    position = parse_structured_data(line, position, fields)?;
    match bytes.get(position) {
        None => return Ok(()),
        Some(b' ') => position += 1,
        Some(_) => return Err(Misfit::expected("a blank after the structured data", position)),
    }
    if line.get(position..).is_some_and(|message| message.starts_with('\u{feff}')) {
        position += '\u{feff}'.len_utf8();
    }
    fields.set_text(MESSAGE, position, text.end_of_message());
    Ok(())
}

/// Whether a line begins as an entry does: with a priority or a time.
pub(crate) fn begins_entry(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    if read_priority(&mut cursor).is_some() {
        return true;
    }
    let mut ahead = cursor;
    if ahead.month_name().is_some() && ahead.take(b' ') {
        ahead.take(b' ');
        return ahead.number(1, 2).is_some() && ahead.take(b' ');
    }
    cursor.number(4, 4).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take_any(b"Tt ")
        && cursor.number(2, 2).is_some()
        && cursor.take(b':')
}

/// Reads the elements `[id name="value" …]` that begin at `start`, or `-`. Gives the position after them.
fn parse_structured_data(line: &str, start: usize, fields: &mut EntryFields) -> Result<usize, Misfit> {
    let bytes = line.as_bytes();
    if bytes.get(start) == Some(&b'-') {
        return Ok(start + 1);
    }
    if bytes.get(start) != Some(&b'[') {
        return Err(Misfit::expected("structured data in brackets or -", start));
    }
    let mut position = start;
    while bytes.get(position) == Some(&b'[') {
        position = element(line, position + 1, fields)?;
    }
    Ok(position)
}

/// Longer names of elements are refused, so that the names of members do not fill the memory. RFC 5424 allows 32 bytes.
const NAME_BYTES_MAX: usize = 128;

fn element(line: &str, start: usize, fields: &mut EntryFields) -> Result<usize, Misfit> {
    let bytes = line.as_bytes();
    let id_end = name_end(bytes, start).ok_or(Misfit::expected("the name of an element of structured data", start))?;
    let id = Piece::of_text(start, id_end);
    let mut position = id_end;
    let mut has_parameters = false;
    loop {
        match bytes.get(position) {
            Some(b']') => {
                if !has_parameters {
                    fields.push_member(id, Slot::Boolean(true));
                }
                return Ok(position + 1);
            }
            Some(b' ') => position += 1,
            _ => return Err(Misfit::expected("] at the end of structured data", position)),
        }
        if matches!(bytes.get(position), Some(b']' | b' ')) {
            continue;
        }
        let name_start = position;
        let end = name_end(bytes, name_start).ok_or(Misfit::expected("the name of a parameter", name_start))?;
        if bytes.get(end..end + 2) != Some(b"=\"") {
            return Err(Misfit::expected("=\" after the name of a parameter", end));
        }
        let (value, value_end) = value(line, end + 2, fields)?;
        let start = fields.scratch_len();
        fields.append_piece(id, line);
        fields.scratch_mut().push('.');
        fields.append_piece(Piece::of_text(name_start, end), line);
        let name = fields.scratch_since(start);
        fields.push_member(name, Slot::Text(value));
        has_parameters = true;
        position = value_end + 1;
    }
}

fn name_end(bytes: &[u8], start: usize) -> Option<usize> {
    let is_name = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"');
    let length = bytes.get(start..)?.iter().take_while(|byte| is_name(byte)).count();
    (1..=NAME_BYTES_MAX).contains(&length).then_some(start + length)
}

/// A value and the position of its closing quote. `\"`, `\\` and `\]` are escapes; other backslashes are themselves.
fn value(line: &str, start: usize, fields: &mut EntryFields) -> Result<(Piece, usize), Misfit> {
    let bytes = line.as_bytes();
    let mut end = start;
    let mut has_escapes = false;
    loop {
        let rest = bytes.get(end..).unwrap_or_default();
        let found = memchr::memchr2(b'"', b'\\', rest);
        end += found.ok_or(Misfit::expected("a closing quote", bytes.len()))?;
        if bytes.get(end) == Some(&b'"') {
            break;
        }
        has_escapes = true;
        end += 2;
    }
    if !has_escapes {
        return Ok((Piece::of_text(start, end), end));
    }
    let raw = line.get(start..end).unwrap_or_default();
    let piece = fields.write_scratch(|scratch| {
        let mut characters = raw.chars().peekable();
        while let Some(character) = characters.next() {
            let escaped = characters.next_if(|next| character == '\\' && matches!(next, '"' | '\\' | ']'));
            scratch.push(escaped.unwrap_or(character));
        }
    });
    Ok((piece, end))
}
