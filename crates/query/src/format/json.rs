//! `json`: the rows with columns and statistics after them, `{"Query":[…],"columns":[…],"rows":2,…}`.

use std::fmt::Write as _;

use arrow::datatypes::SchemaRef;

use super::columns::field_type_name;
use super::mcp::JsonRows;
use super::row_writer::{AnswerStatistics, RowWriter};
use super::value::{BoxedCells, write_json_string};
use crate::missing_nodes::json_members_of_schema;

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

impl RowWriter for JsonWriter {
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
