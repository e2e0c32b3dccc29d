//! Functions whose work is the product of the sizes of their arguments, in steps of about a nanosecond.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::argument_sizes::{ArgumentSizes, is_constant, list_sizes, row_count, text_sizes, value_lengths};

/// Number of bytes that one step compares.
const BYTES_COMPARED: f64 = 16.0;
/// Steps to compare two elements that differ.
const ELEMENT_STEPS: f64 = 8.0;

fn product_steps(args: &ScalarFunctionArgs, left: &ArgumentSizes, right: &ArgumentSizes, each: f64) -> Vec<f64> {
    (0..row_count(args)).map(|row| left.at(row) * right.at(row) * each).collect()
}

pub(super) fn text_product_steps(args: &ScalarFunctionArgs, each: f64) -> Option<Vec<f64>> {
    Some(product_steps(args, &text_sizes(args, 0)?, &text_sizes(args, 1)?, each))
}

/// `strpos(text, part)`: compares the part with the text at each position, unless only the part is constant.
pub(super) fn strpos_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    let [text, part] = args.args.as_slice() else { return None };
    if is_constant(part) && !is_constant(text) {
        return None;
    }
    text_product_steps(args, 1.0 / BYTES_COMPARED)
}

/// `array_has_all(array, elements)`: each element of one array is compared with each of the other.
pub(super) fn array_has_all_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    let (elements, argument_sizes) = (list_sizes(args, 0)?, list_sizes(args, 1)?);
    let (longest, longest_expected) = (longest_text(args.args.first()?)?, longest_text(args.args.get(1)?)?);
    // Texts of different lengths differ without further comparison.
    let each = ELEMENT_STEPS + longest.min(longest_expected) / BYTES_COMPARED;
    Some(product_steps(args, &elements, &argument_sizes, each))
}

/// `array_has_any(left, right)`: as above, unless one of them is constant.
pub(super) fn array_has_any_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    if args.args.iter().any(is_constant) {
        return None;
    }
    array_has_all_steps(args)
}

fn longest_text(arg: &ColumnarValue) -> Option<f64> {
    let array = arg.to_array(1).ok()?;
    let values: &ArrayRef = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().values(),
        DataType::LargeList(_) => array.as_list::<i64>().values(),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().values(),
        _ => return Some(0.0),
    };
    if !values.data_type().is_string() {
        return Some(0.0);
    }
    value_lengths(values)?.into_iter().reduce(f64::max).or(Some(0.0))
}
