//! `x::numeric`, whose number of digits depends on the value.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::from_text;
use crate::data_type::{is_text, is_text_or_null};
use crate::function::{ColumnarFunction, FunctionCall, keep_types, try_map};
use crate::json_type::{JsonKind, json_kind};
use crate::number::{NUMERIC_UNITS_MAX, numeric_with_free_scale, parse_decimal};

/// The name of the function. The `*` keeps callers from writing it.
pub(super) const NAME: &str = "numeric*";

pub(super) fn function() -> ScalarUDF {
    ColumnarFunction::new(NAME, keep_types, numeric_type, cast_to_numeric)
}

fn is_jsonb(data_type: &DataType) -> bool {
    json_kind(data_type) == Some(JsonKind::Jsonb)
}

/// Converts a double by its 15 significant digits, as PostgreSQL does.
fn double_to_numeric(value: f64, scale: i8) -> Result<i128> {
    let text = format!("{value:.14e}");
    let rescaled = parse_decimal(&text).and_then(|(units, written)| {
        if written <= scale {
            return units.checked_mul(10_i128.checked_pow(u32::try_from(scale - written).ok()?)?);
        }
        let unit = 10_i128.checked_pow(u32::try_from(written - scale).ok()?)?;
        (units % unit == 0).then_some(units / unit)
    });
    match rescaled.filter(|units| units.unsigned_abs() < NUMERIC_UNITS_MAX) {
        Some(units) => Ok(units),
        None => exec_err!("{value} has too many digits for a numeric without a scale; cast it to numeric(38, digits)"),
    }
}

fn numeric_type(fields: &[FieldRef]) -> Result<DataType> {
    let [operand] = fields else { return plan_err!("a cast has one operand") };
    match operand.data_type() {
        number if number.is_decimal() || number.is_integer() => crate::number::as_numeric(number),
        other if other.is_floating() || is_text_or_null(other) || is_jsonb(other) => Ok(numeric_with_free_scale(22)),
        other => plan_err!("cannot cast type {other} to numeric"),
    }
}

fn cast_to_numeric(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let to = call.returns;
    let DataType::Decimal128(precision, scale) = *to else { return plan_err!("a numeric must be a decimal") };
    let values = call.array(0)?;
    Ok(match values.data_type() {
        text if is_text(text) => from_text::parse_texts(cast(&values, &DataType::Utf8)?.as_string(), to)?,
        document if is_jsonb(document) => from_text::parse_texts(&crate::json::numbers(&values)?, to)?,
        float if float.is_floating() => {
            let doubles = cast(&values, &DataType::Float64)?;
            let numerics: Decimal128Array =
                try_map::<Float64Type, _>(&doubles, |value| double_to_numeric(value, scale))?;
            Arc::new(numerics.with_precision_and_scale(precision, scale)?)
        }
        _ => cast(&values, to)?,
    })
}
