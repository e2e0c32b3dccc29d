//! The columns of outer queries that a plan uses. A table of an inner query hides one of the same name further out.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery};

use super::domain::Domain;
use crate::plan_walk::{for_each_part, rewrite_named};

/// Returns the columns of outer queries that `plan` and its own subqueries use.
pub(super) fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    plan.apply(|node| {
        for_each_part(node, |part| {
            if let Expr::OuterReferenceColumn(_, column) = part {
                columns.push(column.clone());
            }
            if let Some(subquery) = subquery_of(part) {
                let rows = merge_schema(&node.inputs());
                let of_subquery = outer_columns(&subquery.subquery)?;
                columns.extend(of_subquery.into_iter().filter(|column| !rows.has_column(column)));
            }
            Ok(())
        })?;
        let Some(join) = as_lateral_join(node) else { return Ok(TreeNodeRecursion::Continue) };
        columns.extend(outer_columns(&join.left)?);
        columns.extend(outer_columns(&join.right)?.into_iter().filter(|column| !join.left.schema().has_column(column)));
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(columns)
}

/// Returns the subquery that `expression` is, without its operands.
pub(super) fn subquery_of(expression: &Expr) -> Option<&Subquery> {
    match expression {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(contained) => Some(&contained.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}

fn subquery_of_mut(expression: &mut Expr) -> Option<&mut Subquery> {
    match expression {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&mut exists.subquery),
        Expr::InSubquery(contained) => Some(&mut contained.subquery),
        Expr::SetComparison(comparison) => Some(&mut comparison.subquery),
        _ => None,
    }
}

/// Returns the join that `node` is, if its right side is a query that may use columns of the left side.
fn as_lateral_join(node: &LogicalPlan) -> Option<&Join> {
    let LogicalPlan::Join(join) = node else { return None };
    is_lateral(join).then_some(join)
}

pub(super) fn is_lateral(join: &Join) -> bool {
    let right = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
        other => other,
    };
    matches!(right, LogicalPlan::Subquery(_))
}

impl Domain {
    /// Whether `plan` uses columns of the domain.
    pub(super) fn is_used_by(&self, plan: &LogicalPlan) -> Result<bool> {
        Ok(outer_columns(plan)?.iter().any(|column| self.domain_column(column).is_some()))
    }

    fn domain_column(&self, column: &Column) -> Option<&Column> {
        self.columns.iter().find(|(outer, _)| outer == column).map(|(_, name)| name)
    }

    /// Replaces the outer query's columns in `expression`, over rows of `schema`, with the domain's columns. In its
    /// subqueries, they now belong to the next outer query.
    pub(super) fn replace_outer_columns(&self, expression: Expr, schema: &DFSchema) -> Result<Expr> {
        let replaced = expression.transform_down(|mut expression| {
            if let Expr::OuterReferenceColumn(_, column) = &expression
                && let Some(name) = self.domain_column(column)
            {
                return Ok(Transformed::yes(Expr::Column(name.clone())));
            }
            if let Some(subquery) = subquery_of_mut(&mut expression) {
                self.rename_in_subquery(subquery, schema)?;
            }
            Ok(Transformed::yes(expression))
        });
        replaced.data()
    }

    /// Renames the outer query's columns in `plan` to the domain's columns, except those that rows of `hiding` have,
    /// which belong to queries further in.
    pub(super) fn rename_outer_columns(&self, plan: LogicalPlan, hiding: &DFSchema) -> Result<LogicalPlan> {
        let renamed = plan.transform_down(|node| {
            let mut inner = hiding.clone();
            node.inputs().into_iter().for_each(|input| inner.merge(input.schema()));
            let node = rewrite_named(node, |expression| {
                self.rename_in_expression(expression, hiding, &inner).map(Transformed::yes)
            })?;
            match node.data {
                LogicalPlan::Join(mut join) if is_lateral(&join) => {
                    let mut within = hiding.clone();
                    within.merge(join.left.schema());
                    join.left = self.rename_outer_columns(join.left.as_ref().clone(), hiding)?.into();
                    join.right = self.rename_outer_columns(join.right.as_ref().clone(), &within)?.into();
                    Ok(Transformed::new(LogicalPlan::Join(join), true, TreeNodeRecursion::Jump))
                }
                other => Ok(Transformed::yes(other)),
            }
        });
        renamed.data()
    }

    /// Renames columns in `expression` of an inner query, over rows of `inner`.
    fn rename_in_expression(&self, expression: Expr, hiding: &DFSchema, inner: &DFSchema) -> Result<Expr> {
        let renamed = expression.transform_down(|mut expression| {
            if let Expr::OuterReferenceColumn(_, column) = &mut expression
                && !hiding.has_column(column)
                && let Some(name) = self.domain_column(column)
            {
                *column = name.clone();
            } else if let Some(subquery) = subquery_of_mut(&mut expression) {
                self.rename_in_subquery(subquery, inner)?;
            }
            Ok(Transformed::yes(expression))
        });
        renamed.data()
    }

    fn rename_in_subquery(&self, subquery: &mut Subquery, hiding: &DFSchema) -> Result<()> {
        let plan = self.rename_outer_columns(subquery.subquery.as_ref().clone(), hiding)?;
        subquery.outer_ref_columns = plan.all_out_ref_exprs();
        subquery.subquery = plan.into();
        Ok(())
    }
}
