//! Turns correlated subqueries that DataFusion does not plan into joins.
//!
//! DataFusion plans subqueries whose outer columns occur in a filter without an aggregate, limit, window or similar above
//! it; a scalar subquery may have an aggregate. All other subqueries are evaluated for all outer values at once
//! ([`Domain`]) and joined, or refused.
//!
//! DataFusion's issues 6140, 16137, 21201, 23022, 24960, 25347 and 25519; `docs/decisions/upstream` says when the module
//! can go. It has a text to be filed for recursive queries that use themselves in subqueries.

mod domain;
mod outer_aggregates;
mod outer_columns;
mod subquery_value;

use std::cell::{Cell, RefCell};

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, JoinType, Result, TableReference, plan_datafusion_err, plan_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, RecursiveQuery, SortExpr,
    SubqueryAlias, TableScan, Values, binary_expr, lit, utils,
};

use crate::json::WHOLE_ROW;
use crate::plan_walk::{any_node, for_each_part};
use domain::Domain;
use outer_columns::{is_lateral, outer_columns, subquery_of};
use subquery_value::{Position, ValueRewriter, has_subquery};

pub(crate) use outer_aggregates::move_outer_aggregates;

/// The rule. It runs before type coercion.
pub(crate) fn decorrelate_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = subquery_value::make_subqueries_nullable(plan)?;
    let rewriter = SubqueryRewriter { count: Cell::new(0), recursive: RefCell::new(Vec::new()) };
    plan.transform_down_with_subqueries(|node| rewriter.rewrite(node)).data()
}

/// The join keys: columns of the outer query, and the columns of the subquery that carry their values.
type JoinKeys = (Vec<Column>, Vec<Column>);

/// Rewrites nodes, and numbers the generated names.
struct SubqueryRewriter {
    count: Cell<usize>,
    /// The names of the recursive queries that were visited.
    recursive: RefCell<Vec<String>>,
}

impl SubqueryRewriter {
    fn next_number(&self) -> usize {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }

    fn rewrite(&self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let rewritten = match &node {
            LogicalPlan::Join(join) => match self.rewrite_lateral(join)? {
                Some(rewritten) => Some(rewritten),
                None => self.rewrite_join_condition(join)?,
            },
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_) => self.rewrite_subquery_values(&node)?,
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.rewrite_distinct_on(distinct)?,
            LogicalPlan::Values(values) => self.rewrite_values(values)?,
            LogicalPlan::RecursiveQuery(query) => {
                check_recursion(query)?;
                self.recursive.borrow_mut().push(query.name.clone());
                None
            }
            LogicalPlan::TableScan(scan) => {
                self.check_scan(scan)?;
                None
            }
            _ => None,
        };
        Ok(rewritten.map_or(Transformed::no(node), Transformed::yes))
    }

    /// Refuses a scan of the latest rows of a query that uses itself in subqueries only: DataFusion takes it for one that is
    /// not recursive.
    fn check_scan(&self, scan: &TableScan) -> Result<()> {
        let is_of_recursion =
            source_as_provider(&scan.source).is_ok_and(|provider| provider.downcast_ref::<CteWorkTable>().is_some());
        let name = scan.table_name.table();
        if is_of_recursion && !self.recursive.borrow().iter().any(|recursive| recursive.eq_ignore_ascii_case(name)) {
            return Err(self_reference_error(name));
        }
        Ok(())
    }

    /// Rewrites a join whose right side uses columns of its left side.
    fn rewrite_lateral(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        if !is_lateral(join) || !join.on.is_empty() || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return Ok(None);
        }
        if !outer_columns(&join.right)?.iter().any(|column| join.left.schema().has_column(column)) {
            // The rows are the same for each row of the left side.
            let right = without_subquery(&join.right)?.into();
            return Ok(Some(LogicalPlan::Join(Join { right, ..join.clone() })));
        }
        let is_left = join.join_type == JoinType::Left;
        if makes_rows_of_each(&join.right, is_left)? && (!is_left || join.filter.is_none()) {
            let number = self.next_number();
            let columns = join.left.schema().columns();
            let carried = carried_names(number, columns.len());
            // The columns of the left side have other names meanwhile: the right side may have the same ones.
            let renamed = columns.iter().zip(&carried);
            let renamed = renamed.map(|(column, name)| Expr::Column(column.clone()).alias(&name.name));
            let table = LogicalPlanBuilder::from(join.left.as_ref().clone()).project(renamed)?.build()?;
            let restored = columns.iter().zip(&carried).map(|(column, name)| {
                Expr::Column(name.clone()).alias_qualified(column.relation.clone(), column.name.as_str())
            });
            let restored: Vec<Expr> =
                restored.chain(join.right.schema().columns().into_iter().map(Expr::Column)).collect();
            let columns = columns.into_iter().zip(carried.iter().cloned()).collect();
            let domain = Domain { table, columns, carried, number, keeps_rows: is_left };
            let mut rows = LogicalPlanBuilder::from(domain.push(&join.right)?).project(restored)?;
            if let Some(filter) = &join.filter {
                rows = rows.filter(filter.clone())?;
            }
            return rows.build().map(Some);
        }
        let (rows, keys) = self.push_domain(&join.left, &join.right)?;
        let left = LogicalPlanBuilder::from(join.left.as_ref().clone());
        let mut conditions = key_conditions(keys);
        conditions.extend(join.filter.clone());
        let output = join.schema.columns().into_iter().map(Expr::Column);
        left.join_on(rows, join.join_type, conditions)?.project(output)?.build().map(Some)
    }

    /// Evaluates `plan` for each value of the columns of `outer` that it uses. Returns the join keys with it.
    fn push_domain(&self, outer: &LogicalPlan, plan: &LogicalPlan) -> Result<(LogicalPlan, JoinKeys)> {
        let number = self.next_number();
        let mut used: Vec<Column> = Vec::new();
        for column in outer_columns(plan)? {
            if outer.schema().has_column(&column) && !used.contains(&column) {
                used.push(column);
            }
        }
        if !used.is_empty() && is_volatile(outer)? {
            return plan_err!(
                "a subquery that uses columns of rows with random values is not supported here; use it in a query in \
                 FROM whose rows have no random values yet"
            );
        }
        if !used.is_empty() && scans_rows_of(outer, &self.recursive.borrow())? {
            return plan_err!(
                "a subquery or LATERAL that uses columns of a recursive query is not supported here; join its tables in \
                 FROM of the recursive part instead"
            );
        }
        let carried = carried_names(number, used.len());
        let columns: Vec<(Column, Column)> = used.iter().cloned().zip(carried.iter().cloned()).collect();
        let table = if columns.is_empty() {
            LogicalPlanBuilder::empty(true).build()?
        } else {
            let named = columns.iter().map(|(column, name)| Expr::Column(column.clone()).alias(&name.name));
            LogicalPlanBuilder::from(outer.clone()).project(named)?.distinct()?.build()?
        };
        let domain = Domain { table, columns, carried: carried.clone(), number, keeps_rows: false };
        Ok((domain.push(plan)?, (used, carried)))
    }

    /// Rewrites a node with subqueries in its expressions.
    fn rewrite_subquery_values(&self, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let in_filter = matches!(node, LogicalPlan::Filter(_));
        let separated = separate_conditions(node)?;
        let node = separated.as_ref().unwrap_or(node);
        let [input] = node.inputs()[..] else { return Ok(None) };
        // These nodes return the columns of their input.
        let keeps_columns = in_filter || matches!(node, LogicalPlan::Sort(_));
        // The number of leading expressions in which DataFusion supports no subqueries.
        let refused = match node {
            LogicalPlan::Sort(_) | LogicalPlan::Window(_) => usize::MAX,
            LogicalPlan::Aggregate(aggregate) if matches!(aggregate.group_expr[..], [Expr::GroupingSet(_)]) => {
                usize::MAX
            }
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.len(),
            _ => 0,
        };
        let position = if in_filter { Position::Condition } else { Position::Output };
        let mut values = ValueRewriter::new(self, input);
        let mut expressions = Vec::new();
        let own = node.expressions();
        // A window's columns come after those of its input, and aggregates after the columns of grouping sets.
        let others = node.schema().fields().len().saturating_sub(own.len());
        let names = node.schema().iter().skip(others);
        let names: Vec<_> = names.map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect();
        for (index, expression) in own.into_iter().enumerate() {
            let count = values.count;
            let replaced = values.replace(expression, position, index < refused)?;
            if values.count > count && matches!(replaced, Expr::GroupingSet(_)) {
                return plan_err!(
                    "a subquery in GROUPING SETS, ROLLUP or CUBE is not supported; compute it in a query in FROM, and \
                     use its column instead"
                );
            }
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

    /// Rewrites DISTINCT ON with subqueries in its expressions.
    fn rewrite_distinct_on(&self, distinct: &DistinctOn) -> Result<Option<LogicalPlan>> {
        let mut values = ValueRewriter::new(self, &distinct.input);
        let mut replace = |expression: &Expr| values.replace(expression.clone(), Position::Output, true);
        let keys = distinct.on_expr.iter().map(&mut replace).collect::<Result<Vec<_>>>()?;
        let mut outputs = Vec::new();
        for (expression, (qualifier, field)) in distinct.select_expr.iter().zip(distinct.schema.iter()) {
            outputs.push(replace(expression)?.unalias().alias_qualified(qualifier.cloned(), field.name()));
        }
        let mut order = Vec::new();
        for key in distinct.sort_expr.iter().flatten() {
            order.push(SortExpr::new(replace(&key.expr)?, key.asc, key.nulls_first));
        }
        if values.count == 0 {
            return Ok(None);
        }
        let order = distinct.sort_expr.is_some().then_some(order);
        LogicalPlanBuilder::from(values.joined).distinct_on(keys, outputs, order)?.build().map(Some)
    }

    /// Rewrites VALUES with subqueries as a query of its rows.
    fn rewrite_values(&self, values: &Values) -> Result<Option<LogicalPlan>> {
        let mut found = false;
        for value in values.values.iter().flatten() {
            found |= has_subquery(value)?;
        }
        if !found {
            return Ok(None);
        }
        let table = LogicalPlanBuilder::empty(true).build()?;
        let number = self.next_number();
        let domain = Domain { table, columns: Vec::new(), carried: Vec::new(), number, keeps_rows: false };
        let rows = domain.push_values(values)?;
        Ok(Some(self.rewrite_subquery_values(&rows)?.unwrap_or(rows)))
    }
}

/// Splits a filter: its conditions without subqueries are applied first, so that fewer rows have values for subqueries.
/// `None` for another node, or if there is nothing to split.
fn separate_conditions(node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = node else { return Ok(None) };
    let conditions = utils::split_conjunction(&filter.predicate).into_iter();
    let (late, early): (Vec<&Expr>, Vec<&Expr>) =
        conditions.partition(|condition| condition.contains_outer() || has_subquery(condition).unwrap_or(true));
    let conjunction = |conditions: Vec<&Expr>| utils::conjunction(conditions.into_iter().cloned());
    let (Some(late), Some(early)) = (conjunction(late), conjunction(early)) else { return Ok(None) };
    let early = Filter::try_new(early, filter.input.clone()).map(LogicalPlan::Filter)?;
    Filter::try_new(late, early.into()).map(LogicalPlan::Filter).map(Some)
}

/// Refuses a recursive query that uses itself in a subquery, as PostgreSQL does.
fn check_recursion(query: &RecursiveQuery) -> Result<()> {
    let check = |part: &Expr| match subquery_of(part) {
        Some(subquery) if scans_rows_of(&subquery.subquery, std::slice::from_ref(&query.name))? => {
            Err(self_reference_error(&query.name))
        }
        _ => Ok(()),
    };
    query.recursive_term.apply_with_subqueries(|node| for_each_part(node, check))?;
    Ok(())
}

fn self_reference_error(name: &str) -> DataFusionError {
    plan_datafusion_err!(
        "recursive reference to query \"{name}\" must not appear within a subquery; join it in FROM instead"
    )
}

/// Whether `plan` scans the latest rows of one of the recursive queries `names`, or a table of that name.
fn scans_rows_of(plan: &LogicalPlan, names: &[String]) -> Result<bool> {
    plan.exists(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(false) };
        let TableReference::Bare { table } = &scan.table_name else { return Ok(false) };
        Ok(names.iter().any(|name| name.eq_ignore_ascii_case(table)))
    })
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

/// Returns the names of `count` columns of a domain, which no other column has.
fn carried_names(number: usize, count: usize) -> Vec<Column> {
    (0..count).map(|index| Column::new_unqualified(format!("outer\u{1}{number} {index}"))).collect()
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

/// Whether `plan` computes or unnests values of a single outer row and, if `is_left`, only unnests.
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
    Ok(only && (unnests || !is_left))
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

/// Whether `plan` can return other rows at each evaluation.
fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| Ok(node.expressions().iter().any(Expr::is_volatile)))
}
