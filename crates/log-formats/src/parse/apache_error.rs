//! The error log of Apache httpd, in the forms of 2.2 and of 2.4.
//!
//! ```text
//! [Wed Oct 11 14:32:52 2000] [error] [client 127.0.0.1] client denied by server configuration: /export/home
//! [Fri Sep 09 10:42:29.902022 2011] [core:error] [pid 35708:tid 4328636416] [client 72.15.99.187:80] File does not exist
//! [Thu Feb 15 09:01:02.345678 2024] [proxy:error] [pid 12] proxy_util.c(2543): (111)Connection refused: AH00957: HTTP
//! ```

use super::{EntryText, declare_columns};
use crate::column::NormalizedSeverity;
use crate::entry::{EntryFields, Misfit, Slot};
use crate::time::TimeResolver;

declare_columns! {
    COLUMNS:
    TIME "time" Timestamp Time,
    MODULE "module" Text Field,
    LEVEL "level" Text Severity,
    PROCESS_ID "process_id" Integer Field,
    THREAD_ID "thread_id" Integer Field,
    SOURCE "source_file" Text Field,
    OS_ERROR "os_error" Text Field,
    CLIENT "client" Text Field,
    CODE "code" Text Field,
    MESSAGE "message" Text Message,
    REFERER "referer" Text Field,
}

/// The message begins with its code.
pub(crate) const OVERLAPPING_COLUMNS: &[(&str, &str)] = &[("message", "code")];

/// What httpd writes after the message of a request.
const REFERER_MARK: &str = ", referer: ";
/// Longer words before a parenthesis are not names of source files.
const SOURCE_BYTES_MAX: usize = 80;

pub(crate) fn parse(text: EntryText<'_>, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let line = text.first_line;
    let (start, end) = bracketed(line, 0).ok_or(Misfit::expected("a time in brackets", 0))?;
    let time = times.any_time(line.get(start..end).unwrap_or_default());
    let time = time.ok_or(Misfit::expected("a time such as Fri Sep 09 10:42:29.902022 2011", start))?;
    fields.set(TIME, Slot::Timestamp(time));
    let position = after_blank(line, end + 1);
    let level = bracketed(line, position).filter(|(start, end)| set_level(line, *start, *end, fields));
    let (_, end) = level.ok_or(Misfit::expected("a level such as [core:error]", position))?;
    let mut position = after_blank(line, end + 1);
    while let Some(next) = read_part(line, position, fields) {
        position = after_blank(line, next);
    }
    let rest = line.get(position..).unwrap_or_default();
    let end = rest.rfind(REFERER_MARK).map_or(line.len(), |bytes| position + bytes);
    if end < line.len() {
        fields.set_text(REFERER, end + REFERER_MARK.len(), line.len());
    }
    fields.set_text(MESSAGE, position, end);
    if let Some(code_bytes) = code_bytes(rest) {
        fields.set_text(CODE, position, position + code_bytes);
    }
    Ok(())
}

/// The text between `[` at `start` and the next `]`.
fn bracketed(line: &str, start: usize) -> Option<(usize, usize)> {
    let rest = line.as_bytes().get(start..)?;
    let bytes = memchr::memchr(b']', rest).filter(|_| rest.first() == Some(&b'['))?;
    Some((start + 1, start + bytes))
}

fn after_blank(line: &str, position: usize) -> usize {
    position + usize::from(line.as_bytes().get(position) == Some(&b' '))
}

/// `core:error`, `:error` (of modules without a name), or `error` as 2.2 wrote it. Whether it is a level.
fn set_level(line: &str, start: usize, end: usize, fields: &mut EntryFields) -> bool {
    let content = line.get(start..end).unwrap_or_default();
    let module_bytes = content.rfind(':');
    let level_start = start + module_bytes.map_or(0, |bytes| bytes + 1);
    let is_level = line.get(level_start..end).and_then(NormalizedSeverity::from_word).is_some();
    if is_level {
        fields.set_text(LEVEL, level_start, end);
        if let Some(bytes) = module_bytes.filter(|bytes| !matches!(content.get(..*bytes), Some("" | "-"))) {
            fields.set_text(MODULE, start, start + bytes);
        }
    }
    is_level
}

/// Reads one of the parts between the level and the message, and gives the position after it.
fn read_part(line: &str, position: usize, fields: &mut EntryFields) -> Option<usize> {
    let rest = line.get(position..)?;
    if rest.starts_with("[pid ") {
        let (start, end) = bracketed(line, position)?;
        read_ids(line.get(start..end)?, fields)?;
        return Some(end + 1);
    }
    if let Some(name_bytes) =
        ["[client ", "[remote "].iter().find(|name| rest.starts_with(**name)).map(|name| name.len())
    {
        // The address of IPv6 has no brackets here.
        let (_, end) = bracketed(line, position)?;
        fields.set_text(CLIENT, position + name_bytes, end);
        return Some(end + 1);
    }
    if rest.starts_with('(') {
        // `(13)Permission denied: `
        let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        let is_first = fields.slot(OS_ERROR) == Slot::Null;
        let is_error = is_first && digits > 0 && rest.as_bytes().get(digits + 1) == Some(&b')');
        let bytes = rest.find(": ").filter(|_| is_error)?;
        fields.set_text(OS_ERROR, position, position + bytes);
        return Some(position + bytes + 1);
    }
    let source_bytes = source_bytes(rest)?;
    fields.set_text(SOURCE, position, position + source_bytes);
    Some(position + source_bytes + 1)
}

/// `pid 12:tid 34`.
fn read_ids(content: &str, fields: &mut EntryFields) -> Option<()> {
    let (process, thread) = content.split_once(":tid ").map_or((content, None), |(a, b)| (a, Some(b)));
    let process = process.strip_prefix("pid ")?.parse().ok()?;
    let thread = match thread {
        Some(thread) => Slot::Integer(thread.parse().ok()?),
        None => Slot::Null,
    };
    fields.set(PROCESS_ID, Slot::Integer(process));
    fields.set(THREAD_ID, thread);
    Some(())
}

/// The length of `mod_ssl.c(1234)` before `: `.
fn source_bytes(rest: &str) -> Option<usize> {
    let head = rest.as_bytes().get(..SOURCE_BYTES_MAX.min(rest.len()))?;
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let name = head.iter().take_while(is_name).count();
    // Other words before a parenthesis are a part of the message.
    let has_extension = head.iter().take(name).any(|byte| *byte == b'.');
    let digits = head.iter().skip(name + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let end = name + 1 + digits;
    let is_source = has_extension && digits > 0 && head.get(name) == Some(&b'(') && head.get(end) == Some(&b')');
    let is_followed = head.get(end + 1) == Some(&b':') && matches!(head.get(end + 2), None | Some(b' '));
    (is_source && is_followed).then_some(end + 1)
}

/// The length of `AH01626` before a colon.
fn code_bytes(message: &str) -> Option<usize> {
    let digits = message.strip_prefix("AH")?.bytes().take_while(u8::is_ascii_digit).count();
    let length = "AH".len() + digits;
    (digits > 0 && message.as_bytes().get(length) == Some(&b':')).then_some(length)
}

/// Whether a line begins as an entry does.
pub(crate) fn begins_entry(line: &[u8]) -> bool {
    line.first() == Some(&b'[')
}
