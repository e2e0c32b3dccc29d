//! Numbers: arithmetic that does not wrap, exact numerics, rounding, and the functions of PostgreSQL over them.
//!
//! A numeric is a `Decimal128`. One whose number of digits PostgreSQL chooses by value (a quotient, an average) has
//! [`UNCONSTRAINED_SCALE`] digits after the point, or fewer where its digits before the point demand it.

mod arithmetic;
mod bits;
mod degrees;
mod division;
mod estimated_range;
mod float;
mod integer;
mod integer_literal;
mod literal;
mod numeric_comparison;
mod operator;
mod rounding;
mod rounding_check;
mod scale;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::functions::string::expr_fn::uuid;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};
use datafusion::sql::sqlparser::ast;

use crate::data_type::number_type_name;

pub(crate) use bits::rewrite_bits;
pub(crate) use division::{digits, plan_average};
pub(crate) use estimated_range::hide_ranges;
pub(crate) use integer_literal::{integer_value, mark_literals, plan_literal, widen_literals};
pub use literal::numeric_literal;
pub(crate) use literal::{invalid_input_error, parse_decimal, parse_float, parse_integer, write_float};
pub(crate) use numeric_comparison::{
    coerce_comparison_operands, common_float, compare_exactly, compare_join_keys, wide_type, widen_operand,
};
pub(crate) use operator::{plan_operator, type_literals};
pub(crate) use rounding::as_numeric;
pub(crate) use rounding_check::check_rounding;

/// The units of a numeric are below 10^38.
pub(crate) const NUMERIC_UNITS_MAX: u128 = 10_u128.pow(38);
/// Digits after the point of a numeric whose scale nothing declares.
pub(crate) const UNCONSTRAINED_SCALE: i8 = 20;
/// The fewest of them.
pub(crate) const FREE_SCALE_MIN: i8 = 16;

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = float::functions();
    functions.extend(integer::functions());
    functions.extend(rounding::functions());
    functions.extend(division::functions());
    // `random` is DataFusion's: a double of [0, 1). DataFusion's `uuid` makes version 4, as PostgreSQL does.
    if let Expr::ScalarFunction(uuid) = uuid() {
        functions.push(uuid.func.as_ref().clone().with_aliases(["gen_random_uuid"]));
    }
    functions.extend(scale::functions());
    functions.push(bits::function());
    functions
}

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut ast::Expr) -> Result<()> {
    operator::rewrite_syntax(expression)
}

/// Replaces arithmetic that would wrap with arithmetic that fails on overflow.
pub(crate) fn check_overflow(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Plus | Minus | Multiply | Divide | Modulo), right }) => {
            let (left_type, right_type) = (left.get_type(schema)?, right.get_type(schema)?);
            if left_type == right_type && arithmetic::needs_check(&left_type) {
                return Ok(Transformed::yes(arithmetic::plan_checked_operation(op, *left, *right)));
            }
            if op == Divide && (left_type.is_decimal() || right_type.is_decimal()) {
                return Ok(Transformed::yes(division::plan_quotient(*left, *right)));
            }
            Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        // DataFusion simplifies `x # x` to 0, even for NULL (issue 24246; `docs/decisions/upstream` says when this can go).
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right })
            if left.get_type(schema)?.is_integer() && left.get_type(schema)? == right.get_type(schema)? =>
        {
            Ok(Transformed::yes(arithmetic::plan_checked_operation(Operator::BitwiseXor, *left, *right)))
        }
        Expr::Negative(operand) if operand.get_type(schema)?.is_integer() => {
            Ok(Transformed::yes(arithmetic::plan_checked_negation(*operand)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Whether the scale of a numeric of this type was chosen here, so that its trailing zeros are not significant.
pub(crate) fn has_unconstrained_scale(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(38, scale) if (FREE_SCALE_MIN..=UNCONSTRAINED_SCALE).contains(scale))
}

/// Returns the type of a numeric without a declared scale, with `integer_digits` digits before the point.
pub(crate) fn numeric_with_free_scale(integer_digits: i16) -> DataType {
    let scale = (38 - integer_digits).clamp(i16::from(FREE_SCALE_MIN), i16::from(UNCONSTRAINED_SCALE));
    DataType::Decimal128(38, i8::try_from(scale).unwrap_or(FREE_SCALE_MIN))
}

/// Returns PostgreSQL's error for a number that its type cannot hold.
pub(crate) fn out_of_range_error(data_type: &DataType) -> DataFusionError {
    DataFusionError::Execution(format!("{} out of range", number_type_name(data_type)))
}

/// Computes `value / unit`, rounded half away from zero.
pub(crate) fn round_half_away_from_zero(value: i128, unit: i128) -> i128 {
    let (whole, rest) = (value / unit, value % unit);
    if rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2) && rest != 0 { whole + value.signum() } else { whole }
}

/// Converts integers to the type `to`, and fails if a value does not fit.
pub(crate) fn convert_integers_exactly(integers: &Int64Array, to: &DataType) -> Result<ArrayRef> {
    let narrowed = cast(integers, to)?;
    // Arrow returns NULL for values that do not fit.
    if narrowed.null_count() > integers.null_count() { Err(out_of_range_error(to)) } else { Ok(narrowed) }
}
