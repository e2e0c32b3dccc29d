//! Values of Arrow arrays as text: a typed writer for each column, chosen once for a batch.
//!
//! A cell writes straight from the array into the answer's buffer; nothing is boxed for a single
//! value.

mod interval;
mod marked;
mod nested;
mod number;
mod temporal;
mod text;
mod texts;

use arrow::array::{Array, AsArray, BooleanArray, UnionArray};
use arrow::datatypes::{
    DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::array_value_to_string;

pub(crate) use marked::field_cell;
pub(crate) use text::{write_escaped, write_json_string, write_on_one_line};
pub use texts::Texts;

/// The values of one column of one batch.
pub(crate) trait Cell: Send + Sync {
    /// Whether the value is null.
    fn is_null(&self, row: usize) -> bool;

    /// Writes a value that is not null as JSON.
    fn json(&self, row: usize, out: &mut String);

    /// Writes a value that is not null as bare text.
    fn text(&self, row: usize, out: &mut String);

    /// Whether the value's text and its JSON are the same: numbers and booleans.
    fn is_bare(&self, _row: usize) -> bool {
        false
    }
}

/// A cell of some type.
pub(crate) type BoxedCell<'a> = Box<dyn Cell + 'a>;

/// Writes a value as JSON.
pub(crate) fn write_json(cell: &dyn Cell, row: usize, out: &mut String) {
    if cell.is_null(row) {
        out.push_str("null");
    } else {
        cell.json(row, out);
    }
}

/// Writes a value as text of one line for people, null as `NULL`.
pub(crate) fn write_line(cell: &dyn Cell, row: usize, out: &mut String) {
    if cell.is_null(row) {
        out.push_str("NULL");
        return;
    }
    let start = out.len();
    cell.text(row, out);
    if !cell.is_bare(row) && out[start..].contains(char::is_control) {
        let raw = out.split_off(start);
        write_on_one_line(&raw, out);
    }
}

/// The cells of `array`, whose values mean what their type says.
fn cell(array: &dyn Array) -> BoxedCell<'_> {
    match array.data_type() {
        DataType::Null => Box::new(NoValues),
        DataType::Boolean => Box::new(Booleans(array.as_boolean())),
        kind if kind.is_numeric() => number::cell(array),
        kind if kind.is_temporal() => temporal::cell(array),
        kind if kind.is_nested() => nested::cell(array),
        DataType::Dictionary(key, _) => dictionary(array, key),
        DataType::RunEndEncoded(ends, _) => runs(array, ends.data_type()),
        _ => text::cell(array),
    }
}

/// How a value's text becomes JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// It is JSON already.
    None,
    /// In quotes; nothing in it needs an escape.
    Around,
}

/// Cells whose text a function writes.
struct Plain<'a, A, F> {
    array: &'a A,
    quotes: Quotes,
    write: F,
}

impl<A: Array, F: Fn(&A, usize, &mut String) + Send + Sync> Cell for Plain<'_, A, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        match self.quotes {
            Quotes::None => (self.write)(self.array, row, out),
            Quotes::Around => {
                out.push('"');
                (self.write)(self.array, row, out);
                out.push('"');
            }
        }
    }

    fn text(&self, row: usize, out: &mut String) {
        (self.write)(self.array, row, out);
    }

    fn is_bare(&self, _row: usize) -> bool {
        self.quotes == Quotes::None
    }
}

struct NoValues;

impl Cell for NoValues {
    fn is_null(&self, _row: usize) -> bool {
        true
    }

    fn json(&self, _row: usize, out: &mut String) {
        out.push_str("null");
    }

    fn text(&self, _row: usize, _out: &mut String) {}
}

struct Booleans<'a>(&'a BooleanArray);

impl Cell for Booleans<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        self.text(row, out);
    }

    fn text(&self, row: usize, out: &mut String) {
        out.push_str(if self.0.value(row) { "true" } else { "false" });
    }

    fn is_bare(&self, _row: usize) -> bool {
        true
    }
}

/// Cells that stand for a row of other cells: dictionaries, runs, unions.
struct Indirect<'a, F> {
    values: Vec<BoxedCell<'a>>,
    /// The cells and the row in them; none for null.
    place: F,
}

impl<F: Fn(usize) -> Option<(usize, usize)> + Send + Sync> Indirect<'_, F> {
    fn at(&self, row: usize) -> Option<(&dyn Cell, usize)> {
        let (cell, row) = (self.place)(row)?;
        Some((self.values.get(cell)?.as_ref(), row))
    }
}

impl<F: Fn(usize) -> Option<(usize, usize)> + Send + Sync> Cell for Indirect<'_, F> {
    fn is_null(&self, row: usize) -> bool {
        self.at(row).is_none_or(|(cell, row)| cell.is_null(row))
    }

    fn json(&self, row: usize, out: &mut String) {
        if let Some((cell, row)) = self.at(row) {
            cell.json(row, out);
        }
    }

    fn text(&self, row: usize, out: &mut String) {
        if let Some((cell, row)) = self.at(row) {
            cell.text(row, out);
        }
    }

    fn is_bare(&self, row: usize) -> bool {
        self.at(row).is_some_and(|(cell, row)| cell.is_bare(row))
    }
}

fn dictionary<'a>(array: &'a dyn Array, key: &DataType) -> BoxedCell<'a> {
    macro_rules! of {
        ($key:ty) => {{
            let dictionary = array.as_dictionary::<$key>();
            let place = |row| Some((0, dictionary.key(row)?));
            Box::new(Indirect { values: vec![cell(dictionary.values().as_ref())], place })
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
        _ => Box::new(Displayed(array)),
    }
}

fn runs<'a>(array: &'a dyn Array, ends: &DataType) -> BoxedCell<'a> {
    macro_rules! of {
        ($ends:ty) => {{
            let runs = array.as_run::<$ends>();
            let place = |row| Some((0, runs.get_physical_index(row)));
            Box::new(Indirect { values: vec![cell(runs.values().as_ref())], place })
        }};
    }
    match ends {
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        _ => Box::new(Displayed(array)),
    }
}

fn union(array: &UnionArray) -> BoxedCell<'_> {
    let types: Vec<i8> = match array.data_type() {
        DataType::Union(fields, _) => fields.iter().map(|(id, _)| id).collect(),
        _ => Vec::new(),
    };
    let values = types.iter().map(|id| cell(array.child(*id).as_ref())).collect();
    let place = move |row| {
        let kind = array.type_id(row);
        Some((types.iter().position(|id| *id == kind)?, array.value_offset(row)))
    };
    Box::new(Indirect { values, place })
}

/// Cells of a type that has no writer of its own.
struct Displayed<'a>(&'a dyn Array);

impl Cell for Displayed<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        write_json_string(&array_value_to_string(self.0, row).unwrap_or_else(|error| error.to_string()), out);
    }

    fn text(&self, row: usize, out: &mut String) {
        out.push_str(&array_value_to_string(self.0, row).unwrap_or_else(|error| error.to_string()));
    }
}
