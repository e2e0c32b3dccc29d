//! Joins of a correlated plan, and joins whose conditions have subqueries.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result, plan_err};
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, when};

use super::domain::Domain;
use super::membership::has_subquery;
use super::outer_columns::{is_lateral, outer_columns, subquery_of};
use super::value_rewriter::ValueRewriter;
use super::{SubqueryRewriter, key_conditions};

impl Domain {
    pub(super) fn push_join(&self, join: &Join) -> Result<LogicalPlan> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftSemi, Right};
        if is_lateral(join) {
            return self.push_lateral(join);
        }
        let equality = match join.null_equality {
            NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
            NullEquality::NullEqualsNothing => Operator::Eq,
        };
        let schema = merge_schema(&[&join.left, &join.right]);
        let keys = join.on.iter().map(|(left, right)| binary_expr(left.clone(), equality, right.clone()));
        let conditions = keys.chain(join.filter.clone());
        let conditions: Vec<Expr> =
            conditions.map(|condition| self.replace_outer_columns(condition, &schema)).collect::<Result<_>>()?;
        let (left, right) = match (join.join_type, self.is_used_by(&join.left)?, self.is_used_by(&join.right)?) {
            (Inner | Left | LeftSemi | LeftAnti, _, false) => (self.push(&join.left)?, join.right.as_ref().clone()),
            (Inner | Right, false, _) => (join.left.as_ref().clone(), self.push(&join.right)?),
            (Inner | Left | Right | Full | LeftSemi | LeftAnti, ..) => return self.push_both(join, conditions),
            _ => return self.refuse("a join of this kind"),
        };
        LogicalPlanBuilder::from(left).join_on(right, join.join_type, conditions)?.build()
    }

    /// Evaluates both sides for each outer value, and joins the rows of equal ones.
    fn push_both(&self, join: &Join, mut conditions: Vec<Expr>) -> Result<LogicalPlan> {
        let left = self.push(&join.left)?;
        let (right, inner) = self.rename_carried(self.push(&join.right)?)?;
        conditions.extend(key_conditions((self.carried.clone(), inner.clone())));
        let mut output = Vec::new();
        for (column, other) in self.carried.iter().zip(inner) {
            let (own, other) = (Expr::Column(column.clone()), Expr::Column(other));
            output.push(match join.join_type {
                JoinType::Right => other.alias(&column.name),
                // Both are equal, or the one of a side without a row is NULL.
                JoinType::Full => when(own.clone().is_null(), other).otherwise(own)?.alias(&column.name),
                _ => own,
            });
        }
        output.extend(join.schema.columns().into_iter().map(Expr::Column));
        LogicalPlanBuilder::from(left).join_on(right, join.join_type, conditions)?.project(output)?.build()
    }

    /// Carries the domain along the left side, whose columns the right side may use.
    fn push_lateral(&self, join: &Join) -> Result<LogicalPlan> {
        if !join.on.is_empty() {
            return self.refuse("LATERAL with USING");
        }
        let left = self.push(&join.left)?.into();
        let right = self.rename_outer_columns(join.right.as_ref().clone(), join.left.schema())?.into();
        let schema = merge_schema(&[&join.left, &join.right]);
        let filter = join.filter.clone().map(|filter| self.replace_outer_columns(filter, &schema)).transpose()?;
        let (constraint, equality) = (join.join_constraint, join.null_equality);
        Join::try_new(left, right, Vec::new(), filter, join.join_type, constraint, equality, false)
            .map(LogicalPlan::Join)
    }

    /// Gives the columns of the domain in `plan` other names, and returns those.
    pub(super) fn rename_carried(&self, plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Column>)> {
        let name = |column: &Column| format!("{}\u{1}inner {}", column.name, self.number);
        let output = plan.schema().columns().into_iter().map(|column| match self.carried.contains(&column) {
            true => Expr::Column(column.clone()).alias(name(&column)),
            false => Expr::Column(column),
        });
        let output: Vec<Expr> = output.collect();
        let names = self.carried.iter().map(|column| Column::new_unqualified(name(column))).collect();
        Ok((LogicalPlanBuilder::from(plan).project(output)?.build()?, names))
    }
}

impl SubqueryRewriter {
    /// Rewrites a join whose condition has subqueries that DataFusion does not plan there.
    pub(super) fn rewrite_join_condition(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        let Some(filter) = &join.filter else { return Ok(None) };
        if !filter.exists(needs_value)? {
            return Ok(None);
        }
        if join.join_type == JoinType::Inner {
            let conditions = split_conjunction(filter).into_iter();
            let (moved, kept): (Vec<&Expr>, Vec<&Expr>) =
                conditions.partition(|condition| has_subquery(condition).unwrap_or(true));
            let joined = Join { filter: conjunction(kept.into_iter().cloned()), ..join.clone() };
            let Some(moved) = conjunction(moved.into_iter().cloned()) else { return Ok(None) };
            let filter = LogicalPlan::Filter(Filter::try_new(moved, LogicalPlan::Join(joined).into())?);
            return Ok(Some(self.rewrite_subquery_values(&filter)?.unwrap_or(filter)));
        }
        let mut sides = [ValueRewriter::new(self, &join.left), ValueRewriter::new(self, &join.right)];
        let condition = filter.clone().transform_down(|expression| {
            if !needs_value(&expression)? {
                return Ok(Transformed::no(expression));
            }
            let used = columns_of(&expression, &join.schema)?;
            let is_of = |schema: &DFSchema| used.iter().all(|column| schema.has_column(column));
            let [left, right] = &mut sides;
            let side = if is_of(join.left.schema()) { left } else { right };
            if !is_of(side.joined.schema()) {
                return plan_err!(
                    "a subquery in ON of an outer join is not supported where it uses columns of both tables; \
                     join the tables in a query in FROM, and use the subquery there"
                );
            }
            Ok(Transformed::new(side.value_of(&expression)?, true, TreeNodeRecursion::Jump))
        });
        let condition = condition.data()?;
        let [left, right] = sides;
        let output: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let joined = LogicalPlanBuilder::from(left.joined);
        joined.join_on(right.joined, join.join_type, [condition])?.project(output)?.build().map(Some)
    }
}

/// Whether `expression` is a subquery that DataFusion does not plan in the condition of a join.
fn needs_value(expression: &Expr) -> Result<bool> {
    match expression {
        Expr::ScalarSubquery(subquery) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
        other => Ok(subquery_of(other).is_some()),
    }
}

/// The columns of rows of `schema` that the subquery `expression` and its operand use.
fn columns_of(expression: &Expr, schema: &DFSchema) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = expression.column_refs().into_iter().cloned().collect();
    if let Some(subquery) = subquery_of(expression) {
        columns.extend(outer_columns(&subquery.subquery)?);
    }
    columns.retain(|column| schema.has_column(column));
    Ok(columns)
}
