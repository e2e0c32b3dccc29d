//! `scale`, `min_scale` and `trim_scale`: digits after the point of a numeric.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::function::{ColumnarFunction, FunctionCall};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("scale", declared_scale_types, |_| Ok(DataType::Int32), scale),
        ColumnarFunction::new("min_scale", single_numeric_type, |_| Ok(DataType::Int32), min_scale),
        // The type has one scale for all values, so zeros at the end are left where they are, but have no text.
        ColumnarFunction::new(
            "trim_scale",
            single_numeric_type,
            |fields| Ok(trimmed_type(fields[0].data_type())),
            trim_scale,
        ),
    ]
}

fn single_numeric_type(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Null] => Ok(vec![DataType::Decimal128(1, 0)]),
        [number] if number.is_decimal() || number.is_integer() => Ok(vec![super::as_numeric(number)?]),
        [_] => plan_err!("scale, min_scale and trim_scale take a numeric; cast the argument: x::numeric"),
        _ => plan_err!("scale, min_scale and trim_scale take one numeric"),
    }
}

fn declared_scale_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let numerics = single_numeric_type(types)?;
    if numerics.iter().any(super::has_unconstrained_scale) {
        return plan_err!(
            "the scale of a quotient or an average is not available, because PostgreSQL chooses its number of digits \
             by its value; write min_scale(x), or round it first: scale(round(x, 2))"
        );
    }
    Ok(numerics)
}

fn trimmed_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal128(_, scale) if *scale <= super::UNCONSTRAINED_SCALE => {
            DataType::Decimal128(38, (*scale).max(super::FREE_SCALE_MIN))
        }
        other => other.clone(),
    }
}

fn scale_of(values: &ArrayRef) -> i8 {
    match values.data_type() {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

fn scale(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let values = call.array(0)?;
    let scale = i32::from(scale_of(&values));
    let scales = (0..values.len()).map(|row| values.is_valid(row).then_some(scale));
    Ok(Arc::new(scales.collect::<Int32Array>()))
}

fn min_scale(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let values = call.array(0)?;
    let scale = i32::from(scale_of(&values));
    let needed = |mut units: i128| {
        let mut needed = scale;
        while needed > 0 && units % 10 == 0 {
            units /= 10;
            needed -= 1;
        }
        needed
    };
    let scales = values.as_primitive::<Decimal128Type>().iter().map(|units| units.map(needed));
    Ok(Arc::new(scales.collect::<Int32Array>()))
}

fn trim_scale(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    Ok(arrow::compute::cast_with_options(
        &call.array(0)?,
        call.returns,
        &arrow::compute::CastOptions { safe: false, ..Default::default() },
    )?)
}
