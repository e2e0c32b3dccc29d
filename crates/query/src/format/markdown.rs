//! `markdown`: a table of GitHub's Markdown. Null is `NULL`.

use arrow::datatypes::SchemaRef;

use super::columns::is_number;
use super::row_writer::RowWriter;
use super::value::BoxedCells;

pub(crate) struct MarkdownWriter {
    header: String,
}

impl MarkdownWriter {
    pub(crate) fn new(names: Vec<String>, schema: &SchemaRef) -> Self {
        let mut header = String::from("|");
        for name in &names {
            header.push(' ');
            escape_cell(name, &mut header);
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

impl RowWriter for MarkdownWriter {
    fn write_header(&self, out: &mut String) {
        out.push_str(&self.header);
    }

    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        out.push('|');
        for cell in cells {
            out.push(' ');
            if cell.is_null(row) {
                out.push_str("NULL");
            } else if cell.is_plain_json(row) {
                cell.append_text(row, out);
            } else {
                let start = out.len();
                cell.append_text(row, out);
                escape_cell_from(start, out);
            }
            out.push_str(" |");
        }
        out.push('\n');
    }

    fn write_note(&self, line: &str, out: &mut String) {
        // Without an empty line it would be one more row.
        out.push('\n');
        out.push_str(line);
        out.push('\n');
    }
}

fn escape_cell_from(start: usize, out: &mut String) {
    if out[start..].contains(['|', '\n', '\r']) {
        let raw = out.split_off(start);
        escape_cell(&raw, out);
    }
}

fn escape_cell(text: &str, out: &mut String) {
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
