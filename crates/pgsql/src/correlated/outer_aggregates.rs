//! Aggregates of an outer query: `SELECT (SELECT count(t.a)) FROM t` has one row.
//!
//! An aggregate belongs to the innermost query that has one of its columns. DataFusion computes it in the subquery that
//! contains it, once for each row of the outer query. Here its own query computes it, and the subquery takes the result as a
//! column of the outer row.
//!
//! `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, Subquery, Window, lit};

use crate::aggregate::without_alias;
use crate::in_list::VALUE_OF_ROW;
use crate::plan_walk::for_each_part;

/// The rule. It runs before subqueries become joins.
pub(crate) fn move_outer_aggregates(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mover = AggregateMover { count: Cell::new(0) };
    let moved = plan.transform_up_with_subqueries(|node| mover.rewrite(node))?;
    if !moved.transformed {
        return Ok(moved.data);
    }
    // An aggregate has more columns than before, and so do the nodes above it.
    moved.data.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes)).data()
}

/// An aggregate as the subquery computes it, and the outer column that takes its place.
struct MovedAggregate {
    call: Expr,
    column: Expr,
}

/// Moves aggregates, and numbers the names of their columns.
struct AggregateMover {
    count: Cell<usize>,
}

impl AggregateMover {
    fn rewrite(&self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        check_lateral(&node)?;
        let mut has_subquery = false;
        node.apply_subqueries(|_| {
            has_subquery = true;
            Ok(TreeNodeRecursion::Stop)
        })?;
        if !has_subquery {
            return Ok(Transformed::no(node));
        }
        let calls = match &node {
            LogicalPlan::Projection(projection) => outer_aggregates(&node, rows_of(&projection.input).schema())?,
            LogicalPlan::Filter(filter) => outer_aggregates(&node, rows_of(&filter.input).schema())?,
            _ => outer_aggregates(&node, &visible_columns(&node))?,
        };
        if calls.is_empty() {
            check_grouped_columns(&node)?;
            return Ok(Transformed::no(node));
        }
        let (input, moved) = match &node {
            LogicalPlan::Projection(projection) => self.move_calls(&projection.input, calls)?,
            LogicalPlan::Filter(filter) if grouped_input(&filter.input).is_some() => {
                self.move_calls(&filter.input, calls)?
            }
            LogicalPlan::Filter(_) => return refused("in WHERE"),
            LogicalPlan::Join(_) => return refused("in JOIN conditions"),
            LogicalPlan::Aggregate(_) => return refused("in GROUP BY and in arguments of aggregates"),
            _ => {
                return plan_err!(
                    "an aggregate of this query in a subquery of ORDER BY or of a window is not supported; compute it in \
                     SELECT of a subquery in FROM, and use its column"
                );
            }
        };
        let replaced = node.map_subqueries(|query| replace_calls(query, &moved).map(Transformed::yes))?.data;
        let rewritten = match replaced {
            LogicalPlan::Projection(projection) => {
                check_columns(&projection.expr, &input)?;
                LogicalPlan::Projection(Projection::try_new(projection.expr, Arc::new(input))?)
            }
            LogicalPlan::Filter(mut filter) => {
                filter.input = Arc::new(input);
                LogicalPlan::Filter(filter)
            }
            other => other,
        };
        check_grouped_columns(&rewritten)?;
        Ok(Transformed::yes(rewritten))
    }

    /// Adds `calls` to the aggregates of the query with the rows of `input`. Returns its new input.
    fn move_calls(&self, input: &LogicalPlan, calls: Vec<Expr>) -> Result<(LogicalPlan, Vec<MovedAggregate>)> {
        let rows = rows_of(input);
        let (mut aggregates, mut names) = (Vec::new(), Vec::new());
        for call in &calls {
            self.count.set(self.count.get() + 1);
            let name = format!("outer aggregate\u{1}{}", self.count.get());
            let own = call.clone().transform(|part| match part {
                Expr::OuterReferenceColumn(_, column) if rows.schema().has_column(&column) => {
                    Ok(Transformed::yes(Expr::Column(column)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            aggregates.push(own.data.alias(&name));
            names.push(name);
        }
        let input = with_aggregates(input, aggregates)?;
        let mut moved = Vec::new();
        for (call, name) in calls.into_iter().zip(names) {
            let (_, field) = input.schema().qualified_field_with_name(None, &name)?;
            let column = Expr::OuterReferenceColumn(field.clone(), Column::new_unqualified(name));
            moved.push(MovedAggregate { call, column });
        }
        Ok((input, moved))
    }
}

fn refused<T>(place: &str) -> Result<T> {
    plan_err!(
        "aggregate functions are not allowed {place}: an aggregate in a subquery belongs to the query of its columns; use \
         HAVING, or compute it in a subquery in FROM"
    )
}

/// Returns the columns that subqueries of `node` may take from its query.
fn visible_columns(node: &LogicalPlan) -> DFSchema {
    use LogicalPlan::{Aggregate, Distinct, Filter, Projection, Sort, Window};
    let inputs = node.inputs();
    let mut schema = merge_schema(&inputs);
    let mut below = inputs.first().copied();
    while let Some(Aggregate(_) | Distinct(_) | Filter(_) | Projection(_) | Sort(_) | Window(_)) = below {
        below = below.and_then(|plan| plan.inputs().first().copied());
        if let Some(plan) = below {
            schema.merge(plan.schema());
        }
    }
    schema
}

/// Returns the rows that the query with the input `plan` may aggregate.
fn rows_of(plan: &LogicalPlan) -> &LogicalPlan {
    grouped_input(plan).map_or(plan, |aggregate| aggregate.input.as_ref())
}

/// Returns the aggregate below HAVING and windows.
fn grouped_input(plan: &LogicalPlan) -> Option<&Aggregate> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => Some(aggregate),
        LogicalPlan::Filter(filter) => grouped_input(&filter.input),
        LogicalPlan::Window(window) => grouped_input(&window.input),
        _ => None,
    }
}

/// Returns the aggregates in subqueries of `node` that belong to its query, which has the columns of `schema`.
fn outer_aggregates(node: &LogicalPlan, schema: &DFSchema) -> Result<Vec<Expr>> {
    let mut calls: Vec<Expr> = Vec::new();
    node.apply_subqueries(|query| {
        query.apply_with_subqueries(|inner| {
            if let LogicalPlan::Aggregate(aggregate) = inner {
                for call in aggregate.aggr_expr.iter().map(without_alias) {
                    if is_outer(call, aggregate, schema)? && !calls.contains(call) {
                        calls.push(call.clone());
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(calls)
}

/// Whether all columns of `call`, one of `aggregate`, are those of outer queries, and some are in `schema`. The aggregate of `ARRAY(SELECT …)`,
/// whose argument is marked, belongs to its own query.
fn is_outer(call: &Expr, aggregate: &Aggregate, schema: &DFSchema) -> Result<bool> {
    let (mut is_own, mut is_outer) = (false, false);
    call.apply(|part| {
        match part {
            Expr::Column(_) => is_own = true,
            Expr::ScalarSubquery(subquery)
            | Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. })
            | Expr::SetComparison(SetComparison { subquery, .. }) => {
                for column in free_columns(&subquery.subquery)? {
                    is_own |= aggregate.input.schema().has_column(&column);
                    is_outer |= schema.has_column(&column);
                }
            }
            Expr::ScalarFunction(function) if function.name() == VALUE_OF_ROW => is_own = true,
            Expr::OuterReferenceColumn(_, column) => is_outer |= schema.has_column(column),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(!is_own && is_outer)
}

/// Refuses an aggregate in LATERAL whose columns are those of the query of LATERAL.
fn check_lateral(node: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Join(join) = node else { return Ok(()) };
    let mut is_refused = false;
    let right = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => &alias.input,
        _ => &join.right,
    };
    if let LogicalPlan::Subquery(lateral) = right.as_ref() {
        lateral.subquery.apply_with_subqueries(|inner| {
            if let LogicalPlan::Aggregate(aggregate) = inner {
                for call in &aggregate.aggr_expr {
                    is_refused |= is_outer(call, aggregate, join.left.schema())?;
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if is_refused { refused("in FROM of their own query") } else { Ok(()) }
}

/// Adds `aggregates` to those of the query with the rows of `plan`; without any, it gets one row.
fn with_aggregates(plan: &LogicalPlan, aggregates: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let aggregates = [aggregate.aggr_expr.clone(), aggregates].concat();
            let (input, keys) = (aggregate.input.clone(), aggregate.group_expr.clone());
            LogicalPlan::Aggregate(Aggregate::try_new(input, keys, aggregates)?)
        }
        LogicalPlan::Filter(filter) if grouped_input(&filter.input).is_some() => {
            let mut filter = filter.clone();
            filter.input = Arc::new(with_aggregates(&filter.input, aggregates)?);
            LogicalPlan::Filter(filter)
        }
        LogicalPlan::Window(window) if grouped_input(&window.input).is_some() => {
            let input = Arc::new(with_aggregates(&window.input, aggregates)?);
            LogicalPlan::Window(Window::try_new(window.window_expr.clone(), input)?)
        }
        LogicalPlan::Window(_) => {
            return plan_err!(
                "an aggregate of this query in a subquery is not supported beside a window function; compute it in a \
                 subquery in FROM"
            );
        }
        rows => LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(rows.clone()), Vec::new(), aggregates)?),
    })
}

/// Replaces the moved aggregates in a subquery.
fn replace_calls(query: LogicalPlan, moved: &[MovedAggregate]) -> Result<LogicalPlan> {
    let replaced = query.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Filter(mut filter) => {
            let LogicalPlan::Aggregate(aggregate) = filter.input.as_ref() else {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            };
            match with_outer_columns(aggregate, moved, true)? {
                Some(input) => {
                    filter.input = Arc::new(input);
                    Ok(Transformed::yes(LogicalPlan::Filter(filter)))
                }
                None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
            }
        }
        LogicalPlan::Aggregate(aggregate) => match with_outer_columns(&aggregate, moved, false)? {
            Some(columns) => Ok(Transformed::yes(columns)),
            None => Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
        },
        other => Ok(Transformed::no(other)),
    })?;
    let refresh = |node: LogicalPlan| match node {
        LogicalPlan::Subquery(query) => {
            let outer_ref_columns = query.subquery.all_out_ref_exprs();
            Ok(Transformed::yes(LogicalPlan::Subquery(Subquery { outer_ref_columns, ..query })))
        }
        other => Ok(Transformed::no(other)),
    };
    replaced.data.transform_up_with_subqueries(refresh).data()
}

/// Returns the rows of `aggregate` with outer columns in place of the moved aggregates; `None` if it has none of them. A query
/// whose only aggregates they are is not grouped, unless it has HAVING.
fn with_outer_columns(
    aggregate: &Aggregate,
    moved: &[MovedAggregate],
    has_having: bool,
) -> Result<Option<LogicalPlan>> {
    let moved_call = |expr: &Expr| moved.iter().find(|moved| moved.call == *without_alias(expr));
    let mut remaining: Vec<Expr> = aggregate.aggr_expr.clone();
    remaining.retain(|expr| moved_call(expr).is_none());
    if remaining.len() == aggregate.aggr_expr.len() {
        return Ok(None);
    }
    if has_having && remaining.is_empty() && aggregate.group_expr.is_empty() {
        remaining.push(count(lit(1_i64)));
    }
    let rows = if remaining.is_empty() && aggregate.group_expr.is_empty() {
        aggregate.input.clone()
    } else {
        let grouped = Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), remaining)?;
        Arc::new(LogicalPlan::Aggregate(grouped))
    };
    let columns = aggregate.schema.columns();
    let keys = columns.len() - aggregate.aggr_expr.len();
    let output = columns.into_iter().enumerate().map(|(position, column)| {
        let call = position.checked_sub(keys).and_then(|position| moved_call(&aggregate.aggr_expr[position]));
        match call {
            Some(moved) => moved.column.clone().alias_qualified(column.relation, column.name),
            None => Expr::Column(column),
        }
    });
    Ok(Some(LogicalPlan::Projection(Projection::try_new(output.collect(), rows)?)))
}

/// Fails if `expressions`, which are those of an aggregate query now, use columns of its rows.
fn check_columns(expressions: &[Expr], input: &LogicalPlan) -> Result<()> {
    for column in expressions.iter().flat_map(Expr::column_refs) {
        if !input.schema().has_column(column) {
            return plan_err!(
                "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate function, because an aggregate \
                 in a subquery belongs to this query",
                column.flat_name()
            );
        }
    }
    Ok(())
}

/// Fails if subqueries of the grouped query of `node` use columns that are not grouped.
fn check_grouped_columns(node: &LogicalPlan) -> Result<()> {
    let (LogicalPlan::Projection(_) | LogicalPlan::Filter(_)) = node else { return Ok(()) };
    let Some(aggregate) = node.inputs().first().copied().and_then(grouped_input) else { return Ok(()) };
    let mut columns = Vec::new();
    node.apply_subqueries(|query| {
        columns.extend(free_columns(query)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    for column in columns {
        if aggregate.input.schema().has_column(&column) && !aggregate.schema.has_column(&column) {
            return plan_err!(
                "subquery uses ungrouped column \"{}\" from outer query; add it to GROUP BY, or use an aggregate of it",
                column.flat_name()
            );
        }
    }
    Ok(())
}

/// Returns the outer columns of `plan` that are not those of a query in it.
fn free_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for_each_part(plan, |part| {
        if let Expr::OuterReferenceColumn(_, column) = part {
            columns.push(column.clone());
        }
        Ok(())
    })?;
    let visible = visible_columns(plan);
    plan.apply_subqueries(|query| {
        columns.extend(free_columns(query)?.into_iter().filter(|column| !visible.has_column(column)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    for input in plan.inputs() {
        let own = free_columns(input)?;
        let is_lateral = |column: &Column| match plan {
            LogicalPlan::Join(join) => join.left.schema().has_column(column),
            _ => false,
        };
        columns.extend(own.into_iter().filter(|column| !is_lateral(column)));
    }
    Ok(columns)
}
