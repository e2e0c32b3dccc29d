//! `+ - * / %` and unary minus that fail where PostgreSQL fails, on overflow and on division by zero; quotients of numerics,
//! and averages.
//!
//! DataFusion's operators wrap around, and give infinity for floating-point numbers. PostgreSQL gives a quotient at least 16
//! significant digits, chosen by its value. Arrow's types have one scale for all values, so a quotient has 20 digits after
//! the point, or 16 where it may have more than 18 before it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array, Int64Array, Scalar};
use arrow::compute::cast;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float32Type, Float64Type, Int64Type, i256};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{NUMERIC_UNITS_MAX, numeric_with_free_scale};
use crate::function::{ColumnarFunction, FunctionCall, columnar, convert_columnar, keep_types, try_zip};

/// Plans `left op right`, which fails on overflow. The operands must be coerced.
pub(super) fn plan_checked_operation(op: Operator, left: Expr, right: Expr) -> Expr {
    ScalarUDF::new_from_impl(CheckedArithmetic::new(op)).call(vec![left, right])
}

/// Plans `-operand`, which fails on overflow.
pub(super) fn plan_checked_negation(operand: Expr) -> Expr {
    ScalarUDF::new_from_impl(CheckedNegation { signature: Signature::any(1, Volatility::Immutable) })
        .call(vec![operand])
}

/// Whether the arithmetic of this type can overflow or divide by zero without an error.
pub(super) fn needs_check(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedArithmetic {
    op: Operator,
    signature: Signature,
}

impl CheckedArithmetic {
    fn new(op: Operator) -> Self {
        Self { op, signature: Signature::any(2, Volatility::Immutable) }
    }

    fn compute(&self, left: &dyn Datum, right: &dyn Datum) -> std::result::Result<ArrayRef, ArrowError> {
        match self.op {
            Operator::Plus => numeric::add(left, right),
            Operator::Minus => numeric::sub(left, right),
            Operator::Multiply => numeric::mul(left, right),
            Operator::Divide => numeric::div(left, right),
            Operator::BitwiseXor => bitwise_xor(left, right),
            _ => numeric::rem(left, right),
        }
    }
}

impl ScalarUDFImpl for CheckedArithmetic {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_subtract",
            Operator::Multiply => "checked_multiply",
            Operator::Divide => "checked_divide",
            Operator::BitwiseXor => "bitwise_xor",
            _ => "checked_modulo",
        }
    }

    #[allow(deprecated, reason = "plans show the operator")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(as_operator(self.op, args)?.to_string())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(as_operator(self.op, args)?.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if left == right && needs_check(left) => Ok(left.clone()),
            _ => plan_err!("the operands of {} were not coerced: {types:?}", self.op),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return plan_err!("{} has two operands", self.op) };
        let data_type = left.data_type();
        let (left_array, right_array) = (array_of(left)?, array_of(right)?);
        let result = match (is_scalar(left), is_scalar(right)) {
            (false, false) => self.compute(&left_array, &right_array),
            (false, true) => self.compute(&left_array, &Scalar::new(right_array.clone())),
            (true, false) => self.compute(&Scalar::new(left_array.clone()), &right_array),
            (true, true) => self.compute(&Scalar::new(left_array.clone()), &Scalar::new(right_array.clone())),
        };
        let result = result.map_err(|error| arithmetic_error(&error, &data_type))?;
        if data_type.is_floating() {
            check_floats(self.op, &result, &left_array, &right_array)?;
        }
        columnar(result, is_scalar(left) && is_scalar(right))
    }
}

fn as_operator(op: Operator, args: &[Expr]) -> Result<Expr> {
    let [left, right] = args else { return plan_err!("{op} has two operands") };
    Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left.clone()), op, Box::new(right.clone()))))
}

/// Computes `left # right` of integers.
fn bitwise_xor(left: &dyn Datum, right: &dyn Datum) -> std::result::Result<ArrayRef, ArrowError> {
    let ((left, left_is_one), (right, right_is_one)) = (left.get(), right.get());
    let data_type = left.data_type().clone();
    let (left, right) = (cast(left, &DataType::Int64)?, cast(right, &DataType::Int64)?);
    let (left, right) = (left.as_primitive::<Int64Type>(), right.as_primitive::<Int64Type>());
    let one = |values: &Int64Array| values.is_valid(0).then(|| values.value(0));
    let xor: Int64Array = match (left_is_one, right_is_one) {
        (true, false) => right.iter().map(|value| Some(one(left)? ^ value?)).collect(),
        (false, true) => left.iter().map(|value| Some(value? ^ one(right)?)).collect(),
        _ => left.iter().zip(right.iter()).map(|(left, right)| Some(left? ^ right?)).collect(),
    };
    cast(&xor, &data_type)
}

fn is_scalar(value: &ColumnarValue) -> bool {
    matches!(value, ColumnarValue::Scalar(_))
}

/// Returns the values; of a scalar one.
fn array_of(value: &ColumnarValue) -> Result<ArrayRef> {
    match value {
        ColumnarValue::Array(array) => Ok(array.clone()),
        ColumnarValue::Scalar(scalar) => scalar.to_array(),
    }
}

/// Fails if a result of finite operands is infinite: after an overflow, or a division by zero.
fn check_floats(op: Operator, result: &ArrayRef, left: &ArrayRef, right: &ArrayRef) -> Result<()> {
    if matches!(op, Operator::Divide | Operator::Modulo) && any_value(right, |value| value == 0.0) {
        // NULL / 0 is NULL, so a zero counts only where there is a result.
        let of_scalar = |array: &ArrayRef, row: usize| if array.len() == 1 { 0 } else { row };
        let divides = |row: usize| result.is_valid(row) && float_at(right, of_scalar(right, row)) == Some(0.0);
        if (0..result.len()).any(divides) {
            return exec_err!("division by zero");
        }
    }
    if any_value(result, f64::is_infinite) && !any_value(left, f64::is_infinite) && !any_value(right, f64::is_infinite)
    {
        return exec_err!("value out of range: overflow");
    }
    Ok(())
}

/// Whether a value of the floating-point `array` satisfies `is`.
fn any_value(array: &ArrayRef, is: impl Fn(f64) -> bool) -> bool {
    match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().iter().flatten().any(|value| is(f64::from(value))),
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().flatten().any(is),
        _ => false,
    }
}

fn float_at(array: &ArrayRef, row: usize) -> Option<f64> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Float32 => Some(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Some(array.as_primitive::<Float64Type>().value(row)),
        _ => None,
    }
}

/// Converts an error of Arrow to PostgreSQL's.
fn arithmetic_error(error: &ArrowError, data_type: &DataType) -> DataFusionError {
    match error {
        ArrowError::DivideByZero => DataFusionError::Execution("division by zero".to_owned()),
        ArrowError::ArithmeticOverflow(_) => super::out_of_range_error(data_type),
        other => DataFusionError::Execution(other.to_string()),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedNegation {
    signature: Signature,
}

impl ScalarUDFImpl for CheckedNegation {
    crate::name_and_signature!("checked_negate");

    #[allow(deprecated, reason = "plans show the operator")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| format!("(- {arg})")).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| format!("(- {})", arg.schema_name())).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [data_type] => Ok(data_type.clone()),
            _ => plan_err!("- has one operand"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(operand) = args.args.first() else { return plan_err!("- has one operand") };
        let data_type = operand.data_type();
        convert_columnar(operand, |values| numeric::neg(values).map_err(|error| arithmetic_error(&error, &data_type)))
    }
}

/// Plans `left / right`, of which at least one is a numeric and none is floating-point.
pub(super) fn plan_quotient(left: Expr, right: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::new_from_impl(Quotient { signature }).call(vec![left, right])
}

/// Whether values of these types are divided as numerics.
pub(super) fn is_numeric_division(left: &DataType, right: &DataType) -> bool {
    (left.is_decimal() || right.is_decimal()) && digits(left).is_some() && digits(right).is_some()
}

/// Plans the average `sum / count`. It is NULL where the sum is NULL.
pub(crate) fn plan_average(sum: Expr, count: Expr) -> Expr {
    ColumnarFunction::new("average", keep_types, average_type, average).call(vec![sum, count])
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![ColumnarFunction::new(
        "div",
        |types| {
            let [_, _] = types else { return plan_err!("div(numeric, numeric) has two arguments") };
            types.iter().map(super::as_numeric).collect()
        },
        |_| Ok(DataType::Decimal128(38, 0)),
        div,
    )]
}

/// Returns the numbers of digits before and after the point of a numeric or an integer.
pub(crate) fn digits(data_type: &DataType) -> Option<(i16, i8)> {
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

fn overflow_error() -> DataFusionError {
    exec_datafusion_err!("numeric field overflow")
}

/// Returns `values` as decimals, and their scale.
fn decimals(values: &ArrayRef) -> Result<(ArrayRef, i8)> {
    let (before, scale) = digits(values.data_type())
        .ok_or_else(|| DataFusionError::Internal("an operand of / is not a numeric".into()))?;
    Ok(match values.data_type() {
        DataType::Decimal128(..) => (values.clone(), scale),
        _ => (cast(values, &DataType::Decimal128(u8::try_from(before).unwrap_or(20), 0))?, scale),
    })
}

/// Computes `numerator / denominator`, rounded half away from zero.
fn divide_rounded(numerator: i256, denominator: i256) -> Result<i128> {
    let whole = numerator.checked_div(denominator).ok_or_else(overflow_error)?;
    let remainder = numerator.checked_rem(denominator).ok_or_else(overflow_error)?.wrapping_abs();
    let is_half_or_more = remainder.checked_add(remainder).ok_or_else(overflow_error)? >= denominator.wrapping_abs();
    let away_from_zero = if numerator.is_negative() == denominator.is_negative() { i256::ONE } else { i256::MINUS_ONE };
    let rounded = if is_half_or_more { whole.checked_add(away_from_zero) } else { Some(whole) };
    let units = rounded.and_then(i256::to_i128).ok_or_else(overflow_error)?;
    if units.unsigned_abs() < NUMERIC_UNITS_MAX { Ok(units) } else { Err(overflow_error()) }
}

/// Computes `left / right` with `scale` digits after the point.
fn divide(left: (i128, i8), right: (i128, i8), scale: i8) -> Result<i128> {
    if right.0 == 0 {
        return exec_err!("division by zero");
    }
    // left / 10^ls / (right / 10^rs) * 10^scale
    let exponent = i32::from(scale) + i32::from(right.1) - i32::from(left.1);
    let power = i256::from_i128(10).checked_pow(exponent.unsigned_abs());
    let scaled = |value: i256| power.and_then(|power| value.checked_mul(power)).ok_or_else(overflow_error);
    let (numerator, denominator) = (i256::from_i128(left.0), i256::from_i128(right.0));
    match exponent {
        0.. => divide_rounded(scaled(numerator)?, denominator),
        _ => divide_rounded(numerator, scaled(denominator)?),
    }
}

/// Divides each left value by its right one.
fn divide_all(left: &ArrayRef, right: &ArrayRef, quotient: &DataType) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *quotient else { return plan_err!("a quotient must be a numeric") };
    let ((left, left_scale), (right, right_scale)) = (decimals(left)?, decimals(right)?);
    let quotients: Decimal128Array = try_zip::<Decimal128Type, Decimal128Type, _>(&left, &right, |left, right| {
        divide((left, left_scale), (right, right_scale), scale)
    })?;
    Ok(Arc::new(quotients.with_precision_and_scale(precision, scale)?))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl ScalarUDFImpl for Quotient {
    crate::name_and_signature!("numeric_divide");

    #[allow(deprecated, reason = "plans show the operator")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return plan_err!("/ has two operands") };
        Ok(format!("{left} / {right}"))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(as_operator(Operator::Divide, args)?.schema_name().to_string())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [left, right] = types else { return plan_err!("/ has two operands") };
        match (digits(left), digits(right)) {
            (Some((before, _)), Some((_, after))) => Ok(numeric_with_free_scale(before + i16::from(after))),
            _ => plan_err!("cannot divide {left} by {right}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return plan_err!("/ has two operands") };
        let (left, right) = (left.to_array(args.number_rows)?, right.to_array(args.number_rows)?);
        Ok(ColumnarValue::Array(divide_all(&left, &right, args.return_field.data_type())?))
    }
}

fn average_type(fields: &[FieldRef]) -> Result<DataType> {
    let [sum, _] = fields else { return plan_err!("avg has one argument") };
    match sum.data_type() {
        DataType::Float32 | DataType::Float64 => Ok(DataType::Float64),
        // The sum has as many digits as a numeric can have, so it has the digits of the values.
        DataType::Decimal128(38, scale) => Ok(numeric_with_free_scale(38 - i16::from(*scale))),
        // The sum has 10 digits more than the values, and the average has those of the values.
        DataType::Decimal128(precision, scale) => {
            Ok(numeric_with_free_scale(i16::from(precision.saturating_sub(10)) - i16::from(*scale)))
        }
        sum if sum.is_integer() => Ok(numeric_with_free_scale(10)),
        span @ (DataType::Interval(_) | DataType::Duration(_)) => Ok(span.clone()),
        sum => plan_err!("avg of {sum} is not supported; cast it to a number first"),
    }
}

fn average(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (sum, count) = (call.array(0)?, call.array(1)?);
    match call.returns {
        DataType::Float64 => {
            let sums = cast(&sum, &DataType::Float64)?;
            let pairs = sums.as_primitive::<Float64Type>().iter().zip(count.as_primitive::<Int64Type>());
            // The number of values is small enough for a double.
            #[allow(clippy::cast_precision_loss, reason = "as PostgreSQL divides")]
            let averages = pairs.map(|(sum, count)| Some(sum? / count.filter(|count| *count > 0)? as f64));
            Ok(Arc::new(averages.collect::<arrow::array::Float64Array>()))
        }
        // A sum of no values is NULL, so no divisor is zero.
        returns if returns.is_numeric() => divide_all(&sum, &count, returns),
        _ => crate::time::average_spans(&sum, count.as_primitive::<Int64Type>()),
    }
}

/// Computes `div(a, b)`: the whole part of a quotient, towards zero, as a numeric.
fn div(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let ((left, left_scale), (right, right_scale)) = (decimals(&call.array(0)?)?, decimals(&call.array(1)?)?);
    let scale = left_scale.max(right_scale);
    let scaled = |value: i128, from: i8| {
        let factor = 10_i128.checked_pow(u32::from((scale - from).unsigned_abs()));
        factor.and_then(|factor| value.checked_mul(factor)).ok_or_else(overflow_error)
    };
    let whole: Decimal128Array = try_zip::<Decimal128Type, Decimal128Type, _>(&left, &right, |left, right| {
        if right == 0 {
            return exec_err!("division by zero");
        }
        Ok(scaled(left, left_scale)? / scaled(right, right_scale)?)
    })?;
    Ok(Arc::new(whole.with_precision_and_scale(38, 0)?))
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
    let is_free = super::has_unconstrained_scale(left_type) || super::has_unconstrained_scale(right_type);
    if !is_free || left_scale + right_scale <= super::UNCONSTRAINED_SCALE {
        return None;
    }
    let product = ColumnarFunction::new("numeric_multiply", keep_types, product_type, multiply);
    Some(product.call(vec![left.clone(), right.clone()]))
}

/// Returns the numeric with the scale of the operand that has more digits after the point.
fn product_type(fields: &[FieldRef]) -> Result<DataType> {
    let scale = fields.iter().filter_map(|field| digits(field.data_type())).map(|(_, scale)| scale).max();
    Ok(DataType::Decimal128(38, scale.unwrap_or(super::UNCONSTRAINED_SCALE)))
}

/// Multiplies two numerics and rounds the product.
fn multiply(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *call.returns else {
        return plan_err!("a product of numerics must be a numeric");
    };
    let ((left, left_scale), (right, right_scale)) = (decimals(&call.array(0)?)?, decimals(&call.array(1)?)?);
    let unit = i256::from_i128(10_i128.pow(u32::from((left_scale + right_scale - scale).unsigned_abs())));
    let products: Decimal128Array = try_zip::<Decimal128Type, Decimal128Type, _>(&left, &right, |left, right| {
        let product = i256::from_i128(left).checked_mul(i256::from_i128(right)).ok_or_else(overflow_error)?;
        divide_rounded(product, unit)
    })?;
    Ok(Arc::new(products.with_precision_and_scale(precision, scale)?))
}
