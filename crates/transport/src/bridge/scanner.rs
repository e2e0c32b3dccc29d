//! Reading JSON as it passes: whether it is JSON, and the few members that say what sort of message it is.
//!
//! An answer may be larger than memory. What the client hears must be a message all the same, so every
//! byte is looked at once, on its way, and nothing is kept but the id.

use thiserror::Error;

use super::number::Number;
use super::utf8::Utf8;

/// Longer ids are no ids; ours are bounded as well.
const ID_BYTES_MAX: usize = 4_096;
/// Deeper documents are refused; a level is one bit of what is kept.
const DEPTH_MAX: usize = 1_024;

/// Bytes that are no JSON object or array.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum Malformed {
    #[error("it is no JSON, at byte {0}")]
    NoJson(u64),
    #[error("it is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    #[error("its id is longer than {ID_BYTES_MAX} bytes")]
    LongId,
    #[error("it is no UTF-8")]
    NoUtf8,
    #[error("it breaks off")]
    BreaksOff,
}

/// What sort of message a document is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// It is an array.
    pub(super) is_batch: bool,
    /// It asks or tells.
    pub(super) has_method: bool,
    /// It answers with a result.
    pub(super) has_result: bool,
    /// It answers with an error.
    pub(super) has_error: bool,
    /// The id as it stands in the text; none when it is absent or no string or number.
    pub(super) id: Option<String>,
}

impl Shape {
    /// Whether it answers a request.
    pub(super) fn is_answer(&self) -> bool {
        !self.has_method && (self.has_result || self.has_error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing has come.
    Begin,
    /// A value must come; in an array that has just begun its end may come as well.
    Value {
        or_end: bool,
    },
    /// A key must come; in an object that has just begun its end may come as well.
    Key {
        or_end: bool,
    },
    Colon,
    /// A value has ended within something.
    AfterValue,
    Text,
    Escape,
    Hex(u8),
    Number(Number),
    /// The rest of `true`, `false` or `null`.
    Literal(&'static [u8]),
    End,
}

/// One document on its way.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    /// What is open, outermost first: `true` for an object.
    open: Vec<bool>,
    is_in_key: bool,
    /// The beginning of the outermost object's key that came last.
    key: Vec<u8>,
    /// The id, while and after it comes.
    id: Vec<u8>,
    is_in_id: bool,
    shape: Shape,
    seen_bytes: u64,
    utf8: Utf8,
}

/// Members that tell messages apart are no longer than this with their quotes.
const KEY_BYTES_MAX: usize = 16;

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            state: State::Begin,
            open: Vec::new(),
            is_in_key: false,
            key: Vec::new(),
            id: Vec::new(),
            is_in_id: false,
            shape: Shape::default(),
            seen_bytes: 0,
            utf8: Utf8::default(),
        }
    }

    /// Looks at the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.utf8.push(bytes)?;
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.state == State::Text && !self.is_in_key && !self.is_in_id {
                // Most of an answer stands in long strings.
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

    /// What the document was, if it is whole.
    pub(super) fn finish(mut self) -> Result<Shape, Malformed> {
        if self.state != State::End {
            return Err(Malformed::BreaksOff);
        }
        self.utf8.finish()?;
        let is_id = self.id.first().is_some_and(|first| matches!(first, b'"' | b'-' | b'0'..=b'9'));
        // It stands between ASCII characters of a text that is UTF-8.
        self.shape.id = String::from_utf8(self.id).ok().filter(|_| is_id);
        Ok(self.shape)
    }

    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        if let State::Number(number) = self.state {
            match number.next(byte) {
                Some(next) => {
                    self.keep(byte)?;
                    self.state = State::Number(next);
                    return Ok(());
                }
                None if number.may_end() => self.end_value(),
                None => return Err(self.no_json()),
            }
        }
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (State::Text, b'"') => return self.end_text(byte),
            (State::Text, b'\\') => State::Escape,
            (State::Text, 0x20..) => State::Text,
            (State::Escape, b'u') => State::Hex(4),
            (State::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => State::Text,
            (State::Hex(1), byte) if byte.is_ascii_hexdigit() => State::Text,
            (State::Hex(left), byte) if byte.is_ascii_hexdigit() => State::Hex(left - 1),
            (State::Literal(rest), byte) => return self.literal(rest, byte),
            (state, _) if is_space && !matches!(state, State::Text | State::Escape | State::Hex(_)) => return Ok(()),
            (State::Begin, b'{' | b'[') => {
                self.shape.is_batch = byte == b'[';
                return self.begin(byte);
            }
            (State::Value { .. }, b'{' | b'[') => return self.begin(byte),
            (State::Value { or_end: true }, b']') | (State::Key { or_end: true }, b'}') => return self.end(byte),
            (State::Value { .. }, _) => return self.scalar(byte),
            (State::Key { .. }, b'"') => return self.begin_key(),
            (State::Colon, b':') => {
                self.is_in_id = self.open.len() == 1 && self.key == b"\"id\"";
                if self.is_in_id {
                    self.id.clear();
                }
                State::Value { or_end: false }
            }
            (State::AfterValue, b',') if self.is_in_object() => State::Key { or_end: false },
            (State::AfterValue, b',') => State::Value { or_end: false },
            (State::AfterValue, b'}' | b']') => return self.end(byte),
            _ => return Err(self.no_json()),
        };
        self.keep(byte)
    }

    fn no_json(&self) -> Malformed {
        Malformed::NoJson(self.seen_bytes)
    }

    fn is_in_object(&self) -> bool {
        self.open.last() == Some(&true)
    }

    /// Keeps what belongs to a key or to the id.
    fn keep(&mut self, byte: u8) -> Result<(), Malformed> {
        let is_of_value = matches!(
            self.state,
            State::Text | State::Escape | State::Hex(_) | State::Number(_) | State::Literal(_) | State::AfterValue
        );
        if self.is_in_key {
            if self.key.len() < KEY_BYTES_MAX {
                self.key.push(byte);
            }
        } else if self.is_in_id && is_of_value {
            if self.id.len() == ID_BYTES_MAX {
                return Err(Malformed::LongId);
            }
            self.id.push(byte);
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.open.len() == DEPTH_MAX {
            return Err(Malformed::TooDeep);
        }
        self.is_in_id = false;
        self.open.push(byte == b'{');
        self.state = if byte == b'{' { State::Key { or_end: true } } else { State::Value { or_end: true } };
        Ok(())
    }

    fn end(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.open.pop() != Some(byte == b'}') {
            return Err(self.no_json());
        }
        self.end_value();
        Ok(())
    }

    fn end_value(&mut self) {
        self.is_in_id = false;
        self.state = if self.open.is_empty() { State::End } else { State::AfterValue };
    }

    fn begin_key(&mut self) -> Result<(), Malformed> {
        self.is_in_key = true;
        self.key.clear();
        self.state = State::Text;
        self.keep(b'"')
    }

    fn end_text(&mut self, byte: u8) -> Result<(), Malformed> {
        self.keep(byte)?;
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
        self.state = State::Colon;
        Ok(())
    }

    fn scalar(&mut self, byte: u8) -> Result<(), Malformed> {
        self.state = match byte {
            b'"' => State::Text,
            b'-' => State::Number(Number::Minus),
            b'0' => State::Number(Number::Zero),
            b'1'..=b'9' => State::Number(Number::Whole),
            b't' => State::Literal(b"rue"),
            b'f' => State::Literal(b"alse"),
            b'n' => State::Literal(b"ull"),
            _ => return Err(self.no_json()),
        };
        self.keep(byte)
    }

    fn literal(&mut self, rest: &'static [u8], byte: u8) -> Result<(), Malformed> {
        match rest.split_first() {
            Some((expected, rest)) if *expected == byte => {
                self.keep(byte)?;
                if rest.is_empty() {
                    self.end_value();
                } else {
                    self.state = State::Literal(rest);
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

    fn scan<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Shape, Malformed> {
        let mut scanner = Scanner::new();
        for piece in pieces {
            scanner.push(piece)?;
        }
        scanner.finish()
    }

    fn shape(text: &str) -> Shape {
        scan([text.as_bytes()]).unwrap()
    }

    #[test]
    fn only_the_outermost_members_tell_the_sort_of_message() {
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
    fn what_is_no_message_is_refused() {
        let refused = |text: &[u8]| scan([text]).unwrap_err();
        assert_eq!(refused(b"<html>"), Malformed::NoJson(0));
        assert_eq!(refused(b"7"), Malformed::NoJson(0));
        assert_eq!(refused(b"{\"a\":01}"), Malformed::NoJson(6));
        assert_eq!(refused(b"{} {}"), Malformed::NoJson(3));
        assert_eq!(refused(b"{\"a\":[1,2}"), Malformed::NoJson(9));
        assert_eq!(refused(b""), Malformed::BreaksOff);
        assert_eq!(refused(b"{\"a\":"), Malformed::BreaksOff);
        assert_eq!(refused(b"{\"a\":\"\xff\"}"), Malformed::NoUtf8);
        assert_eq!(refused("[".repeat(DEPTH_MAX + 1).as_bytes()), Malformed::TooDeep);
        assert_eq!(refused(format!("{{\"id\":\"{}", "x".repeat(ID_BYTES_MAX)).as_bytes()), Malformed::LongId);
    }

    /// Pieces of JSON, which make a document often and nearly one most of the time.
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
        fn it_judges_as_a_reader_of_the_whole_does(text in nearly_json(), broken in any::<Option<(u8, u8)>>(), size in 1..9_usize) {
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
