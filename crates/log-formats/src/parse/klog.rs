//! klog of Kubernetes and glog, whose lines begin as `I0102 15:04:05.678901    1234 file.go:123] `.

use super::{EntryText, declare_columns};
use crate::entry::{EntryFields, Misfit, Slot};
use crate::time::{Cursor, TimeResolver};

declare_columns! {
    COLUMNS:
    TIME "time" Timestamp Time,
    LEVEL "level" Text Severity,
    THREAD_ID "thread_id" Integer Field,
    FILE "file" Text Field,
    LINE "line" Integer Field,
    MESSAGE "message" Text Message,
}

/// Info, warning, error, fatal and debug.
const LEVELS: &[u8] = b"IWEFD";

pub(crate) fn parse(text: EntryText<'_>, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let line = text.first_line;
    let mut cursor = Cursor::new(line.as_bytes());
    if !cursor.take_any(LEVELS) {
        return Err(Misfit::expected("a level such as I", 0));
    }
    fields.set_text(LEVEL, 0, 1);
    let time = times.month_day_time(&mut cursor);
    let time = time.ok_or(Misfit::expected("a time such as 0102 15:04:05.678901", cursor.position()))?;
    fields.set(TIME, Slot::Timestamp(time));
    cursor.skip_blanks();
    let thread = cursor.number(1, 18).filter(|_| cursor.take(b' '));
    let thread = thread.ok_or(Misfit::expected("the number of the thread", cursor.position()))?;
    fields.set(THREAD_ID, Slot::Integer(thread));
    let start = cursor.position();
    let place =
        line.get(start..).and_then(file_and_line).ok_or(Misfit::expected("a place such as file.go:123]", start))?;
    fields.set_text(FILE, start, start + place.file_bytes);
    fields.set(LINE, Slot::Integer(place.line));
    let message = start + place.bytes;
    let message = message + usize::from(line.as_bytes().get(message) == Some(&b' '));
    fields.set_text(MESSAGE, message, text.end_of_message());
    Ok(())
}

/// The place in the code of a program.
struct FileAndLine {
    file_bytes: usize,
    line: i64,
    /// The length with the closing bracket.
    bytes: usize,
}

/// `file.go:123]`.
fn file_and_line(rest: &str) -> Option<FileAndLine> {
    let end = rest.find(']')?;
    let (file, line) = rest.get(..end)?.rsplit_once(':')?;
    if file.is_empty() || file.contains(' ') {
        return None;
    }
    Some(FileAndLine { file_bytes: file.len(), line: line.parse().ok()?, bytes: end + 1 })
}

/// Whether a line begins as an entry does: with a level and a date.
pub(crate) fn begins_entry(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    if !cursor.take_any(LEVELS) {
        return false;
    }
    let digits = cursor.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
    cursor.advance(digits);
    matches!(digits, 4 | 8) && cursor.take(b' ') && cursor.time_of_day().is_some()
}
