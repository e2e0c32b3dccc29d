//! Division of numerics, and averages.
//!
//! PostgreSQL gives a quotient at least 16 significant digits, chosen by its value. Arrow's types have one scale for
//! all values, so a quotient has 20 digits after the point, or 16 where it may have more than 18 before it.

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, i256};
use datafusion::common::{DataFusionError, Result, exec_err, plan_err};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::numeric_with_free_scale;

/// `left / right` of which at least one is a numeric and none is floating-point.
pub(super) fn plan_quotient(left: Expr, right: Expr) -> Expr {
    ScalarUDF::new_from_impl(Quotient::new()).call(vec![left, right])
}

/// Whether values of these types are divided as numerics.
pub(super) fn is_numeric_division(left: &DataType, right: &DataType) -> bool {
    (left.is_decimal() || right.is_decimal()) && digits(left).is_some() && digits(right).is_some()
}

/// `sum / count` as the average of what was summed; NULL where nothing was.
pub(crate) fn plan_average(sum: Expr, count: Expr) -> Expr {
    ScalarUDF::new_from_impl(Average { signature: Signature::any(2, Volatility::Immutable) }).call(vec![sum, count])
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![ScalarUDF::new_from_impl(Div { signature: Signature::user_defined(Volatility::Immutable) })]
}

/// The digits before and after the point of a numeric or an integer.
pub(super) fn digits(data_type: &DataType) -> Option<(i16, i8)> {
    Some(match data_type {
        DataType::Decimal128(precision, scale) => (i16::from(*precision) - i16::from(*scale), *scale),
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        _ => return None,
    })
}

/// The numeric that a quotient of these types is.
fn quotient_type(types: &[DataType]) -> Result<DataType> {
    match types {
        [left, right] => match (digits(left), digits(right)) {
            (Some((before, _)), Some((_, after))) => Ok(numeric_with_free_scale(before + i16::from(after))),
            _ => plan_err!("cannot divide {left} by {right}"),
        },
        _ => plan_err!("/ has two operands"),
    }
}

/// The operand as decimals of the scale that it has.
fn decimals(value: &ColumnarValue, rows: usize) -> Result<(Decimal128Array, i8)> {
    let array = value.to_array(rows)?;
    let (before, scale) = digits(array.data_type())
        .ok_or_else(|| DataFusionError::Internal("an operand of / is not a numeric".into()))?;
    let array = match array.data_type() {
        DataType::Decimal128(..) => array,
        _ => cast(&array, &DataType::Decimal128(u8::try_from(before).unwrap_or(20), 0))?,
    };
    Ok((array.as_primitive::<Decimal128Type>().clone(), scale))
}

/// `left / right` with `scale` digits after the point, rounded half away from zero.
fn divide(left: (i128, i8), right: (i128, i8), scale: i8) -> Result<i128> {
    if right.0 == 0 {
        return exec_err!("division by zero");
    }
    // left / 10^ls / (right / 10^rs) * 10^scale
    let exponent = i32::from(scale) + i32::from(right.1) - i32::from(left.1);
    let ten = i256::from_i128(10);
    let overflow = || DataFusionError::Execution("numeric field overflow".to_owned());
    let power = |exponent: i32| ten.checked_pow(u32::try_from(exponent).unwrap_or(0)).ok_or_else(overflow);
    let (numerator, denominator) = if exponent >= 0 {
        let numerator = i256::from_i128(left.0).checked_mul(power(exponent)?).ok_or_else(overflow)?;
        (numerator, i256::from_i128(right.0))
    } else {
        let denominator = i256::from_i128(right.0).checked_mul(power(-exponent)?).ok_or_else(overflow)?;
        (i256::from_i128(left.0), denominator)
    };
    let whole = numerator.checked_div(denominator).ok_or_else(overflow)?;
    let rest = numerator.checked_rem(denominator).ok_or_else(overflow)?.wrapping_abs();
    let half_or_more = rest.checked_add(rest).ok_or_else(overflow)? >= denominator.wrapping_abs();
    let unreachable = if (left.0 < 0) == (right.0 < 0) { i256::ONE } else { i256::MINUS_ONE };
    let rounded = if half_or_more { whole.checked_add(unreachable).ok_or_else(overflow)? } else { whole };
    let value = rounded.to_i128().ok_or_else(overflow)?;
    // 10^38, beyond which a Decimal128 has no name.
    if value.unsigned_abs() < 10_u128.pow(38) { Ok(value) } else { Err(overflow()) }
}

/// Each left value by its right one.
fn divide_all(args: &ScalarFunctionArgs, data_type: &DataType) -> Result<Decimal128Array> {
    let [left, right] = args.args.as_slice() else { return plan_err!("/ has two operands") };
    let DataType::Decimal128(precision, scale) = *data_type else { return plan_err!("a quotient must be a numeric") };
    let rows = args.number_rows;
    let ((left, left_scale), (right, right_scale)) = (decimals(left, rows)?, decimals(right, rows)?);
    let quotients = left.iter().zip(right.iter()).map(|(left, right)| match (left, right) {
        (Some(left), Some(right)) => divide((left, left_scale), (right, right_scale), scale).map(Some),
        _ => Ok(None),
    });
    let array: Decimal128Array = quotients.collect::<Result<_>>()?;
    Ok(array.with_precision_and_scale(precision, scale)?)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl Quotient {
    fn new() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &str {
        "numeric_divide"
    }

    #[allow(deprecated, reason = "plans show the operator")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return plan_err!("/ has two operands") };
        Ok(format!("{left} / {right}"))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return plan_err!("/ has two operands") };
        let division = BinaryExpr::new(Box::new(left.clone()), Operator::Divide, Box::new(right.clone()));
        Ok(Expr::BinaryExpr(division).schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        quotient_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(std::sync::Arc::new(divide_all(&args, args.return_field.data_type())?)))
    }
}

/// What `avg` is made of: the sum, whose type says how it is divided, and the number of values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Average {
    signature: Signature,
}

impl ScalarUDFImpl for Average {
    fn name(&self) -> &str {
        "average"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Float32 | DataType::Float64, _] => Ok(DataType::Float64),
            // The sum had no room for more digits: it has those of the values.
            [DataType::Decimal128(38, scale), _] => Ok(numeric_with_free_scale(38 - i16::from(*scale))),
            // The sum has room for many values; what is divided by their number has the digits of one.
            [DataType::Decimal128(precision, scale), _] => {
                Ok(numeric_with_free_scale(i16::from(precision.saturating_sub(10)) - i16::from(*scale)))
            }
            [sum, _] if sum.is_integer() => Ok(numeric_with_free_scale(10)),
            [span @ (DataType::Interval(_) | DataType::Duration(_)), _] => Ok(span.clone()),
            [sum, ..] => plan_err!("avg of {sum} is not supported; cast it to a number first"),
            [] => plan_err!("avg has one argument"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [sum, count] = args.args.as_slice() else { return plan_err!("avg takes a sum and a count") };
        if !args.return_field.data_type().is_numeric() {
            let (spans, counts) = (sum.to_array(rows)?, count.to_array(rows)?);
            return Ok(ColumnarValue::Array(crate::time::average_spans(&spans, counts.as_primitive::<Int64Type>())?));
        }
        let averages: ArrayRef = if args.return_field.data_type() == &DataType::Float64 {
            let sum = cast(&sum.to_array(rows)?, &DataType::Float64)?;
            let count = count.to_array(rows)?;
            let pairs = sum.as_primitive::<Float64Type>().iter().zip(count.as_primitive::<Int64Type>().iter());
            // The number of values is small enough for a double.
            #[allow(clippy::cast_precision_loss, reason = "as PostgreSQL divides")]
            let averages = pairs.map(|(sum, count)| Some(sum? / count.filter(|count| *count > 0)? as f64));
            std::sync::Arc::new(averages.collect::<arrow::array::Float64Array>())
        } else {
            // A sum of nothing is NULL, so nothing is divided by zero.
            std::sync::Arc::new(divide_all(&args, args.return_field.data_type())?)
        };
        Ok(ColumnarValue::Array(averages))
    }
}

/// `div(a, b)`: the whole part of a quotient, towards zero, as a numeric.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Div {
    signature: Signature,
}

impl ScalarUDFImpl for Div {
    fn name(&self) -> &str {
        "div"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [_, _] = types else { return plan_err!("div(numeric, numeric) has two arguments") };
        types.iter().map(super::rounding::as_numeric).collect()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        quotient_type(types).map(|_| DataType::Decimal128(38, 0))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return plan_err!("div has two arguments") };
        let rows = args.number_rows;
        let ((left, left_scale), (right, right_scale)) = (decimals(left, rows)?, decimals(right, rows)?);
        let scale = left_scale.max(right_scale);
        let overflow = || DataFusionError::Execution("numeric field overflow".to_owned());
        let scaled = |value: i128, from: i8| {
            let factor = 10_i128.checked_pow(u32::try_from(scale - from).unwrap_or(0)).ok_or_else(overflow)?;
            value.checked_mul(factor).ok_or_else(overflow)
        };
        let whole = left.iter().zip(right.iter()).map(|(left, right)| match (left, right) {
            (Some(_), Some(0)) => exec_err!("division by zero"),
            (Some(left), Some(right)) => Ok(Some(scaled(left, left_scale)? / scaled(right, right_scale)?)),
            _ => Ok(None),
        });
        let array: Decimal128Array = whole.collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(std::sync::Arc::new(array.with_precision_and_scale(38, 0)?)))
    }
}

/// Plans `left * right` of numerics if no type holds all digits of the product; `None` if DataFusion's operator is
/// exact.
pub(super) fn plan_wide_product(
    left: &Expr,
    left_type: &DataType,
    right: &Expr,
    right_type: &DataType,
) -> Option<Expr> {
    let (_, left_scale) = digits(left_type)?;
    let (_, right_scale) = digits(right_type)?;
    let is_free = super::has_free_scale(left_type) || super::has_free_scale(right_type);
    if !is_free || left_scale + right_scale <= super::FREE_SCALE {
        return None;
    }
    let product = Product { signature: Signature::any(2, Volatility::Immutable) };
    Some(ScalarUDF::new_from_impl(product).call(vec![left.clone(), right.clone()]))
}

/// The product of two numerics, rounded to the scale of a quotient.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Product {
    signature: Signature,
}

impl ScalarUDFImpl for Product {
    fn name(&self) -> &str {
        "numeric_multiply"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let scale = types.iter().filter_map(digits).map(|(_, scale)| scale).max();
        Ok(DataType::Decimal128(38, scale.unwrap_or(super::FREE_SCALE)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return plan_err!("* has two operands") };
        let DataType::Decimal128(precision, to) = *args.return_field.data_type() else {
            return plan_err!("a product of numerics must be a numeric");
        };
        let rows = args.number_rows;
        let ((left, left_scale), (right, right_scale)) = (decimals(left, rows)?, decimals(right, rows)?);
        // One factor divided by a power of ten, so that one routine rounds.
        let multiply = |left: i128, right: i128| {
            let overflow = || DataFusionError::Execution("numeric field overflow".to_owned());
            let product = i256::from_i128(left).checked_mul(i256::from_i128(right)).ok_or_else(overflow)?;
            let unit = i256::from_i128(10_i128.pow(u32::from((left_scale + right_scale - to).unsigned_abs())));
            let (whole, rest) = (product.wrapping_div(unit), product.wrapping_rem(unit).wrapping_abs());
            let unreachable = if (left < 0) == (right < 0) { i256::ONE } else { i256::MINUS_ONE };
            let is_up = rest.wrapping_add(rest) >= unit;
            let rounded = if is_up { whole.wrapping_add(unreachable) } else { whole };
            rounded.to_i128().filter(|value| value.unsigned_abs() < 10_u128.pow(38)).ok_or_else(overflow)
        };
        let products = left.iter().zip(right.iter()).map(|(left, right)| match (left, right) {
            (Some(left), Some(right)) => multiply(left, right).map(Some),
            _ => Ok(None),
        });
        let array: Decimal128Array = products.collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(std::sync::Arc::new(array.with_precision_and_scale(precision, to)?)))
    }
}
