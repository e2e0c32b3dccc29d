//! Functions of integers: `gcd`, `lcm`, `factorial`, `width_bucket`, `pg_size_pretty`. The first two take numerics too.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, FieldRef, Float64Type, Int64Type, i256,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::{NUMERIC_UNITS_MAX, out_of_range_error};
use crate::function::{ColumnarFunction, FunctionCall, int4_type, text_type, try_map, try_zip};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("gcd", |types| pair_types("gcd", types), divisor_type, |call| zip(call, gcd)),
        ColumnarFunction::new("lcm", |types| pair_types("lcm", types), divisor_type, |call| zip(call, lcm)),
        ColumnarFunction::new(
            "factorial",
            |types| match types {
                [integer] if is_integer(integer) => Ok(vec![DataType::Int64]),
                _ => plan_err!("factorial takes 1 integers; cast other numbers: x::bigint"),
            },
            |_| Ok(DataType::Decimal128(38, 0)),
            |call| {
                let values: Decimal128Array = try_map::<Int64Type, _>(&call.array(0)?, factorial)?;
                Ok(Arc::new(values.with_precision_and_scale(38, 0)?))
            },
        ),
        ColumnarFunction::new("width_bucket", bucket_types, int4_type, width_buckets),
        ColumnarFunction::new(
            "pg_size_pretty",
            |types| match types {
                [integer] if is_integer(integer) => Ok(vec![DataType::Int64]),
                _ => plan_err!("pg_size_pretty takes an integer; cast other numbers: x::bigint"),
            },
            text_type,
            |call| {
                let sizes = call.array(0)?;
                let texts = sizes.as_primitive::<Int64Type>().iter().map(|bytes| bytes.map(format_size));
                Ok(Arc::new(texts.collect::<StringArray>()))
            },
        ),
    ]
}

fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_null()
}

/// Returns the types that the arguments of `gcd` and `lcm` are coerced to.
fn pair_types(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let is_exact = |data_type: &DataType| is_integer(data_type) || data_type.is_decimal();
    if types.len() != 2 || !types.iter().all(is_exact) {
        return plan_err!("{name} takes 2 integers; cast other numbers: x::bigint");
    }
    let common = if types.iter().any(DataType::is_decimal) { common_numeric(types)? } else { DataType::Int64 };
    Ok(vec![common; 2])
}

fn divisor_type(fields: &[FieldRef]) -> Result<DataType> {
    Ok(match fields[0].data_type() {
        // A multiple may have more digits.
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, *scale),
        _ => DataType::Int64,
    })
}

/// Returns the numeric that holds the values of all `types`.
fn common_numeric(types: &[DataType]) -> Result<DataType> {
    let (mut before, mut after) = (0, 0);
    for data_type in types.iter().filter(|data_type| !data_type.is_null()) {
        let DataType::Decimal128(precision, scale) = super::as_numeric(data_type)? else { continue };
        before = before.max(i16::from(precision) - i16::from(scale));
        after = after.max(scale);
    }
    Ok(DataType::Decimal128(u8::try_from(before + i16::from(after)).unwrap_or(38).min(38), after))
}

/// Applies `compute` to the integers of each row, or to the units of numerics of one scale.
fn zip(call: &FunctionCall<'_>, compute: fn(i128, i128) -> Option<i128>) -> Result<ArrayRef> {
    let (a, b) = (call.array(0)?, call.array(1)?);
    if let DataType::Decimal128(precision, scale) = *call.returns {
        let values: Decimal128Array = try_zip::<Decimal128Type, Decimal128Type, _>(&a, &b, |a, b| {
            match compute(a, b).filter(|units| units.unsigned_abs() < NUMERIC_UNITS_MAX) {
                Some(units) => Ok(units),
                None => exec_err!("value overflows numeric format"),
            }
        })?;
        return Ok(Arc::new(values.with_precision_and_scale(precision, scale)?));
    }
    let values: Int64Array = try_zip::<Int64Type, Int64Type, _>(&a, &b, |a, b| {
        let value = compute(a.into(), b.into()).and_then(|value| i64::try_from(value).ok());
        value.ok_or_else(|| out_of_range_error(&DataType::Int64))
    })?;
    Ok(Arc::new(values))
}

/// Returns the values are less than 10^38, so their absolute values exist.
fn gcd(a: i128, b: i128) -> Option<i128> {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Some(a)
}

fn lcm(a: i128, b: i128) -> Option<i128> {
    if a == 0 || b == 0 { Some(0) } else { (a / gcd(a, b)?).checked_mul(b)?.checked_abs() }
}

fn factorial(n: i64) -> Result<i128> {
    if n < 0 {
        return exec_err!("factorial of a negative number is undefined");
    }
    // 33! has 37 digits, and a numeric 38.
    if n > 33 {
        return exec_err!("value overflows numeric format: factorial is computed up to 33");
    }
    Ok((1..=i128::from(n)).product())
}

/// Formats bytes as PostgreSQL does: `bytes` up to 10240, then the first unit whose value is below 20480, rounded.
fn format_size(bytes: i64) -> String {
    const UNITS: &[&str] = &["kB", "MB", "GB", "TB", "PB"];
    if bytes.unsigned_abs() < 10 * 1_024 {
        return format!("{bytes} bytes");
    }
    // Counts half kilobytes, so that the last bit decides the rounding.
    let mut halves = bytes / 512;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        if halves.unsigned_abs() < 20 * 1_024 * 2 - 1 {
            break;
        }
        halves /= 1_024;
        unit = larger;
    }
    format!("{} {unit}", (halves + halves.signum()) / 2)
}

/// Returns the bucket of a value outside of the bounds; `None` for one between them.
fn outer_bucket<T: PartialOrd>(x: &T, low: &T, high: &T, count: i64) -> Result<Option<i32>> {
    let Some(count) = i32::try_from(count).ok().filter(|count| *count > 0) else {
        return exec_err!("count must be greater than zero");
    };
    if low == high {
        return exec_err!("lower bound cannot equal upper bound");
    }
    let (is_before, is_after) = if low < high { (x < low, x >= high) } else { (x > low, x <= high) };
    if is_before {
        return Ok(Some(0));
    }
    if !is_after {
        return Ok(None);
    }
    count.checked_add(1).map(Some).ok_or_else(|| out_of_range_error(&DataType::Int32))
}

fn width_bucket(x: f64, low: f64, high: f64, count: i64) -> Result<i32> {
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return exec_err!("operand, lower bound, and upper bound cannot be NaN");
    }
    if !low.is_finite() || !high.is_finite() {
        return exec_err!("lower and upper bounds must be finite");
    }
    if let Some(bucket) = outer_bucket(&x, &low, &high, count)? {
        return Ok(bucket);
    }
    // Halves, because the width of the largest bounds is no double.
    let part = (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    // In 0..=count, since the quotient is at most 1.
    let bucket = (count as f64 * part).floor() as i64;
    i32::try_from(bucket.min(count - 1) + 1).map_err(|_| out_of_range_error(&DataType::Int32))
}

/// Computes the bucket of numerics, which are integers of one scale.
fn numeric_bucket(x: i256, low: i256, high: i256, count: i64) -> Result<i32> {
    if let Some(bucket) = outer_bucket(&x, &low, &high, count)? {
        return Ok(bucket);
    }
    let overflow = || exec_datafusion_err!("numeric field overflow; cast an argument to double precision");
    let (from_start, width) = (x.checked_sub(low), high.checked_sub(low));
    let (from_start, width) = from_start.zip(width).ok_or_else(overflow)?;
    let bucket = i256::from(count).checked_mul(from_start).and_then(|scaled| scaled.checked_div(width));
    let bucket = bucket.and_then(|bucket| bucket.to_i128()).ok_or_else(overflow)?;
    i32::try_from(bucket + 1).map_err(|_| out_of_range_error(&DataType::Int32))
}

/// Counts the sorted `thresholds` that are not above `x`.
fn bucket_among(x: f64, thresholds: &ArrayRef) -> Result<i32> {
    let values = arrow::compute::cast(thresholds, &DataType::Float64)?;
    let values = values.as_primitive::<Float64Type>();
    // NaN is above all numbers.
    let is_reached = |threshold: &f64| x.is_nan() || *threshold <= x;
    let below = values.iter().flatten().filter(is_reached).count();
    Ok(i32::try_from(below).unwrap_or(i32::MAX))
}

fn bucket_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let is_number = |data_type: &DataType| data_type.is_numeric() || data_type.is_null();
    match types {
        [x, list @ DataType::List(_)] if is_number(x) => Ok(vec![DataType::Float64, list.clone()]),
        [values @ .., count] if values.len() == 3 && types.iter().all(is_number) && !count.is_floating() => {
            let is_numeric = values.iter().any(DataType::is_decimal) && !values.iter().any(DataType::is_floating);
            let scale = |data_type: &DataType| match data_type {
                DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale,
                _ => 0,
            };
            let common = match values.iter().map(scale).max() {
                Some(scale) if is_numeric => DataType::Decimal256(76, scale.max(0)),
                _ => DataType::Float64,
            };
            Ok(vec![common.clone(), common.clone(), common, DataType::Int64])
        }
        _ => plan_err!("width_bucket takes (number, low, high, count) or (number, array of thresholds)"),
    }
}

/// Computes `width_bucket(x, low, high, count)`, or `width_bucket(x, thresholds)`.
fn width_buckets(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let arrays = call.arrays()?;
    let buckets = match arrays.as_slice() {
        [x, thresholds] => {
            let pairs = x.as_primitive::<Float64Type>().iter().zip(thresholds.as_list::<i32>().iter());
            let bucket = |(x, list): (Option<f64>, Option<ArrayRef>)| {
                x.zip(list).map(|(x, list)| bucket_among(x, &list)).transpose()
            };
            pairs.map(bucket).collect::<Result<Int32Array>>()?
        }
        [x, low, high, count] if x.data_type().is_floating() => {
            buckets_between::<Float64Type>([x, low, high], count, width_bucket)?
        }
        [x, low, high, count] => buckets_between::<Decimal256Type>([x, low, high], count, numeric_bucket)?,
        _ => return plan_err!("width_bucket takes two or four arguments"),
    };
    Ok(Arc::new(buckets))
}

/// The number of the bucket of a value between two bounds with this many buckets.
type Bucket<T> = fn(T, T, T, i64) -> Result<i32>;

fn buckets_between<P: ArrowPrimitiveType>(
    values: [&ArrayRef; 3],
    counts: &ArrayRef,
    bucket: Bucket<P::Native>,
) -> Result<Int32Array> {
    let [x, low, high] = values.map(|array| array.as_primitive::<P>());
    let bounds = low.iter().zip(high).zip(counts.as_primitive::<Int64Type>());
    let bucket = |(x, ((low, high), count))| {
        let all = Option::zip(Option::zip(x, low), Option::zip(high, count));
        all.map(|((x, low), (high, count))| bucket(x, low, high, count)).transpose()
    };
    x.iter().zip(bounds).map(bucket).collect()
}
