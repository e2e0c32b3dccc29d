//! The logs of HAProxy: the HTTP, the TCP and the error format, and all other lines as a message. What syslog writes before
//! them is read, too.

use super::scanner::{QuotedText, RequestColumns, Scanner};
use super::syslog::read_file_head;
use super::{EntryText, declare_columns};
use crate::entry::{EntryFields, Misfit, Slot};
use crate::time::{Cursor, TimeResolver};

/// The timers of HTTP, in the order of the line.
const HTTP_TIMERS: &[usize] = &[8, 9, 10, 11, 12];
/// The timers of TCP.
const TCP_TIMERS: &[usize] = &[9, 10, 12];
const CONNECTIONS: &[usize] = &[18, 19, 20, 21, 22];
const QUEUES: &[usize] = &[23, 24];
const REQUEST: RequestColumns = RequestColumns { request: MESSAGE, method: 27, path: 28, protocol: 29 };

// The names are those of HAProxy's manual; the timers are in milliseconds, and -1 if the connection ended before.
declare_columns! {
    COLUMNS:
    TIME "time" Timestamp Time,
    HOST "host" Text Field,
    PROCESS_ID "process_id" Text Field,
    CLIENT_IP "client_ip" Text Field,
    CLIENT_PORT "client_port" Integer Field,
    FRONTEND "frontend_name" Text Field,
    BACKEND "backend_name" Text Field,
    SERVER "server_name" Text Field,
    _ "request_ms" Integer Field,
    _ "queue_ms" Integer Field,
    _ "connect_ms" Integer Field,
    _ "response_ms" Integer Field,
    _ "total_ms" Integer Field,
    STATUS "status" Integer Field,
    BYTES_READ "bytes_read" Integer Field,
    REQUEST_COOKIE "captured_request_cookie" Text Field,
    RESPONSE_COOKIE "captured_response_cookie" Text Field,
    TERMINATION_STATE "termination_state" Text Field,
    _ "actconn" Integer Field,
    _ "feconn" Integer Field,
    _ "beconn" Integer Field,
    _ "srv_conn" Integer Field,
    _ "retries" Integer Field,
    _ "srv_queue" Integer Field,
    _ "backend_queue" Integer Field,
    CAPTURED_HEADERS "captured_headers" Text Field,
    MESSAGE "message" Text Message,
    _ "method" Text Field,
    _ "path" Text Field,
    _ "protocol" Text Field,
}

/// The message of HTTP is the request.
pub(crate) const OVERLAPPING_COLUMNS: &[(&str, &str)] =
    &[("message", "method"), ("message", "path"), ("message", "protocol")];

/// `Connect from 10.0.0.1:5 to 10.0.0.2:80 (www/HTTP)`, and `Server app/one is DOWN`. A proxy of a section `listen` is
/// frontend and backend.
pub(crate) const REPEATING_COLUMNS: &[(&str, &[&str])] = &[
    ("message", &["client_ip", "client_port", "frontend_name", "backend_name", "server_name"]),
    ("frontend_name", &["backend_name"]),
    ("backend_name", &["frontend_name"]),
];

/// The most numbers that slashes separate.
const NUMBERS_MAX: usize = 5;

pub(crate) fn parse(text: EntryText<'_>, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let line = text.first_line;
    let head = read_file_head(line, times);
    let start = head.as_ref().map_or(0, |(_, head)| head.message);
    if read_traffic(line, start, times, fields).is_none() {
        // A message about a server or a proxy, or a format of its own.
        fields.clear_values();
        let Some((time, _)) = &head else {
            return Err(Misfit::expected("a time, or the address of a client and a time in brackets", 0));
        };
        fields.set(TIME, Slot::Timestamp(*time));
        fields.set_text(MESSAGE, start, text.end_of_message());
    }
    if let Some((_, head)) = &head {
        for (column, part) in [(HOST, head.host), (PROCESS_ID, head.process_id)] {
            if let Some((start, end)) = part {
                fields.set_text(column, start, end);
            }
        }
    }
    Ok(())
}

/// Reads a line about a connection or a request. Its time has more digits than that of syslog.
fn read_traffic(line: &str, start: usize, times: &mut TimeResolver, fields: &mut EntryFields) -> Option<()> {
    let mut scanner = Scanner { line, position: start };
    let (client_start, client_end) = scanner.word();
    let port_bytes = line.get(client_start..client_end)?.rsplit_once(':').map(|(_, port)| port.len())?;
    let port_start = client_end - port_bytes;
    fields.set_text(CLIENT_IP, client_start, port_start - 1);
    fields.set(CLIENT_PORT, Slot::Integer(line.get(port_start..client_end)?.parse().ok()?));
    scanner.take_blank()?;
    let mut cursor = Cursor::new(scanner.rest().as_bytes());
    let time = cursor.take(b'[').then(|| times.access_time(&mut cursor)).flatten();
    fields.set(TIME, Slot::Timestamp(time.filter(|_| cursor.take(b']'))?));
    scanner.position += cursor.position();
    scanner.take_blank()?;
    let (frontend_start, frontend_end) = scanner.word();
    let frontend = line.get(frontend_start..frontend_end)?;
    if let Some(bound) = frontend.strip_suffix(':') {
        // `frontend/1: SSL handshake failure`: an error before the first byte.
        let frontend_bytes = bound.rfind('/').unwrap_or(bound.len());
        fields.set_text(FRONTEND, frontend_start, frontend_start + frontend_bytes);
        scanner.take_blank()?;
        fields.set_text(MESSAGE, scanner.position, line.len());
        return Some(());
    }
    fields.set_text(FRONTEND, frontend_start, frontend_end);
    scanner.take_blank()?;
    let (target_start, target_end) = scanner.word();
    let backend_bytes = line.get(target_start..target_end)?.rfind('/')?;
    fields.set_text(BACKEND, target_start, target_start + backend_bytes);
    fields.set_text(SERVER, target_start + backend_bytes + 1, target_end);
    if set_numbers(&mut scanner, HTTP_TIMERS, fields).is_some() {
        set_number(&mut scanner, STATUS, fields)?;
        set_number(&mut scanner, BYTES_READ, fields)?;
        set_word(&mut scanner, REQUEST_COOKIE, fields)?;
        set_word(&mut scanner, RESPONSE_COOKIE, fields)?;
        read_connections(&mut scanner, fields)?;
        read_request(&mut scanner, fields)?;
    } else {
        set_numbers(&mut scanner, TCP_TIMERS, fields)?;
        set_number(&mut scanner, BYTES_READ, fields)?;
        read_connections(&mut scanner, fields)?;
    }
    // A long line is cut by syslog, also within quotes.
    let _ = scanner.extra_fields(fields);
    Some(())
}

/// The state, the connections and the queues.
fn read_connections(scanner: &mut Scanner<'_>, fields: &mut EntryFields) -> Option<()> {
    set_word(scanner, TERMINATION_STATE, fields)?;
    set_numbers(scanner, CONNECTIONS, fields)?;
    set_numbers(scanner, QUEUES, fields)
}

/// Captured headers in braces, if there are any, then the request. HAProxy writes quotes and braces in them as `#22`.
fn read_request(scanner: &mut Scanner<'_>, fields: &mut EntryFields) -> Option<()> {
    scanner.take_blank()?;
    let headers_start = scanner.position;
    let mut headers_end = headers_start;
    while scanner.rest().starts_with('{') {
        headers_end = scanner.position + scanner.rest().find('}')? + 1;
        scanner.position = headers_end;
        scanner.take_blank()?;
    }
    if headers_end > headers_start {
        fields.set_text(CAPTURED_HEADERS, headers_start, headers_end);
    }
    let request = scanner.rest().strip_prefix('"')?;
    let start = scanner.position + 1;
    let end = start + request.find('"').unwrap_or(request.len());
    REQUEST.set(scanner.line, QuotedText { start, end, has_escapes: false }, fields);
    scanner.position = (end + 1).min(scanner.line.len());
    Some(())
}

/// A blank and a word, which is null if it is `-`.
fn set_word(scanner: &mut Scanner<'_>, column: usize, fields: &mut EntryFields) -> Option<()> {
    scanner.take_blank()?;
    let (start, end) = scanner.word();
    if start == end {
        return None;
    }
    if scanner.line.get(start..end) != Some("-") {
        fields.set_text(column, start, end);
    }
    Some(())
}

/// A blank and a number. A plus means that it may have grown after the line was written.
fn set_number(scanner: &mut Scanner<'_>, column: usize, fields: &mut EntryFields) -> Option<()> {
    set_numbers(scanner, &[column], fields)
}

/// A blank and as many numbers as there are columns, such as `10/0/-1/+69`. Otherwise the position stays.
fn set_numbers(scanner: &mut Scanner<'_>, columns: &[usize], fields: &mut EntryFields) -> Option<()> {
    let before = scanner.position;
    scanner.take_blank()?;
    let (start, end) = scanner.word();
    scanner.position = before;
    let mut numbers = [0_i64; NUMBERS_MAX];
    let mut count = 0;
    for part in scanner.line.get(start..end)?.split('/') {
        *numbers.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    if count != columns.len() {
        return None;
    }
    for (column, number) in columns.iter().zip(numbers) {
        fields.set(*column, Slot::Integer(number));
    }
    scanner.position = end;
    Some(())
}
