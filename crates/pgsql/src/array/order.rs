//! The order of arrays: element by element, then by length. NULL elements are greater than values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryBuilder};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};

use crate::function::{ColumnarFunction, FunctionCall, call, check_bytes};
use crate::list::{RowComparer, item_type, list_type, lists, range, require_item};

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
