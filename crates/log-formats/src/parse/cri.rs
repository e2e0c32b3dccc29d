//! The logs of containers as Kubernetes stores them (CRI): each line of a program has a time, its stream, and whether it
//! is a part of a longer line (`P`) or complete (`F`).

use super::{EntryText, declare_columns};
use crate::entry::{EntryFields, Misfit, Slot};
use crate::time::{Cursor, TimeResolver};

declare_columns! {
    COLUMNS:
    TIME "time" Timestamp Time,
    STREAM "stream" Text Field,
    MESSAGE "message" Text Message,
}

/// The shortest and the longest time: `2016-10-06T00:17:09Z` and `2016-10-06T00:17:09.669794202+00:00`.
const TIME_BYTES: std::ops::RangeInclusive<usize> = 20..=35;
const STREAMS: [&[u8]; 2] = [b"stdout", b"stderr"];
const STREAM_BYTES: usize = 6;

/// What is before the text of a program in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineHead {
    stream: (usize, usize),
    /// Whether the stream is that of errors.
    pub(crate) is_error_stream: bool,
    /// Whether the next line of the stream continues the line of the program.
    pub(crate) is_partial: bool,
    /// Where the text of the program begins.
    pub(crate) text: usize,
}

impl LineHead {
    /// `2016-10-06T00:17:09.669794202Z stdout F `.
    pub(crate) fn find(line: &[u8]) -> Option<Self> {
        let time_bytes = memchr::memchr(b' ', line.get(..line.len().min(TIME_BYTES.end() + 1))?)?;
        let is_time = TIME_BYTES.contains(&time_bytes) && line.get(4) == Some(&b'-') && line.get(10) == Some(&b'T');
        if !is_time {
            return None;
        }
        let start = time_bytes + 1;
        let rest = line.get(start..)?;
        let stream = STREAMS.iter().position(|stream| rest.starts_with(stream))?;
        let end = start + STREAM_BYTES;
        let tags = line.get(end..)?.strip_prefix(b" ")?;
        let is_partial = match tags.first()? {
            b'F' => false,
            b'P' => true,
            _ => return None,
        };
        // Further tags are separated by colons.
        let tag_bytes = memchr::memchr(b' ', tags).unwrap_or(tags.len());
        if !matches!(tags.get(1), None | Some(b' ' | b':')) {
            return None;
        }
        let text = (end + 1 + tag_bytes + 1).min(line.len());
        Some(Self { stream: (start, end), is_error_stream: stream == 1, is_partial, text })
    }
}

pub(crate) fn parse(text: EntryText<'_>, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let line = text.first_line;
    let head = LineHead::find(line.as_bytes());
    let head = head.ok_or(Misfit::expected("a time, stdout or stderr, and F or P", 0))?;
    let mut cursor = Cursor::new(line.as_bytes());
    let time = times.iso_time(&mut cursor).filter(|_| cursor.position() + 1 == head.stream.0);
    let time = time.ok_or(Misfit::expected("a time such as 2016-10-06T00:17:09.669794202Z", 0))?;
    fields.set(TIME, Slot::Timestamp(time));
    fields.set_text(STREAM, head.stream.0, head.stream.1);
    if line.len() == text.whole.len() {
        fields.set_text(MESSAGE, head.text, line.len());
    } else {
        let message = fields.write_scratch(|scratch| join_lines(text.whole, scratch));
        fields.set(MESSAGE, Slot::Text(message));
    }
    Ok(())
}

/// Writes the texts of the program without what is before them. The parts of a line are joined.
fn join_lines(whole: &str, out: &mut String) {
    let mut is_partial = true;
    for line in whole.lines() {
        if !is_partial {
            out.push('\n');
        }
        let head = LineHead::find(line.as_bytes());
        out.push_str(line.get(head.map_or(0, |head| head.text)..).unwrap_or_default());
        is_partial = head.is_some_and(|head| head.is_partial);
    }
}
