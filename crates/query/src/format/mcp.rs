//! `mcp`: bare rows, `[{…},{…}]`.

use super::row_writer::{AnswerStatistics, RowWriter};
use super::value::{BoxedCells, write_json, write_json_string};

pub(crate) struct McpWriter(pub(crate) JsonRows);

impl RowWriter for McpWriter {
    fn write_header(&self, out: &mut String) {
        out.push('[');
    }

    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, index: u64, out: &mut String) {
        if index > 0 {
            out.push(',');
        }
        self.0.write_row(cells, row, out);
    }

    fn write_footer(&self, _statistics: AnswerStatistics, out: &mut String) {
        out.push(']');
    }

    fn closing_bytes_max(&self) -> usize {
        1
    }
}

/// Rows as JSON objects, or as single values.
pub(crate) struct JsonRows {
    /// The text before each value: `{"a":`, then `,"b":`, …
    keys: Option<Vec<String>>,
    /// Whether members that are null are left out.
    omits_nulls: bool,
}

impl JsonRows {
    pub(crate) fn new(names: &[String]) -> Self {
        let key = |(index, name): (usize, &String)| {
            let mut key = String::from(if index == 0 { "{" } else { "," });
            write_json_string(name, &mut key);
            key.push(':');
            key
        };
        Self { keys: Some(names.iter().enumerate().map(key).collect()), omits_nulls: false }
    }

    pub(crate) fn new_list() -> Self {
        Self { keys: None, omits_nulls: false }
    }

    pub(crate) fn without_nulls(self) -> Self {
        Self { omits_nulls: true, ..self }
    }

    pub(crate) fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, out: &mut String) {
        match &self.keys {
            None => {
                if let Some(cell) = cells.first() {
                    write_json(cell.as_ref(), row, out);
                }
            }
            Some(keys) if keys.is_empty() => out.push_str("{}"),
            Some(keys) if self.omits_nulls => {
                let mut begin = "{";
                for (key, cell) in keys.iter().zip(cells).filter(|(_, cell)| !cell.is_null(row)) {
                    out.push_str(begin);
                    // Without the character that divides it from another member.
                    out.push_str(key.get(1..).unwrap_or_default());
                    cell.append_json(row, out);
                    begin = ",";
                }
                out.push_str(if begin == "{" { "{}" } else { "}" });
            }
            Some(keys) => {
                for (key, cell) in keys.iter().zip(cells) {
                    out.push_str(key);
                    write_json(cell.as_ref(), row, out);
                }
                out.push('}');
            }
        }
    }
}
