//! Scans JSON in pieces: validates it, and extracts the members that determine the kind of the message.
//!
//! An answer may be larger than memory, but the client must receive a valid message. Each byte is therefore checked
//! once as it arrives, and only the id is kept.

use thiserror::Error;

use super::number::NumberState;
use super::utf8::Utf8Validator;

/// Maximum length of an id in bytes.
const ID_BYTES_MAX: usize = 4_096;
/// Maximum nesting depth. Each level takes one entry in a stack.
const DEPTH_MAX: usize = 1_024;

/// Why a document is not a valid message.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum MalformedMessage {
    #[error("it is not valid JSON at byte {0}")]
    NoJson(u64),
    #[error("it is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    #[error("its id is longer than {ID_BYTES_MAX} bytes")]
    LongId,
    #[error("it is not UTF-8")]
    NoUtf8,
    #[error("it is incomplete")]
    BreaksOff,
}

/// The kind of a message.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct MessageShape {
    /// The document is an array.
    pub(super) is_batch: bool,
    /// The message is a request or a notification.
    pub(super) has_method: bool,
    /// The message has a result.
    pub(super) has_result: bool,
    /// The message has an error.
    pub(super) has_error: bool,
    /// The id in its JSON form; `None` if it is absent or neither a string nor a number.
    pub(super) id: Option<String>,
}

impl MessageShape {
    /// Whether the message answers a request.
    pub(super) fn is_answer(&self) -> bool {
        !self.has_method && (self.has_result || self.has_error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScannerState {
    /// Before the first character.
    Begin,
    /// A value is expected; at the beginning of an array, also its end.
    Value {
        or_end: bool,
    },
    /// A key is expected; at the beginning of an object, also its end.
    Key {
        or_end: bool,
    },
    Colon,
    /// A value inside an object or array has ended.
    AfterValue,
    Text,
    Escape,
    Hex(u8),
    Number(NumberState),
    /// The remaining characters of `true`, `false` or `null`.
    Literal(&'static [u8]),
    End,
}

/// The scanner of one document.
#[derive(Debug)]
pub(super) struct MessageScanner {
    state: ScannerState,
    /// The open objects (`true`) and arrays, outermost first.
    open: Vec<bool>,
    is_in_key: bool,
    /// The beginning of the last key of the outermost object.
    key: Vec<u8>,
    /// The id, complete or partial.
    id: Vec<u8>,
    is_in_id: bool,
    shape: MessageShape,
    seen_bytes: u64,
    utf8: Utf8Validator,
}

/// Maximum length of a relevant key with its quotes.
const KEY_BYTES_MAX: usize = 16;

impl MessageScanner {
    pub(super) fn new() -> Self {
        Self {
            state: ScannerState::Begin,
            open: Vec::new(),
            is_in_key: false,
            key: Vec::new(),
            id: Vec::new(),
            is_in_id: false,
            shape: MessageShape::default(),
            seen_bytes: 0,
            utf8: Utf8Validator::default(),
        }
    }

    /// Scans the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), MalformedMessage> {
        self.utf8.push(bytes)?;
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.state == ScannerState::Text && !self.is_in_key && !self.is_in_id {
                // Most of an answer consists of long strings.
                let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
                if plain > 0 {
                    rest = &rest[plain..];
                    self.seen_bytes += plain as u64;
                    continue;
                }
            }
            self.step(byte)?;
            self.seen_bytes += 1;
            rest = after;
        }
        Ok(())
    }

    /// The kind of the document, if it is complete.
    pub(super) fn finish(mut self) -> Result<MessageShape, MalformedMessage> {
        if self.state != ScannerState::End {
            return Err(MalformedMessage::BreaksOff);
        }
        self.utf8.finish()?;
        let is_id = self.id.first().is_some_and(|first| matches!(first, b'"' | b'-' | b'0'..=b'9'));
        // The id is delimited by ASCII characters in a valid UTF-8 text.
        self.shape.id = String::from_utf8(self.id).ok().filter(|_| is_id);
        Ok(self.shape)
    }

    fn step(&mut self, byte: u8) -> Result<(), MalformedMessage> {
        if let ScannerState::Number(number) = self.state {
            match number.next(byte) {
                Some(next) => {
                    self.record_byte(byte)?;
                    self.state = ScannerState::Number(next);
                    return Ok(());
                }
                None if number.may_end() => self.end_value(),
                None => return Err(self.no_json()),
            }
        }
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (ScannerState::Text, b'"') => return self.end_text(byte),
            (ScannerState::Text, b'\\') => ScannerState::Escape,
            (ScannerState::Text, 0x20..) => ScannerState::Text,
            (ScannerState::Escape, b'u') => ScannerState::Hex(4),
            (ScannerState::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => ScannerState::Text,
            (ScannerState::Hex(1), byte) if byte.is_ascii_hexdigit() => ScannerState::Text,
            (ScannerState::Hex(left), byte) if byte.is_ascii_hexdigit() => ScannerState::Hex(left - 1),
            (ScannerState::Literal(rest), byte) => return self.literal(rest, byte),
            (state, _)
                if is_space && !matches!(state, ScannerState::Text | ScannerState::Escape | ScannerState::Hex(_)) =>
            {
                return Ok(());
            }
            (ScannerState::Begin, b'{' | b'[') => {
                self.shape.is_batch = byte == b'[';
                return self.begin(byte);
            }
            (ScannerState::Value { .. }, b'{' | b'[') => return self.begin(byte),
            (ScannerState::Value { or_end: true }, b']') | (ScannerState::Key { or_end: true }, b'}') => {
                return self.end(byte);
            }
            (ScannerState::Value { .. }, _) => return self.scalar(byte),
            (ScannerState::Key { .. }, b'"') => return self.begin_key(),
            (ScannerState::Colon, b':') => {
                self.is_in_id = self.open.len() == 1 && self.key == b"\"id\"";
                if self.is_in_id {
                    self.id.clear();
                }
                ScannerState::Value { or_end: false }
            }
            (ScannerState::AfterValue, b',') if self.is_in_object() => ScannerState::Key { or_end: false },
            (ScannerState::AfterValue, b',') => ScannerState::Value { or_end: false },
            (ScannerState::AfterValue, b'}' | b']') => return self.end(byte),
            _ => return Err(self.no_json()),
        };
        self.record_byte(byte)
    }

    fn no_json(&self) -> MalformedMessage {
        MalformedMessage::NoJson(self.seen_bytes)
    }

    fn is_in_object(&self) -> bool {
        self.open.last() == Some(&true)
    }

    /// Keeps a byte that belongs to a key or to the id.
    fn record_byte(&mut self, byte: u8) -> Result<(), MalformedMessage> {
        let is_of_value = matches!(
            self.state,
            ScannerState::Text
                | ScannerState::Escape
                | ScannerState::Hex(_)
                | ScannerState::Number(_)
                | ScannerState::Literal(_)
                | ScannerState::AfterValue
        );
        if self.is_in_key {
            if self.key.len() < KEY_BYTES_MAX {
                self.key.push(byte);
            }
        } else if self.is_in_id && is_of_value {
            if self.id.len() == ID_BYTES_MAX {
                return Err(MalformedMessage::LongId);
            }
            self.id.push(byte);
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> Result<(), MalformedMessage> {
        if self.open.len() == DEPTH_MAX {
            return Err(MalformedMessage::TooDeep);
        }
        self.is_in_id = false;
        self.open.push(byte == b'{');
        self.state =
            if byte == b'{' { ScannerState::Key { or_end: true } } else { ScannerState::Value { or_end: true } };
        Ok(())
    }

    fn end(&mut self, byte: u8) -> Result<(), MalformedMessage> {
        if self.open.pop() != Some(byte == b'}') {
            return Err(self.no_json());
        }
        self.end_value();
        Ok(())
    }

    fn end_value(&mut self) {
        self.is_in_id = false;
        self.state = if self.open.is_empty() { ScannerState::End } else { ScannerState::AfterValue };
    }

    fn begin_key(&mut self) -> Result<(), MalformedMessage> {
        self.is_in_key = true;
        self.key.clear();
        self.state = ScannerState::Text;
        self.record_byte(b'"')
    }

    fn end_text(&mut self, byte: u8) -> Result<(), MalformedMessage> {
        self.record_byte(byte)?;
        if !std::mem::take(&mut self.is_in_key) {
            self.end_value();
            return Ok(());
        }
        if self.open.len() == 1 {
            match self.key.as_slice() {
                b"\"method\"" => self.shape.has_method = true,
                b"\"result\"" => self.shape.has_result = true,
                b"\"error\"" => self.shape.has_error = true,
                _ => {}
            }
        }
        self.state = ScannerState::Colon;
        Ok(())
    }

    fn scalar(&mut self, byte: u8) -> Result<(), MalformedMessage> {
        self.state = match byte {
            b'"' => ScannerState::Text,
            b'-' => ScannerState::Number(NumberState::Minus),
            b'0' => ScannerState::Number(NumberState::Zero),
            b'1'..=b'9' => ScannerState::Number(NumberState::Whole),
            b't' => ScannerState::Literal(b"rue"),
            b'f' => ScannerState::Literal(b"alse"),
            b'n' => ScannerState::Literal(b"ull"),
            _ => return Err(self.no_json()),
        };
        self.record_byte(byte)
    }

    fn literal(&mut self, rest: &'static [u8], byte: u8) -> Result<(), MalformedMessage> {
        match rest.split_first() {
            Some((expected, rest)) if *expected == byte => {
                self.record_byte(byte)?;
                if rest.is_empty() {
                    self.end_value();
                } else {
                    self.state = ScannerState::Literal(rest);
                }
                Ok(())
            }
            _ => Err(self.no_json()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn scan<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<MessageShape, MalformedMessage> {
        let mut scanner = MessageScanner::new();
        for piece in pieces {
            scanner.push(piece)?;
        }
        scanner.finish()
    }

    fn shape(text: &str) -> MessageShape {
        scan([text.as_bytes()]).unwrap()
    }

    #[test]
    fn classifies_by_outermost_members() {
        let answer = shape(r#" {"jsonrpc":"2.0","result":{"id":7,"method":"x","error":{}}, "id" : "a\"b" } "#);
        assert_eq!(answer.id.as_deref(), Some(r#""a\"b""#));
        assert!(answer.is_answer() && !answer.has_error);
        let request = shape(r#"{"id":-1.5e+3,"method":"ping","params":{"result":1}}"#);
        assert_eq!(request.id.as_deref(), Some("-1.5e+3"));
        assert!(!request.is_answer());
        for nobody in [r#"{"id":null,"error":{}}"#, r#"{"id":{"a":"b"},"error":1}"#, r#"{"id":true,"error":1}"#] {
            assert_eq!(shape(nobody).id, None, "{nobody}");
        }
        assert!(shape("[]").is_batch);
    }

    #[test]
    fn rejects_malformed_documents() {
        let refused = |text: &[u8]| scan([text]).unwrap_err();
        assert_eq!(refused(b"<html>"), MalformedMessage::NoJson(0));
        assert_eq!(refused(b"7"), MalformedMessage::NoJson(0));
        assert_eq!(refused(b"{\"a\":01}"), MalformedMessage::NoJson(6));
        assert_eq!(refused(b"{} {}"), MalformedMessage::NoJson(3));
        assert_eq!(refused(b"{\"a\":[1,2}"), MalformedMessage::NoJson(9));
        assert_eq!(refused(b""), MalformedMessage::BreaksOff);
        assert_eq!(refused(b"{\"a\":"), MalformedMessage::BreaksOff);
        assert_eq!(refused(b"{\"a\":\"\xff\"}"), MalformedMessage::NoUtf8);
        assert_eq!(refused("[".repeat(DEPTH_MAX + 1).as_bytes()), MalformedMessage::TooDeep);
        assert_eq!(refused(format!("{{\"id\":\"{}", "x".repeat(ID_BYTES_MAX)).as_bytes()), MalformedMessage::LongId);
    }

    /// Sequences of JSON tokens, which often form a valid document and otherwise almost one.
    fn nearly_json() -> impl Strategy<Value = String> {
        let tokens = prop_oneof![
            Just("{"),
            Just("}"),
            Just("["),
            Just("]"),
            Just(","),
            Just(":"),
            Just("\"id\":"),
            Just("\"method\":"),
            Just("\"\\u00e9\\n\""),
            Just("\"é\u{1f600}\""),
            Just("\"\\x\""),
            Just("-0.5e-7"),
            Just("1"),
            Just("01"),
            Just("1."),
            Just("true"),
            Just("nul"),
            Just(" \r\n\t"),
            Just("\"\n\""),
        ];
        proptest::collection::vec(tokens, 0..12).prop_map(|tokens| format!("{{\"a\":[{}]}}", tokens.concat()))
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in nearly_json(), broken in any::<Option<(u8, u8)>>(), size in 1..9_usize) {
            let mut bytes = text.into_bytes();
            if let Some((place, byte)) = broken {
                let place = usize::from(place) % bytes.len();
                bytes[place] = byte;
            }
            let is_json = serde_json::from_slice::<&RawValue>(&bytes).is_ok() && matches!(bytes.trim_ascii_start()[0], b'{' | b'[');
            prop_assert_eq!(scan(bytes.chunks(size)).is_ok(), is_json, "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
