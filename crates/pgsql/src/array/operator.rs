//! Operators on arrays.

use arrow::array::StringArray;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::function::{dimensions, item_type, list_type};
use super::{compare, edit, search, text};
use crate::json::function::call;
use crate::operands::Operands;

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    let depths = (dimensions(&operands.left_type), dimensions(&operands.right_type));
    if depths == (0, 0) {
        return Ok(None);
    }
    let symbol = match operands.op {
        BinaryOperator::StringConcat => return concatenation(operands, depths).map(Some),
        BinaryOperator::AtArrow | BinaryOperator::ArrowAt | BinaryOperator::PGOverlap => "",
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        _ => return Ok(None),
    };
    let Some((left, right)) = arrays(operands)? else {
        let (left, right) = (&operands.left_type, &operands.right_type);
        return plan_err!(
            "operator does not exist: {left} {} {right}; to compare with each element write value {} ANY (array)",
            operands.op,
            if symbol.is_empty() { "=" } else { symbol }
        );
    };
    Ok(match operands.op {
        BinaryOperator::AtArrow => Some(call(search::contains(), vec![left, right])),
        BinaryOperator::ArrowAt => Some(call(search::contains(), vec![right, left])),
        BinaryOperator::PGOverlap => Some(call(search::overlaps(), vec![left, right])),
        _ => compare::comparison(symbol).map(|function| call(function, vec![left, right])),
    })
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
    let Expr::Literal(ScalarValue::Utf8(Some(given)), _) = expression else {
        return Ok(Some(Expr::Literal(ScalarValue::try_new_null(data_type)?, None)));
    };
    let item = item_type(data_type).cloned().unwrap_or(DataType::Utf8);
    let array = text::parse_arrays(&StringArray::from(vec![given.as_str()]), &list_type(item), &|values, item| {
        Ok(cast_with_options(&values, item, &CastOptions { safe: false, ..Default::default() })?)
    })?;
    Ok(Some(Expr::Literal(ScalarValue::try_from_array(&array, 0)?, None)))
}

/// Plans `||` for two arrays, or for an array and an element.
fn concatenation(operands: &Operands<'_>, (left, right): (usize, usize)) -> Result<Expr> {
    let function = |name: &str| -> Result<ScalarUDF> {
        match edit::functions().into_iter().find(|function| function.name() == name) {
            Some(function) => Ok(function),
            None => plan_err!("there is no function {name}"),
        }
    };
    if let Some((left, right)) = arrays(operands)?.filter(|_| left == right || left == 0 || right == 0) {
        return Ok(call(function("array_cat")?, vec![left, right]));
    }
    let both = vec![operands.left.clone(), operands.right.clone()];
    match left.cmp(&right) {
        std::cmp::Ordering::Greater if left == right + 1 => Ok(call(function("array_append")?, both)),
        std::cmp::Ordering::Less if right == left + 1 => Ok(call(function("array_prepend")?, both)),
        _ => plan_err!("cannot concatenate incompatible arrays: {} || {}", operands.left_type, operands.right_type),
    }
}
