//! Restricts the rows of a plan to those with some keys, as near to the tables of the nodes as possible.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::{
    EmptyRelation, Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, TableScan, Union,
};
use datafusion::scalar::ScalarValue;

use super::branch::without_alias;
use super::united_table::common_type;

/// `plan` without rows of tables that cannot lead to one of `keys` as the value of `key`. `None` if the condition cannot
/// be moved to the tables.
pub(super) fn restrict_to_keys(plan: &LogicalPlan, key: &Expr, keys: &[ScalarValue]) -> Result<Option<LogicalPlan>> {
    if let Expr::Literal(value, _) = key {
        // A column that a node lacks, or the name of the node.
        return Ok(Some(if keys.contains(value) { plan.clone() } else { empty_of(plan) }));
    }
    match plan {
        LogicalPlan::TableScan(scan) => restrict_table(scan, key, keys),
        LogicalPlan::EmptyRelation(_) => Ok(Some(plan.clone())),
        LogicalPlan::SubqueryAlias(alias) => {
            let inputs = alias.input.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            restrict_input(plan, &alias.input, key, &inputs, keys)
        }
        LogicalPlan::Projection(projection) => restrict_input(plan, &projection.input, key, &projection.expr, keys),
        LogicalPlan::Aggregate(aggregate) => {
            let has_sets = aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
            if has_sets {
                return Ok(None);
            }
            // Only the columns of the keys of the groups have an expression below.
            restrict_input(plan, &aggregate.input, key, &aggregate.group_expr, keys)
        }
        LogicalPlan::Filter(filter) => replace_input(plan, restrict_to_keys(&filter.input, key, keys)?),
        LogicalPlan::Distinct(_) => match plan.inputs().as_slice() {
            [input] => replace_input(plan, restrict_to_keys(input, key, keys)?),
            _ => Ok(None),
        },
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            replace_input(plan, restrict_to_keys(&sort.input, key, keys)?)
        }
        LogicalPlan::Union(union) => {
            let mut inputs = Vec::with_capacity(union.inputs.len());
            for input in &union.inputs {
                let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
                let Some(key) = replace_columns(key, &union.schema, &columns) else { return Ok(None) };
                // A branch that cannot be restricted has its other rows, too, which the join drops.
                let restricted = restrict_to_keys(input, &key, keys)?;
                inputs.push(restricted.map_or_else(|| input.clone(), Arc::new));
            }
            inputs.retain(|input| !is_empty(input));
            Ok(Some(match inputs.is_empty() {
                true => empty_of(plan),
                // The union keeps its names, even with one input.
                false => LogicalPlan::Union(Union { inputs, schema: union.schema.clone() }),
            }))
        }
        LogicalPlan::Join(join) => restrict_join(join, key, keys),
        _ => Ok(None),
    }
}

fn restrict_input(
    plan: &LogicalPlan,
    input: &LogicalPlan,
    key: &Expr,
    expressions: &[Expr],
    keys: &[ScalarValue],
) -> Result<Option<LogicalPlan>> {
    let Some(key) = replace_columns(key, plan.schema(), expressions) else { return Ok(None) };
    replace_input(plan, restrict_to_keys(input, &key, keys)?)
}

fn replace_input(plan: &LogicalPlan, input: Option<LogicalPlan>) -> Result<Option<LogicalPlan>> {
    let Some(input) = input else { return Ok(None) };
    let is_of_rows =
        matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_));
    if is_of_rows && is_empty(&input) {
        return Ok(Some(empty_of(plan)));
    }
    plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
}

/// Restricts the side of a join that has the key, if each row of it is needed only for its own rows.
fn restrict_join(join: &Join, key: &Expr, keys: &[ScalarValue]) -> Result<Option<LogicalPlan>> {
    let has_key = |schema: &DFSchema| key.column_refs().into_iter().all(|column| schema.has_column(column));
    let may_left = matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti);
    let may_right =
        matches!(join.join_type, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti);
    let (left, right) = if may_left && has_key(join.left.schema()) {
        (restrict_to_keys(&join.left, key, keys)?, Some(join.right.as_ref().clone()))
    } else if may_right && has_key(join.right.schema()) {
        (Some(join.left.as_ref().clone()), restrict_to_keys(&join.right, key, keys)?)
    } else {
        return Ok(None);
    };
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    Ok(Some(LogicalPlan::Join(Join { left: Arc::new(left), right: Arc::new(right), ..join.clone() })))
}

fn restrict_table(scan: &TableScan, key: &Expr, keys: &[ScalarValue]) -> Result<Option<LogicalPlan>> {
    let plan = LogicalPlan::TableScan(scan.clone());
    let Some((column, keys)) = unwrap_casts(key, keys, plan.schema()) else { return Ok(None) };
    if scan.fetch.is_some() {
        return Ok(None);
    }
    if keys.is_empty() {
        return Ok(Some(empty_of(&plan)));
    }
    let list = keys.into_iter().map(|key| Expr::Literal(key, None)).collect();
    let condition = Expr::InList(InList::new(Box::new(column), list, false));
    Filter::try_new(condition, Arc::new(plan)).map(LogicalPlan::Filter).map(Some)
}

/// The column below casts that lose nothing, and the keys that are values of its type.
fn unwrap_casts(key: &Expr, keys: &[ScalarValue], schema: &DFSchema) -> Option<(Expr, Vec<ScalarValue>)> {
    match key {
        Expr::Column(_) => Some((key.clone(), keys.to_vec())),
        Expr::Cast(Cast { expr, field }) => {
            let (from, to) = (expr.get_type(schema).ok()?, field.data_type());
            if common_type(&from, to).as_ref() != Some(to) {
                return None;
            }
            let as_source = |key: &ScalarValue| {
                let value = key.cast_to(&from).ok().filter(|value| !value.is_null())?;
                (value.cast_to(to).ok()? == *key).then_some(value)
            };
            unwrap_casts(expr, &keys.iter().filter_map(as_source).collect::<Vec<_>>(), schema)
        }
        _ => None,
    }
}

/// `key` over the columns of `schema`, whose expressions over other columns are `expressions`.
fn replace_columns(key: &Expr, schema: &DFSchema, expressions: &[Expr]) -> Option<Expr> {
    let mut is_known = true;
    let replaced = key.clone().transform(|node| {
        let Expr::Column(column) = &node else { return Ok(Transformed::no(node)) };
        let position = schema.maybe_index_of_column(column);
        let expression = position.and_then(|position| expressions.get(position)).map(without_alias);
        match expression.filter(|expression| !expression.is_volatile()) {
            Some(expression) => Ok(Transformed::new(expression.clone(), true, TreeNodeRecursion::Jump)),
            None => {
                is_known = false;
                Ok(Transformed::no(node))
            }
        }
    });
    replaced.ok().filter(|_| is_known).map(|replaced| replaced.data)
}

pub(super) fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, .. }))
}

pub(super) fn empty_of(plan: &LogicalPlan) -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: plan.schema().clone() })
}

/// The different values of `keys` that are not null.
pub(super) fn distinct_keys(keys: impl Iterator<Item = ScalarValue>) -> Vec<ScalarValue> {
    let mut known = HashSet::new();
    keys.filter(|key| !key.is_null() && known.insert(key.clone())).collect()
}
