//! `csv`: RFC 4180, with a header line. Null is an empty field, empty text is `""`.

use super::row_writer::RowWriter;
use super::value::BoxedCells;

const LINE_END: &str = "\r\n";

/// Has the names of the columns.
pub(crate) struct CsvWriter(pub(crate) Vec<String>);

impl RowWriter for CsvWriter {
    fn write_header(&self, out: &mut String) {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            let start = out.len();
            out.push_str(name);
            quote_field(start, out);
        }
        out.push_str(LINE_END);
    }

    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if cell.is_null(row) {
                continue;
            }
            let start = out.len();
            cell.append_text(row, out);
            if !cell.is_plain_json(row) {
                quote_field(start, out);
            }
        }
        out.push_str(LINE_END);
    }
}

/// Quotes the field that begins at `start`, if necessary.
pub(crate) fn quote_field(start: usize, out: &mut String) {
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
