//! Functions that compute with doubles and, as PostgreSQL, fail where there is no result.
//!
//! Trigonometry in degrees is exact where the result is a simple fraction. An angle is reduced to the first quadrant, and
//! there to the smaller half, by the symmetries of the functions. Each half is scaled so that its last angle, 30, 45 or 60
//! degrees, has its exact result.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

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
        unary!("sind", |x| apply_to_finite(x, sine)),
        unary!("cosd", |x| apply_to_finite(x, cosine)),
        unary!("tand", |x| apply_to_finite(x, tangent)),
        unary!("cotd", |x| apply_to_finite(x, cotangent)),
        unary!("asind", |x| apply_within_unit_range(x, arcsine)),
        unary!("acosd", |x| apply_within_unit_range(x, arccosine)),
        unary!("atand", |x| Ok(arctangent(x.atan()))),
        ColumnarFunction::new("power", coerce_power, double_type, powers),
        ColumnarFunction::new("pow", coerce_power, double_type, powers),
        binary!("atan2", |y, x| Ok(y.atan2(x))),
        binary!("atan2d", |y, x| Ok(arctangent(y.atan2(x)))),
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

/// Computes the sine of an acute angle.
fn acute_sine(degrees: f64) -> f64 {
    if degrees <= 30.0 {
        degrees.to_radians().sin() / 30_f64.to_radians().sin() / 2.0
    } else {
        small_cosine(90.0 - degrees)
    }
}

/// Computes the cosine of an acute angle.
fn acute_cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 { small_cosine(degrees) } else { acute_sine(90.0 - degrees) }
}

/// Computes the cosine of an angle of at most 60 degrees.
fn small_cosine(degrees: f64) -> f64 {
    let below_one = |degrees: f64| 1.0 - degrees.to_radians().cos();
    1.0 - below_one(degrees) / below_one(60.0) / 2.0
}

/// Reduces an angle to one from 0 to 180 degrees. Returns whether the sine changes its sign.
fn half_turn(degrees: f64) -> (f64, bool) {
    let turned = degrees % 360.0;
    let (turned, is_negative) = if turned < 0.0 { (-turned, true) } else { (turned, false) };
    if turned > 180.0 { (360.0 - turned, !is_negative) } else { (turned, is_negative) }
}

fn with_sign(value: f64, is_negative: bool) -> f64 {
    if is_negative { -value } else { value }
}

fn sine(degrees: f64) -> f64 {
    let (angle, is_negative) = half_turn(degrees);
    with_sign(acute_sine(if angle > 90.0 { 180.0 - angle } else { angle }), is_negative)
}

fn cosine(degrees: f64) -> f64 {
    let (angle, _) = half_turn(degrees);
    if angle > 90.0 { -acute_cosine(180.0 - angle) } else { acute_cosine(angle) }
}

/// Computes the quotient of two functions of an acute angle, which is 1 at 45 degrees.
fn quotient(degrees: f64, over: fn(f64) -> f64, under: fn(f64) -> f64) -> f64 {
    let (angle, is_negative) = half_turn(degrees);
    let (angle, is_negative) = if angle > 90.0 { (180.0 - angle, !is_negative) } else { (angle, is_negative) };
    let of = |angle: f64| over(angle) / under(angle);
    let result = with_sign(of(angle) / of(45.0), is_negative);
    // Never a negative zero.
    if result == 0.0 { 0.0 } else { result }
}

fn tangent(degrees: f64) -> f64 {
    quotient(degrees, acute_sine, acute_cosine)
}

fn cotangent(degrees: f64) -> f64 {
    quotient(degrees, acute_cosine, acute_sine)
}

/// Computes the angle from 0 to 90 degrees with this sine, which is positive.
fn acute_arcsine(sine: f64) -> f64 {
    if sine <= 0.5 { sine.asin() / 0.5_f64.asin() * 30.0 } else { 90.0 - sine.acos() / 0.5_f64.acos() * 60.0 }
}

/// Computes the angle from 0 to 90 degrees with this cosine, which is positive.
fn acute_arccosine(cosine: f64) -> f64 {
    if cosine <= 0.5 { 90.0 - cosine.asin() / 0.5_f64.asin() * 30.0 } else { cosine.acos() / 0.5_f64.acos() * 60.0 }
}

fn arcsine(sine: f64) -> f64 {
    if sine >= 0.0 { acute_arcsine(sine) } else { -acute_arcsine(-sine) }
}

fn arccosine(cosine: f64) -> f64 {
    if cosine >= 0.0 { acute_arccosine(cosine) } else { 90.0 + acute_arcsine(-cosine) }
}

/// Converts an angle of an arctangent from radians to degrees.
fn arctangent(radians: f64) -> f64 {
    radians / 1_f64.atan() * 45.0
}
