//! Arrays: lists whose first element has the subscript 1; their operators and their order.
//!
//! Arrays are compared element by element, then by length. NULL elements are equal to each other and greater than values.

mod constructors;
mod elements;
mod shape;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryBuilder, BooleanArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::function::{ColumnarFunction, FunctionCall, boolean_type, call, check_bytes};
use crate::list::{RowComparer, cast_arrays, dimensions, item_type, list_type, lists, range, require_item};
use crate::operands::Operands;

pub(crate) use constructors::{rewrite_literals, rewrite_syntax};
pub(crate) use elements::{element_text, format_arrays};
pub(crate) use shape::{plan_nested_array, with_one_dimension};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = elements::edit_functions();
    functions.extend(elements::functions());
    functions.push(shape::flatten_function());
    functions.push(shape::equal_lengths_function());
    functions.extend(shape::null_functions());
    functions.extend(elements::quantified_functions());
    functions.extend(elements::search_functions());
    functions.extend(shape::functions());
    functions.extend(elements::text_functions());
    functions
}

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
        (BinaryOperator::AtArrow, _) => Some(call(elements::contains(), vec![left, right])),
        (BinaryOperator::ArrowAt, _) => Some(call(elements::contains(), vec![right, left])),
        _ => Some(call(elements::overlaps(), vec![left, right])),
    })
}

fn comparison_function(comparison: Operator) -> Option<ScalarUDF> {
    let function = |name, invoke| Some(ColumnarFunction::new(name, elements::pair_types, boolean_type, invoke));
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
        return Ok(call(elements::array_cat(), vec![left, right]));
    }
    match left.cmp(&right) {
        Ordering::Greater if left == right + 1 => Ok(call(elements::array_append(), operands.both())),
        Ordering::Less if right == left + 1 => Ok(call(elements::array_prepend(), operands.both())),
        _ => plan_err!("cannot concatenate incompatible arrays: {} || {}", operands.left_type, operands.right_type),
    }
}

/// Makes `node` order arrays as PostgreSQL does. NULLS FIRST applies only to arrays that are NULL themselves.
pub(crate) fn order_arrays(node: LogicalPlan, schema: &DFSchema) -> LogicalPlan {
    match node {
        LogicalPlan::Sort(mut sort) => {
            order_by_keys(&mut sort.expr, schema);
            LogicalPlan::Sort(sort)
        }
        // Joins on arrays would also compare their minimum and maximum, in another order.
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_array(left, schema) && is_array(right, schema) {
                    *left = array_key(left.clone());
                    *right = array_key(right.clone());
                }
            }
            LogicalPlan::Join(join)
        }
        other => other,
    }
}

fn is_array(expression: &Expr, schema: &DFSchema) -> bool {
    expression.get_type(schema).is_ok_and(|data_type| item_type(&data_type).is_some())
}

fn array_key(array: Expr) -> Expr {
    call(sort_key(), vec![array])
}

/// Does the same for the order in windows and aggregates, and for comparisons that become joins.
pub(crate) fn order_within(mut expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    use Operator::{IsDistinctFrom, IsNotDistinctFrom};
    let has_arrays = match &mut expression {
        Expr::WindowFunction(window) => order_by_keys(&mut window.params.order_by, schema),
        // An aggregate of distinct values can be ordered only by these values.
        Expr::AggregateFunction(AggregateFunction { params, .. }) if !params.distinct => {
            order_by_keys(&mut params.order_by, schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: IsDistinctFrom | IsNotDistinctFrom, right })
            if is_array(left, schema) && is_array(right, schema) =>
        {
            **left = array_key(left.as_ref().clone());
            **right = array_key(right.as_ref().clone());
            true
        }
        _ => false,
    };
    Transformed::new_transformed(expression, has_arrays)
}

/// Replaces arrays in `orders` by their sort keys. Returns whether it replaced any.
fn order_by_keys(orders: &mut [Sort], schema: &DFSchema) -> bool {
    let mut has_arrays = false;
    for order in orders {
        if is_array(&order.expr, schema) {
            order.expr = array_key(order.expr.clone());
            has_arrays = true;
        }
    }
    has_arrays
}

/// Returns bytes whose order is the order of arrays.
fn sort_key() -> ScalarUDF {
    ColumnarFunction::new(
        "array_sort_key",
        |types| types.iter().map(|array| Ok(list_type(require_item("array_sort_key", array)?))).collect(),
        |_| Ok(DataType::Binary),
        keys,
    )
}

/// Writes a one before each element and a zero at the end, so that the shorter array sorts first.
fn keys(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = lists(call, 0)?;
    let elements = RowComparer::new(&list.value_type())?.rows(list.values())?;
    let mut keys = BinaryBuilder::new();
    let mut bytes = 0;
    let mut key = Vec::new();
    for row in 0..call.rows {
        if list.is_null(row) {
            keys.append_null();
            continue;
        }
        key.clear();
        for position in range(&list, row) {
            key.push(1);
            key.extend_from_slice(elements.row(position).as_ref());
        }
        key.push(0);
        bytes += key.len();
        check_bytes(bytes)?;
        keys.append_value(&key);
    }
    Ok(Arc::new(keys.finish()))
}
