//! `x::numeric`, whose number of digits depends on the value.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::from_text;
use crate::data_type::is_text_or_null;
use crate::function::{ColumnarFunction, FunctionCall, keep_types, try_map};
use crate::json_type::{JsonKind, json_kind};
use crate::number::{NUMERIC_UNITS_MAX, numeric_with_free_scale, round_half_away_from_zero};

/// The name of the function. The `*` keeps callers from writing it.
pub(super) const NAME: &str = "numeric*";

pub(super) fn function() -> ScalarUDF {
    ColumnarFunction::new(NAME, keep_types, numeric_type, cast_to_numeric)
}

fn is_jsonb(data_type: &DataType) -> bool {
    json_kind(data_type) == Some(JsonKind::Jsonb)
}

/// The significant digits of a floating-point number that PostgreSQL converts: those that its type has for certain.
fn significant_digits(float: &DataType) -> usize {
    if *float == DataType::Float64 { 15 } else { 6 }
}

/// Returns the `digits` significant digits of `value` as a number, and its scale. `None` if it is infinite or NaN.
fn round_to_significant(value: f64, digits: usize) -> Option<(i128, i32)> {
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e')?;
    let units = mantissa.replace('.', "").parse().ok()?;
    let scale = i32::try_from(digits).ok()? - 1 - exponent.parse::<i32>().ok()?;
    Some((units, scale))
}

/// Returns units of the scale `to`. `None` if there are too many, or if some are cut off and `is_exact`.
fn rescale(units: i128, scale: i32, to: i8, is_exact: bool) -> Option<i128> {
    let shift = i32::from(to) - scale;
    let factor = 10_i128.checked_pow(shift.unsigned_abs());
    match factor {
        _ if units == 0 => Some(0),
        Some(factor) if shift >= 0 => units.checked_mul(factor),
        None if shift >= 0 => None,
        Some(unit) if is_exact => (units % unit == 0).then_some(units / unit),
        Some(unit) => Some(round_half_away_from_zero(units, unit)),
        None => (!is_exact).then_some(0),
    }
}

/// Converts floating-point numbers to the numeric type `to` by their significant digits. Digits that the type does not
/// have are rounded, or are an error if the conversion must be exact.
pub(super) fn from_floats(values: &ArrayRef, to: &DataType, is_exact: bool) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *to else { return plan_err!("a numeric must be a decimal") };
    let digits = significant_digits(values.data_type());
    let limit = if is_exact { NUMERIC_UNITS_MAX } else { 10_u128.pow(u32::from(precision)) };
    let convert = |value: f64| {
        if !value.is_finite() {
            return exec_err!("{value} is not supported as a numeric; leave it a double precision");
        }
        let units =
            round_to_significant(value, digits).and_then(|(units, written)| rescale(units, written, scale, is_exact));
        match units.filter(|units| units.unsigned_abs() < limit) {
            Some(units) => Ok(units),
            None if is_exact => {
                exec_err!("{value} has too many digits for a numeric without a scale; cast it to numeric(38, digits)")
            }
            None => exec_err!(
                "numeric field overflow: {value} has more digits before the point than numeric({precision},{scale})"
            ),
        }
    };
    let doubles = cast(values, &DataType::Float64)?;
    let numerics: Decimal128Array = try_map::<Float64Type, _>(&doubles, convert)?;
    Ok(Arc::new(numerics.with_precision_and_scale(precision, scale)?))
}

fn numeric_type(fields: &[FieldRef]) -> Result<DataType> {
    let [operand] = fields else { return plan_err!("a cast has one operand") };
    match operand.data_type() {
        number if number.is_decimal() || number.is_integer() => crate::number::as_numeric(number),
        other if other.is_floating() || is_text_or_null(other) || is_jsonb(other) => Ok(numeric_with_free_scale(22)),
        DataType::Boolean => plan_err!("cannot cast type boolean to numeric; cast it to an integer: x::int"),
        other => plan_err!("cannot cast type {other} to numeric"),
    }
}

fn cast_to_numeric(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let to = call.returns;
    let values = call.array(0)?;
    Ok(match values.data_type() {
        text if text.is_string() => from_text::parse_texts(cast(&values, &DataType::Utf8)?.as_string(), to)?,
        document if is_jsonb(document) => from_text::parse_texts(&crate::json::numbers(&values)?, to)?,
        float if float.is_floating() => from_floats(&values, to, true)?,
        _ => cast(&values, to)?,
    })
}
