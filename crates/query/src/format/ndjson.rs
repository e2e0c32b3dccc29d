//! `ndjson`: one JSON object a line.

use super::mcp::JsonRows;
use super::value::{BoxedCell, write_json_string};
use super::writer::{Facts, Writer};

pub(crate) struct Ndjson {
    rows: JsonRows,
}

impl Ndjson {
    pub(crate) fn new(names: &[String]) -> Self {
        Self { rows: JsonRows::new(names) }
    }

    pub(crate) fn flat() -> Self {
        Self { rows: JsonRows::flat() }
    }
}

impl Writer for Ndjson {
    fn open(&self, _out: &mut String) {}

    fn row(&self, cells: &[BoxedCell<'_>], row: usize, _index: u64, out: &mut String) {
        self.rows.write(cells, row, out);
        out.push('\n');
    }

    fn close(&self, _facts: Facts, _out: &mut String) {}

    fn fail(&self, _facts: Facts, message: &str, out: &mut String) {
        out.push_str("{\"error\":");
        write_json_string(message, out);
        out.push_str("}\n");
    }

    fn closing_bytes_max(&self) -> usize {
        0
    }
}
