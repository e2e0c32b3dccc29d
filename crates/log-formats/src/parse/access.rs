//! The access logs of web servers: the Common and the Combined Log Format.

use super::quoted::QuotedText;
use crate::column::{EntryColumnRole as Role, EntryColumnType as Type, FixedColumn};
use crate::defect::Misfit;
use crate::entry::{EntryFields, Piece, Slot};
use crate::time::{Cursor, TimeResolver};

const VIRTUAL_HOST: usize = 0;
const REMOTE_ADDRESS: usize = 1;
const REMOTE_IDENTITY: usize = 2;
const REMOTE_USER: usize = 3;
const TIME: usize = 4;
const REQUEST: usize = 5;
const METHOD: usize = 6;
const PATH: usize = 7;
const PROTOCOL: usize = 8;
const STATUS: usize = 9;
const BODY_BYTES: usize = 10;
const REFERER: usize = 11;
const USER_AGENT: usize = 12;

pub(crate) const COMBINED_COLUMNS: &[FixedColumn] = &[
    ("virtual_host", Type::Text, Role::Field),
    ("remote_addr", Type::Text, Role::Field),
    ("remote_identity", Type::Text, Role::Field),
    ("remote_user", Type::Text, Role::Field),
    ("time", Type::Timestamp, Role::Time),
    ("request", Type::Text, Role::Message),
    ("method", Type::Text, Role::Field),
    ("path", Type::Text, Role::Field),
    ("protocol", Type::Text, Role::Field),
    ("status", Type::Integer, Role::Field),
    ("body_bytes", Type::Integer, Role::Field),
    ("referer", Type::Text, Role::Field),
    ("user_agent", Type::Text, Role::Field),
];

pub(crate) const COMMON_COLUMNS: &[FixedColumn] = COMBINED_COLUMNS.split_at(REFERER).0;

/// The request contains its parts.
pub(crate) const OVERLAPPING_COLUMNS: &[(&str, &str)] =
    &[("request", "method"), ("request", "path"), ("request", "protocol")];

/// Longer words are not request methods.
const METHOD_BYTES_MAX: usize = 24;
/// Names of the fields after those of the format. Further fields are only in the text.
const EXTRA_NAMES: [&str; 16] = [
    "extra_1", "extra_2", "extra_3", "extra_4", "extra_5", "extra_6", "extra_7", "extra_8", "extra_9", "extra_10",
    "extra_11", "extra_12", "extra_13", "extra_14", "extra_15", "extra_16",
];

pub(crate) fn parse(
    line: &str,
    is_combined: bool,
    times: &mut TimeResolver,
    fields: &mut EntryFields,
) -> Result<(), Misfit> {
    let mut scanner = Scanner { line, position: 0 };
    scanner.remote(fields)?;
    let mut cursor = Cursor::new(scanner.rest().as_bytes());
    let time = times.access_time(&mut cursor).filter(|_| cursor.take(b']'));
    let time = time.ok_or(Misfit::expected("a time such as 10/Oct/2000:13:55:36 -0700]", scanner.position))?;
    fields.set(TIME, Slot::Timestamp(time));
    scanner.position += cursor.position();
    scanner.blank("a blank after the time")?;
    let request = scanner.quoted("the request in quotes")?;
    set_request(line, request, fields);
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

/// Splits a request line. One that is broken has no method, path and protocol.
fn set_request(line: &str, quoted: QuotedText, fields: &mut EntryFields) {
    let request = quoted.slot(line, fields);
    fields.set(REQUEST, request);
    let raw = line.get(quoted.start..quoted.end).unwrap_or_default();
    let Some(method_end) = memchr::memchr(b' ', raw.as_bytes()) else { return };
    let is_method = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    let method = raw.as_bytes().get(..method_end).unwrap_or_default();
    if method.is_empty() || method_end > METHOD_BYTES_MAX || !method.iter().all(is_method) {
        return;
    }
    let Some(path_end) = memchr::memrchr(b' ', raw.as_bytes()) else { return };
    let protocol = raw.get(path_end + 1..).unwrap_or_default();
    // Without a protocol, it is a request of HTTP/0.9.
    let (path_end, has_protocol) =
        if path_end > method_end && protocol.starts_with("HTTP/") { (path_end, true) } else { (raw.len(), false) };
    let path = QuotedText {
        start: quoted.start + method_end + 1,
        end: quoted.start + path_end,
        has_escapes: quoted.has_escapes,
    };
    fields.set_text(METHOD, quoted.start, quoted.start + method_end);
    let path = Slot::Text(path.piece(line, fields));
    fields.set(PATH, path);
    if has_protocol {
        fields.set_text(PROTOCOL, quoted.start + path_end + 1, quoted.end);
    }
}

struct Scanner<'a> {
    line: &'a str,
    position: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        self.line.get(self.position..).unwrap_or_default()
    }

    /// The words before the time: the address, the identity and the user, which may contain blanks, and before them
    /// the virtual host, which has a port (`vhost_combined` of Apache).
    fn remote(&mut self, fields: &mut EntryFields) -> Result<(), Misfit> {
        let bytes = self.line.as_bytes();
        let end = memchr::memmem::find(bytes, b" [").ok_or(Misfit::expected("the time in brackets", 0))?;
        let before = self.line.get(..end).unwrap_or_default();
        let mut start = 0;
        let mut words = [(0, 0); 4];
        let mut count = 0;
        for word in &mut words {
            if start > end {
                break;
            }
            let rest = before.as_bytes().get(start..).unwrap_or_default();
            let word_end = start + memchr::memchr(b' ', rest).unwrap_or(rest.len());
            *word = (start, word_end);
            start = word_end + 1;
            count += 1;
        }
        if count < 3 {
            return Err(Misfit::expected("the address, the identity and the user before the time", end));
        }
        let [first, second, third, fourth] = words;
        let has_host = count == 4 && before.get(second.0..second.1) != Some("-") && has_port(before, first);
        let (address, identity, user) = if has_host {
            self.set_word(VIRTUAL_HOST, first, fields);
            (second, third, (fourth.0, end))
        } else {
            (first, second, (third.0, end))
        };
        self.set_word(REMOTE_ADDRESS, address, fields);
        self.set_word(REMOTE_IDENTITY, identity, fields);
        self.set_word(REMOTE_USER, user, fields);
        self.position = end + 2;
        Ok(())
    }

    fn set_word(&self, column: usize, (start, end): (usize, usize), fields: &mut EntryFields) {
        if self.line.get(start..end) != Some("-") && start < end {
            fields.set_text(column, start, end);
        }
    }

    fn blank(&mut self, what: &'static str) -> Result<(), Misfit> {
        if self.line.as_bytes().get(self.position) != Some(&b' ') {
            return Err(Misfit::expected(what, self.position));
        }
        self.position += 1;
        Ok(())
    }

    fn quoted(&mut self, what: &'static str) -> Result<QuotedText, Misfit> {
        let begins = self.line.as_bytes().get(self.position) == Some(&b'"');
        let quoted = begins.then(|| QuotedText::find(self.line, self.position + 1)).flatten();
        let quoted = quoted.ok_or(Misfit::expected(what, self.position))?;
        self.position = quoted.end + 1;
        Ok(quoted)
    }

    /// A number or `-`.
    fn integer(&mut self, what: &'static str) -> Result<Slot, Misfit> {
        let mut cursor = Cursor::new(self.rest().as_bytes());
        let value = if cursor.take(b'-') { Some(Slot::Null) } else { cursor.number(1, 18).map(Slot::Integer) };
        let value = value.filter(|_| matches!(cursor.peek(), None | Some(b' ')));
        let value = value.ok_or(Misfit::expected(what, self.position))?;
        self.position += cursor.position();
        Ok(value)
    }

    /// Fields after the format: in quotes, or words.
    fn extra_fields(&mut self, fields: &mut EntryFields) -> Result<(), Misfit> {
        for name in EXTRA_NAMES {
            if self.rest().trim_ascii_end().is_empty() {
                break;
            }
            self.blank("a blank after the last field")?;
            let value = if self.line.as_bytes().get(self.position) == Some(&b'"') {
                self.quoted("a field in quotes")?.slot(self.line, fields)
            } else {
                let rest = self.rest();
                let end = memchr::memchr(b' ', rest.as_bytes()).unwrap_or(rest.len());
                let word = Piece::of_text(self.position, self.position + end);
                let is_null = rest.get(..end) == Some("-");
                self.position += end;
                if is_null || word.is_empty() { Slot::Null } else { Slot::Number(word) }
            };
            let name = fields.write_scratch(|scratch| scratch.push_str(name));
            fields.push_member(name, value);
        }
        Ok(())
    }
}

/// Whether a word ends as `:443` does.
fn has_port(text: &str, (start, end): (usize, usize)) -> bool {
    let port = text.get(start..end).and_then(|word| word.rsplit_once(':')).map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}
