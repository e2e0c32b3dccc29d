//! The formats of JSON: `json`, the rows with columns and statistics after them
//! (`{"Query":[…],"columns":[…],"rows":2,…}`); `mcp`, bare rows (`[{…},{…}]`); `ndjson`, one JSON object per line.

use std::fmt::Write as _;

use arrow::datatypes::SchemaRef;

use super::columns::{field_type_name, json_members_of_schema};
use super::value::{BoxedCells, write_json, write_json_string};
use super::{AnswerStatistics, FormatWriter};

pub(crate) struct JsonWriter {
    rows: JsonRows,
    /// `[{"name":…,"type":…},…]`.
    columns: String,
    /// The members about missing nodes.
    missing: String,
}

const STATISTICS_BYTES_MAX: usize = 120;

impl JsonWriter {
    pub(crate) fn new(rows: JsonRows, names: &[String], schema: &SchemaRef) -> Self {
        Self { rows, columns: columns_json(names, schema), missing: json_members_of_schema(schema) }
    }

    /// Writes the end of the rows and the statistics, without the last brace.
    fn write_statistics(&self, statistics: AnswerStatistics, out: &mut String) {
        let AnswerStatistics { rows, elapsed, truncated } = statistics;
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "],\"columns\":{},\"rows\":{rows},\"elapsed_ms\":{},\"truncated\":{truncated}{}",
            self.columns,
            elapsed.as_millis(),
            self.missing
        );
    }
}

fn columns_json(names: &[String], schema: &SchemaRef) -> String {
    let mut out = String::from("[");
    for (index, (name, field)) in names.iter().zip(schema.fields()).enumerate() {
        out.push_str(if index == 0 { "{\"name\":" } else { ",{\"name\":" });
        write_json_string(name, &mut out);
        out.push_str(",\"type\":");
        write_json_string(&field_type_name(field), &mut out);
        out.push('}');
    }
    out.push(']');
    out
}

impl FormatWriter for JsonWriter {
    fn write_header(&self, out: &mut String) {
        out.push_str("{\"Query\":[");
    }

    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, index: u64, out: &mut String) {
        if index > 0 {
            out.push(',');
        }
        self.rows.write_row(cells, row, out);
    }

    fn write_footer(&self, statistics: AnswerStatistics, out: &mut String) {
        self.write_statistics(statistics, out);
        out.push('}');
    }

    fn write_failure(&self, statistics: AnswerStatistics, message: &str, out: &mut String) {
        self.write_statistics(statistics, out);
        out.push_str(",\"error\":");
        write_json_string(message, out);
        out.push('}');
    }

    fn closing_bytes_max(&self) -> usize {
        self.columns.len() + self.missing.len() + STATISTICS_BYTES_MAX
    }
}

pub(crate) struct McpWriter(pub(crate) JsonRows);

impl FormatWriter for McpWriter {
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

pub(crate) struct NdjsonWriter(pub(crate) JsonRows);

impl FormatWriter for NdjsonWriter {
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        self.0.write_row(cells, row, out);
        out.push('\n');
    }

    fn write_failure(&self, _statistics: AnswerStatistics, message: &str, out: &mut String) {
        out.push_str("{\"error\":");
        write_json_string(message, out);
        out.push_str("}\n");
    }
}
