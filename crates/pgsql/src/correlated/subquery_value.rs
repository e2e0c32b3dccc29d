//! Plans subqueries in expressions as plans of exactly one row.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, exec_err, internal_err};
use datafusion::functions_aggregate::expr_fn::{bool_and, bool_or, count, first_value};
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, binary_expr, lit, when};

use super::membership::Position;
use super::outer_columns::outer_columns;
use super::simple::{RowOfNone, is_simple};
use crate::function::{ColumnarFunction, first_type, keep_types};

/// A plan of one row, and the expression over its columns that replaces the subquery.
pub(super) struct SubqueryValue {
    pub(super) plan: LogicalPlan,
    pub(super) expression: Expr,
}

/// Whether `expression`, at `position` of a node over rows of `schema`, is a subquery that DataFusion does not plan or
/// plans incorrectly.
pub(super) fn needs_rewrite(expression: &Expr, position: Position, schema: &DFSchema) -> Result<bool> {
    Ok(match expression {
        Expr::ScalarSubquery(subquery) => {
            let plan = subquery.subquery.as_ref();
            let is_correlated = !outer_columns(plan)?.is_empty();
            is_correlated && !(is_simple(plan, schema, RowOfNone::Kept)? && is_aggregate(plan))
        }
        Expr::Exists(exists) => {
            position == Position::Output || !is_simple(&exists.subquery.subquery, schema, RowOfNone::Lost)?
        }
        Expr::InSubquery(contained) => {
            !position.allows_join(contained, schema)?
                || !is_simple(&contained.subquery.subquery, schema, RowOfNone::Lost)?
        }
        Expr::SetComparison(_) => true,
        _ => false,
    })
}

/// Whether `expression` is a scalar subquery that uses columns of an outer query.
pub(super) fn is_correlated(expression: &Expr) -> Result<bool> {
    match expression {
        Expr::ScalarSubquery(subquery) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
        _ => Ok(false),
    }
}

/// Whether `plan` is an aggregate without GROUP BY, which has one row.
pub(super) fn is_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_aggregate(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_aggregate(&alias.input),
        LogicalPlan::Subquery(subquery) => is_aggregate(&subquery.subquery),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// Plans the subquery `expression`, over rows of `outer`. `number` makes names unique.
pub(super) fn plan_subquery(expression: &Expr, outer: &DFSchema, number: usize) -> Result<SubqueryValue> {
    match expression {
        Expr::ScalarSubquery(subquery) => plan_scalar(subquery, number),
        Expr::Exists(exists) => {
            let name = format!("rows\u{1}{number}");
            let none: Vec<Expr> = Vec::new();
            let plan = LogicalPlanBuilder::from(exists.subquery.subquery.clone());
            let plan = plan.aggregate(none, vec![count(lit(1_i64)).alias(&name)])?.build()?;
            let rows = Expr::Column(Column::new_unqualified(name));
            let expression = if exists.negated { rows.eq(lit(0_i64)) } else { rows.gt(lit(0_i64)) };
            Ok(SubqueryValue { plan, expression })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let operand = to_outer_references(expr, outer)?;
            let value = plan_quantified(&operand, Operator::Eq, subquery, SetQuantifier::Any, number)?;
            let expression = if *negated { Expr::Not(Box::new(value.expression)) } else { value.expression };
            Ok(SubqueryValue { expression, ..value })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            plan_quantified(&to_outer_references(expr, outer)?, *op, subquery, *quantifier, number)
        }
        other => internal_err!("{other} is not a subquery"),
    }
}

fn plan_scalar(subquery: &Subquery, number: usize) -> Result<SubqueryValue> {
    let plan = subquery.subquery.as_ref();
    let name = format!("value\u{1}{number}");
    let value = Expr::Column(plan.schema().columns().swap_remove(0));
    if is_aggregate(plan) {
        let plan = LogicalPlanBuilder::from(plan.clone()).project(vec![value.alias(&name)])?.build()?;
        return Ok(SubqueryValue { plan, expression: Expr::Column(Column::new_unqualified(name)) });
    }
    let rows = format!("rows\u{1}{number}");
    let none: Vec<Expr> = Vec::new();
    let plan = LogicalPlanBuilder::from(plan.clone())
        .aggregate(none, vec![first_value(value, vec![]).alias(&name), count(lit(1_i64)).alias(&rows)])?
        .build()?;
    let column = |name: String| Expr::Column(Column::new_unqualified(name));
    let expression = single_row_function().call(vec![column(name), column(rows)]);
    Ok(SubqueryValue { plan, expression })
}

/// Returns the function that returns its first argument, and fails if the second, the number of rows, is more than one.
fn single_row_function() -> ScalarUDF {
    ColumnarFunction::new("single*", keep_types, first_type, |call| {
        if call.array(1)?.as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1) {
            return exec_err!(
                "more than one row returned by a subquery used as an expression; aggregate, or add ORDER BY … LIMIT 1"
            );
        }
        call.array(0)
    })
}

/// Plans `value op ANY (subquery)` or ALL: true, false, or NULL if a comparison with NULL decides.
fn plan_quantified(
    value: &Expr,
    op: Operator,
    subquery: &Subquery,
    quantifier: SetQuantifier,
    number: usize,
) -> Result<SubqueryValue> {
    let plan = subquery.subquery.as_ref();
    let element = Expr::Column(plan.schema().columns().swap_remove(0));
    let [name, decided, rows, compared_rows] =
        ["compared", "decided", "rows", "compared_rows"].map(|name| format!("{name}\u{1}{number}"));
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let comparison = binary_expr(value.clone(), op, element);
    let aggregate = match quantifier {
        SetQuantifier::Any => bool_or(column(&name)),
        SetQuantifier::All => bool_and(column(&name)),
    };
    let none: Vec<Expr> = Vec::new();
    let plan = LogicalPlanBuilder::from(plan.clone())
        .project(vec![comparison.alias(&name)])?
        .aggregate(
            none,
            vec![aggregate.alias(&decided), count(lit(1_i64)).alias(&rows), count(column(&name)).alias(&compared_rows)],
        )?
        .build()?;
    let unknown = column(&rows).gt(column(&compared_rows));
    let nothing = lit(datafusion::common::ScalarValue::Boolean(None));
    let expression = match quantifier {
        SetQuantifier::Any => when(column(&decided).is_true(), lit(true)).when(unknown, nothing).otherwise(lit(false)),
        SetQuantifier::All => when(column(&decided).is_false(), lit(false)).when(unknown, nothing).otherwise(lit(true)),
    }?;
    Ok(SubqueryValue { plan, expression })
}

/// Turns the columns of `value` into outer references, for use in the subquery.
fn to_outer_references(value: &Expr, outer: &DFSchema) -> Result<Expr> {
    let inside = value.clone().transform_up(|expression| {
        Ok(match expression {
            Expr::Column(column) => {
                let field = outer.qualified_field_from_column(&column)?.1.clone();
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            other => Transformed::no(other),
        })
    });
    inside.data()
}
