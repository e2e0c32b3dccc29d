//! Operators on arrays.
//!
//! Arrays are compared element by element, then by length. NULL elements are equal to each other and greater than
//! values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{Expr, Operator, ScalarUDF};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::{edit, search};
use crate::function::{ColumnarFunction, FunctionCall, boolean_type, call};
use crate::list::{RowComparer, cast_arrays, dimensions, item_type, list_type, lists, range};
use crate::operands::Operands;

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    let depths = (dimensions(&operands.left_type), dimensions(&operands.right_type));
    if depths == (0, 0) {
        return Ok(None);
    }
    let comparison = match operands.op {
        BinaryOperator::StringConcat => return concatenation(operands, depths).map(Some),
        BinaryOperator::AtArrow | BinaryOperator::ArrowAt | BinaryOperator::PGOverlap => None,
        _ => match operands.comparison() {
            Some(comparison) => Some(comparison),
            None => return Ok(None),
        },
    };
    let Some((left, right)) = arrays(operands)? else {
        let (left, right) = (&operands.left_type, &operands.right_type);
        return plan_err!(
            "operator does not exist: {left} {} {right}; to compare with each element write value {} ANY (array)",
            operands.op,
            comparison.unwrap_or(Operator::Eq)
        );
    };
    Ok(match (operands.op, comparison) {
        (_, Some(comparison)) => comparison_function(comparison).map(|function| call(function, vec![left, right])),
        (BinaryOperator::AtArrow, _) => Some(call(search::contains(), vec![left, right])),
        (BinaryOperator::ArrowAt, _) => Some(call(search::contains(), vec![right, left])),
        _ => Some(call(search::overlaps(), vec![left, right])),
    })
}

fn comparison_function(comparison: Operator) -> Option<ScalarUDF> {
    let function = |name, invoke| Some(ColumnarFunction::new(name, search::pair_types, boolean_type, invoke));
    match comparison {
        Operator::Eq => function("array_eq", |call| compare(call, Ordering::is_eq)),
        Operator::NotEq => function("array_ne", |call| compare(call, Ordering::is_ne)),
        Operator::Lt => function("array_lt", |call| compare(call, Ordering::is_lt)),
        Operator::LtEq => function("array_le", |call| compare(call, Ordering::is_le)),
        Operator::Gt => function("array_gt", |call| compare(call, Ordering::is_gt)),
        Operator::GtEq => function("array_ge", |call| compare(call, Ordering::is_ge)),
        _ => None,
    }
}

fn compare(call: &FunctionCall<'_>, is_expected: fn(Ordering) -> bool) -> Result<ArrayRef> {
    let (left, right) = (lists(call, 0)?, lists(call, 1)?);
    let comparer = RowComparer::new(&left.value_type())?;
    let (left_rows, right_rows) = (comparer.rows(left.values())?, comparer.rows(right.values())?);
    let one = |row: usize| {
        if left.is_null(row) || right.is_null(row) {
            return None;
        }
        let elements = range(&left, row).map(|position| left_rows.row(position));
        Some(is_expected(elements.cmp(range(&right, row).map(|position| right_rows.row(position)))))
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<BooleanArray>()))
}

/// Returns both sides as arrays; a literal takes the type of the other side.
fn arrays(operands: &Operands<'_>) -> Result<Option<(Expr, Expr)>> {
    let (left, right) = (item_type(&operands.left_type), item_type(&operands.right_type));
    match (left, right) {
        (Some(_), Some(_)) => Ok(Some((operands.left.clone(), operands.right.clone()))),
        (Some(_), None) => {
            let literal = literal(operands.right, &operands.left_type)?;
            Ok(literal.map(|right| (operands.left.clone(), right)))
        }
        _ => {
            let literal = literal(operands.left, &operands.right_type)?;
            Ok(literal.map(|left| (left, operands.right.clone())))
        }
    }
}

/// Converts an untyped literal to an array of type `data_type`.
fn literal(expression: &Expr, data_type: &DataType) -> Result<Option<Expr>> {
    if !Operands::is_untyped(expression) {
        return Ok(None);
    }
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = expression else {
        return Ok(Some(Expr::Literal(ScalarValue::try_new_null(data_type)?, None)));
    };
    let item = item_type(data_type).cloned().unwrap_or(DataType::Utf8);
    let array = cast_arrays(&StringArray::from(vec![text.as_str()]), &list_type(item))?;
    Ok(Some(Expr::Literal(ScalarValue::try_from_array(&array, 0)?, None)))
}

/// Plans `||` for two arrays, or for an array and an element.
fn concatenation(operands: &Operands<'_>, (left, right): (usize, usize)) -> Result<Expr> {
    if let Some((left, right)) = arrays(operands)?.filter(|_| left == right || left == 0 || right == 0) {
        return Ok(call(edit::array_cat(), vec![left, right]));
    }
    match left.cmp(&right) {
        Ordering::Greater if left == right + 1 => Ok(call(edit::array_append(), operands.both())),
        Ordering::Less if right == left + 1 => Ok(call(edit::array_prepend(), operands.both())),
        _ => plan_err!("cannot concatenate incompatible arrays: {} || {}", operands.left_type, operands.right_type),
    }
}
