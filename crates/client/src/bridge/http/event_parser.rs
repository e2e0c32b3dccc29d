//! Parses server-sent events incrementally: the data of an event is returned in pieces, as the connection delivers it.
//!
//! [WHATWG HTML, Parsing an event stream](https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream)

use std::time::Duration;

use bytes::{Buf, Bytes};

/// Maximum length of a field name; longer names are unknown fields.
const NAME_BYTES_MAX: usize = 16;
/// Maximum length of an id or number; longer ones are discarded.
const VALUE_BYTES_MAX: usize = 1_024;

/// The next part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EventPart {
    /// Some data of the open event.
    Data(Bytes),
    /// The end of the event. Its data may be empty.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    /// Within a field name.
    Name,
    /// At the first character of a value, which is not part of the value if it is a space.
    ValueBegin(EventField),
    Value(EventField),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventField {
    Data,
    Id,
    Retry,
    Other,
}

/// The parser of one event stream.
#[derive(Debug)]
pub(super) struct EventParser {
    unread: Bytes,
    state: ParserState,
    name: Vec<u8>,
    value: Vec<u8>,
    /// A line feed after a carriage return does not end a second line.
    is_after_return: bool,
    data_lines: u32,
    new_id: Option<Vec<u8>>,
    /// The id of the last complete event that had one.
    pub(super) last_id: Option<Vec<u8>>,
    /// The reconnection delay that the server requested.
    pub(super) retry: Option<Duration>,
}

impl EventParser {
    pub(super) fn new() -> Self {
        Self {
            unread: Bytes::new(),
            state: ParserState::Name,
            name: Vec::new(),
            value: Vec::new(),
            is_after_return: false,
            data_lines: 0,
            new_id: None,
            last_id: None,
            retry: None,
        }
    }

    /// Adds the next bytes of the stream. Earlier bytes must have been consumed with [`EventParser::next`].
    pub(super) fn feed(&mut self, bytes: Bytes) {
        self.unread = bytes;
    }

    /// The next part; `None` when more bytes are needed.
    pub(super) fn next(&mut self) -> Option<EventPart> {
        loop {
            let &byte = self.unread.first()?;
            if std::mem::take(&mut self.is_after_return) && byte == b'\n' {
                self.unread.advance(1);
                continue;
            }
            if matches!(byte, b'\n' | b'\r') {
                self.is_after_return = byte == b'\r';
                self.unread.advance(1);
                if let Some(item) = self.end_line() {
                    return Some(item);
                }
                continue;
            }
            match self.state {
                ParserState::Name => self.read_name(byte),
                ParserState::ValueBegin(field) => {
                    if byte == b' ' {
                        self.unread.advance(1);
                    }
                    self.state = ParserState::Value(field);
                    if field == EventField::Data && self.begin_data() {
                        return Some(EventPart::Data(Bytes::from_static(b"\n")));
                    }
                }
                ParserState::Value(field) => {
                    let end = self.unread.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    let piece = self.unread.split_to(end.unwrap_or(self.unread.len()));
                    match field {
                        EventField::Data => return Some(EventPart::Data(piece)),
                        EventField::Id | EventField::Retry if self.value.len() + piece.len() <= VALUE_BYTES_MAX => {
                            self.value.extend_from_slice(&piece);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn read_name(&mut self, byte: u8) {
        self.unread.advance(1);
        if byte == b':' {
            self.state = ParserState::ValueBegin(self.field());
        } else if self.name.len() <= NAME_BYTES_MAX {
            self.name.push(byte);
        }
    }

    fn field(&self) -> EventField {
        // The stream may begin with a byte order mark.
        match self.name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.name) {
            b"data" => EventField::Data,
            b"id" => EventField::Id,
            b"retry" => EventField::Retry,
            _ => EventField::Other,
        }
    }

    /// Counts a line of data, and returns whether the event already has another one.
    fn begin_data(&mut self) -> bool {
        self.data_lines = self.data_lines.saturating_add(1);
        self.data_lines > 1
    }

    fn end_line(&mut self) -> Option<EventPart> {
        let state = std::mem::replace(&mut self.state, ParserState::Name);
        let (name, value) = (std::mem::take(&mut self.name), std::mem::take(&mut self.value));
        match state {
            ParserState::Name if name.is_empty() => {
                self.last_id = self.new_id.take().or(self.last_id.take());
                self.data_lines = 0;
                return Some(EventPart::End);
            }
            ParserState::Value(EventField::Id) | ParserState::ValueBegin(EventField::Id) => self.new_id = Some(value),
            ParserState::Value(EventField::Retry) => {
                let milliseconds = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
                self.retry = milliseconds.map(Duration::from_millis).or(self.retry);
            }
            ParserState::Name if name == b"data" && self.begin_data() => {
                return Some(EventPart::Data(Bytes::from_static(b"\n")));
            }
            ParserState::ValueBegin(EventField::Data) if self.begin_data() => {
                return Some(EventPart::Data(Bytes::from_static(b"\n")));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The data of each complete event, and the parser at the end of the stream.
    fn read(stream: &[u8], size: usize) -> (Vec<String>, EventParser) {
        let mut events = EventParser::new();
        let (mut whole, mut open) = (Vec::new(), Vec::new());
        for piece in stream.chunks(size) {
            events.feed(Bytes::copy_from_slice(piece));
            while let Some(item) = events.next() {
                match item {
                    EventPart::Data(data) => open.extend_from_slice(&data),
                    EventPart::End => whole.push(String::from_utf8(std::mem::take(&mut open)).unwrap()),
                }
            }
        }
        (whole, events)
    }

    #[test]
    fn parses_events_between_empty_lines() {
        let stream =
            b"\xef\xbb\xbfdata: one\n\n:\n\nid: 7\nretry: 250\ndata:two\r\ndata:  three\rdata\n\nevent: x\ndata: four";
        for size in 1..20 {
            let (whole, events) = read(stream, size);
            assert_eq!(whole, ["one", "", "two\n three\n"].map(str::to_owned).as_slice(), "in pieces of {size}");
            assert_eq!(events.last_id.as_deref(), Some(&b"7"[..]));
            assert_eq!(events.retry, Some(Duration::from_millis(250)));
        }
    }

    #[test]
    fn drops_overlong_fields() {
        let stream = format!("{}: x\nid: {}\ndata: y\n\n", "data".repeat(1_000_000), "7".repeat(1_000_000));
        let (whole, events) = read(stream.as_bytes(), 4_096);
        assert_eq!(whole, ["y"]);
        assert!(events.last_id.is_none_or(|id| id.len() <= VALUE_BYTES_MAX));
        assert!(events.name.capacity() < 100);
    }

    proptest! {
        #[test]
        fn result_is_independent_of_chunk_boundaries(stream in "(data: ?[ab]{0,3}|id:[0-9]|:|ev|)(\r\n|\n|\r){1,2}", retried in 1..5_usize, size in 1..9_usize) {
            let stream = stream.repeat(retried);
            prop_assert_eq!(read(stream.as_bytes(), size).0, read(stream.as_bytes(), usize::MAX).0);
        }
    }
}
