//! A branch of a union: expressions over the rows of one node. The first rows of a union in some order are among the
//! first rows of its branches.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, Filter, Limit, LogicalPlan, Projection, Sort, SortExpr, Union, lit};

/// `expressions` over the rows of `base`, by the positions of the columns of a plan.
#[derive(Debug, Clone)]
pub(super) struct Branch {
    pub(super) base: LogicalPlan,
    pub(super) expressions: Vec<Expr>,
}

/// The branches of `plan`, if it is a union below projections, aliases and filters, or a branch itself; `None` if an
/// expression cannot be moved into the branches.
pub(super) fn branches_of(plan: &LogicalPlan) -> Option<Vec<Branch>> {
    match plan {
        LogicalPlan::Union(Union { inputs, .. }) => {
            let branches = inputs.iter().map(|input| Branch::of_input(input));
            branches.collect()
        }
        LogicalPlan::SubqueryAlias(alias) => branches_of(&alias.input),
        LogicalPlan::Projection(projection) => {
            let schema = projection.input.schema();
            let branches = branches_of(&projection.input)?.into_iter().map(|branch| {
                let expressions = projection.expr.iter().map(|expr| branch.rewrite(expr, schema));
                Some(Branch { expressions: expressions.collect::<Option<_>>()?, base: branch.base })
            });
            branches.collect()
        }
        LogicalPlan::Filter(filter) => {
            let schema = filter.input.schema();
            let branches = branches_of(&filter.input)?.into_iter().map(|branch| {
                let predicate = branch.rewrite(&filter.predicate, schema)?;
                let filtered = Filter::try_new(predicate, Arc::new(branch.base)).ok()?;
                Some(Branch { base: LogicalPlan::Filter(filtered), expressions: branch.expressions })
            });
            branches.collect()
        }
        _ => None,
    }
}

impl Branch {
    /// A branch without expressions of its own: its columns are those of `plan`.
    fn of_plan(plan: &LogicalPlan) -> Self {
        let columns = plan.schema().columns();
        Self { base: plan.clone(), expressions: columns.into_iter().map(Expr::Column).collect() }
    }

    pub(super) fn of_input(input: &LogicalPlan) -> Option<Self> {
        match input {
            LogicalPlan::SubqueryAlias(alias) => Self::of_input(&alias.input),
            LogicalPlan::Projection(projection) => {
                let schema = projection.input.schema();
                let branch = Self::of_input(&projection.input)?;
                let expressions = projection.expr.iter().map(|expr| branch.rewrite(expr, schema));
                Some(Self { expressions: expressions.collect::<Option<_>>()?, base: branch.base })
            }
            plan => Some(Self::of_plan(plan)),
        }
    }

    /// `expr` over `schema`, whose columns are the expressions of the branch, as an expression over the base. `None` if
    /// it must not be computed more or fewer times than it is written.
    pub(super) fn rewrite(&self, expr: &Expr, schema: &DFSchema) -> Option<Expr> {
        if expr.is_volatile() || has_subquery(expr) {
            return None;
        }
        let mut is_known = true;
        let rewritten = expr.clone().transform(|node| {
            let Expr::Column(column) = &node else { return Ok(Transformed::no(node)) };
            let position = schema.maybe_index_of_column(column);
            match position.and_then(|position| self.expressions.get(position)) {
                Some(expression) => {
                    let inner = without_alias(expression).clone();
                    Ok(Transformed::new(inner, true, TreeNodeRecursion::Jump))
                }
                None => {
                    is_known = false;
                    Ok(Transformed::no(node))
                }
            }
        });
        let rewritten = rewritten.ok()?.data;
        is_known.then_some(rewritten)
    }
}

/// The expression without the names that it was given.
pub(super) fn without_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_alias(&alias.expr),
        other => other,
    }
}

fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::OuterReferenceColumn(..)
        ))
    };
    expr.exists(is_subquery).unwrap_or(true)
}

/// References to the columns of `schema`, by position.
pub(super) fn column_at(schema: &DFSchemaRef, position: usize) -> Result<Expr> {
    Ok(Expr::Column(Column::from(schema.qualified_field(position))))
}

/// The union of `inputs`, of which there is at least one and which have the same columns.
pub(super) fn union_of(mut inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    match inputs.pop() {
        Some(only) if inputs.is_empty() => Ok(only),
        last => {
            inputs.extend(last);
            Union::try_new_with_loose_types(inputs.into_iter().map(Arc::new).collect()).map(LogicalPlan::Union)
        }
    }
}

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
