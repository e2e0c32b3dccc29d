//! Analyzer rules, which run once the types of all expressions are known.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Union};
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};

use crate::plan_walk::{for_each_part, input_schema, rewrite_named};
use crate::{
    aggregate, array, cast, catalog, correlated, in_list, json, number, statement, subquery_order, time,
    untyped_literals,
};

/// Returns DataFusion's analyzer rules, and the rules of this crate before and after them.
///
/// Before DataFusion's rules, orders of subqueries are required where they matter, subqueries become joins, windows get
/// suitable types, and keys of grouping sets become columns. After them, casts and arithmetic
/// get PostgreSQL's semantics, and constants of different types are kept apart.
pub fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = vec![
        rule("resolve_type_names", |plan| in_each_node(plan, catalog::resolve_type_names)),
        rule("move_outer_aggregates", correlated::move_outer_aggregates),
        rule("keep_subquery_order", subquery_order::keep_subquery_order),
        rule("rewrite_limit", |plan| in_each_node(plan, statement::rewrite_limit)),
        rule("adapt_windows", |plan| in_each_node(plan, aggregate::adapt_windows)),
        rule("decorrelate_subqueries", correlated::decorrelate_subqueries),
        rule("compute_grouping_keys", |plan| in_each_node(plan, aggregate::compute_grouping_keys)),
        rule("coerce_literals", coerce_literals),
    ];
    rules.extend(Analyzer::new().rules);
    rules.push(rule("apply_postgres_semantics", apply_postgres_semantics));
    rules.push(rule("separate_constants", time::separate_constants));
    rules
}

fn rule(name: &'static str, rewrite: fn(LogicalPlan) -> Result<LogicalPlan>) -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(PlanRule { name, rewrite })
}

/// A rule that is a function.
#[derive(Debug)]
struct PlanRule {
    name: &'static str,
    rewrite: fn(LogicalPlan) -> Result<LogicalPlan>,
}

impl AnalyzerRule for PlanRule {
    fn name(&self) -> &str {
        self.name
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        (self.rewrite)(plan)
    }
}

fn in_each_node(
    plan: LogicalPlan,
    rewrite: fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(rewrite).data()
}

/// Gives untyped literals the type of the other operand, before DataFusion's coercion would choose another.
fn coerce_literals(plan: LogicalPlan) -> Result<LogicalPlan> {
    // A changed column type changes the types of all expressions above it.
    let is_changed = Cell::new(false);
    let in_node = |node: LogicalPlan| {
        let node = untyped_literals::type_union(node)?;
        is_changed.set(is_changed.get() || node.transformed);
        time::check_node(&node.data)?;
        let node = number::compare_join_keys(node.data)?;
        let schema = input_schema(&node)?;
        let inputs = node.inputs();
        for_each_part(&node, |part| number::check_rounding(part, &inputs))?;
        let typed =
            rewrite_named(node, |expression| expression.transform_up(|expression| type_literals(expression, &schema)))?;
        is_changed.set(is_changed.get() || typed.transformed);
        if is_changed.get() { typed.map_data(LogicalPlan::recompute_schema) } else { Ok(typed) }
    };
    plan.transform_up_with_subqueries(in_node).data()
}

fn type_literals(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let typed = untyped_literals::type_literals(expression, schema)?;
    time::check_comparison(&typed.data, schema)?;
    typed
        .transform_data(|expression| cast::convert_arrays(expression, schema))?
        .transform_data(|expression| number::type_literals(expression, schema))?
        .transform_data(|expression| number::widen_literals(expression, schema))?
        .transform_data(|expression| number::compare_exactly(expression, schema))
}

/// Gives casts and arithmetic PostgreSQL's semantics. Column names stay unchanged.
fn apply_postgres_semantics(plan: LogicalPlan) -> Result<LogicalPlan> {
    json::show_json_as_text(plan.transform_up_with_subqueries(rewrite_node).data()?)
}

fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = input_schema(&node)?;
    let has_conditions = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    let node = array::order_arrays(time::order_intervals(json::order_documents(node, &schema)?, &schema)?, &schema);
    let rewritten = rewrite_named(node, |expression| {
        let rewritten = expression.transform_up(|expression| {
            array::order_within(expression, &schema)
                .transform_data(|expression| rewrite_expression(expression, &schema))?
                .transform_data(in_list::keep_values_of_rows)?
                .transform_data(aggregate::guard_arguments)
        })?;
        if has_conditions { rewritten.transform_data(cast::name_conversions) } else { Ok(rewritten) }
    })?;
    // Needed even if nothing was rewritten, because types below may have changed.
    rewritten.map_data(recompute_schema)?.map_data(json::group_by_document_keys)
}

/// Recomputes the columns of `node`. DataFusion keeps those of a UNION, which may be nullable now, as the columns of its
/// inputs. This is its issue 22447; `docs/decisions/upstream` says when the function can go.
fn recompute_schema(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Union(union) => Union::try_new_with_loose_types(union.inputs).map(LogicalPlan::Union),
        other => other.recompute_schema(),
    }
}

type Rewrite = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// Rewrites of an expression, of which the first that changes it applies.
const REWRITES: [Rewrite; 6] = [
    json::convert_expression,
    time::compare,
    cast::hide_ranges,
    cast::convert,
    number::coerce_comparison_operands,
    number::check_overflow,
];

fn rewrite_expression(mut expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    for rewrite in REWRITES {
        let rewritten = rewrite(expression, schema)?;
        if rewritten.transformed {
            return Ok(rewritten);
        }
        expression = rewritten.data;
    }
    Ok(Transformed::no(expression))
}
