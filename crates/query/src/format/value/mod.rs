//! Values of Arrow arrays as text: a typed writer for each column, chosen once for a batch.
//!
//! A cell writes from the array directly into the buffer of the answer; single values are not boxed.

mod column_formatter;
mod extension;
mod interval;
mod nested;
mod number;
mod temporal;
mod text;

use arrow::array::{Array, AsArray, BooleanArray, UnionArray};
use arrow::datatypes::{
    DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::array_value_to_string;

pub use column_formatter::ColumnFormatter;
pub(crate) use extension::field_cells;
pub(crate) use text::{write_escaped, write_json_string, write_on_one_line};

/// The values of one column of one batch.
pub(crate) trait ColumnCells: Send + Sync {
    /// Whether the value is null.
    fn is_null(&self, row: usize) -> bool;

    /// Writes a value that is not null as JSON.
    fn append_json(&self, row: usize, out: &mut String);

    /// Writes a value that is not null as bare text.
    fn append_text(&self, row: usize, out: &mut String);

    /// Whether the value's text and its JSON are the same: numbers and booleans.
    fn is_plain_json(&self, _row: usize) -> bool {
        false
    }
}

/// The cells of one column.
pub(crate) type BoxedCells<'a> = Box<dyn ColumnCells + 'a>;

/// Writes a value as JSON.
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

/// The cells of `array`, without an extension type.
fn column_cells(array: &dyn Array) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::Null => Box::new(NullCells),
        DataType::Boolean => Box::new(BooleanCells(array.as_boolean())),
        kind if kind.is_numeric() => number::number_cells(array),
        kind if kind.is_temporal() => temporal::temporal_cells(array),
        kind if kind.is_nested() => nested::nested_cells(array),
        DataType::Dictionary(key, _) => dictionary_cells(array, key),
        DataType::RunEndEncoded(ends, _) => run_end_cells(array, ends.data_type()),
        _ => text::text_cells(array),
    }
}

/// How a value's text becomes JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// The text is valid JSON.
    None,
    /// In quotes; nothing in it needs an escape.
    Around,
}

/// Cells whose text a function writes.
struct FnCells<'a, A, F> {
    array: &'a A,
    quotes: Quotes,
    write: F,
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

struct NullCells;

impl ColumnCells for NullCells {
    fn is_null(&self, _row: usize) -> bool {
        true
    }

    fn append_json(&self, _row: usize, out: &mut String) {
        out.push_str("null");
    }

    fn append_text(&self, _row: usize, _out: &mut String) {}
}

struct BooleanCells<'a>(&'a BooleanArray);

impl ColumnCells for BooleanCells<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
        self.append_text(row, out);
    }

    fn append_text(&self, row: usize, out: &mut String) {
        out.push_str(if self.0.value(row) { "true" } else { "false" });
    }

    fn is_plain_json(&self, _row: usize) -> bool {
        true
    }
}

/// Cells that refer to other cells: dictionaries, runs, unions.
struct IndirectCells<'a, F> {
    values: Vec<BoxedCells<'a>>,
    /// The cells and the row in them; `None` for null.
    locate: F,
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

fn dictionary_cells<'a>(array: &'a dyn Array, key: &DataType) -> BoxedCells<'a> {
    macro_rules! of {
        ($key:ty) => {{
            let dictionary = array.as_dictionary::<$key>();
            let place = |row| Some((0, dictionary.key(row)?));
            Box::new(IndirectCells { values: vec![column_cells(dictionary.values().as_ref())], locate: place })
        }};
    }
    match key {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        _ => Box::new(DisplayCells(array)),
    }
}

fn run_end_cells<'a>(array: &'a dyn Array, ends: &DataType) -> BoxedCells<'a> {
    macro_rules! of {
        ($ends:ty) => {{
            let runs = array.as_run::<$ends>();
            let place = |row| Some((0, runs.get_physical_index(row)));
            Box::new(IndirectCells { values: vec![column_cells(runs.values().as_ref())], locate: place })
        }};
    }
    match ends {
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        _ => Box::new(DisplayCells(array)),
    }
}

fn union_cells(array: &UnionArray) -> BoxedCells<'_> {
    let types: Vec<i8> = match array.data_type() {
        DataType::Union(fields, _) => fields.iter().map(|(id, _)| id).collect(),
        _ => Vec::new(),
    };
    let values = types.iter().map(|id| column_cells(array.child(*id).as_ref())).collect();
    let place = move |row| {
        let kind = array.type_id(row);
        Some((types.iter().position(|id| *id == kind)?, array.value_offset(row)))
    };
    Box::new(IndirectCells { values, locate: place })
}

/// Cells of a type without its own writer.
struct DisplayCells<'a>(&'a dyn Array);

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
