//! Values of Arrow arrays as text: a typed writer for each column, chosen once for a batch.
//!
//! A cell writes from the array directly into the buffer of the answer; single values are not boxed.

mod number;
mod temporal;
mod text;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, PrimitiveArray, StructArray, UnionArray,
};
use arrow::datatypes::{
    DataType, Field, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::array_value_to_string;

use self::text::write_escaped;
use super::columns::ExtensionType;

pub(crate) use self::text::{write_json_string, write_on_one_line};

/// Formats the values of one column as the text formats do.
pub struct ColumnFormatter<'a>(BoxedCells<'a>);

impl<'a> ColumnFormatter<'a> {
    /// The values of `array`, which are those of `field`.
    pub fn new(field: &Field, array: &'a dyn Array) -> Self {
        Self(field_cells(field, array))
    }

    /// The value in `row`; `None` if it is null.
    ///
    /// # Panics
    /// If the array has no such row.
    pub fn format_value(&self, row: usize) -> Option<String> {
        (!self.0.is_null(row)).then(|| {
            let mut text = String::new();
            self.0.append_text(row, &mut text);
            text
        })
    }
}

pub(crate) fn field_cells<'a>(field: &Field, array: &'a dyn Array) -> BoxedCells<'a> {
    match ExtensionType::from_field(field) {
        None => column_cells(array),
        Some(ExtensionType::Uuid) => text::uuid_cells(array),
        Some(extension_type) => text::typed_text_cells(array, extension_type),
    }
}

/// The cells of `array`, without an extension type.
fn column_cells(array: &dyn Array) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::Null => Box::new(NullCells),
        DataType::Boolean => {
            let write = |array: &BooleanArray, row, out: &mut String| {
                out.push_str(if array.value(row) { "true" } else { "false" });
            };
            Box::new(FnCells { array: array.as_boolean(), quotes: Quotes::None, write })
        }
        DataType::Dictionary(key, _) => dictionary_cells(array, key),
        DataType::RunEndEncoded(ends, _) => run_end_cells(array, ends.data_type()),
        DataType::List(item) => offset_list_cells(item, array.as_list::<i32>()),
        DataType::LargeList(item) => offset_list_cells(item, array.as_list::<i64>()),
        DataType::ListView(item) => view_list_cells(item, array.as_list_view::<i32>()),
        DataType::LargeListView(item) => view_list_cells(item, array.as_list_view::<i64>()),
        DataType::FixedSizeList(item, _) => {
            let list = array.as_fixed_size_list();
            let range = |row: usize| {
                let start = index(list.value_offset(row));
                (start, start + index(list.value_length()))
            };
            Box::new(ListCells { array, values: field_cells(item, list.values()), range })
        }
        DataType::Struct(_) => Box::new(StructCells::new(array.as_struct())),
        DataType::Map(..) => Box::new(MapCells::new(array.as_map())),
        DataType::Union(..) => {
            array.as_any().downcast_ref().map_or_else(|| Box::new(DisplayCells(array)) as _, union_cells)
        }
        DataType::Duration(_) | DataType::Interval(_) => temporal::interval_cells(array),
        kind if kind.is_numeric() => number::number_cells(array),
        kind if kind.is_temporal() => temporal::temporal_cells(array),
        _ => text::text_cells(array),
    }
}

fn dictionary_cells<'a>(array: &'a dyn Array, key: &DataType) -> BoxedCells<'a> {
    macro_rules! of {
        ($key:ty) => {{
            let dictionary = array.as_dictionary::<$key>();
            let locate = |row| Some((0, dictionary.key(row)?));
            Box::new(IndirectCells { values: vec![column_cells(dictionary.values().as_ref())], locate })
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
            let locate = |row| Some((0, runs.get_physical_index(row)));
            Box::new(IndirectCells { values: vec![column_cells(runs.values().as_ref())], locate })
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
    let locate = move |row| {
        let kind = array.type_id(row);
        Some((types.iter().position(|id| *id == kind)?, array.value_offset(row)))
    };
    Box::new(IndirectCells { values, locate })
}

/// An offset of an array, which is never negative in Arrow.
fn index(offset: impl TryInto<usize>) -> usize {
    offset.try_into().unwrap_or_default()
}

fn offset_list_cells<'a, O: OffsetSizeTrait>(item: &Field, list: &'a GenericListArray<O>) -> BoxedCells<'a> {
    let range = |row: usize| (list.value_offsets()[row].as_usize(), list.value_offsets()[row + 1].as_usize());
    Box::new(ListCells { array: list, values: field_cells(item, list.values()), range })
}

fn view_list_cells<'a, O: OffsetSizeTrait>(item: &Field, list: &'a GenericListViewArray<O>) -> BoxedCells<'a> {
    let range = |row: usize| {
        let start = list.value_offset(row).as_usize();
        (start, start + list.value_size(row).as_usize())
    };
    Box::new(ListCells { array: list, values: field_cells(item, list.values()), range })
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
}

struct MapCells<'a> {
    array: &'a MapArray,
    keys: BoxedCells<'a>,
    values: BoxedCells<'a>,
}

impl<'a> MapCells<'a> {
    fn new(array: &'a MapArray) -> Self {
        let (key, value) = array.entries_fields();
        let (keys, values) = (field_cells(key, array.keys().as_ref()), field_cells(value, array.values().as_ref()));
        Self { array, keys, values }
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
}

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

/// Cells whose text `write` derives from the value alone.
fn value_cells<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    write: impl Fn(T::Native, &mut String) + Send + Sync + 'a,
) -> BoxedCells<'a> {
    let write = move |array: &PrimitiveArray<T>, row, out: &mut String| write(array.value(row), out);
    Box::new(FnCells { array: array.as_primitive::<T>(), quotes: Quotes::Around, write })
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

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Int64Array};
    use arrow::datatypes::UnionFields;

    use super::*;

    #[test]
    fn values_of_unions_are_those_of_their_members() {
        let members = [("integer", DataType::Int64), ("blob", DataType::Binary)];
        let fields: UnionFields =
            (0_i8..).zip(members.map(|(name, kind)| Arc::new(Field::new(name, kind, true)))).collect();
        let integers: ArrayRef = Arc::new(Int64Array::from(vec![10]));
        let blobs: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"ab")]));
        let union =
            UnionArray::try_new(fields, vec![0, 1, 1].into(), Some(vec![0, 0, 1].into()), vec![integers, blobs])
                .unwrap();
        let field = Field::new("any", union.data_type().clone(), true);
        let texts = ColumnFormatter::new(&field, &union);
        assert_eq!(
            [0, 1, 2].map(|row| texts.format_value(row)),
            [Some("10".to_owned()), None, Some("YWI=".to_owned())]
        );
    }
}
