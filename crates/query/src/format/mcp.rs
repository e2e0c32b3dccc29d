//! `mcp`: bare rows, `[{…},{…}]`.

use super::value::{BoxedCell, write_json, write_json_string};
use super::writer::{Facts, Writer};

pub(crate) struct Mcp {
    rows: JsonRows,
}

impl Mcp {
    pub(crate) fn new(names: &[String]) -> Self {
        Self { rows: JsonRows::new(names) }
    }

    pub(crate) fn flat() -> Self {
        Self { rows: JsonRows::flat() }
    }
}

impl Writer for Mcp {
    fn open(&self, out: &mut String) {
        out.push('[');
    }

    fn row(&self, cells: &[BoxedCell<'_>], row: usize, index: u64, out: &mut String) {
        if index > 0 {
            out.push(',');
        }
        self.rows.write(cells, row, out);
    }

    fn close(&self, _facts: Facts, out: &mut String) {
        out.push(']');
    }

    fn closing_bytes_max(&self) -> usize {
        1
    }
}

/// Rows as JSON objects, or as single values.
pub(crate) struct JsonRows {
    /// What stands before each value: `{"a":`, then `,"b":`, …
    keys: Option<Vec<String>>,
}

impl JsonRows {
    pub(crate) fn new(names: &[String]) -> Self {
        let key = |(index, name): (usize, &String)| {
            let mut key = String::from(if index == 0 { "{" } else { "," });
            write_json_string(name, &mut key);
            key.push(':');
            key
        };
        Self { keys: Some(names.iter().enumerate().map(key).collect()) }
    }

    pub(crate) fn flat() -> Self {
        Self { keys: None }
    }

    pub(crate) fn write(&self, cells: &[BoxedCell<'_>], row: usize, out: &mut String) {
        match &self.keys {
            None => {
                if let Some(cell) = cells.first() {
                    write_json(cell.as_ref(), row, out);
                }
            }
            Some(keys) if keys.is_empty() => out.push_str("{}"),
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
