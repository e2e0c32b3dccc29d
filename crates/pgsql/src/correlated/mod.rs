//! Turns correlated subqueries that DataFusion does not plan into joins.
//!
//! DataFusion plans subqueries whose outer columns occur in a filter without a limit, window or similar above it. All
//! other subqueries are evaluated for all outer values at once ([`Domain`]) and joined.
//!
//! DataFusion's issues 6140, 16137, 21201, 23022 and 25347; `docs/decisions/upstream` says when the module can go.

mod domain;
mod membership;
mod nullable;
mod outer_aggregates;
mod subquery_value;
mod value_rewriter;

use std::cell::Cell;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::{
    Expr, Join, LogicalPlan, LogicalPlanBuilder, Operator, SubqueryAlias, binary_expr, lit, utils,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

use domain::Domain;
use membership::Position;
pub(crate) use outer_aggregates::MoveOuterAggregates;
use value_rewriter::ValueRewriter;

use crate::json::WHOLE_ROW;

/// The rule. It runs before type coercion.
#[derive(Debug)]
pub(crate) struct DecorrelateSubqueries;

impl AnalyzerRule for DecorrelateSubqueries {
    fn name(&self) -> &str {
        "decorrelate_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = nullable::make_subqueries_nullable(plan)?;
        let rewriter = SubqueryRewriter { count: Cell::new(0) };
        plan.transform_down_with_subqueries(|node| rewriter.rewrite(node)).data()
    }
}

/// The join keys: columns of the outer query, and the columns of the subquery that carry their values.
type JoinKeys = (Vec<Column>, Vec<Column>);

/// Rewrites nodes, and numbers the generated names.
struct SubqueryRewriter {
    count: Cell<usize>,
}

impl SubqueryRewriter {
    fn next_number(&self) -> usize {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }

    fn rewrite(&self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let rewritten = match &node {
            LogicalPlan::Join(join) => self.rewrite_lateral(join)?,
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) => {
                self.rewrite_subquery_values(&node)?
            }
            _ => None,
        };
        Ok(rewritten.map_or(Transformed::no(node), Transformed::yes))
    }

    /// Rewrites a join whose right side uses columns of its left side.
    fn rewrite_lateral(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        let is_subquery = match join.right.as_ref() {
            LogicalPlan::Subquery(_) => true,
            LogicalPlan::SubqueryAlias(alias) => matches!(alias.input.as_ref(), LogicalPlan::Subquery(_)),
            _ => false,
        };
        if !is_subquery || !join.on.is_empty() || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return Ok(None);
        }
        if !outer_columns(&join.right)?.iter().any(|column| join.left.schema().has_column(column)) {
            // The rows are the same for each row of the left side.
            let right = without_subquery(&join.right)?.into();
            return Ok(Some(LogicalPlan::Join(Join { right, ..join.clone() })));
        }
        let output: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let is_left = join.join_type == JoinType::Left;
        if makes_rows_of_each(&join.right, is_left)? && (!is_left || join.filter.is_none()) {
            let columns = join.left.schema().columns();
            let same = columns.iter().map(|column| (column.clone(), column.clone())).collect();
            let table = join.left.as_ref().clone();
            let domain =
                Domain { table, columns: same, carried: columns, number: self.next_number(), keeps_rows: is_left };
            let Some(mut rows) = domain.push(&join.right)? else { return Ok(None) };
            if let Some(filter) = &join.filter {
                rows = LogicalPlanBuilder::from(rows).filter(filter.clone())?.build()?;
            }
            return LogicalPlanBuilder::from(rows).project(output)?.build().map(Some);
        }
        let Some((rows, keys)) = self.push_domain(&join.left, &join.right)? else { return Ok(None) };
        let left = LogicalPlanBuilder::from(join.left.as_ref().clone());
        let mut conditions = key_conditions(keys);
        conditions.extend(join.filter.clone());
        left.join_on(rows, join.join_type, conditions)?.project(output)?.build().map(Some)
    }

    /// Evaluates `plan` for each value of the columns of `outer` that it uses. Returns the join keys with it.
    fn push_domain(&self, outer: &LogicalPlan, plan: &LogicalPlan) -> Result<Option<(LogicalPlan, JoinKeys)>> {
        if is_volatile(outer)? {
            return Ok(None);
        }
        let number = self.next_number();
        let mut used: Vec<Column> = Vec::new();
        for column in outer_columns(plan)? {
            if outer.schema().has_column(&column) && !used.contains(&column) {
                used.push(column);
            }
        }
        let carried: Vec<Column> =
            (0..used.len()).map(|index| Column::new_unqualified(format!("outer\u{1}{number} {index}"))).collect();
        let columns: Vec<(Column, Column)> = used.iter().cloned().zip(carried.iter().cloned()).collect();
        let table = if columns.is_empty() {
            LogicalPlanBuilder::empty(true).build()?
        } else {
            let named = columns.iter().map(|(column, name)| Expr::Column(column.clone()).alias(&name.name));
            LogicalPlanBuilder::from(outer.clone()).project(named)?.distinct()?.build()?
        };
        let domain = Domain { table, columns, carried: carried.clone(), number, keeps_rows: false };
        Ok(domain.push(plan)?.map(|rows| (rows, (used, carried))))
    }

    /// Rewrites a node with subqueries in its expressions.
    fn rewrite_subquery_values(&self, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let [input] = node.inputs()[..] else { return Ok(None) };
        let in_filter = matches!(node, LogicalPlan::Filter(_));
        // These nodes return the columns of their input.
        let keeps_columns = in_filter || matches!(node, LogicalPlan::Sort(_));
        // The number of leading expressions in which DataFusion supports no subqueries.
        let refused = match node {
            LogicalPlan::Sort(_) => usize::MAX,
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.len(),
            _ => 0,
        };
        let position = if in_filter { Position::Condition } else { Position::Output };
        let mut values = ValueRewriter::new(self, input);
        let mut expressions = Vec::new();
        let names: Vec<_> =
            node.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect();
        for (index, expression) in node.expressions().into_iter().enumerate() {
            let count = values.count;
            let replaced = values.replace(expression, position, index < refused)?;
            expressions.push(match names.get(index) {
                Some((qualifier, field)) if values.count > count && !keeps_columns => {
                    replaced.unalias().alias_qualified(qualifier.clone(), field.name())
                }
                _ => replaced,
            });
        }
        if values.count == 0 && !values.has_named {
            return Ok(None);
        }
        let is_joined = values.count > 0;
        let node = node.with_new_exprs(expressions, vec![values.joined])?;
        if !keeps_columns || !is_joined {
            return Ok(Some(node));
        }
        let output: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        LogicalPlanBuilder::from(node).project(output)?.build().map(Some)
    }
}

/// `plan` without the node that lets it use columns of outer queries.
fn without_subquery(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Subquery(subquery) => Ok(subquery.subquery.as_ref().clone()),
        LogicalPlan::SubqueryAlias(alias) => {
            SubqueryAlias::try_new(without_subquery(&alias.input)?.into(), alias.alias.clone())
                .map(LogicalPlan::SubqueryAlias)
        }
        other => Ok(other.clone()),
    }
}

/// Builds the join conditions for `keys`; `true` if there are no keys.
fn key_conditions((outer, carried): JoinKeys) -> Vec<Expr> {
    let pairs = outer.into_iter().zip(carried);
    let mut conditions: Vec<Expr> =
        pairs.map(|(left, right)| equal_or_both_null(Expr::Column(left), Expr::Column(right))).collect();
    if conditions.is_empty() {
        conditions.push(lit(true));
    }
    conditions
}

/// Builds the condition that both sides are equal or both NULL.
fn equal_or_both_null(left: Expr, right: Expr) -> Expr {
    binary_expr(left, Operator::IsNotDistinctFrom, right)
}

/// Whether `plan` unnests values of a single outer row and, if `is_left`, does nothing else.
fn makes_rows_of_each(plan: &LogicalPlan, is_left: bool) -> Result<bool> {
    let mut unnests = false;
    let mut only = true;
    plan.apply(|node| {
        match node {
            LogicalPlan::Unnest(_) => unnests = true,
            LogicalPlan::Projection(projection) if is_left && !unnests => {
                only &= projection.expr.iter().all(is_null_of_null);
            }
            LogicalPlan::Filter(_) => only &= !is_left,
            LogicalPlan::Projection(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::EmptyRelation(_) => {}
            _ => only = false,
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(only && unnests)
}

/// Whether `expression` is NULL if the columns that it uses are NULL.
fn is_null_of_null(expression: &Expr) -> bool {
    match expression {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_null_of_null(&alias.expr),
        Expr::Cast(cast) => is_null_of_null(&cast.expr),
        Expr::ScalarFunction(call) => call.name() != WHOLE_ROW,
        _ => false,
    }
}

/// Returns the columns of outer queries that `plan` and its own subqueries use.
fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::OuterReferenceColumn(_, column) = expression {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(columns)
}

/// Whether `plan` can return other rows at each evaluation.
fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut volatile = false;
    plan.apply_with_subqueries(|node| {
        volatile |= node.expressions().iter().any(Expr::is_volatile);
        Ok(if volatile { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(volatile)
}

/// Whether DataFusion plans the subquery `plan`: its outer columns are all in `schema` and occur only in filters, below
/// projections and at most one aggregate. Below an aggregate they must be in equalities.
fn is_simple(plan: &LogicalPlan, schema: &DFSchema) -> Result<bool> {
    let mut simple = true;
    let mut kinds_above = NodesAbove::default();
    let mut node = plan;
    if outer_columns(plan)?.is_empty() {
        return Ok(true);
    }
    loop {
        let own: Vec<Expr> = node.expressions();
        let usage = |expression: &Expr| -> Result<bool> {
            expression.exists(|inner| Ok(matches!(inner, Expr::OuterReferenceColumn(..))))
        };
        let nests = |expression: &Expr| -> Result<bool> {
            let is_nested = |inner: &Expr| match inner {
                Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
                Expr::Exists(exists) => !exists.subquery.outer_ref_columns.is_empty(),
                Expr::InSubquery(contained) => !contained.subquery.outer_ref_columns.is_empty(),
                Expr::SetComparison(_) => true,
                _ => false,
            };
            expression.exists(|inner| Ok(is_nested(inner)))
        };
        for expression in &own {
            if nests(expression)? {
                simple = false;
            }
            if usage(expression)? {
                simple &= match node {
                    LogicalPlan::Filter(filter) => {
                        !kinds_above.has_other
                            && utils::split_conjunction(&filter.predicate).into_iter().all(|part| {
                                !usage(part).unwrap_or(true) || !kinds_above.has_aggregate || is_equality(part)
                            })
                    }
                    _ => false,
                };
            }
        }
        match node {
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) => {}
            LogicalPlan::Subquery(_) => {}
            LogicalPlan::Aggregate(aggregate) => {
                kinds_above.has_other |= !aggregate.group_expr.is_empty() || kinds_above.has_aggregate;
                kinds_above.has_aggregate = true;
            }
            _ => kinds_above.has_other = true,
        }
        match node.inputs()[..] {
            [input] if simple => node = input,
            [] => return Ok(simple),
            _ => break,
        }
    }
    // If a node has several inputs, none of them may use outer columns.
    let rest_uses = node.inputs().iter().any(|input| !input.all_out_ref_exprs().is_empty());
    let outside = plan
        .all_out_ref_exprs()
        .iter()
        .any(|reference| matches!(reference, Expr::OuterReferenceColumn(_, column) if !schema.has_column(column)));
    Ok(simple && !rest_uses && !outside)
}

/// Whether `expression` compares an outer column with a value of the subquery's rows.
fn is_equality(expression: &Expr) -> bool {
    let Expr::BinaryExpr(binary) = expression else { return false };
    let is_outer = |side: &Expr| matches!(side, Expr::OuterReferenceColumn(..));
    let is_own = |side: &Expr| !side.exists(|part| Ok(is_outer(part))).unwrap_or(true) && side.any_column_refs();
    binary.op == Operator::Eq
        && ((is_outer(&binary.left) && is_own(&binary.right)) || (is_outer(&binary.right) && is_own(&binary.left)))
}

#[derive(Default)]
struct NodesAbove {
    has_aggregate: bool,
    has_other: bool,
}
