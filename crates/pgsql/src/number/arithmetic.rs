//! `+ - * / %` and unary minus that fail where PostgreSQL fails: on overflow, and on division by zero.
//!
//! DataFusion's operators wrap around, and give infinity for floating-point numbers.

use arrow::array::{Array, ArrayRef, AsArray, Datum, Int64Array, Scalar};
use arrow::compute::cast;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, exec_err, plan_err};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::function::{columnar, convert_columnar};

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

pub(super) fn as_operator(op: Operator, args: &[Expr]) -> Result<Expr> {
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
