//! Reads JSON from its text, value by value, with the parser jiter. Numbers stay text, so that nothing is rounded.

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};

/// The position in the text of one record.
#[derive(Debug)]
pub struct JsonCursor<'a> {
    text: &'a str,
    parser: Jiter<'a>,
}

/// What a value is, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number,
    /// A text.
    String,
    /// A list of values.
    Array,
    /// Members with names.
    Object,
}

/// The text is not JSON: what is wrong, at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonSyntaxError {
    /// What is wrong.
    pub reason: &'static str,
    /// The byte, from 0.
    pub position: usize,
}

impl From<JiterError> for JsonSyntaxError {
    fn from(error: JiterError) -> Self {
        use JsonErrorType::*;
        let reason = match &error.error_type {
            JiterErrorType::JsonError(kind) => match kind {
                EofWhileParsingValue => "the text ends where a value is expected",
                EofWhileParsingList | ExpectedListCommaOrEnd => "an array needs a comma or its end here",
                EofWhileParsingObject | ExpectedObjectCommaOrEnd => "an object needs a comma or its end here",
                KeyMustBeAString => "an object needs the name of a member here, in quotes",
                ExpectedColon => "a member needs a colon after its name",
                TrailingComma => "an array or object has a comma before its end",
                TrailingCharacters => "there is more text after the value",
                EofWhileParsingString => "a string is not closed",
                ControlCharacterWhileParsingString => "a string has a control character without escape",
                InvalidEscape => "a string has an escape that JSON does not have",
                LoneLeadingSurrogateInHexEscape | UnexpectedEndOfHexEscape => {
                    "a string has half of a pair of \\u escapes, which is no character"
                }
                InvalidNumber => "a number does not have the form of JSON",
                NumberOutOfRange => "a number has more than 4,300 digits before its point",
                RecursionLimitExceeded => "values are nested more than 200 levels deep",
                _ => "a value is expected",
            },
            JiterErrorType::WrongType { .. } => "a value is expected",
        };
        Self { reason, position: error.index }
    }
}

type JsonResult<T> = Result<T, JsonSyntaxError>;

impl<'a> JsonCursor<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, parser: Jiter::new(text.as_bytes()) }
    }

    /// Checks that nothing but blanks follows.
    ///
    /// # Errors
    /// If there is more text.
    pub fn expect_end(&mut self) -> JsonResult<()> {
        Ok(self.parser.finish()?)
    }

    /// The kind of the next value. Words are taken, the rest is not.
    #[inline]
    pub fn kind(&mut self) -> JsonResult<JsonKind> {
        let first = self.parser.peek()?;
        let no_value = JsonSyntaxError { reason: "a value is expected", position: self.parser.current_index() };
        match first {
            Peek::String => Ok(JsonKind::String),
            Peek::Object => Ok(JsonKind::Object),
            Peek::Array => Ok(JsonKind::Array),
            Peek::True | Peek::False => self.parser.known_bool(first).map(JsonKind::Boolean).map_err(|_| no_value),
            Peek::Null => self.parser.known_null().map(|()| JsonKind::Null).map_err(|_| no_value),
            _ if matches!(first.into_inner(), b'-' | b'0'..=b'9') => Ok(JsonKind::Number),
            _ => Err(no_value),
        }
    }

    /// The text of a number, which [`Self::kind`] has seen.
    #[inline]
    pub fn number(&mut self) -> JsonResult<&'a str> {
        let first = self.parser.peek()?;
        let start = self.parser.current_index();
        self.parser.known_number_bytes(first)?;
        Ok(self.text_since(start))
    }

    /// The text of a string, which [`Self::kind`] has seen, without escapes.
    #[inline]
    pub fn string(&mut self) -> JsonResult<&str> {
        Ok(self.parser.known_str()?)
    }

    /// The text of the next value as it is written, checked to be JSON.
    pub fn raw_value(&mut self) -> JsonResult<&'a str> {
        let first = self.parser.peek()?;
        let start = self.parser.current_index();
        self.parser.known_skip(first)?;
        Ok(self.text_since(start))
    }

    fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.parser.current_index()).unwrap_or_default()
    }

    /// Moves to the next item of an array, and returns whether there is one. `is_first` is true until the first call, before
    /// which [`Self::kind`] has seen the array.
    #[inline]
    pub fn next_item(&mut self, is_first: &mut bool) -> JsonResult<bool> {
        let item = if std::mem::take(is_first) { self.parser.known_array()? } else { self.parser.array_step()? };
        Ok(item.is_some())
    }

    /// Moves to the value of the next member of an object, and returns its name. `is_first` is that of [`Self::next_item`].
    #[inline]
    pub fn next_name(&mut self, is_first: &mut bool) -> JsonResult<Option<&str>> {
        let name = if std::mem::take(is_first) { self.parser.known_object() } else { self.parser.next_key() };
        Ok(name?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Result<&str, JsonSyntaxError> {
        let mut cursor = JsonCursor::new(text);
        let value = cursor.raw_value()?;
        cursor.expect_end()?;
        Ok(value)
    }

    #[test]
    fn accepts_what_another_parser_accepts() {
        let texts = [
            "1",
            " [1, 2,3 ] ",
            "{}",
            "[]",
            "{\"a\":[{}],\"b\":null}",
            "\"a\\n\\u00e4\\ud83d\\ude00\"",
            "tru",
            "truex",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "1.",
            "-",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\n\"",
            "\"open",
            "[1 2]",
            "{\"a\" 1}",
            "{,}",
            "[,]",
            "",
            "nul",
            "1 2",
            "\"\\ud800\\u0041\"",
        ];
        for text in texts {
            let expected = serde_json::from_str::<serde_json::Value>(text);
            assert_eq!(raw(text).is_ok(), expected.is_ok(), "{text}: {:?}", raw(text));
        }
    }

    #[test]
    fn escapes_are_replaced() {
        let mut cursor = JsonCursor::new(r#""a\"\\\/\b\f\n\r\té😀\u0000z""#);
        assert_eq!(cursor.string(), Ok("a\"\\/\u{8}\u{c}\n\r\té😀\0z"));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + "1" + &"]".repeat(depth);
        assert!(raw(&nested(200)).is_ok());
        assert_eq!(raw(&nested(201)).unwrap_err().reason, "values are nested more than 200 levels deep");
        assert!(raw(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn what_is_wrong_has_its_position() {
        let table = [
            ("nul", "the text ends where a value is expected", 3),
            ("[1,]", "an array or object has a comma before its end", 3),
            ("{\"a\" 1}", "a member needs a colon after its name", 5),
            ("{\"a\":01}", "a number does not have the form of JSON", 6),
            ("[\"\\udc00\"]", "a string has half of a pair of \\u escapes, which is no character", 7),
            ("{\"a\":1}}", "there is more text after the value", 7),
        ];
        for (text, reason, position) in table {
            let mut cursor = JsonCursor::new(text);
            let error = cursor.raw_value().and_then(|_| cursor.expect_end()).unwrap_err();
            assert_eq!(error, JsonSyntaxError { reason, position }, "{text}");
        }
        let digits = "9".repeat(5_000);
        assert_eq!(raw(&digits).unwrap_err().reason, "a number has more than 4,300 digits before its point");
    }
}
