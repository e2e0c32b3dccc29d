//! Comparisons of numerics whose common type has more digits than a `Decimal128`, of numerics with doubles, and of integers
//! with a `real`.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, Cast, InList, InSubquery, SetComparison};
use datafusion::logical_expr::expr_schema::cast_subquery;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};

use super::arithmetic::digits;
use super::integer_value;
use super::literal::to_float;
use crate::list::{dimensions, innermost_type, list_type};
use crate::operands::compared_operands;

/// The digits of a `Decimal128`.
const NARROW_DIGITS: i16 = 38;

/// The digits of a `Decimal256`.
const WIDE_DIGITS: i16 = 76;

/// Returns the type that compares values of `types` as PostgreSQL does: a double if there is a floating-point number, else
/// one that holds them all exactly. `None` if a `Decimal128` or an integer does, or if none is a numeric.
pub(crate) fn wide_type(types: &[DataType]) -> Option<DataType> {
    if !types.iter().any(DataType::is_decimal) {
        return None;
    }
    if types.iter().any(DataType::is_floating) {
        let is_number = |data_type: &DataType| data_type.is_numeric() || data_type.is_null();
        return types.iter().all(is_number).then_some(DataType::Float64);
    }
    let (mut before, mut after) = (0, 0);
    for data_type in types.iter().filter(|data_type| !data_type.is_null()) {
        let (own_before, own_after) = digits(data_type)?;
        before = before.max(own_before);
        after = after.max(own_after);
    }
    let precision = before + i16::from(after);
    (precision > NARROW_DIGITS)
        .then(|| DataType::Decimal256(u8::try_from(precision.min(WIDE_DIGITS)).unwrap_or(76), after))
}

/// Returns the floating-point type of values of `types` if numerics are beside floating-point numbers, also in arrays.
/// DataFusion prefers the numeric, which has too few digits.
pub(crate) fn common_float(types: &[DataType]) -> Option<DataType> {
    let typed = || types.iter().filter(|data_type| !data_type.is_null());
    let depth = typed().map(dimensions).max()?;
    let items: Vec<&DataType> = typed().map(innermost_type).filter(|item| !item.is_null()).collect();
    let are_numbers =
        typed().all(|data_type| dimensions(data_type) == depth) && items.iter().all(|item| item.is_numeric());
    let has_both = items.iter().any(|item| item.is_decimal()) && items.iter().any(|item| item.is_floating());
    if !are_numbers || !has_both {
        return None;
    }
    let is_double = items.contains(&&DataType::Float64);
    let float = if is_double { DataType::Float64 } else { DataType::Float32 };
    Some((0..depth).fold(float, |item, _| list_type(item)))
}

/// Converts an operand to a wider type of numbers. A literal becomes the number that its digits mean.
pub(crate) fn widen_operand(operand: Expr, wide: &DataType) -> Expr {
    match operand {
        Expr::Literal(value, metadata) if wide.is_floating() => Expr::Literal(to_float(value, wide), metadata),
        other => Expr::Cast(Cast::new(Box::new(other), wide.clone())),
    }
}

fn widen_box(mut operand: Box<Expr>, wide: &DataType) -> Box<Expr> {
    *operand = widen_operand(std::mem::take(operand.as_mut()), wide);
    operand
}

/// Whether `types`, the first of which are those of `operands`, are a `real` and integers that are none. DataFusion would
/// round these.
fn are_compared_as_doubles(expression: &Expr, operands: &[&Expr], types: &[DataType]) -> bool {
    // Several constants in a list are an array of reals.
    let is_array = match expression {
        Expr::InList(list) => list.list.iter().filter(|value| !value.any_column_refs()).count() > 1,
        _ => false,
    };
    let is_exact = |position: usize| operands.get(position).is_some_and(|operand| is_exact_real(operand));
    let mut integers = types.iter().enumerate().filter(|(_, data_type)| data_type.is_integer());
    !is_array && types.contains(&DataType::Float32) && integers.any(|(position, _)| !is_exact(position))
}

/// Whether an integer literal is a `real`, too.
pub(super) fn is_exact_real(operand: &Expr) -> bool {
    const INTEGER_MAX: u64 = 1 << f32::MANTISSA_DIGITS;
    integer_value(operand).is_some_and(|value| value.unsigned_abs() <= INTEGER_MAX)
}

/// Converts the operands of a comparison of numbers to one type, if DataFusion would choose another.
pub(crate) fn compare_exactly(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operands, types) = compared_operands(&expression, schema)?;
    let is_double = || are_compared_as_doubles(&expression, &operands, &types);
    let Some(wide) = wide_type(&types).or_else(|| is_double().then_some(DataType::Float64)) else {
        return Ok(Transformed::no(expression));
    };
    Ok(Transformed::yes(match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            Expr::BinaryExpr(BinaryExpr { left: widen_box(left, &wide), op, right: widen_box(right, &wide) })
        }
        Expr::Between(Between { expr, negated, low, high }) => Expr::Between(Between {
            expr: widen_box(expr, &wide),
            negated,
            low: widen_box(low, &wide),
            high: widen_box(high, &wide),
        }),
        Expr::InList(InList { expr, list, negated }) => {
            let list = list.into_iter().map(|value| widen_operand(value, &wide)).collect();
            Expr::InList(InList { expr: widen_box(expr, &wide), list, negated })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Expr::InSubquery(InSubquery::new(widen_box(expr, &wide), cast_subquery(subquery, &wide)?, negated))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let subquery = cast_subquery(subquery, &wide)?;
            Expr::SetComparison(SetComparison::new(widen_box(expr, &wide), subquery, op, quantifier))
        }
        other => other,
    }))
}

/// Converts the operands of a comparison of numerics to one type. Coercion used the types that quotients and averages
/// had before they got PostgreSQL's types.
pub(crate) fn coerce_comparison_operands(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let operands: [&Expr; 2] = match &expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => [left, right],
        _ => return Ok(Transformed::no(expression)),
    };
    let types = [operands[0].get_type(schema)?, operands[1].get_type(schema)?];
    let [DataType::Decimal128(..), DataType::Decimal128(..)] = types else { return Ok(Transformed::no(expression)) };
    if types[0] == types[1] {
        return Ok(Transformed::no(expression));
    }
    let (mut before, mut after) = (0, 0);
    for data_type in &types {
        let Some((own_before, own_after)) = digits(data_type) else { return Ok(Transformed::no(expression)) };
        before = before.max(own_before);
        after = after.max(own_after);
    }
    let precision = u8::try_from((before + i16::from(after)).min(WIDE_DIGITS)).unwrap_or(76);
    let common = if i16::from(precision) > NARROW_DIGITS {
        DataType::Decimal256(precision, after)
    } else {
        DataType::Decimal128(precision, after)
    };
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expression else { return Ok(Transformed::no(expression)) };
    let (left, right) = (widen_box(left, &common), widen_box(right, &common));
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
}

/// Does the same for the keys of a join.
pub(crate) fn compare_join_keys(node: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Join(mut join) = node else { return Ok(node) };
    for (left, right) in &mut join.on {
        let types = [left.get_type(join.left.schema())?, right.get_type(join.right.schema())?];
        if let Some(wide) = wide_type(&types) {
            *left = widen_operand(std::mem::take(left), &wide);
            *right = widen_operand(std::mem::take(right), &wide);
        }
    }
    Ok(LogicalPlan::Join(join))
}
