//! Keeps constants apart that DataFusion takes for equal: a `timestamp` and a `timestamptz` of the same microseconds.
//!
//! DataFusion compares such values without their types. So its optimizer would compute one expression for both
//! `timestamp '2020-01-01' AT TIME ZONE z` and `timestamptz '2020-01-01' AT TIME ZONE z`, and take them for equal in a
//! comparison. In a statement with both, the constants with a zone become calls that the optimizer does not compare.
//!
//! `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, ScalarUDF, Signature, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::function::FieldFunction;
use crate::plan_walk::rewrite_named;

/// The name of the function. The `*` keeps callers from writing it.
const CONSTANT: &str = "constant*";

/// The rule. It runs when all types are known, and before constants are evaluated.
pub(crate) fn separate_constants(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (instants, others): (Vec<Expr>, Vec<Expr>) = constants_of(&plan)?.into_iter().partition(has_zone);
    if instants.is_empty() || others.is_empty() {
        return Ok(plan);
    }
    let others: HashSet<i64> = others.into_iter().filter_map(microseconds).collect();
    let is_equal = |instant: &Expr| microseconds(instant.clone()).is_some_and(|value| others.contains(&value));
    let equal: Vec<Expr> = instants.into_iter().filter(is_equal).collect();
    if equal.is_empty() {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| separate(node, &equal)).data()
}

/// Replaces the constants `equal` in the expressions of `node`.
fn separate(node: LogicalPlan, equal: &[Expr]) -> Result<Transformed<LogicalPlan>> {
    let separated = rewrite_named(node, |expression| {
        expression.transform_down(|part| {
            if compares_column(&part) {
                return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
            }
            if !has_zone(&part) || !equal.contains(&part) {
                return Ok(Transformed::no(part));
            }
            let call = separate_constant().call(vec![part]);
            Ok(Transformed::new(call, true, TreeNodeRecursion::Jump))
        })
    })?;
    separated.map_data(LogicalPlan::recompute_schema)
}

/// Returns the constants of `plan` that are a `timestamp` or a `timestamptz`.
fn constants_of(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut constants = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if compares_column(part) {
                    return Ok(TreeNodeRecursion::Jump);
                }
                if constant_type(part).is_some() {
                    constants.push(part.clone());
                    return Ok(TreeNodeRecursion::Jump);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(constants)
}

/// Whether `expression` compares a column with constants, which have its type. A constant of another type would be beside
/// another column.
fn compares_column(expression: &Expr) -> bool {
    let is_column = |operand: &Expr| matches!(operand, Expr::Column(_));
    let is_constant = |operand: &Expr| constant_type(operand).is_some();
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            op.supports_propagation()
                && (is_column(left) && is_constant(right) || is_constant(left) && is_column(right))
        }
        Expr::Between(Between { expr, low, high, .. }) => is_column(expr) && is_constant(low) && is_constant(high),
        Expr::InList(InList { expr, list, .. }) => is_column(expr) && list.iter().all(is_constant),
        _ => false,
    }
}

/// Returns the type of `expression` if it is a constant `timestamp` or `timestamptz`.
fn constant_type(expression: &Expr) -> Option<DataType> {
    let is_value =
        matches!(expression, Expr::Literal(..) | Expr::Cast(_) | Expr::ScalarFunction(_) | Expr::BinaryExpr(_));
    if !is_value || expression.any_column_refs() {
        return None;
    }
    let data_type = expression.get_type(&DFSchema::empty()).ok()?;
    matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond, _)).then_some(data_type)
}

fn has_zone(expression: &Expr) -> bool {
    matches!(constant_type(expression), Some(DataType::Timestamp(_, Some(_))))
}

/// Evaluates a constant.
fn microseconds(constant: Expr) -> Option<i64> {
    match ExprSimplifier::new(SimplifyContext::default()).simplify(constant).ok()? {
        Expr::Literal(ScalarValue::TimestampMicrosecond(value, _), _) => value,
        _ => None,
    }
}

/// Returns the function of its argument. It is volatile, so that no call equals another.
fn separate_constant() -> ScalarUDF {
    FieldFunction::new(
        CONSTANT,
        Signature::any(1, Volatility::Volatile),
        |args| Ok(Arc::new(Field::new(CONSTANT, args.arg_fields[0].data_type().clone(), true))),
        |args| Ok(args.args[0].clone()),
    )
}
