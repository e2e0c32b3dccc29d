//! Functions that compute with doubles and, as PostgreSQL, fail where there is no result.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::degrees;
use crate::function::{ColumnarFunction, FunctionCall, try_map, try_zip};

const DOMAIN: &str = "input is out of range";

macro_rules! unary {
    ($name:literal, $function:expr) => {
        ColumnarFunction::new($name, |types| coerce($name, types, 1..=1), double_type, |call| map(call, $function))
    };
}

macro_rules! binary {
    ($name:literal, $function:expr) => {
        ColumnarFunction::new($name, |types| coerce($name, types, 2..=2), double_type, |call| zip(call, $function))
    };
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        unary!("sqrt", sqrt),
        unary!("cbrt", |x| Ok(x.cbrt())),
        unary!("exp", |x| in_range(x, x.exp())),
        unary!("ln", ln),
        unary!("log10", |x| ln(x).map(|_| x.log10())),
        unary!("degrees", |x| in_range(x, x.to_degrees())),
        unary!("radians", |x| Ok(x.to_radians())),
        unary!("sin", |x| apply_to_finite(x, f64::sin)),
        unary!("cos", |x| apply_to_finite(x, f64::cos)),
        unary!("tan", |x| apply_to_finite(x, f64::tan)),
        unary!("cot", |x| apply_to_finite(x, |x| 1.0 / x.tan())),
        unary!("asin", |x| apply_within_unit_range(x, f64::asin)),
        unary!("acos", |x| apply_within_unit_range(x, f64::acos)),
        unary!("atan", |x| Ok(x.atan())),
        unary!("sinh", |x| Ok(x.sinh())),
        unary!("cosh", |x| Ok(x.cosh())),
        unary!("tanh", |x| Ok(x.tanh())),
        unary!("asinh", |x| Ok(x.asinh())),
        unary!("acosh", |x| if x < 1.0 { exec_err!("{DOMAIN}") } else { Ok(x.acosh()) }),
        unary!("atanh", |x| apply_within_unit_range(x, f64::atanh)),
        unary!("sind", |x| apply_to_finite(x, degrees::sine)),
        unary!("cosd", |x| apply_to_finite(x, degrees::cosine)),
        unary!("tand", |x| apply_to_finite(x, degrees::tangent)),
        unary!("cotd", |x| apply_to_finite(x, degrees::cotangent)),
        unary!("asind", |x| apply_within_unit_range(x, degrees::arcsine)),
        unary!("acosd", |x| apply_within_unit_range(x, degrees::arccosine)),
        unary!("atand", |x| Ok(degrees::arctangent(x.atan()))),
        ColumnarFunction::new("power", coerce_power, double_type, powers),
        ColumnarFunction::new("pow", coerce_power, double_type, powers),
        binary!("atan2", |y, x| Ok(y.atan2(x))),
        binary!("atan2d", |y, x| Ok(degrees::arctangent(y.atan2(x)))),
        ColumnarFunction::new(
            "log",
            |types| coerce("log", types, 1..=2),
            double_type,
            |call| match call.args.len() {
                1 => map(call, |x| ln(x).map(|_| x.log10())),
                _ => zip(call, log),
            },
        ),
    ]
}

fn coerce(name: &str, types: &[DataType], counts: RangeInclusive<usize>) -> Result<Vec<DataType>> {
    let is_number =
        |data_type: &DataType| data_type.is_numeric() || data_type.is_null() || matches!(data_type, DataType::Utf8);
    if !counts.contains(&types.len()) || !types.iter().all(is_number) {
        return plan_err!("{name}({types:?}) does not exist; it takes numbers");
    }
    Ok(vec![DataType::Float64; types.len()])
}

/// Keeps a numeric as it is, unless the exponent is a double: the digits that a double lacks count as often as the exponent
/// says.
fn coerce_power(types: &[DataType]) -> Result<Vec<DataType>> {
    let mut coerced = coerce("power", types, 2..=2)?;
    if matches!(types[0], DataType::Decimal128(..)) && !types[1].is_floating() {
        coerced[0] = types[0].clone();
    }
    Ok(coerced)
}

fn double_type(_: &[FieldRef]) -> Result<DataType> {
    Ok(DataType::Float64)
}

fn map(call: &FunctionCall<'_>, compute: impl Fn(f64) -> Result<f64>) -> Result<ArrayRef> {
    Ok(Arc::new(try_map::<Float64Type, Float64Type>(&call.array(0)?, compute)?))
}

fn zip(call: &FunctionCall<'_>, compute: impl Fn(f64, f64) -> Result<f64>) -> Result<ArrayRef> {
    Ok(Arc::new(try_zip::<Float64Type, Float64Type, Float64Type>(&call.array(0)?, &call.array(1)?, compute)?))
}

fn sqrt(x: f64) -> Result<f64> {
    if x < 0.0 { exec_err!("cannot take square root of a negative number") } else { Ok(x.sqrt()) }
}

fn ln(x: f64) -> Result<f64> {
    if x == 0.0 {
        return exec_err!("cannot take logarithm of zero");
    }
    if x < 0.0 { exec_err!("cannot take logarithm of a negative number") } else { Ok(x.ln()) }
}

fn log(base: f64, x: f64) -> Result<f64> {
    let (base, x) = (ln(base)?, ln(x)?);
    if base == 0.0 { exec_err!("division by zero") } else { Ok(x / base) }
}

/// Fails if the result of a finite value is infinite.
fn in_range(x: f64, result: f64) -> Result<f64> {
    if x.is_finite() && result.is_infinite() {
        return exec_err!("value out of range: overflow");
    }
    Ok(result)
}

fn apply_to_finite(x: f64, function: impl Fn(f64) -> f64) -> Result<f64> {
    if x.is_infinite() { exec_err!("{DOMAIN}") } else { Ok(function(x)) }
}

fn apply_within_unit_range(x: f64, function: impl Fn(f64) -> f64) -> Result<f64> {
    if x.abs() > 1.0 { exec_err!("{DOMAIN}") } else { Ok(function(x)) }
}

fn power(x: f64, y: f64) -> Result<f64> {
    if x == 0.0 && y < 0.0 {
        return exec_err!("zero raised to a negative power is undefined");
    }
    if x < 0.0 && x.is_finite() && y.is_finite() && y.fract() != 0.0 {
        return exec_err!("a negative number raised to a non-integer power yields a complex result");
    }
    let result = x.powf(y);
    if y.is_finite() { in_range(x, result) } else { Ok(result) }
}

fn powers(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let bases = call.array(0)?;
    let DataType::Decimal128(_, scale) = *bases.data_type() else { return zip(call, power) };
    let compute = |units: i128, y: f64| power_of_numeric(units, scale, y);
    Ok(Arc::new(try_zip::<Decimal128Type, Float64Type, Float64Type>(&bases, &call.array(1)?, compute)?))
}

fn power_of_numeric(units: i128, scale: i8, y: f64) -> Result<f64> {
    let Ok(x) = format!("{units}e-{scale}").parse::<f64>() else { return exec_err!("{DOMAIN}") };
    let result = power(x, y)?;
    if !(0..=22).contains(&scale) || x == 0.0 || !y.is_finite() {
        return Ok(result);
    }
    // This power of ten is exact, and so is the sum of `scaled` and `rounded`.
    let unit = 10_f64.powi(i32::from(scale));
    let scaled = x * unit;
    let rounded = x.mul_add(unit, -scaled);
    let rest = if scaled.abs() < 9e15 { units as f64 - scaled } else { (units - scaled as i128) as f64 };
    Ok(result * (y * ((rest - rounded) / scaled).ln_1p()).exp())
}
