//! The order of a subquery in FROM, which PostgreSQL's rows keep.
//!
//! To DataFusion a subquery has no order: a sort that nothing above it requires is dropped. So what depends on the order of
//! its rows requires it here: aggregates such as `array_agg`, windows and DISTINCT ON without ORDER BY, limits, and the output
//! of the statement. Sorts of subqueries that nothing depends on are dropped, too.
//!
//! DataFusion's issue 15886; `docs/decisions/upstream` says when the module can go.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort, SortExpr,
    SubqueryAlias, Window, WindowFrameUnits, WindowFunctionDefinition,
};

use crate::aggregate::{is_exclusion_mark, without_alias};
use crate::plan_walk::any_node;
use crate::statement::is_limit_with_ties;

/// Aggregates whose result depends on the order of the rows.
const ORDERED_AGGREGATES: [&str; 5] = ["array_agg", "first_value", "last_value", "nth_value", "string_agg"];
/// Functions of windows whose result depends on the order of the rows, and not on which rows are peers.
const ORDERED_WINDOWS: [&str; 4] = ["lag", "lead", "ntile", "row_number"];

/// The rule. It runs before other rules replace limits and windows.
pub(crate) fn keep_subquery_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| Ok(matches!(node, LogicalPlan::Sort(_))))? {
        return Ok(plan);
    }
    let rewriter = OrderRewriter { count: Cell::new(0) };
    let plan = plan.transform_up_with_subqueries(|node| rewriter.require_order(node)).data()?;
    drop_sorts(rewriter.order_output(plan)?, true).data()
}

/// Rows without the sort that gives them an order, and the order, whose keys are columns of the rows.
struct OrderedRows {
    plan: LogicalPlan,
    keys: Vec<SortExpr>,
}

impl OrderedRows {
    fn to_sort(&self) -> Sort {
        Sort { expr: self.keys.clone(), input: Arc::new(self.plan.clone()), fetch: None }
    }

    fn sort(&self) -> LogicalPlan {
        LogicalPlan::Sort(self.to_sort())
    }
}

/// Requires orders, and numbers the columns that carry their keys.
struct OrderRewriter {
    count: Cell<usize>,
}

impl OrderRewriter {
    fn next_name(&self) -> String {
        self.count.set(self.count.get() + 1);
        format!("order\u{1}{}", self.count.get())
    }

    /// Requires the order of the input of `node`, if the node depends on it.
    fn require_order(&self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let required = match &node {
            LogicalPlan::Limit(limit) => self.order_limit(limit)?,
            LogicalPlan::Aggregate(aggregate) => self.order_aggregate(&node, aggregate)?,
            LogicalPlan::Window(window) => self.order_window(&node, window)?,
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.order_distinct(distinct)?,
            _ => None,
        };
        match required {
            Some(required) => with_columns_of(&node, required).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        }
    }

    fn order_limit(&self, limit: &Limit) -> Result<Option<LogicalPlan>> {
        let has_ties = limit.fetch.as_deref().is_some_and(is_limit_with_ties);
        if has_ties || is_sorted(&limit.input) {
            return Ok(None);
        }
        let Some(rows) = self.ordered_rows(&limit.input)? else { return Ok(None) };
        Ok(Some(LogicalPlan::Limit(Limit { input: Arc::new(rows.sort()), ..limit.clone() })))
    }

    fn order_aggregate(&self, node: &LogicalPlan, aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
        if !aggregate.aggr_expr.iter().any(|expr| aggregate_of(expr).is_some_and(is_ordered_aggregate)) {
            return Ok(None);
        }
        let Some(rows) = self.ordered_rows(&aggregate.input)? else { return Ok(None) };
        let names = NamePreserver::new(node);
        let order = |expr: &Expr| {
            let name = names.save(expr);
            let ordered = expr.clone().transform_up(|part| match part {
                Expr::AggregateFunction(mut call) if is_ordered_aggregate(&call) => {
                    call.params.order_by.clone_from(&rows.keys);
                    Ok(Transformed::yes(Expr::AggregateFunction(call)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(name.restore(ordered.data))
        };
        let aggregates = aggregate.aggr_expr.iter().map(order).collect::<Result<Vec<_>>>()?;
        let aggregate = Aggregate::try_new(Arc::new(rows.plan), aggregate.group_expr.clone(), aggregates)?;
        Ok(Some(LogicalPlan::Aggregate(aggregate)))
    }

    fn order_window(&self, node: &LogicalPlan, window: &Window) -> Result<Option<LogicalPlan>> {
        let depends = |expr: &Expr| window_of(expr).is_some_and(is_ordered_window);
        if !window.window_expr.iter().any(depends) {
            return Ok(None);
        }
        let Some(rows) = self.ordered_rows(&window.input)? else { return Ok(None) };
        let (dependent, others): (Vec<Expr>, Vec<Expr>) = window.window_expr.iter().cloned().partition(depends);
        let mut input = rows.sort();
        if !others.is_empty() {
            input = LogicalPlan::Window(Window::try_new(others, Arc::new(input))?);
        }
        let names = NamePreserver::new(node);
        let order = |expr: Expr| {
            let name = names.save(&expr);
            let ordered = expr.transform_down(|part| match part {
                Expr::WindowFunction(mut call) => {
                    call.params.order_by.clone_from(&rows.keys);
                    Ok(Transformed::new(Expr::WindowFunction(call), true, TreeNodeRecursion::Jump))
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(name.restore(ordered.data))
        };
        let dependent = dependent.into_iter().map(order).collect::<Result<Vec<_>>>()?;
        Ok(Some(LogicalPlan::Window(Window::try_new(dependent, Arc::new(input))?)))
    }

    /// The order chooses the row of each group, if the keys of DISTINCT ON are its first ones.
    fn order_distinct(&self, distinct: &DistinctOn) -> Result<Option<LogicalPlan>> {
        if distinct.sort_expr.is_some() {
            return Ok(None);
        }
        let Some(rows) = self.ordered_rows(&distinct.input)? else { return Ok(None) };
        let first: Vec<Expr> = rows.keys.iter().take(distinct.on_expr.len()).map(|key| key.expr.clone()).collect();
        let are_keys = distinct.on_expr.iter().all(|key| first.contains(key));
        if !are_keys || !first.iter().all(|key| distinct.on_expr.contains(key)) {
            return Ok(None);
        }
        let distinct = DistinctOn::try_new(first, distinct.select_expr.clone(), Some(rows.keys), Arc::new(rows.plan))?;
        Ok(Some(LogicalPlan::Distinct(Distinct::On(distinct))))
    }

    /// Requires the order of the output, unless the statement itself has one.
    fn order_output(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if is_sorted(&plan) {
            return Ok(plan);
        }
        match self.ordered_rows(&plan)? {
            Some(rows) => with_columns_of(&plan, rows.sort()),
            None => Ok(plan),
        }
    }

    /// Returns the rows of `plan` and their order; `None` if they have none.
    fn ordered_rows(&self, plan: &LogicalPlan) -> Result<Option<OrderedRows>> {
        let input = match plan {
            LogicalPlan::Sort(sort) => {
                let rows = self.rows_of_sort(sort)?;
                // The order chooses the rows of a sort that has a limit, as the optimizer makes it.
                let plan = match sort.fetch {
                    Some(_) => LogicalPlan::Sort(Sort { fetch: sort.fetch, ..rows.to_sort() }),
                    None => rows.plan,
                };
                return Ok(Some(OrderedRows { plan, keys: rows.keys }));
            }
            LogicalPlan::Limit(Limit { input, .. })
            | LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Window(Window { input, .. }) => input,
            LogicalPlan::Filter(filter) => &filter.input,
            _ => return Ok(None),
        };
        let Some(rows) = self.ordered_rows(input)? else { return Ok(None) };
        Ok(match plan {
            // The order chooses its rows.
            LogicalPlan::Limit(limit) => {
                let limited = LogicalPlan::Limit(Limit { input: Arc::new(rows.sort()), ..limit.clone() });
                Some(OrderedRows { plan: limited, keys: rows.keys })
            }
            LogicalPlan::Projection(projection) => Some(self.project_rows(projection, rows)?),
            LogicalPlan::SubqueryAlias(alias) => rename_rows(alias, rows)?,
            LogicalPlan::Filter(filter) => {
                let mut filter = filter.clone();
                filter.input = Arc::new(rows.plan);
                Some(OrderedRows { plan: LogicalPlan::Filter(filter), keys: rows.keys })
            }
            LogicalPlan::Window(window) if window.window_expr.iter().all(|expr| keeps_order(expr, &rows.keys)) => {
                let window = Window::try_new(window.window_expr.clone(), Arc::new(rows.plan))?;
                Some(OrderedRows { plan: LogicalPlan::Window(window), keys: rows.keys })
            }
            _ => None,
        })
    }

    /// Computes the keys of `sort` that are no columns.
    fn rows_of_sort(&self, sort: &Sort) -> Result<OrderedRows> {
        let mut keys = sort.expr.clone();
        let mut output: Vec<Expr> = sort.input.schema().columns().into_iter().map(Expr::Column).collect();
        let columns = output.len();
        for key in keys.iter_mut().filter(|key| !matches!(key.expr, Expr::Column(_))) {
            let name = self.next_name();
            output.push(std::mem::take(&mut key.expr).alias(&name));
            key.expr = Expr::Column(Column::new_unqualified(name));
        }
        let plan = match output.len() == columns {
            true => sort.input.as_ref().clone(),
            false => LogicalPlan::Projection(Projection::try_new(output, sort.input.clone())?),
        };
        Ok(OrderedRows { plan, keys })
    }

    /// Applies `projection` to `rows`, and adds the keys of their order that it leaves out.
    fn project_rows(&self, projection: &Projection, rows: OrderedRows) -> Result<OrderedRows> {
        let mut output = projection.expr.clone();
        let mut positions = Vec::new();
        for key in &rows.keys {
            let position = output.iter().position(|column| *without_alias(column) == key.expr);
            positions.push(position.unwrap_or(output.len()));
            if position.is_none() {
                output.push(key.expr.clone().alias(self.next_name()));
            }
        }
        let projected = Projection::try_new(output, Arc::new(rows.plan))?;
        let keys = rows.keys.into_iter().zip(positions).map(|(key, position)| {
            let column = Column::from(projected.schema.qualified_field(position));
            SortExpr { expr: Expr::Column(column), ..key }
        });
        let keys = keys.collect();
        Ok(OrderedRows { plan: LogicalPlan::Projection(projected), keys })
    }
}

/// Gives `rows` the name of `alias`.
fn rename_rows(alias: &SubqueryAlias, rows: OrderedRows) -> Result<Option<OrderedRows>> {
    let position = |key: &SortExpr| match &key.expr {
        Expr::Column(column) => rows.plan.schema().maybe_index_of_column(column),
        _ => None,
    };
    let Some(positions) = rows.keys.iter().map(position).collect::<Option<Vec<usize>>>() else { return Ok(None) };
    let renamed = SubqueryAlias::try_new(Arc::new(rows.plan), alias.alias.clone())?;
    let keys = rows.keys.into_iter().zip(positions).map(|(key, position)| {
        let column = Column::from(renamed.schema.qualified_field(position));
        SortExpr { expr: Expr::Column(column), ..key }
    });
    let keys = keys.collect();
    Ok(Some(OrderedRows { plan: LogicalPlan::SubqueryAlias(renamed), keys }))
}

/// Whether a sort or a limit of the query itself gives the rows of `plan`.
fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_sorted(&projection.input),
        LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => true,
        _ => false,
    }
}

/// Returns `plan` with the columns of `original`.
fn with_columns_of(original: &LogicalPlan, plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = original.schema().columns();
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}

/// Drops the sorts in `plan` that give no output and no limit its order. `is_kept` says whether its own order is kept.
fn drop_sorts(plan: LogicalPlan, is_kept: bool) -> Result<Transformed<LogicalPlan>> {
    use LogicalPlan::{Analyze, Explain, Limit, Projection, Subquery};
    match plan {
        LogicalPlan::Sort(sort) if !is_kept && sort.fetch.is_none() => {
            let input = drop_sorts(Arc::unwrap_or_clone(sort.input), false)?;
            Ok(Transformed::yes(input.data))
        }
        node => {
            let passes_order = matches!(node, Projection(_) | Subquery(_) | Explain(_) | Analyze(_));
            let is_input_kept = matches!(node, Limit(_)) || (is_kept && passes_order);
            node.map_children(|input| drop_sorts(input, is_input_kept))?
                .transform_data(|node| node.map_subqueries(|query| drop_sorts(query, true)))
        }
    }
}

fn aggregate_of(expression: &Expr) -> Option<&AggregateFunction> {
    match without_alias(expression) {
        Expr::AggregateFunction(call) => Some(call),
        _ => None,
    }
}

fn window_of(expression: &Expr) -> Option<&WindowFunction> {
    match without_alias(expression) {
        Expr::WindowFunction(call) => Some(call.as_ref()),
        _ => None,
    }
}

/// Whether the result depends on the order of the rows, and the call has none.
fn is_ordered_aggregate(call: &AggregateFunction) -> bool {
    let params = &call.params;
    params.order_by.is_empty() && !params.distinct && ORDERED_AGGREGATES.contains(&call.func.name())
}

/// Whether the result depends on the order of the rows, and the window has none. All rows are peers then, so that a frame of
/// peers and an exclusion of them mean all rows.
fn is_ordered_window(call: &WindowFunction) -> bool {
    let params = &call.params;
    if !params.order_by.is_empty() || params.partition_by.iter().any(is_exclusion_mark) {
        return false;
    }
    let frame = &params.window_frame;
    let is_part = !frame.start_bound.is_unbounded() || !frame.end_bound.is_unbounded();
    let is_ordered = match &call.fun {
        WindowFunctionDefinition::WindowUDF(function) if ORDERED_WINDOWS.contains(&function.name()) => return true,
        function => ORDERED_AGGREGATES.contains(&function.name()),
    };
    let is_aggregate = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
    frame.units == WindowFrameUnits::Rows && (is_ordered || (is_aggregate && is_part))
}

/// Whether the window of `expression` leaves rows in the order of `keys`.
fn keeps_order(expression: &Expr, keys: &[SortExpr]) -> bool {
    window_of(expression).is_some_and(|call| {
        call.params.partition_by.is_empty() && (call.params.order_by.is_empty() || call.params.order_by == keys)
    })
}
