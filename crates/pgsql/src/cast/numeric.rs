//! `x::numeric`, whose number of digits depends on the value.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::json_type::{JsonKind, json_kind};

use super::{from_text, is_text};
use crate::number::{numeric_with_free_scale, parse_decimal};

/// The name of the function. The `*` keeps callers from writing it.
pub(super) const NAME: &str = "numeric*";

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Numeric { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Numeric {
    signature: Signature,
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
    match rescaled.filter(|units| units.unsigned_abs() < 10_u128.pow(38)) {
        Some(units) => Ok(units),
        None => exec_err!("{value} has too many digits for a numeric without a scale; cast it to numeric(38, digits)"),
    }
}

impl ScalarUDFImpl for Numeric {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types {
            [decimal] if decimal.is_decimal() => crate::number::as_numeric(decimal)?,
            [integer] if integer.is_integer() => crate::number::as_numeric(integer)?,
            [other] if other.is_floating() || is_text(other) || other.is_null() => numeric_with_free_scale(22),
            [other] if is_jsonb(other) => numeric_with_free_scale(22),
            [other] => return plan_err!("cannot cast type {other} to numeric"),
            _ => return plan_err!("a cast has one operand"),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type();
        let (Some(value), DataType::Decimal128(precision, scale)) = (args.args.first(), to) else {
            return plan_err!("a cast has one operand");
        };
        let values = value.to_array(args.number_rows)?;
        let numerics: ArrayRef = match values.data_type() {
            text if is_text(text) => from_text::parse_texts(cast(&values, &DataType::Utf8)?.as_string(), to)?,
            document if is_jsonb(document) => from_text::parse_texts(&crate::json::numbers(&values)?, to)?,
            float if float.is_floating() => {
                let doubles = cast(&values, &DataType::Float64)?;
                let units = doubles.as_primitive::<Float64Type>().iter();
                let units = units.map(|value| value.map(|value| double_to_numeric(value, *scale)).transpose());
                let units: Decimal128Array = units.collect::<Result<_>>()?;
                Arc::new(units.with_precision_and_scale(*precision, *scale)?)
            }
            _ => cast(&values, to)?,
        };
        Ok(ColumnarValue::Array(numerics))
    }
}
