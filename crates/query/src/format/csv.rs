//! `csv`: RFC 4180, with a header line. Null is an empty field, empty text is `""`.

use super::value::BoxedCell;
use super::writer::{Facts, Writer};

const LINE_END: &str = "\r\n";

pub(crate) struct Csv {
    names: Vec<String>,
}

impl Csv {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { names }
    }
}

impl Writer for Csv {
    fn open(&self, out: &mut String) {
        for (index, name) in self.names.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            let start = out.len();
            out.push_str(name);
            quote(start, out);
        }
        out.push_str(LINE_END);
    }

    fn row(&self, cells: &[BoxedCell<'_>], row: usize, _index: u64, out: &mut String) {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if cell.is_null(row) {
                continue;
            }
            let start = out.len();
            cell.text(row, out);
            if !cell.is_bare(row) {
                quote(start, out);
            }
        }
        out.push_str(LINE_END);
    }

    fn close(&self, _facts: Facts, _out: &mut String) {}

    fn closing_bytes_max(&self) -> usize {
        0
    }
}

/// Quotes the field that begins at `start`, if it must be.
pub(crate) fn quote(start: usize, out: &mut String) {
    let field = &out[start..];
    let must = field.is_empty()
        || field.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n'))
        || field.starts_with([' ', '\t'])
        || field.ends_with([' ', '\t']);
    if !must {
        return;
    }
    if field.contains('"') {
        let doubled = field.replace('"', "\"\"");
        out.truncate(start);
        out.push_str(&doubled);
    }
    out.insert(start, '"');
    out.push('"');
}
