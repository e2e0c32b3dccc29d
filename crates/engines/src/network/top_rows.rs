//! The first rows of a union in some order are among the first rows of its branches.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, Projection, Sort, SortExpr, lit};

use super::branch::{Branch, branches_of, column_at, union_of, without_alias};

/// Sorts and limits the branches of each union that is sorted and limited. The sort above remains.
pub(super) fn limit_branches(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up(|node| {
        let LogicalPlan::Sort(Sort { expr: keys, input, fetch: Some(rows) }) = &node else {
            return Ok(Transformed::no(node));
        };
        match limit_input(input, keys, *rows)? {
            Some(limited) => {
                let limited = node.with_new_exprs(node.expressions(), vec![limited])?;
                Ok(Transformed::yes(limited))
            }
            None => Ok(Transformed::no(node)),
        }
    })
    .map(|transformed| transformed.data)
}

fn limit_input(input: &LogicalPlan, keys: &[SortExpr], rows: usize) -> Result<Option<LogicalPlan>> {
    let Some(branches) = branches_of(input).filter(|branches| branches.len() > 1) else { return Ok(None) };
    let schema = input.schema();
    let mut limited = Vec::new();
    for branch in branches {
        let rewritten =
            keys.iter().map(|key| Some(SortExpr { expr: branch.rewrite(&key.expr, schema)?, ..key.clone() }));
        let Some(keys) = rewritten.collect::<Option<Vec<SortExpr>>>() else { return Ok(None) };
        limited.push(limit_branch(branch, keys, rows)?);
    }
    let union = union_of(limited)?;
    let columns = schema.iter().enumerate().map(|(position, (qualifier, field))| {
        Ok(column_at(union.schema(), position)?.alias_qualified(qualifier.cloned(), field.name()))
    });
    let columns = columns.collect::<Result<Vec<Expr>>>()?;
    Projection::try_new(columns, Arc::new(union)).map(LogicalPlan::Projection).map(Some)
}

fn limit_branch(Branch { base, expressions }: Branch, keys: Vec<SortExpr>, rows: usize) -> Result<LogicalPlan> {
    // Among the rows of one node, a constant has no order.
    let keys: Vec<SortExpr> = keys.into_iter().filter(|key| !matches!(key.expr, Expr::Literal(..))).collect();
    let input = Arc::new(base);
    let limited = match keys.is_empty() {
        true => {
            let rows = i64::try_from(rows).unwrap_or(i64::MAX);
            LogicalPlan::Limit(Limit { skip: None, fetch: Some(Box::new(lit(rows))), input })
        }
        false => LogicalPlan::Sort(Sort { expr: keys, input, fetch: Some(rows) }),
    };
    let named = expressions.iter().enumerate();
    let named = named.map(|(position, expr)| without_alias(expr).clone().alias(format!("column{position}")));
    Projection::try_new(named.collect(), Arc::new(limited)).map(LogicalPlan::Projection)
}
