//! Lists, structs and maps: JSON, in the formats of bare text too.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray};
use arrow::datatypes::{DataType, Field};

use super::{BoxedCell, Cell, Displayed, field_cell, union, write_escaped, write_json, write_json_string};

pub(super) fn cell(array: &dyn Array) -> BoxedCell<'_> {
    match array.data_type() {
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            lists(array, field_cell(item, list.values()), |row| {
                (index(list.value_offsets()[row]), index(list.value_offsets()[row + 1]))
            })
        }
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            lists(array, field_cell(item, list.values()), |row| {
                (index(list.value_offsets()[row]), index(list.value_offsets()[row + 1]))
            })
        }
        DataType::ListView(item) => {
            let list = array.as_list_view::<i32>();
            lists(array, field_cell(item, list.values()), |row| {
                let start = index(list.value_offset(row));
                (start, start + index(list.value_size(row)))
            })
        }
        DataType::LargeListView(item) => {
            let list = array.as_list_view::<i64>();
            lists(array, field_cell(item, list.values()), |row| {
                let start = index(list.value_offset(row));
                (start, start + index(list.value_size(row)))
            })
        }
        DataType::FixedSizeList(item, _) => {
            let list = array.as_fixed_size_list();
            lists(array, field_cell(item, list.values()), |row| {
                let start = index(list.value_offset(row));
                (start, start + index(list.value_length()))
            })
        }
        DataType::Struct(_) => Box::new(Structs::new(array.as_struct())),
        DataType::Map(..) => Box::new(Maps::new(array.as_map())),
        DataType::Union(..) => array.as_any().downcast_ref().map_or_else(|| Box::new(Displayed(array)) as _, union),
        // Nested in Arrow's eyes when their values are.
        DataType::Dictionary(key, _) => super::dictionary(array, key),
        DataType::RunEndEncoded(ends, _) => super::runs(array, ends.data_type()),
        _ => Box::new(Displayed(array)),
    }
}

/// An offset of an array; Arrow holds them not negative.
fn index(offset: impl TryInto<usize>) -> usize {
    offset.try_into().unwrap_or_default()
}

fn lists<'a, F>(array: &'a dyn Array, values: BoxedCell<'a>, range: F) -> BoxedCell<'a>
where
    F: Fn(usize) -> (usize, usize) + Send + Sync + 'a,
{
    Box::new(Lists { array, values, range })
}

struct Lists<'a, F> {
    array: &'a dyn Array,
    values: BoxedCell<'a>,
    range: F,
}

impl<F: Fn(usize) -> (usize, usize) + Send + Sync> Cell for Lists<'_, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        let (start, end) = (self.range)(row);
        out.push('[');
        for item in start..end {
            if item > start {
                out.push(',');
            }
            write_json(self.values.as_ref(), item, out);
        }
        out.push(']');
    }

    fn text(&self, row: usize, out: &mut String) {
        self.json(row, out);
    }
}

struct Structs<'a> {
    array: &'a StructArray,
    /// `"name":` and the values.
    fields: Vec<(String, BoxedCell<'a>)>,
}

impl<'a> Structs<'a> {
    fn new(array: &'a StructArray) -> Self {
        let cell = |(field, column): (&Arc<Field>, &'a ArrayRef)| {
            let mut key = String::new();
            write_json_string(field.name(), &mut key);
            key.push(':');
            (key, field_cell(field, column.as_ref()))
        };
        Self { array, fields: array.fields().iter().zip(array.columns()).map(cell).collect() }
    }
}

impl Cell for Structs<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        out.push('{');
        for (position, (key, cell)) in self.fields.iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            out.push_str(key);
            write_json(cell.as_ref(), row, out);
        }
        out.push('}');
    }

    fn text(&self, row: usize, out: &mut String) {
        self.json(row, out);
    }
}

struct Maps<'a> {
    array: &'a MapArray,
    keys: BoxedCell<'a>,
    values: BoxedCell<'a>,
}

impl<'a> Maps<'a> {
    fn new(array: &'a MapArray) -> Self {
        let (key, value) = array.entries_fields();
        Self { array, keys: field_cell(key, array.keys().as_ref()), values: field_cell(value, array.values().as_ref()) }
    }
}

impl Cell for Maps<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        let offsets = self.array.value_offsets();
        let (start, end) = (index(offsets[row]), index(offsets[row + 1]));
        let mut key = String::new();
        out.push('{');
        for entry in start..end {
            out.push_str(if entry > start { ",\"" } else { "\"" });
            key.clear();
            self.keys.text(entry, &mut key);
            write_escaped(&key, out);
            out.push_str("\":");
            write_json(self.values.as_ref(), entry, out);
        }
        out.push('}');
    }

    fn text(&self, row: usize, out: &mut String) {
        self.json(row, out);
    }
}
