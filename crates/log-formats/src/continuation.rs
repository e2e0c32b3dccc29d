//! Which lines continue the entry before them.

use crate::format::LogFormat;
use crate::parse::cri::LineHead;
use crate::parse::{apache_error, klog, logfmt, nginx_error, postgres_csv, postgres_text, syslog};

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
            LogFormat::PostgresCsv => postgres_csv::begins_entry(line),
            LogFormat::PostgresText => postgres_text::begins_entry(line),
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
