//! Aggregates over a union: each branch computes its own, and the results are merged.
//!
//! Counts and sums are merged by a sum, the smallest and greatest values and the logical and bitwise aggregates by
//! themselves. Distinct values are grouped by in the branches, so that each branch sends each value once. `avg` is a sum and
//! a count already. Variances, covariances and correlations are merged from several results of each branch, approximate
//! percentiles from digests. Aggregates that cannot be merged like this are computed over the rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, Result, ScalarValue};
use datafusion::functions_aggregate::count::count_all;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, Cast};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, Filter, LogicalPlan, Projection, lit, when,
};

use tidegate_pgsql::{MergedMoments, merged_moments, part_digest};

use super::approximate_percentile::ApproximatePercentile;
use super::branch::{Branch, branches_of, column_at, union_of, without_alias};
use super::exact_variance::ExactVariance;

/// Computes aggregates over unions in the branches first, where their results can be merged.
pub(super) fn aggregate_branches(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        Ok(match MergedAggregate::new(aggregate) {
            Some(merged) => match merged.into_plan()? {
                Some(plan) => Transformed::yes(plan),
                None => Transformed::no(node),
            },
            None => Transformed::no(node),
        })
    })
    .map(|transformed| transformed.data)
}

/// How the results of the branches become the result.
enum Merge {
    /// The sum of numbers of rows or pairs, of which there may be none.
    Count,
    /// The sum of sums.
    Sum(Arc<AggregateUDF>),
    /// The function itself.
    Same(Arc<AggregateUDF>),
    /// The function over the values that the branches group by.
    OfDistinct(AggregateFunction),
    /// A measure of floats, from their moments.
    Moments(MergedMoments),
    /// A variance of exact numbers, from their sums.
    Exact(ExactVariance),
    /// An approximate percentile, from digests of the values.
    Percentile(ApproximatePercentile),
}

impl Merge {
    /// The number of results of each branch.
    fn results_count(&self) -> usize {
        match self {
            Self::Count | Self::Sum(_) | Self::Same(_) | Self::Percentile(_) => 1,
            Self::OfDistinct(_) => 0,
            Self::Moments(moments) => moments.part_functions.len(),
            Self::Exact(variance) => variance.partials_count(),
        }
    }
}

struct MergedAggregate<'a> {
    aggregate: &'a Aggregate,
    branches: Vec<Branch>,
    functions: Vec<(&'a AggregateFunction, Merge)>,
    /// The expression whose distinct values are aggregated.
    distinct: Option<&'a Expr>,
}

impl<'a> MergedAggregate<'a> {
    /// `None` if `aggregate` is not over a union, or its results cannot be merged.
    fn new(aggregate: &'a Aggregate) -> Option<Self> {
        if aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
            return None;
        }
        let mut distinct = None;
        let mut functions = Vec::new();
        for expr in &aggregate.aggr_expr {
            let Expr::AggregateFunction(function) = without_alias(expr) else { return None };
            let merge = merge_of(function, aggregate.input.schema())?;
            if let Merge::OfDistinct(_) = merge {
                let argument = function.params.args.first()?;
                if distinct.is_some_and(|known| known != argument) {
                    return None;
                }
                distinct = Some(argument);
            }
            functions.push((function, merge));
        }
        let has_percentile = functions.iter().any(|(_, merge)| matches!(merge, Merge::Percentile(_)));
        let branches = match branches_of(&aggregate.input) {
            Some(branches) if branches.len() > 1 || has_percentile => branches,
            // The SQL of a node has the digest, but not the percentile of all engines.
            None if has_percentile => vec![Branch::of_input(&aggregate.input)?],
            _ => return None,
        };
        Some(Self { aggregate, branches, functions, distinct })
    }

    /// The plan; `None` if an expression cannot be moved into a branch.
    fn into_plan(self) -> Result<Option<LogicalPlan>> {
        let mut inputs = Vec::with_capacity(self.branches.len());
        for branch in &self.branches {
            match self.plan_branch(branch)? {
                Some(plan) => inputs.push(plan),
                None => return Ok(None),
            }
        }
        self.merge(union_of(inputs)?).map(Some)
    }

    /// The expressions that the branches group by.
    fn keys(&self) -> impl Iterator<Item = &Expr> {
        self.aggregate.group_expr.iter().chain(self.distinct)
    }

    /// The groups of one branch: its keys, and then the results of those functions that are computed there.
    fn plan_branch(&self, branch: &Branch) -> Result<Option<LogicalPlan>> {
        let schema = self.aggregate.input.schema();
        let keys: Option<Vec<Expr>> = self.keys().map(|key| branch.rewrite(without_alias(key), schema)).collect();
        let Some(keys) = keys else { return Ok(None) };
        // In one branch, a constant separates no groups. A plan has each expression once.
        let mut groups = Vec::new();
        let key_positions: Vec<Option<usize>> =
            keys.iter().map(|key| (!matches!(key, Expr::Literal(..))).then(|| position_of(key, &mut groups))).collect();
        let mut results = Vec::new();
        let mut result_positions = Vec::new();
        for (function, merge) in &self.functions {
            let Some(partials) = plan_partials(function, merge, branch, schema) else { return Ok(None) };
            result_positions.extend(partials.iter().map(|partial| position_of(partial, &mut results)));
        }
        // Without groups there is one row even if there are no rows to aggregate.
        let row_count = (groups.is_empty() && !keys.is_empty()).then(|| position_of(&count_all(), &mut results));
        let group_count = groups.len();
        let mut partial = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(branch.base.clone()), groups, results)?);
        if let Some(position) = row_count {
            let rows = column_at(partial.schema(), group_count + position)?;
            partial = LogicalPlan::Filter(Filter::try_new(rows.gt(lit(0_i64)), Arc::new(partial))?);
        }
        let mut columns = Vec::new();
        for (index, (key, position)) in keys.into_iter().zip(key_positions).enumerate() {
            let key = match position {
                Some(position) => column_at(partial.schema(), position)?,
                None => key,
            };
            columns.push(key.alias(format!("key{index}")));
        }
        for (index, position) in result_positions.into_iter().enumerate() {
            columns.push(column_at(partial.schema(), group_count + position)?.alias(format!("result{index}")));
        }
        Projection::try_new(columns, Arc::new(partial)).map(LogicalPlan::Projection).map(Some)
    }

    /// Merges the groups of the branches, which `union` has.
    fn merge(&self, union: LogicalPlan) -> Result<LogicalPlan> {
        let groups_count = self.aggregate.group_expr.len();
        let groups = (0..groups_count).map(|index| column_at(union.schema(), index)).collect::<Result<Vec<_>>>()?;
        let mut result = groups_count + usize::from(self.distinct.is_some());
        let mut merged = Vec::new();
        for (_, merge) in &self.functions {
            let results = result..result + merge.results_count();
            result = results.end;
            let (func, arguments, distinct) = match merge {
                Merge::OfDistinct(function) => {
                    (function.func.clone(), groups_count..groups_count + 1, function.params.distinct)
                }
                Merge::Count => (sum_udaf(), results, false),
                Merge::Sum(func) | Merge::Same(func) => (func.clone(), results, false),
                Merge::Moments(moments) => (moments.merging_function.clone(), results, false),
                Merge::Exact(variance) => (variance.merging_function(), results, false),
                Merge::Percentile(percentile) => (percentile.merging_function(), results, false),
            };
            let args = arguments.map(|position| column_at(union.schema(), position)).collect::<Result<_>>()?;
            merged.push(call(func, merging_params(args, distinct)));
        }
        let merged = Aggregate::try_new(Arc::new(union), groups, merged)?;
        let names: &DFSchemaRef = &self.aggregate.schema;
        let mut columns = Vec::new();
        for (position, (qualifier, field)) in names.iter().enumerate() {
            let mut column = column_at(&merged.schema, position)?;
            let merge = position.checked_sub(groups_count).map(|index| &self.functions[index].1);
            if merged.schema.field(position).data_type() != field.data_type() {
                column = cast(column, field.data_type());
            }
            if let Some(Merge::Count) = merge {
                let zero = lit(ScalarValue::new_zero(field.data_type())?);
                column = when(column.clone().is_null(), zero).otherwise(column)?;
            }
            columns.push(column.alias_qualified(qualifier.cloned(), field.name()));
        }
        Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(merged))).map(LogicalPlan::Projection)
    }
}

/// How the results of `function` in the branches are merged; `None` if they cannot be.
fn merge_of(function: &AggregateFunction, schema: &DFSchemaRef) -> Option<Merge> {
    let AggregateFunction { func, params } = function;
    if params.null_treatment.is_some() {
        return None;
    }
    if let Some(percentile) = ApproximatePercentile::of_function(function, schema) {
        return Some(Merge::Percentile(percentile));
    }
    if !params.order_by.is_empty() {
        return None;
    }
    if func.name() == "regr_count" && !params.distinct {
        return Some(Merge::Count);
    }
    if let Some(moments) = merged_moments(func.name()).filter(|_| !params.distinct) {
        let is_float = |argument: &Expr| argument.get_type(schema).is_ok_and(|of| of == DataType::Float64);
        return match params.args.iter().all(is_float) {
            true => Some(Merge::Moments(moments)),
            false => ExactVariance::new(function, schema).map(Merge::Exact),
        };
    }
    let [_] = params.args.as_slice() else { return None };
    let same = || Merge::Same(func.clone());
    let of_distinct = || params.filter.is_none().then(|| Merge::OfDistinct(function.clone()));
    match func.name() {
        "min" | "max" | "bool_and" | "bool_or" | "bit_and" | "bit_or" => Some(same()),
        "count" | "sum" | "approx_distinct" | "bit_xor" if params.distinct => of_distinct(),
        "approx_distinct" => of_distinct(),
        "bit_xor" => Some(same()),
        "count" => Some(Merge::Count),
        "sum" => Some(Merge::Sum(func.clone())),
        _ => None,
    }
}

/// The position of `expr` in `expressions`, to which it is added if it is absent.
fn position_of(expr: &Expr, expressions: &mut Vec<Expr>) -> usize {
    expressions.iter().position(|known| known == expr).unwrap_or_else(|| {
        expressions.push(expr.clone());
        expressions.len() - 1
    })
}

/// The functions that `branch` computes for `function`. `schema` is that of the union.
fn plan_partials(
    function: &AggregateFunction,
    merge: &Merge,
    branch: &Branch,
    schema: &DFSchemaRef,
) -> Option<Vec<Expr>> {
    let params = &function.params;
    if matches!(merge, Merge::OfDistinct(_)) {
        return Some(Vec::new());
    }
    // An argument that several functions have is an expression with another name.
    let args = params.args.iter().map(|argument| branch.rewrite(without_alias(argument), schema));
    let args = args.collect::<Option<Vec<Expr>>>()?;
    let filter = match &params.filter {
        Some(filter) => Some(Box::new(branch.rewrite(filter, schema)?)),
        None => None,
    };
    let partial = |func: Arc<AggregateUDF>, args: Vec<Expr>| {
        call(func, AggregateFunctionParams { args, filter: filter.clone(), order_by: Vec::new(), ..params.clone() })
    };
    Some(match merge {
        Merge::Moments(moments) => {
            let (y, x) = (args.first()?, args.last()?);
            let functions = moments.part_functions.iter();
            functions.map(|function| partial(function.clone(), vec![y.clone(), x.clone()])).collect()
        }
        Merge::Exact(variance) => {
            let partials = variance.partials(args.first()?, branch.base.schema())?;
            partials.into_iter().map(|(func, argument)| partial(func, vec![argument])).collect()
        }
        Merge::Percentile(_) => vec![partial(part_digest(), ApproximatePercentile::digest_arguments(args))],
        _ => vec![partial(function.func.clone(), args)],
    })
}

/// Of a function over the results of branches, which are filtered and ordered there.
fn merging_params(args: Vec<Expr>, distinct: bool) -> AggregateFunctionParams {
    AggregateFunctionParams { args, distinct, filter: None, order_by: Vec::new(), null_treatment: None }
}

fn call(func: Arc<AggregateUDF>, params: AggregateFunctionParams) -> Expr {
    Expr::AggregateFunction(AggregateFunction { func, params })
}

fn cast(expr: Expr, data_type: &DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type.clone()))
}
