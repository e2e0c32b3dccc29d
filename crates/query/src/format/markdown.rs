//! `markdown`: a table of GitHub's Markdown. Null is `NULL`.

use arrow::datatypes::SchemaRef;

use super::columns::is_number;
use super::value::BoxedCell;
use super::writer::{Facts, Writer};

pub(crate) struct Markdown {
    /// The header line and the line of dashes.
    header: String,
}

impl Markdown {
    pub(crate) fn new(names: Vec<String>, schema: &SchemaRef) -> Self {
        let mut header = String::from("|");
        for name in &names {
            header.push(' ');
            escape(name, &mut header);
            header.push_str(" |");
        }
        header.push_str("\n|");
        for field in schema.fields() {
            header.push_str(if is_number(field) { " ---: |" } else { " --- |" });
        }
        header.push('\n');
        Self { header }
    }
}

impl Writer for Markdown {
    fn open(&self, out: &mut String) {
        out.push_str(&self.header);
    }

    fn row(&self, cells: &[BoxedCell<'_>], row: usize, _index: u64, out: &mut String) {
        out.push('|');
        for cell in cells {
            out.push(' ');
            if cell.is_null(row) {
                out.push_str("NULL");
            } else if cell.is_bare(row) {
                cell.text(row, out);
            } else {
                let start = out.len();
                cell.text(row, out);
                escape_from(start, out);
            }
            out.push_str(" |");
        }
        out.push('\n');
    }

    fn close(&self, _facts: Facts, _out: &mut String) {}

    fn note(&self, line: &str, out: &mut String) {
        // Without an empty line it would be one more row.
        out.push('\n');
        out.push_str(line);
        out.push('\n');
    }

    fn closing_bytes_max(&self) -> usize {
        0
    }
}

fn escape_from(start: usize, out: &mut String) {
    if out[start..].contains(['|', '\n', '\r']) {
        let raw = out.split_off(start);
        escape(&raw, out);
    }
}

/// Writes `text` so that it stays one cell.
fn escape(text: &str, out: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '|' => out.push_str("\\|"),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\n' => out.push_str("<br>"),
            character => out.push(character),
        }
    }
}
