//! Keys of grouping sets that are no columns become columns of the input.
//!
//! Rules that rewrite an expression keep its name by an alias. Grouping sets can have none, and DataFusion compares their
//! keys with the arguments of `grouping`.
//!
//! `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};

use super::without_alias;

/// Computes keys below the aggregate. It runs before the rules that rewrite expressions.
pub(crate) fn compute_grouping_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
    let keys = computed_keys(aggregate)?;
    if keys.is_empty() {
        return Ok(Transformed::no(node));
    }
    let key_name = |position: usize| format!("key\u{1}{position}");
    let named = keys.iter().enumerate().map(|(position, key)| key.clone().alias(key_name(position)));
    let columns = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let input = Projection::try_new(columns.chain(named).collect(), aggregate.input.clone())?;
    // Whole keys, not parts of keys.
    let replace = |expression: Expr| {
        let replaced = expression.transform_down(|part| {
            Ok(match keys.iter().position(|key| *key == part) {
                Some(position) => {
                    let column = Expr::Column(Column::new_unqualified(key_name(position)));
                    Transformed::new(column, true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(part),
            })
        });
        replaced.data()
    };
    let groups = aggregate.group_expr.iter().cloned().map(replace).collect::<Result<Vec<_>>>()?;
    let names = NamePreserver::new(&node);
    let replace_arguments = |expression: &Expr| {
        let name = names.save(expression);
        let replaced = if is_grouping(expression) { replace(expression.clone())? } else { expression.clone() };
        Ok(name.restore(replaced))
    };
    let values = aggregate.aggr_expr.iter().map(replace_arguments).collect::<Result<Vec<_>>>()?;
    let grouped = Aggregate::try_new(Arc::new(LogicalPlan::Projection(input)), groups, values)?;
    // DataFusion removes the number of the set as it resolves `grouping`.
    let columns = grouped.schema.columns().into_iter().zip(aggregate.schema.iter());
    let columns = columns.filter(|(column, _)| column.name != Aggregate::INTERNAL_GROUPING_ID);
    let output = columns
        .map(|(column, (qualifier, field))| Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()));
    let output = Projection::try_new(output.collect(), Arc::new(LogicalPlan::Aggregate(grouped)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(output)))
}

/// Returns the keys of grouping sets that are no columns.
fn computed_keys(aggregate: &Aggregate) -> Result<Vec<Expr>> {
    if !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return Ok(Vec::new());
    }
    let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
    Ok(keys.into_iter().filter(|key| !matches!(key, Expr::Column(_))).cloned().collect())
}

fn is_grouping(expression: &Expr) -> bool {
    matches!(without_alias(expression), Expr::AggregateFunction(call) if call.func.name() == "grouping")
}
