//! One parser per format: from the text of an entry to its values, and which lines continue the entry before them.

pub(crate) mod access;
pub(crate) mod apache_error;
pub(crate) mod cri;
pub(crate) mod haproxy;
pub(crate) mod json;
pub(crate) mod klog;
pub(crate) mod logfmt;
pub(crate) mod nginx_error;
pub(crate) mod postgres;
pub(crate) mod scanner;
pub(crate) mod syslog;

use crate::entry::{EntryFields, Misfit};
use crate::format::LogFormat;
use crate::time::TimeResolver;
use cri::LineHead;

/// Declares the columns of a format: the constant with the index of each, or `_`; its name, its type and its role.
macro_rules! declare_columns {
    (@index $next:expr, _ $($rest:tt)*) => {
        declare_columns!(@index $next + 1, $($rest)*);
    };
    (@index $next:expr, $index:ident $($rest:tt)*) => {
        const $index: usize = $next;
        declare_columns!(@index $next + 1, $($rest)*);
    };
    (@index $next:expr,) => {};
    ($columns:ident: $($index:tt $name:literal $type:ident $role:ident,)+) => {
        declare_columns!(@index 0, $($index)+);
        pub(crate) const $columns: &[$crate::column::FixedColumn] =
            &[$(($name, $crate::column::EntryColumnType::$type, $crate::column::EntryColumnRole::$role)),+];
    };
}
use declare_columns;

/// An entry before its values are found.
#[derive(Clone, Copy)]
pub(crate) struct EntryText<'a> {
    /// All lines, without the last line break.
    pub(crate) whole: &'a str,
    /// The first line, without its line break.
    pub(crate) first_line: &'a str,
}

impl<'a> EntryText<'a> {
    pub(crate) fn new(whole: &'a str) -> Self {
        let end = memchr::memchr(b'\n', whole.as_bytes()).unwrap_or(whole.len());
        let line = whole.get(..end).unwrap_or(whole);
        // At the end of the whole text, the line break was removed with its carriage return.
        let line = if end < whole.len() { line.strip_suffix('\r').unwrap_or(line) } else { line };
        Self { whole, first_line: line }
    }

    /// The end of the last field of the first line, which includes the lines after it.
    pub(crate) fn end_of_message(&self) -> usize {
        self.whole.len()
    }
}

/// Finds the values of an entry. What it found before a misfit is to be ignored.
pub(crate) fn parse_entry(
    format: &LogFormat,
    text: EntryText<'_>,
    times: &mut TimeResolver,
    fields: &mut EntryFields,
) -> Result<(), Misfit> {
    match format {
        LogFormat::Common => access::parse(text.first_line, false, times, fields),
        LogFormat::Combined => access::parse(text.first_line, true, times, fields),
        LogFormat::NginxError => nginx_error::parse(text, times, fields),
        LogFormat::ApacheError => apache_error::parse(text, times, fields),
        LogFormat::Haproxy => haproxy::parse(text, times, fields),
        LogFormat::Cri => cri::parse(text, times, fields),
        LogFormat::Klog => klog::parse(text, times, fields),
        LogFormat::Syslog => syslog::parse(text, times, fields),
        LogFormat::Logfmt => logfmt::parse(text.first_line, fields),
        LogFormat::Json => json::parse(text.first_line, fields),
        LogFormat::PostgresCsv => postgres::parse_csv(text.whole, times, fields),
        LogFormat::PostgresJson => postgres::parse_json(text.first_line, times, fields),
        LogFormat::PostgresText => postgres::parse_text(text, times, fields),
        LogFormat::Pattern(pattern) => pattern.parse(text, times, fields),
    }
}

/// Beginnings of lines of stack traces.
const TRACE_BEGINNINGS: [&[u8]; 7] = [
    b" ",
    b"\t",
    b"Caused by",
    b"Suppressed: ",
    b"... ",
    b"During handling of the above exception",
    b"The above exception was the direct cause",
];
/// The beginning of a trace of Python, which ends with the first line after it that is not indented.
const TRACEBACK: &[u8] = b"Traceback (most recent call last)";

/// What a line is for the entry before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Nothing but white space.
    Blank,
    /// The beginning of an entry.
    Head,
    /// A line of a stack trace, which continues any entry.
    Trace,
    /// The beginning of a trace of Python.
    Traceback,
    /// Anything else.
    Other,
}

impl LineKind {
    /// The kind of a line without its line break.
    pub(crate) fn of_line(format: &LogFormat, line: &[u8]) -> Self {
        // A file that was truncated while its writer kept its position begins with NUL bytes.
        let line = line.trim_ascii_end();
        let zeros = line.iter().take_while(|byte| **byte == 0).count();
        let line = line.get(zeros..).unwrap_or_default();
        if line.is_empty() {
            return Self::Blank;
        }
        let is_head = match format {
            LogFormat::Common | LogFormat::Combined | LogFormat::Haproxy => true,
            LogFormat::NginxError => nginx_error::begins_entry(line),
            LogFormat::ApacheError => apache_error::begins_entry(line),
            LogFormat::Klog => klog::begins_entry(line),
            LogFormat::Cri => {
                // The line of a program is in the line of its container.
                let Some(head) = LineHead::find(line) else { return Self::of_trace(line).unwrap_or(Self::Other) };
                return Self::of_trace(line.get(head.text..).unwrap_or_default()).unwrap_or(Self::Head);
            }
            LogFormat::Syslog => syslog::begins_entry(line),
            LogFormat::Logfmt => logfmt::begins_with_pair(line),
            LogFormat::Json | LogFormat::PostgresJson => line.trim_ascii_start().starts_with(b"{"),
            LogFormat::PostgresCsv => postgres::begins_csv_entry(line),
            LogFormat::PostgresText => postgres::begins_text_entry(line),
            LogFormat::Pattern(pattern) => pattern.matches(line),
        };
        if is_head { Self::Head } else { Self::of_trace(line).unwrap_or(Self::Other) }
    }

    /// The kind of a line of a stack trace.
    fn of_trace(line: &[u8]) -> Option<Self> {
        if line.starts_with(TRACEBACK) {
            Some(Self::Traceback)
        } else {
            TRACE_BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)).then_some(Self::Trace)
        }
    }
}
