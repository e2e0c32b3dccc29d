//! Reads JSON, with or without comments, without losing where in the text things stand.
//!
//! Comments are blanked out byte for byte, so that a strict parser checks the rest and every
//! offset into the blanked text is one into the original.

use std::ops::Range;

use serde_json::Value;

use super::catalog::ClientFileFormat;
use super::edit::{EditError, EditPosition};

/// A text that parsed.
pub(super) struct JsonText<'t> {
    pub(super) original: &'t str,
    pub(super) value: Value,
    plain: String,
    comments: Vec<Range<usize>>,
    trailing_commas: Vec<usize>,
}

/// One key of an object with its value.
pub(super) struct Member {
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
}

/// An object and what is in it.
pub(super) struct Object {
    /// From its opening bracket to behind its closing one.
    pub(super) span: Range<usize>,
    pub(super) members: Vec<Member>,
    /// The comma before the closing bracket, where there is one.
    pub(super) trailing_comma: Option<usize>,
}

impl<'t> JsonText<'t> {
    pub(super) fn parse(original: &'t str, format: ClientFileFormat) -> Result<Self, EditError> {
        let Blanking { plain, comments, trailing_commas, .. } =
            Blanking::of(original, format == ClientFileFormat::JsonWithComments)?;
        let value = serde_json::from_str(&plain).map_err(|error| {
            let position = EditPosition { line: error.line(), column: error.column().max(1) };
            // The parser ends its message with the place, which is told apart from it here.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default().to_owned();
            EditError::Syntax { position, message }
        })?;
        Ok(Self { original, value, plain, comments, trailing_commas })
    }

    /// The outermost value, if it is an object.
    pub(super) fn root(&self) -> Option<Object> {
        self.object_at(self.skip_space(0))
    }

    /// The object that begins at `start`, if one does.
    pub(super) fn object_at(&self, start: usize) -> Option<Object> {
        if self.byte(start) != Some(b'{') {
            return None;
        }
        let mut members = Vec::new();
        let mut at = self.skip_space(start + 1);
        while self.byte(at) == Some(b'"') {
            let key = at..self.skip_string(at);
            let colon = self.skip_space(key.end);
            let value_start = self.skip_space(colon + 1);
            let value = value_start..self.skip_value(value_start);
            at = self.skip_space(value.end);
            members.push(Member { key, value });
            if self.byte(at) == Some(b',') {
                at = self.skip_space(at + 1);
            }
        }
        let inside = members.last().map_or(start + 1, |last| last.value.end)..at;
        let trailing_comma = self.trailing_commas.iter().copied().find(|comma| inside.contains(comma));
        Some(Object { span: start..at + 1, members, trailing_comma })
    }

    /// The member that a parser takes for `key`: of several, the last.
    pub(super) fn find<'o>(&self, object: &'o Object, key: &str) -> Option<&'o Member> {
        object.members.iter().rev().find(|member| {
            let written = self.plain.get(member.key.clone()).unwrap_or_default();
            serde_json::from_str::<String>(written).is_ok_and(|decoded| decoded == key)
        })
    }

    pub(super) fn has_comment_in(&self, span: &Range<usize>) -> bool {
        self.last_comment_in(span).is_some()
    }

    /// Where the last comment inside `span` ends.
    pub(super) fn last_comment_in(&self, span: &Range<usize>) -> Option<usize> {
        let inside = |comment: &&Range<usize>| span.start <= comment.start && comment.end <= span.end;
        self.comments.iter().rfind(inside).map(|comment| comment.end)
    }

    /// Behind the comments that follow `at` on its line, for they belong to what stands before them.
    pub(super) fn behind_comments(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            let rest = self.original.get(end..).unwrap_or_default();
            let next = end + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
            match self.comments.iter().find(|comment| comment.start == next) {
                Some(comment) => end = comment.end,
                None => return end,
            }
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.plain.as_bytes().get(at).copied()
    }

    fn skip_space(&self, mut at: usize) -> usize {
        while self.byte(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            at += 1;
        }
        at
    }

    fn skip_string(&self, start: usize) -> usize {
        let mut at = start + 1;
        while let Some(byte) = self.byte(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        at
    }

    fn skip_value(&self, start: usize) -> usize {
        let mut at = start;
        let mut depth = 0_usize;
        while let Some(byte) = self.byte(at) {
            match byte {
                b'"' => {
                    at = self.skip_string(at);
                    if depth == 0 {
                        return at;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => return at,
                byte if depth == 0 && byte.is_ascii_whitespace() => return at,
                _ => {}
            }
            at += 1;
        }
        at
    }
}

/// The pass that replaces comments and trailing commas by spaces.
struct Blanking<'t> {
    text: &'t str,
    allowed: bool,
    plain: String,
    comments: Vec<Range<usize>>,
    trailing_commas: Vec<usize>,
    /// A comma behind which nothing but space and comments has come yet.
    open_comma: Option<usize>,
}

impl<'t> Blanking<'t> {
    fn of(text: &'t str, allowed: bool) -> Result<Self, EditError> {
        let plain = String::with_capacity(text.len());
        let mut pass =
            Self { text, allowed, plain, comments: Vec::new(), trailing_commas: Vec::new(), open_comma: None };
        let mut at = 0;
        while at < text.len() {
            at = pass.step(at)?;
        }
        Ok(pass)
    }

    /// Takes over what stands at `at` and says where it ends.
    fn step(&mut self, at: usize) -> Result<usize, EditError> {
        let rest = &self.text[at..];
        if rest.starts_with("//") || rest.starts_with("/*") {
            return self.comment(at);
        }
        let Some(first) = rest.chars().next() else { return Ok(self.text.len()) };
        let end = match first {
            '"' => at + string_length(rest),
            _ => at + first.len_utf8(),
        };
        match first {
            ',' => self.open_comma = Some(at),
            '}' | ']' => {
                if let Some(comma) = self.open_comma.take().filter(|_| self.allowed) {
                    self.plain.replace_range(comma..comma + 1, " ");
                    self.trailing_commas.push(comma);
                }
            }
            first if first.is_ascii_whitespace() => {}
            _ => self.open_comma = None,
        }
        self.plain.push_str(&self.text[at..end]);
        Ok(end)
    }

    fn comment(&mut self, at: usize) -> Result<usize, EditError> {
        let rest = &self.text[at..];
        let syntax = |message: &str| {
            let position = EditPosition::from_offset(self.text, at);
            Err(EditError::Syntax { position, message: message.to_owned() })
        };
        if !self.allowed {
            return syntax("a comment, which this file's format does not have");
        }
        let length = if rest.starts_with("//") {
            rest.find(['\r', '\n']).unwrap_or(rest.len())
        } else {
            match rest[2..].find("*/") {
                Some(inner) => inner + 4,
                None => return syntax("a comment that does not end"),
            }
        };
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        self.plain.extend(rest[..length].bytes().map(|byte| if is_line_end(&byte) { char::from(byte) } else { ' ' }));
        self.comments.push(at..at + length);
        Ok(at + length)
    }
}

/// How many bytes the string literal at the start of `rest` takes, its quotes included.
fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
