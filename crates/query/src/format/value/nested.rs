//! Lists, structs and maps: JSON, in the formats of bare text too.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray};
use arrow::datatypes::{DataType, Field};

use super::{
    BoxedCells, ColumnCells, DisplayCells, field_cells, union_cells, write_escaped, write_json, write_json_string,
};

pub(super) fn nested_cells(array: &dyn Array) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            list_cells(array, field_cells(item, list.values()), |row| {
                (index(list.value_offsets()[row]), index(list.value_offsets()[row + 1]))
            })
        }
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            list_cells(array, field_cells(item, list.values()), |row| {
                (index(list.value_offsets()[row]), index(list.value_offsets()[row + 1]))
            })
        }
        DataType::ListView(item) => {
            let list = array.as_list_view::<i32>();
            list_cells(array, field_cells(item, list.values()), |row| {
                let start = index(list.value_offset(row));
                (start, start + index(list.value_size(row)))
            })
        }
        DataType::LargeListView(item) => {
            let list = array.as_list_view::<i64>();
            list_cells(array, field_cells(item, list.values()), |row| {
                let start = index(list.value_offset(row));
                (start, start + index(list.value_size(row)))
            })
        }
        DataType::FixedSizeList(item, _) => {
            let list = array.as_fixed_size_list();
            list_cells(array, field_cells(item, list.values()), |row| {
                let start = index(list.value_offset(row));
                (start, start + index(list.value_length()))
            })
        }
        DataType::Struct(_) => Box::new(StructCells::new(array.as_struct())),
        DataType::Map(..) => Box::new(MapCells::new(array.as_map())),
        DataType::Union(..) => {
            array.as_any().downcast_ref().map_or_else(|| Box::new(DisplayCells(array)) as _, union_cells)
        }
        // Arrow classifies these as nested when their values are.
        DataType::Dictionary(key, _) => super::dictionary_cells(array, key),
        DataType::RunEndEncoded(ends, _) => super::run_end_cells(array, ends.data_type()),
        _ => Box::new(DisplayCells(array)),
    }
}

/// An offset of an array, which is never negative in Arrow.
fn index(offset: impl TryInto<usize>) -> usize {
    offset.try_into().unwrap_or_default()
}

fn list_cells<'a, F>(array: &'a dyn Array, values: BoxedCells<'a>, range: F) -> BoxedCells<'a>
where
    F: Fn(usize) -> (usize, usize) + Send + Sync + 'a,
{
    Box::new(ListCells { array, values, range })
}

struct ListCells<'a, F> {
    array: &'a dyn Array,
    values: BoxedCells<'a>,
    range: F,
}

impl<F: Fn(usize) -> (usize, usize) + Send + Sync> ColumnCells for ListCells<'_, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
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

    fn append_text(&self, row: usize, out: &mut String) {
        self.append_json(row, out);
    }
}

struct StructCells<'a> {
    array: &'a StructArray,
    /// `"name":` and the values.
    fields: Vec<(String, BoxedCells<'a>)>,
}

impl<'a> StructCells<'a> {
    fn new(array: &'a StructArray) -> Self {
        let cell = |(field, column): (&Arc<Field>, &'a ArrayRef)| {
            let mut key = String::new();
            write_json_string(field.name(), &mut key);
            key.push(':');
            (key, field_cells(field, column.as_ref()))
        };
        Self { array, fields: array.fields().iter().zip(array.columns()).map(cell).collect() }
    }
}

impl ColumnCells for StructCells<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
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

    fn append_text(&self, row: usize, out: &mut String) {
        self.append_json(row, out);
    }
}

struct MapCells<'a> {
    array: &'a MapArray,
    keys: BoxedCells<'a>,
    values: BoxedCells<'a>,
}

impl<'a> MapCells<'a> {
    fn new(array: &'a MapArray) -> Self {
        let (key, value) = array.entries_fields();
        Self {
            array,
            keys: field_cells(key, array.keys().as_ref()),
            values: field_cells(value, array.values().as_ref()),
        }
    }
}

impl ColumnCells for MapCells<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
        let offsets = self.array.value_offsets();
        let (start, end) = (index(offsets[row]), index(offsets[row + 1]));
        let mut key = String::new();
        out.push('{');
        for entry in start..end {
            out.push_str(if entry > start { ",\"" } else { "\"" });
            key.clear();
            self.keys.append_text(entry, &mut key);
            write_escaped(&key, out);
            out.push_str("\":");
            write_json(self.values.as_ref(), entry, out);
        }
        out.push('}');
    }

    fn append_text(&self, row: usize, out: &mut String) {
        self.append_json(row, out);
    }
}
