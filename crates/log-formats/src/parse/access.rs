//! The access logs of web servers: the Common and the Combined Log Format.

use super::declare_columns;
use super::scanner::{RequestColumns, Scanner};
use crate::column::FixedColumn;
use crate::entry::{EntryFields, Misfit, Slot};
use crate::time::{Cursor, TimeResolver};

const REQUEST: RequestColumns = RequestColumns { request: 6, method: 7, path: 8, protocol: 9 };

declare_columns! {
    COMBINED_COLUMNS:
    VIRTUAL_HOST "virtual_host" Text Field,
    REMOTE_ADDRESS "remote_addr" Text Field,
    FORWARDED_FOR "forwarded_for" Text Field,
    REMOTE_IDENTITY "remote_identity" Text Field,
    REMOTE_USER "remote_user" Text Field,
    TIME "time" Timestamp Time,
    _ "request" Text Message,
    _ "method" Text Field,
    _ "path" Text Field,
    _ "protocol" Text Field,
    STATUS "status" Integer Field,
    BODY_BYTES "body_bytes" Integer Field,
    REFERER "referer" Text Field,
    USER_AGENT "user_agent" Text Field,
}

pub(crate) const COMMON_COLUMNS: &[FixedColumn] = COMBINED_COLUMNS.split_at(REFERER).0;

/// The request contains its parts, and a list of addresses the first one.
pub(crate) const OVERLAPPING_COLUMNS: &[(&str, &str)] =
    &[("request", "method"), ("request", "path"), ("request", "protocol"), ("forwarded_for", "remote_addr")];

/// A page often refers to another one of its host.
pub(crate) const REPEATING_COLUMNS: &[(&str, &[&str])] = &[("referer", &["virtual_host"])];

pub(crate) fn parse(
    line: &str,
    is_combined: bool,
    times: &mut TimeResolver,
    fields: &mut EntryFields,
) -> Result<(), Misfit> {
    let mut scanner = Scanner { line, position: 0 };
    read_remote(&mut scanner, fields)?;
    let mut cursor = Cursor::new(scanner.rest().as_bytes());
    let time = times.access_time(&mut cursor).filter(|_| cursor.take(b']'));
    let time = time.ok_or(Misfit::expected("a time such as 10/Oct/2000:13:55:36 -0700]", scanner.position))?;
    fields.set(TIME, Slot::Timestamp(time));
    scanner.position += cursor.position();
    scanner.blank("a blank after the time")?;
    let request = scanner.quoted("the request in quotes")?;
    REQUEST.set(line, request, fields);
    scanner.blank("a blank after the request")?;
    let status = scanner.integer("the status, a number")?;
    fields.set(STATUS, status);
    scanner.blank("a blank after the status")?;
    let body_bytes = scanner.integer("the number of bytes or -")?;
    fields.set(BODY_BYTES, body_bytes);
    if is_combined {
        scanner.blank("the referer in quotes")?;
        let referer = scanner.quoted("the referer in quotes")?.slot(line, fields);
        fields.set(REFERER, referer);
        scanner.blank("the user agent in quotes")?;
        let user_agent = scanner.quoted("the user agent in quotes")?.slot(line, fields);
        fields.set(USER_AGENT, user_agent);
    }
    scanner.extra_fields(fields)
}

/// The words before the time.
struct RemoteWords {
    virtual_host: Option<(usize, usize)>,
    addresses: (usize, usize),
    identity: (usize, usize),
    user: (usize, usize),
}

impl RemoteWords {
    /// Finds the virtual host, which has a port (`vhost_combined` of Apache), the address, the identity, and the user,
    /// which may contain blanks. A proxy's list of addresses is one word, although blanks follow its commas.
    fn find(before: &str) -> Option<Self> {
        let first = word_at(before, 0)?;
        let second = word_at(before, first.1 + 1)?;
        let has_fourth = || word_at(before, word_at(before, second.1 + 1)?.1 + 1);
        let is_dash = before.get(second.0..second.1) == Some("-");
        let has_host = !is_dash && has_port(before, first) && has_fourth().is_some();
        let mut addresses = if has_host { second } else { first };
        while before.get(..addresses.1).is_some_and(|text| text.ends_with(',')) {
            addresses.1 = word_at(before, addresses.1 + 1)?.1;
        }
        let identity = word_at(before, addresses.1 + 1)?;
        let user = word_at(before, identity.1 + 1)?.0;
        Some(Self { virtual_host: has_host.then_some(first), addresses, identity, user: (user, before.len()) })
    }
}

/// The bytes before the next blank, or before the end. `None` after the end.
fn word_at(text: &str, start: usize) -> Option<(usize, usize)> {
    let rest = text.as_bytes().get(start..)?;
    Some((start, start + memchr::memchr(b' ', rest).unwrap_or(rest.len())))
}

fn read_remote(scanner: &mut Scanner<'_>, fields: &mut EntryFields) -> Result<(), Misfit> {
    let line = scanner.line;
    let end = memchr::memmem::find(line.as_bytes(), b" [").ok_or(Misfit::expected("the time in brackets", 0))?;
    let words = RemoteWords::find(line.get(..end).unwrap_or_default());
    let words = words.ok_or(Misfit::expected("the address, the identity and the user before the time", end))?;
    let (start, list_end) = words.addresses;
    let list = line.get(start..list_end).unwrap_or_default();
    // The first address of a list is that of the client, the others are those of proxies.
    let first_end = start + list.find(',').unwrap_or(list.len());
    if first_end < list_end {
        fields.set_text(FORWARDED_FOR, start, list_end);
    }
    if let Some(virtual_host) = words.virtual_host {
        set_word(VIRTUAL_HOST, virtual_host, line, fields);
    }
    set_word(REMOTE_ADDRESS, (start, first_end), line, fields);
    set_word(REMOTE_IDENTITY, words.identity, line, fields);
    set_word(REMOTE_USER, words.user, line, fields);
    scanner.position = end + 2;
    Ok(())
}

fn set_word(column: usize, (start, end): (usize, usize), line: &str, fields: &mut EntryFields) {
    if line.get(start..end) != Some("-") && start < end {
        fields.set_text(column, start, end);
    }
}

/// Whether a word ends as `:443` does.
fn has_port(text: &str, (start, end): (usize, usize)) -> bool {
    let port = text.get(start..end).and_then(|word| word.rsplit_once(':')).map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}
