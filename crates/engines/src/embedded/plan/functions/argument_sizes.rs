//! The sizes of the arguments of a function, row by row.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// The number of rows to measure: one if all arguments are constant.
pub(super) fn row_count(args: &ScalarFunctionArgs) -> usize {
    if args.args.iter().all(is_constant) { 1 } else { args.number_rows }
}

pub(super) fn is_constant(arg: &ColumnarValue) -> bool {
    matches!(arg, ColumnarValue::Scalar(_))
}

/// The sizes of one argument, one for each row.
pub(super) enum ArgumentSizes {
    Constant(f64),
    Each(Vec<f64>),
}

impl ArgumentSizes {
    pub(super) fn at(&self, row: usize) -> f64 {
        match self {
            Self::Constant(size) => *size,
            Self::Each(sizes) => sizes.get(row).copied().unwrap_or(0.0),
        }
    }

    fn measure(arg: &ColumnarValue, sizes: fn(&ArrayRef) -> Option<Vec<f64>>) -> Option<Self> {
        match arg {
            ColumnarValue::Scalar(scalar) => Some(Self::Constant(*sizes(&scalar.to_array().ok()?)?.first()?)),
            ColumnarValue::Array(array) => Some(Self::Each(sizes(array)?)),
        }
    }
}

pub(super) fn text_sizes(args: &ScalarFunctionArgs, position: usize) -> Option<ArgumentSizes> {
    text_sizes_of_argument(args.args.get(position)?)
}

pub(super) fn text_sizes_of_argument(arg: &ColumnarValue) -> Option<ArgumentSizes> {
    ArgumentSizes::measure(arg, text_lengths)
}

pub(super) fn list_sizes(args: &ScalarFunctionArgs, position: usize) -> Option<ArgumentSizes> {
    ArgumentSizes::measure(args.args.get(position)?, list_lengths)
}

fn text_lengths(array: &ArrayRef) -> Option<Vec<f64>> {
    (array.data_type().is_string() || array.data_type().is_null()).then(|| value_lengths(array))?
}

fn list_lengths(array: &ArrayRef) -> Option<Vec<f64>> {
    (array.data_type().is_nested() || array.data_type().is_null()).then(|| value_lengths(array))?
}

/// The number of bytes or elements of each value; 0 for null. `None` for values without a length.
pub(super) fn value_lengths(array: &ArrayRef) -> Option<Vec<f64>> {
    if array.data_type().is_null() {
        return Some(vec![0.0; array.len()]);
    }
    let lengths = cast(&length(array.as_ref()).ok()?, &DataType::Float64).ok()?;
    Some(lengths.as_primitive::<Float64Type>().iter().map(Option::unwrap_or_default).collect())
}
