//! The cells of a column: how its values are written as text and as JSON.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::util::display::array_value_to_string;

use super::escape::{write_json_string, write_on_one_line};

pub(crate) trait ColumnCells: Send + Sync {
    fn is_null(&self, row: usize) -> bool;

    fn append_json(&self, row: usize, out: &mut String);

    /// Writes a value that is not null as bare text; lists and objects as JSON.
    fn append_text(&self, row: usize, out: &mut String) {
        self.append_json(row, out);
    }

    /// Whether the value's text and its JSON are the same: numbers and booleans.
    fn is_plain_json(&self, _row: usize) -> bool {
        false
    }
}

pub(crate) type BoxedCells<'a> = Box<dyn ColumnCells + 'a>;

pub(crate) fn write_json(cell: &dyn ColumnCells, row: usize, out: &mut String) {
    if cell.is_null(row) {
        out.push_str("null");
    } else {
        cell.append_json(row, out);
    }
}

/// Writes a value as text of one line for people, null as `NULL`.
pub(crate) fn write_single_line(cell: &dyn ColumnCells, row: usize, out: &mut String) {
    if cell.is_null(row) {
        out.push_str("NULL");
        return;
    }
    let start = out.len();
    cell.append_text(row, out);
    if !cell.is_plain_json(row) && out[start..].contains(char::is_control) {
        let raw = out.split_off(start);
        write_on_one_line(&raw, out);
    }
}

/// How a value's text becomes JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// The text is valid JSON.
    None,
    /// In quotes; nothing in it needs an escape.
    Around,
}

/// Cells whose text a function writes.
pub(super) struct FnCells<'a, A, F> {
    pub(super) array: &'a A,
    pub(super) quotes: Quotes,
    pub(super) write: F,
}

impl<A: Array, F: Fn(&A, usize, &mut String) + Send + Sync> ColumnCells for FnCells<'_, A, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
        match self.quotes {
            Quotes::None => (self.write)(self.array, row, out),
            Quotes::Around => {
                out.push('"');
                (self.write)(self.array, row, out);
                out.push('"');
            }
        }
    }

    fn append_text(&self, row: usize, out: &mut String) {
        (self.write)(self.array, row, out);
    }

    fn is_plain_json(&self, _row: usize) -> bool {
        self.quotes == Quotes::None
    }
}

pub(super) struct NullCells;

impl ColumnCells for NullCells {
    fn is_null(&self, _row: usize) -> bool {
        true
    }

    fn append_json(&self, _row: usize, out: &mut String) {
        out.push_str("null");
    }

    fn append_text(&self, _row: usize, _out: &mut String) {}
}

/// Cells whose text `write` derives from the value alone.
pub(super) fn value_cells<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    write: impl Fn(T::Native, &mut String) + Send + Sync + 'a,
) -> BoxedCells<'a> {
    let write = move |array: &PrimitiveArray<T>, row, out: &mut String| write(array.value(row), out);
    Box::new(FnCells { array: array.as_primitive::<T>(), quotes: Quotes::Around, write })
}

/// Cells that refer to other cells: dictionaries, runs, unions.
pub(super) struct IndirectCells<'a, F> {
    pub(super) values: Vec<BoxedCells<'a>>,
    /// The cells and the row in them; `None` for null.
    pub(super) locate: F,
}

impl<F: Fn(usize) -> Option<(usize, usize)> + Send + Sync> IndirectCells<'_, F> {
    fn resolve(&self, row: usize) -> Option<(&dyn ColumnCells, usize)> {
        let (cell, row) = (self.locate)(row)?;
        Some((self.values.get(cell)?.as_ref(), row))
    }
}

impl<F: Fn(usize) -> Option<(usize, usize)> + Send + Sync> ColumnCells for IndirectCells<'_, F> {
    fn is_null(&self, row: usize) -> bool {
        self.resolve(row).is_none_or(|(cell, row)| cell.is_null(row))
    }

    fn append_json(&self, row: usize, out: &mut String) {
        if let Some((cell, row)) = self.resolve(row) {
            cell.append_json(row, out);
        }
    }

    fn append_text(&self, row: usize, out: &mut String) {
        if let Some((cell, row)) = self.resolve(row) {
            cell.append_text(row, out);
        }
    }

    fn is_plain_json(&self, row: usize) -> bool {
        self.resolve(row).is_some_and(|(cell, row)| cell.is_plain_json(row))
    }
}

pub(super) struct DisplayCells<'a>(pub(super) &'a dyn Array);

impl ColumnCells for DisplayCells<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
        write_json_string(&array_value_to_string(self.0, row).unwrap_or_else(|error| error.to_string()), out);
    }

    fn append_text(&self, row: usize, out: &mut String) {
        out.push_str(&array_value_to_string(self.0, row).unwrap_or_else(|error| error.to_string()));
    }
}
