//! The operator `~`, and integers that are written as bits.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{self, CastKind, Expr, Value};

use crate::function::{ColumnarFunction, FunctionCall, first_type};
use crate::syntax::{call, negative, nested, number, take};

/// The name of the function. The `*` keeps callers from writing it.
const NOT: &str = "bit_not*";

/// Rewrites `~operand`.
pub(super) fn rewrite_not(operand: &mut Expr) -> Expr {
    if let Expr::Value(value) = operand
        && let Value::Number(digits, false) = &value.value
        && let Ok(value) = digits.parse::<i64>()
    {
        return nested(negative(number(i128::from(value) + 1)));
    }
    call(NOT, vec![take(operand)])
}

pub(super) fn function() -> ScalarUDF {
    ColumnarFunction::new(
        NOT,
        |types| match types {
            [integer] if integer.is_integer() => Ok(vec![integer.clone()]),
            [DataType::Null] => Ok(vec![DataType::Int64]),
            _ => plan_err!("~ takes an integer; cast the operand: ~ x::bigint"),
        },
        first_type,
        |call: &FunctionCall<'_>| {
            let values = call.array(0)?;
            let flipped =
                cast(&values, &DataType::Int64)?.as_primitive::<Int64Type>().unary::<_, Int64Type>(|value| !value);
            Ok(cast(&(Arc::new(flipped) as ArrayRef), values.data_type())?)
        },
    )
}

/// Replaces `x'ff'::int` and `B'101'::bigint` with integers, and refuses other bit strings. Runs before inner
/// expressions are rewritten.
pub(crate) fn rewrite_bits(expression: &mut Expr) -> Result<()> {
    let Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } = &*expression else {
        return match bit_literal(expression) {
            Some(_) => plan_err!(
                "bit strings such as B'101' or x'ff' are not supported; write an integer, for instance x'ff'::int, and \
                 the operators & | # ~, or bytes, for instance '\\xff'::bytea"
            ),
            None => Ok(()),
        };
    };
    let Some((digits, bits_of_digit)) = bit_literal(expr) else { return Ok(()) };
    let width = match data_type {
        ast::DataType::Int(_) | ast::DataType::Integer(_) | ast::DataType::Int4(_) => 32,
        ast::DataType::BigInt(_) | ast::DataType::Int8(_) => 64,
        _ => return Ok(()),
    };
    let length = digits.len() as u32 * bits_of_digit;
    if length > width {
        return exec_err!("{} out of range", if width == 32 { "integer" } else { "bigint" });
    }
    let Ok(value) = u64::from_str_radix(if digits.is_empty() { "0" } else { digits }, 1 << bits_of_digit) else {
        return plan_err!("\"{digits}\" is not a bit string: write the digits 0 and 1 in B'…', and 0 to f in x'…'");
    };
    // The first of all bits is the sign.
    let value = if width == 32 { i64::from((value as u32).cast_signed()) } else { value.cast_signed() };
    let number = number(value.unsigned_abs());
    let number = if value < 0 { nested(negative(number)) } else { number };
    if let Expr::Cast { expr, .. } = expression {
        **expr = number;
    }
    Ok(())
}

/// Returns the digits of a bit string literal, and the number of bits of a digit.
fn bit_literal(expression: &Expr) -> Option<(&str, u32)> {
    let Expr::Value(value) = expression else { return None };
    match &value.value {
        Value::SingleQuotedByteStringLiteral(digits) => Some((digits, 1)),
        Value::HexStringLiteral(digits) => Some((digits, 4)),
        _ => None,
    }
}
