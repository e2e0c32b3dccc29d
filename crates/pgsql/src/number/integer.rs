//! Functions of integers: `gcd`, `lcm`, `factorial`, `width_bucket`. The first two take numerics too.

use std::sync::Arc;

use arrow::array::{AsArray, Decimal128Array, Int32Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

pub(super) fn functions() -> Vec<ScalarUDF> {
    let signature = || Signature::user_defined(Volatility::Immutable);
    let integers = [IntegerFunction::Gcd, IntegerFunction::Lcm, IntegerFunction::Factorial];
    let mut functions: Vec<ScalarUDF> = integers
        .into_iter()
        .map(|function| ScalarUDF::new_from_impl(IntegerUdf { function, signature: signature() }))
        .collect();
    functions.push(ScalarUDF::new_from_impl(WidthBucket { signature: signature() }));
    functions
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IntegerFunction {
    Gcd,
    Lcm,
    Factorial,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntegerUdf {
    function: IntegerFunction,
    signature: Signature,
}

fn gcd(a: i64, b: i64) -> Result<i64> {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).map_err(|_| super::out_of_range_error(&DataType::Int64))
}

fn lcm(a: i64, b: i64) -> Result<i64> {
    if a == 0 || b == 0 {
        return Ok(0);
    }
    let multiple = (a / gcd(a, b)?).checked_mul(b).and_then(i64::checked_abs);
    multiple.ok_or_else(|| super::out_of_range_error(&DataType::Int64))
}

/// The numeric that arguments of `types` become.
fn common_numeric(types: &[DataType]) -> Result<DataType> {
    let (mut before, mut after) = (0, 0);
    for data_type in types.iter().filter(|data_type| !data_type.is_null()) {
        let DataType::Decimal128(precision, scale) = super::as_numeric(data_type)? else { continue };
        before = before.max(i16::from(precision) - i16::from(scale));
        after = after.max(scale);
    }
    Ok(DataType::Decimal128(u8::try_from(before + i16::from(after)).unwrap_or(38).min(38), after))
}

fn gcd_of_units(a: i128, b: i128) -> i128 {
    // The units of a numeric are less than 10^38.
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm_of_units(a: i128, b: i128) -> Result<i128> {
    if a == 0 || b == 0 {
        return Ok(0);
    }
    let multiple = (a / gcd_of_units(a, b)).checked_mul(b).map(i128::abs);
    match multiple.filter(|units| units.unsigned_abs() < 10_u128.pow(38)) {
        Some(units) => Ok(units),
        None => exec_err!("value overflows numeric format"),
    }
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

impl ScalarUDFImpl for IntegerUdf {
    fn name(&self) -> &str {
        match self.function {
            IntegerFunction::Gcd => "gcd",
            IntegerFunction::Lcm => "lcm",
            IntegerFunction::Factorial => "factorial",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let count = if self.function == IntegerFunction::Factorial { 1 } else { 2 };
        let is_exact = |data_type: &DataType| data_type.is_integer() || data_type.is_decimal() || data_type.is_null();
        if count == 2 && types.len() == 2 && types.iter().any(DataType::is_decimal) && types.iter().all(is_exact) {
            return Ok(vec![common_numeric(types)?; 2]);
        }
        let is_integer = |data_type: &DataType| data_type.is_integer() || data_type.is_null();
        if types.len() != count || !types.iter().all(is_integer) {
            return plan_err!("{} takes {count} integers; cast other numbers: x::bigint", self.name());
        }
        Ok(vec![DataType::Int64; count])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match (self.function, types.first()) {
            (IntegerFunction::Factorial, _) => DataType::Decimal128(38, 0),
            // A multiple may have more digits.
            (_, Some(DataType::Decimal128(_, scale))) => DataType::Decimal128(38, *scale),
            _ => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let function = match self.function {
            IntegerFunction::Gcd => gcd,
            IntegerFunction::Lcm => lcm,
            IntegerFunction::Factorial => {
                let [n] = arrays.as_slice() else { return plan_err!("factorial has one argument") };
                let values = n.as_primitive::<Int64Type>().iter().map(|n| n.map(factorial).transpose());
                let values: Decimal128Array = values.collect::<Result<_>>()?;
                return Ok(ColumnarValue::Array(Arc::new(values.with_precision_and_scale(38, 0)?)));
            }
        };
        let [a, b] = arrays.as_slice() else { return plan_err!("{} has two arguments", self.name()) };
        if let DataType::Decimal128(precision, scale) = *args.return_field.data_type() {
            let of_units = |a: i128, b: i128| match self.function {
                IntegerFunction::Lcm => lcm_of_units(a, b),
                _ => Ok(gcd_of_units(a, b)),
            };
            let pairs = a.as_primitive::<Decimal128Type>().iter().zip(b.as_primitive::<Decimal128Type>().iter());
            let values = pairs.map(|(a, b)| a.zip(b).map(|(a, b)| of_units(a, b)).transpose());
            let values: Decimal128Array = values.collect::<Result<_>>()?;
            return Ok(ColumnarValue::Array(Arc::new(values.with_precision_and_scale(precision, scale)?)));
        }
        let pairs = a.as_primitive::<Int64Type>().iter().zip(b.as_primitive::<Int64Type>().iter());
        let values = pairs.map(|(a, b)| a.zip(b).map(|(a, b)| function(a, b)).transpose());
        Ok(ColumnarValue::Array(Arc::new(values.collect::<Result<Int64Array>>()?)))
    }
}

/// `width_bucket(x, low, high, count)`, or `width_bucket(x, thresholds)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WidthBucket {
    signature: Signature,
}

fn width_bucket(x: f64, low: f64, high: f64, count: i64) -> Result<i32> {
    let Some(count) = i32::try_from(count).ok().filter(|count| *count > 0) else {
        return exec_err!("count must be greater than zero");
    };
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return exec_err!("operand, lower bound, and upper bound cannot be NaN");
    }
    if !low.is_finite() || !high.is_finite() {
        return exec_err!("lower and upper bounds must be finite");
    }
    #[allow(clippy::float_cmp, reason = "exactly equal bounds hold no bucket")]
    if low == high {
        return exec_err!("lower bound cannot equal upper bound");
    }
    let (from_start, width) = if low < high { (x - low, high - low) } else { (low - x, low - high) };
    if from_start < 0.0 {
        return Ok(0);
    }
    if from_start >= width {
        return count.checked_add(1).ok_or_else(|| super::out_of_range_error(&DataType::Int32));
    }
    // In 0..count, since the quotient is below 1.
    #[allow(clippy::cast_possible_truncation, reason = "checked above")]
    let bucket = (f64::from(count) * (from_start / width)).floor() as i32;
    Ok(bucket.min(count - 1) + 1)
}

/// How many of the sorted `thresholds` are not above `x`.
fn bucket_among(x: f64, thresholds: &arrow::array::ArrayRef) -> Result<i32> {
    let values = arrow::compute::cast(thresholds, &DataType::Float64)?;
    let values = values.as_primitive::<Float64Type>();
    let below = values.iter().flatten().filter(|threshold| *threshold <= x).count();
    Ok(i32::try_from(below).unwrap_or(i32::MAX))
}

impl ScalarUDFImpl for WidthBucket {
    fn name(&self) -> &str {
        "width_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_number = |data_type: &DataType| data_type.is_numeric() || data_type.is_null();
        match types {
            [x, list @ DataType::List(_)] if is_number(x) => Ok(vec![DataType::Float64, list.clone()]),
            [x, low, high, count] if [x, low, high, count].into_iter().all(is_number) => {
                Ok(vec![DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64])
            }
            _ => plan_err!("width_bucket takes (number, low, high, count) or (number, array of thresholds)"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let buckets = match arrays.as_slice() {
            [x, thresholds] => {
                let pairs = x.as_primitive::<Float64Type>().iter().zip(thresholds.as_list::<i32>().iter());
                let bucket = |(x, list): (Option<f64>, Option<arrow::array::ArrayRef>)| {
                    x.zip(list).map(|(x, list)| bucket_among(x, &list)).transpose()
                };
                pairs.map(bucket).collect::<Result<Int32Array>>()?
            }
            [x, low, high, count] => {
                let float = |array: &arrow::array::ArrayRef| array.as_primitive::<Float64Type>().clone();
                let (x, low, high, count) = (float(x), float(low), float(high), count.as_primitive::<Int64Type>());
                let bounds = low.iter().zip(high.iter()).zip(count.iter());
                let bucket = |(x, ((low, high), count))| {
                    let all = Option::zip(Option::zip(x, low), Option::zip(high, count));
                    all.map(|((x, low), (high, count))| width_bucket(x, low, high, count)).transpose()
                };
                x.iter().zip(bounds).map(bucket).collect::<Result<Int32Array>>()?
            }
            _ => return plan_err!("width_bucket takes two or four arguments"),
        };
        Ok(ColumnarValue::Array(Arc::new(buckets)))
    }
}
