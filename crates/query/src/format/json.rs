//! `json`: the rows with columns and statistics after them, `{"Query":[…],"columns":[…],"rows":2,…}`.

use std::fmt::Write as _;

use arrow::datatypes::SchemaRef;

use super::columns::field_type_name;
use super::mcp::JsonRows;
use super::value::{BoxedCell, write_json_string};
use super::writer::{Facts, Writer};

pub(crate) struct Json {
    rows: JsonRows,
    /// `[{"name":…,"type":…},…]`.
    columns: String,
}

/// The keys and the longest numbers after the columns.
const STATISTICS_BYTES_MAX: usize = 120;

impl Json {
    pub(crate) fn new(names: &[String], schema: &SchemaRef) -> Self {
        Self { rows: JsonRows::new(names), columns: columns(names, schema) }
    }

    pub(crate) fn flat(names: &[String], schema: &SchemaRef) -> Self {
        Self { rows: JsonRows::flat(), columns: columns(names, schema) }
    }
}

impl Json {
    /// The end of the rows and what stands after them, but for the last brace.
    fn statistics(&self, facts: Facts, out: &mut String) {
        let Facts { rows, elapsed, truncated } = facts;
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "],\"columns\":{},\"rows\":{rows},\"elapsed_ms\":{},\"truncated\":{truncated}",
            self.columns,
            elapsed.as_millis()
        );
    }
}

fn columns(names: &[String], schema: &SchemaRef) -> String {
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

impl Writer for Json {
    fn open(&self, out: &mut String) {
        out.push_str("{\"Query\":[");
    }

    fn row(&self, cells: &[BoxedCell<'_>], row: usize, index: u64, out: &mut String) {
        if index > 0 {
            out.push(',');
        }
        self.rows.write(cells, row, out);
    }

    fn close(&self, facts: Facts, out: &mut String) {
        self.statistics(facts, out);
        out.push('}');
    }

    fn fail(&self, facts: Facts, message: &str, out: &mut String) {
        self.statistics(facts, out);
        out.push_str(",\"error\":");
        write_json_string(message, out);
        out.push('}');
    }

    fn closing_bytes_max(&self) -> usize {
        self.columns.len() + STATISTICS_BYTES_MAX
    }
}
