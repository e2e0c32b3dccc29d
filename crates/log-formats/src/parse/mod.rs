//! One parser per format: from the text of an entry to its values.

pub(crate) mod access;
pub(crate) mod apache_error;
pub(crate) mod cri;
pub(crate) mod haproxy;
pub(crate) mod json;
pub(crate) mod json_text;
pub(crate) mod klog;
pub(crate) mod logfmt;
pub(crate) mod nginx_error;
pub(crate) mod postgres_csv;
pub(crate) mod postgres_json;
pub(crate) mod postgres_text;
pub(crate) mod quoted;
pub(crate) mod scanner;
pub(crate) mod structured_data;
pub(crate) mod syslog;

use crate::defect::Misfit;
use crate::entry::EntryFields;
use crate::format::LogFormat;
use crate::time::TimeResolver;

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
        LogFormat::PostgresCsv => postgres_csv::parse(text.whole, times, fields),
        LogFormat::PostgresJson => postgres_json::parse(text.first_line, times, fields),
        LogFormat::PostgresText => postgres_text::parse(text, times, fields),
        LogFormat::Pattern(pattern) => pattern.parse(text, times, fields),
    }
}
