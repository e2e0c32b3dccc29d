//! Lists of `IN` that DataFusion would compare with other values.
//!
//! DataFusion evaluates a list without any row, and takes it for constant if that gives values. `CASE` gives its first
//! value then, so that `n IN (1, CASE WHEN n > 3 THEN 2 END)` would compare each row with 2. A function prevents this.
//!
//! DataFusion puts lists with the same operand together: `a IN (b, 5) AND a IN (c, 6)` would be false, because the lists
//! have no value in common, even where `b` equals `c` or `a` is NULL. So lists in one expression get different operands.
//!
//! `docs/decisions/upstream` has the texts to be filed, and says when the function and [`separate_lists`] can go.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ScalarUDF, Signature, Volatility,
};

use crate::function::{FieldFunction, call};

/// The name of the function. The `*` keeps callers from writing it.
pub(crate) const VALUE_OF_ROW: &str = "value_of_row*";

/// Makes the values of a list that depend on columns no constants.
pub(crate) fn keep_values_of_rows(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::InList(InList { expr, list, negated }) = expression else { return Ok(Transformed::no(expression)) };
    let is_constant =
        |value: &Expr| !value.any_column_refs() || matches!(value, Expr::Column(_)) || is_value_of_row(value);
    let is_changed = !list.iter().all(is_constant);
    let list = list.into_iter().map(|value| match is_constant(&value) {
        true => value,
        false => call(function(), vec![value]),
    });
    let list = Expr::InList(InList { expr, list: list.collect(), negated });
    Ok(Transformed::new_transformed(list, is_changed))
}

/// Gives the lists in each expression of `node` different operands, if any have the same.
pub(crate) fn separate_lists(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expression| {
        if count_lists(&expression)? < 2 {
            return Ok(Transformed::no(expression));
        }
        let name = names.save(&expression);
        Ok(separate_operands(expression)?.update_data(|expression| name.restore(expression)))
    })
}

/// Counts the lists in `expression`, and what may become lists: `a = 1 OR a = 2`.
fn count_lists(expression: &Expr) -> Result<usize> {
    let mut count = 0;
    expression.apply(|part| {
        let is_or = matches!(part, Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }));
        count += usize::from(is_or || matches!(part, Expr::InList(_)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(count)
}

fn separate_operands(expression: Expr) -> Result<Transformed<Expr>> {
    let lists = expression.clone().transform_up(|part| Ok(list_of_disjuncts(part)))?.data;
    let is_negation = |part: &Expr| matches!(part, Expr::Not(_) | Expr::InList(InList { negated: true, .. }));
    let has_negation = lists.exists(|part| Ok(is_negation(part)))?;
    let separated = separate(lists, has_negation, &mut Vec::new())?;
    Ok(if separated.transformed { separated } else { Transformed::no(expression) })
}

/// Gives the lists in `expression` other operands than `operands`, to which it adds them.
fn separate(expression: Expr, has_negation: bool, operands: &mut Vec<Expr>) -> Result<Transformed<Expr>> {
    match expression {
        // Lists on both sides stay right if they are put together.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) if !has_negation => {
            let known = operands.len();
            let mut others = operands.clone();
            let left = separate(*left, has_negation, operands)?;
            let right = separate(*right, has_negation, &mut others)?;
            operands.extend(others.into_iter().skip(known));
            let is_changed = left.transformed || right.transformed;
            Ok(Transformed::new_transformed(left.data.or(right.data), is_changed))
        }
        other => {
            let separated = other.map_children(|child| separate(child, has_negation, operands))?;
            separated.transform_data(|part| match part {
                Expr::InList(list) => separate_list(list, operands),
                other => Ok(Transformed::no(other)),
            })
        }
    }
}

fn separate_list(mut list: InList, operands: &mut Vec<Expr>) -> Result<Transformed<Expr>> {
    let is_separate = !operands.contains(&list.expr);
    // The optimizer would evaluate a call with a constant.
    if !is_separate
        && is_constant(&list.expr)?
        && let Some(compared) = comparisons(&list)
    {
        return Ok(Transformed::yes(compared));
    }
    while operands.contains(&list.expr) {
        list.expr = Box::new(call(function(), vec![*list.expr]));
    }
    operands.push(list.expr.as_ref().clone());
    Ok(Transformed::new_transformed(Expr::InList(list), !is_separate))
}

/// Returns `a = 1 OR a = 2` as a list, as the optimizer would.
fn list_of_disjuncts(expression: Expr) -> Transformed<Expr> {
    let list = match &expression {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            match (column_and_values(left), column_and_values(right)) {
                (Some((column, mut values)), Some((other, others))) if column == other => {
                    values.extend(others);
                    Some(column.clone().in_list(values, false))
                }
                _ => None,
            }
        }
        _ => None,
    };
    list.map_or_else(|| Transformed::no(expression), Transformed::yes)
}

/// Returns the column that `expression` compares with values, and the values.
fn column_and_values(expression: &Expr) -> Option<(&Expr, Vec<Expr>)> {
    match expression {
        Expr::InList(InList { expr, list, negated: false }) if matches!(expr.as_ref(), Expr::Column(_)) => {
            Some((expr.as_ref(), list.clone()))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (left.as_ref(), right.as_ref()) {
            (column @ Expr::Column(_), value @ Expr::Literal(..))
            | (value @ Expr::Literal(..), column @ Expr::Column(_)) => Some((column, vec![value.clone()])),
            _ => None,
        },
        _ => None,
    }
}

fn is_constant(operand: &Expr) -> Result<bool> {
    let has_subquery = operand.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_))))?;
    Ok(!has_subquery && !operand.any_column_refs() && !operand.is_volatile())
}

/// Returns `list` as comparisons; `None` if it has no values.
fn comparisons(list: &InList) -> Option<Expr> {
    let compare = |value: &Expr| {
        let (operand, value) = (list.expr.as_ref().clone(), value.clone());
        if list.negated { operand.not_eq(value) } else { operand.eq(value) }
    };
    list.list.iter().map(compare).reduce(if list.negated { Expr::and } else { Expr::or })
}

/// Returns the function, which statements also call to make an expression another one with the same values.
pub(crate) fn function() -> ScalarUDF {
    FieldFunction::new(
        VALUE_OF_ROW,
        Signature::any(1, Volatility::Immutable),
        |args| Ok(Arc::clone(&args.arg_fields[0])),
        // Its argument, as an array.
        |args| args.args[0].to_array(args.number_rows).map(ColumnarValue::Array),
    )
}

fn is_value_of_row(value: &Expr) -> bool {
    matches!(value, Expr::ScalarFunction(function) if function.func.name() == VALUE_OF_ROW)
}
