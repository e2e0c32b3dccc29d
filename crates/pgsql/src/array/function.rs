//! Helpers that functions over arrays share.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::SortOptions;
use arrow::compute::{cast, interleave};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;

use crate::json::function::{FunctionCall, check_bytes};

/// Returns the element type if `data_type` is an array.
pub(super) fn item_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Some(item.data_type()),
        _ => None,
    }
}

/// Returns the array type with elements of type `item`.
pub(super) fn list_type(item: DataType) -> DataType {
    DataType::new_list(item, true)
}

/// Returns the number of dimensions of a type.
pub(super) fn dimensions(data_type: &DataType) -> usize {
    item_type(data_type).map_or(0, |item| 1 + dimensions(item))
}

/// Returns the common type of elements of `types`.
pub(super) fn common_type(function: &str, types: &[DataType]) -> Result<DataType> {
    let known: Vec<DataType> = types.iter().filter(|data_type| !data_type.is_null()).cloned().collect();
    let Some(first) = known.first() else { return Ok(DataType::Utf8) };
    if known.iter().all(|data_type| data_type == first) {
        return Ok(first.clone());
    }
    match type_union_resolution(&known) {
        // PostgreSQL does not convert text to a number here.
        Some(common) if !is_text(&common) || known.iter().all(is_text) => Ok(common),
        _ => {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            plan_err!("{function} of elements of {} does not exist; cast one side", names.join(" and "))
        }
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns the element type of an array argument; NULL is an array of any type.
pub(super) fn require_item(function: &str, data_type: &DataType) -> Result<DataType> {
    match item_type(data_type) {
        Some(item) => Ok(item.clone()),
        None if data_type.is_null() => Ok(DataType::Null),
        None => plan_err!("function {function}({data_type}) does not exist; its argument must be an array"),
    }
}

/// Converts `array` to a `ListArray`.
pub(super) fn as_list(array: &ArrayRef) -> Result<ListArray> {
    match array.data_type() {
        DataType::List(_) => Ok(array.as_list::<i32>().clone()),
        other => {
            let item = item_type(other).cloned().unwrap_or(DataType::Utf8);
            Ok(cast(array, &list_type(item))?.as_list::<i32>().clone())
        }
    }
}

/// Returns an argument as lists for all rows.
pub(super) fn lists(call: &FunctionCall<'_>, index: usize) -> Result<ListArray> {
    as_list(&call.array(index)?)
}

/// Returns the range of the elements of `row` in the values of `list`.
pub(super) fn range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize
}

/// Builds lists from elements of other lists.
pub(super) struct ListAssembler {
    places: Vec<(usize, usize)>,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl ListAssembler {
    pub(super) fn new(rows: usize) -> Self {
        Self { places: Vec::new(), lengths: Vec::with_capacity(rows), valid: Vec::with_capacity(rows) }
    }

    /// Appends a row that is NULL.
    pub(super) fn push_null(&mut self) {
        self.lengths.push(0);
        self.valid.push(false);
    }

    /// Appends a row. Each position is the index of a source and the index of the element in it.
    pub(super) fn push(&mut self, positions: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        let before = self.places.len();
        self.places.extend(positions);
        check_bytes(self.places.len() * size_of::<usize>())?;
        self.lengths.push(self.places.len() - before);
        self.valid.push(true);
        Ok(())
    }

    /// Builds the lists from the elements of `sources`, which all have one type.
    pub(super) fn finish(self, sources: &[ArrayRef]) -> Result<ArrayRef> {
        let values: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
        let values = interleave(&values, &self.places)?;
        let item = list_type(values.data_type().clone());
        let DataType::List(item) = item else { return plan_err!("expected a list") };
        let nulls = NullBuffer::from(self.valid);
        Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(self.lengths), values, Some(nulls))?))
    }
}

/// Compares rows as PostgreSQL does. NULLs are equal to each other and sort last.
pub(super) struct RowComparer {
    converter: RowConverter,
}

impl RowComparer {
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let options = SortOptions { descending: false, nulls_first: false };
        let converter = RowConverter::new(vec![SortField::new_with_options(data_type.clone(), options)])?;
        Ok(Self { converter })
    }

    pub(super) fn rows(&self, values: &ArrayRef) -> Result<Rows> {
        Ok(self.converter.convert_columns(&[without_negative_zero(values)])?)
    }
}

/// Replaces negative zero, because zeros are equal whatever their sign.
fn without_negative_zero(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let positive: Float32Array = values.as_primitive::<Float32Type>().unary(|value| value + 0.0);
            Arc::new(positive)
        }
        DataType::Float64 => {
            let positive: Float64Array = values.as_primitive::<Float64Type>().unary(|value| value + 0.0);
            Arc::new(positive)
        }
        _ => values.clone(),
    }
}
