//! Subqueries in the expressions of one node become columns of its input.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, Projection};

use super::membership::{self, Position};
use super::outer_columns::outer_columns;
use super::{SubqueryRewriter, is_volatile, key_conditions, subquery_value};

/// Replaces the subqueries in the expressions of one node.
pub(super) struct ValueRewriter<'a> {
    rewriter: &'a SubqueryRewriter,
    input: &'a LogicalPlan,
    /// The input, joined with the values of the subqueries.
    pub(super) joined: LogicalPlan,
    /// The number of replaced subqueries.
    pub(super) count: usize,
    /// Whether the columns of a subquery have other names now.
    pub(super) has_named: bool,
}

impl<'a> ValueRewriter<'a> {
    pub(super) fn new(rewriter: &'a SubqueryRewriter, input: &'a LogicalPlan) -> Self {
        Self { rewriter, input, joined: input.clone(), count: 0, has_named: false }
    }

    /// Replaces the subqueries in `expression`, which is at `position`. With `refuses_scalars`, DataFusion plans no
    /// correlated scalar subquery there.
    pub(super) fn replace(&mut self, expression: Expr, position: Position, refuses_scalars: bool) -> Result<Expr> {
        match expression {
            Expr::BinaryExpr(mut binary) if is_connective(binary.op) => {
                let inner = match (binary.op, position) {
                    (Operator::Or, Position::Condition) => Position::Alternative,
                    _ => position,
                };
                binary.left = self.replace(*binary.left, inner, refuses_scalars)?.into();
                binary.right = self.replace(*binary.right, inner, refuses_scalars)?.into();
                Ok(Expr::BinaryExpr(binary))
            }
            Expr::Not(negated) if matches!(*negated, Expr::InSubquery(_)) => {
                let Expr::InSubquery(mut contained) = *negated else { return Ok(Expr::Not(negated)) };
                contained.negated = !contained.negated;
                self.replace_within(Expr::InSubquery(contained), position, refuses_scalars)
            }
            other => self.replace_within(other, position, refuses_scalars),
        }
    }

    fn replace_within(&mut self, expression: Expr, position: Position, refuses_scalars: bool) -> Result<Expr> {
        let mut position = position;
        let replaced = expression.transform_down(|expression| {
            let at = position;
            position = position.of_operands();
            let must_rewrite = refuses_scalars && subquery_value::is_correlated(&expression)?;
            if !must_rewrite && !subquery_value::needs_rewrite(&expression, at, self.input.schema())? {
                return self.keep(expression);
            }
            Ok(Transformed::new(self.value_of(&expression)?, true, TreeNodeRecursion::Jump))
        });
        replaced.data()
    }

    /// `expression`, whose subquery, if it is one, becomes DataFusion's join.
    fn keep(&mut self, mut expression: Expr) -> Result<Transformed<Expr>> {
        let subquery = match &mut expression {
            Expr::InSubquery(contained) => &mut contained.subquery,
            Expr::Exists(exists) => &mut exists.subquery,
            _ => return Ok(Transformed::no(expression)),
        };
        if outer_columns(&subquery.subquery)?.is_empty() {
            return Ok(Transformed::no(expression));
        }
        let plan = subquery.subquery.as_ref().clone();
        subquery.subquery = name_outputs(plan, self.rewriter.next_number())?.into();
        self.has_named = true;
        Ok(Transformed::yes(expression))
    }

    /// The value of the subquery `expression` over the joined rows.
    pub(super) fn value_of(&mut self, expression: &Expr) -> Result<Expr> {
        let number = self.rewriter.next_number();
        if let Expr::InSubquery(contained) = expression {
            if let Some((joined, value)) = membership::join_membership(&self.joined, contained, number)? {
                self.joined = joined;
                self.count += 1;
                return Ok(value);
            }
            if is_volatile(&self.joined)? {
                return plan_err!(
                    "IN and NOT IN with a subquery are not supported here for rows with random values; \
                     write EXISTS or NOT EXISTS in WHERE"
                );
            }
        }
        let value = subquery_value::plan_subquery(expression, self.input.schema(), number)?;
        let (rows, keys) = self.rewriter.push_domain(&self.joined, &value.plan)?;
        let left = LogicalPlanBuilder::from(self.joined.clone());
        self.joined = left.join_on(rows, JoinType::Left, key_conditions(keys))?.build()?;
        self.count += 1;
        Ok(value.expression)
    }
}

/// Gives the columns of `plan`, a subquery that uses outer columns, names of their own: DataFusion adds the columns that
/// it compares with outer ones, and the same column with another type may be among them.
fn name_outputs(plan: LogicalPlan, number: usize) -> Result<LogicalPlan> {
    let name = |(index, expression): (usize, Expr)| expression.unalias().alias(format!("output\u{1}{number} {index}"));
    match plan {
        LogicalPlan::Projection(projection) => {
            let named = projection.expr.into_iter().enumerate().map(name).collect();
            Projection::try_new(named, projection.input).map(LogicalPlan::Projection)
        }
        other => {
            let columns = other.schema().columns().into_iter().map(Expr::Column);
            let named: Vec<Expr> = columns.enumerate().map(name).collect();
            LogicalPlanBuilder::from(other).project(named)?.build()
        }
    }
}

fn is_connective(op: Operator) -> bool {
    matches!(op, Operator::And | Operator::Or)
}
