//! `IN (SELECT …)` with three values: NULL if the value is unknown, or if it is not found and a NULL is among the rows.
//!
//! DataFusion's own joins for `IN` return false for NULL. They stay where both mean the same: in the conditions of a
//! filter, which keeps only rows for which it is true.

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, lit, when};

use super::is_volatile;
use super::outer_columns::{outer_columns, subquery_of};

/// Where in a node an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A condition of a filter, all of which must be true.
    Condition,
    /// A part of an OR of a filter, where NULL still means the same as false.
    Alternative,
    /// Another part of a filter: NULL is a value of its own.
    Operand,
    /// A part of another node, in which DataFusion plans neither `IN` nor EXISTS.
    Output,
}

impl Position {
    /// The position of what is inside of an expression here that is neither AND nor OR.
    pub(super) fn of_operands(self) -> Self {
        if self == Self::Output { self } else { Self::Operand }
    }

    /// Whether DataFusion's join for `contained` is right here, if it plans the subquery at all.
    pub(super) fn allows_join(self, contained: &InSubquery, outer: &DFSchema) -> Result<bool> {
        let is_right = match self {
            // It sees that a column may be NULL, and not that another expression is.
            Self::Condition if contained.negated => {
                matches!(*contained.expr, Expr::Column(_)) && outer_columns(&contained.subquery.subquery)?.is_empty()
            }
            Self::Condition => true,
            Self::Alternative => !contained.negated,
            Self::Operand | Self::Output => false,
        };
        // A join on arrays would lose rows.
        Ok(is_right && !contained.expr.get_type(outer).is_ok_and(|kind| kind.is_nested()))
    }
}

/// The value of `contained` over `rows`, if its subquery uses no outer columns: `rows` joined with what decides, and the
/// expression over it. `number` makes names unique.
pub(super) fn join_membership(
    rows: &LogicalPlan,
    contained: &InSubquery,
    number: usize,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let subquery = contained.subquery.subquery.as_ref();
    let is_nested = contained.expr.get_type(rows.schema())?.is_nested();
    // The rows of the subquery are computed twice.
    if is_nested || is_volatile(subquery)? || !outer_columns(subquery)?.is_empty() || has_subquery(&contained.expr)? {
        return Ok(None);
    }
    let table = format!("in\u{1}{number}");
    let [value, element, all, known] = ["value", "element", "all", "known"].map(|name| format!("{name}\u{1}{number}"));
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    // As a column: a join whose condition is a constant NULL would find every row.
    let mut output: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
    output.push(contained.expr.as_ref().clone().alias(&value));
    let first = Expr::Column(subquery.schema().columns().swap_remove(0));
    let elements = LogicalPlanBuilder::from(subquery.clone()).project(vec![first.alias(&element)])?.build()?;
    let none: Vec<Expr> = Vec::new();
    let counts = LogicalPlanBuilder::from(elements.clone())
        .aggregate(none, vec![count(lit(1_i64)).alias(&all), count(column(&element)).alias(&known)])?
        .build()?;
    let elements = LogicalPlanBuilder::from(elements).alias(&table)?.build()?;
    let is_equal = column(&value).eq(Expr::Column(Column::new(Some(table.as_str()), element)));
    let joined = LogicalPlanBuilder::from(rows.clone())
        .project(output)?
        .join_on(elements, JoinType::LeftMark, [is_equal])?
        .cross_join(counts)?
        .build()?;
    let is_found = Expr::Column(Column::new(Some(table), "mark"));
    let is_unknown = column(&value).is_null().or(column(&all).gt(column(&known)));
    let result = when(is_found, lit(!contained.negated))
        .when(column(&all).eq(lit(0_i64)), lit(contained.negated))
        .when(is_unknown, lit(ScalarValue::Boolean(None)))
        .otherwise(lit(contained.negated))?;
    Ok(Some((joined, result)))
}

/// Whether `expression` has a subquery.
pub(super) fn has_subquery(expression: &Expr) -> Result<bool> {
    expression.exists(|part| Ok(subquery_of(part).is_some()))
}
