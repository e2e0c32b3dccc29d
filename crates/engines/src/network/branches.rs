//! What the branches of a union compute: expressions over the rows of one node, their first rows, and their parts of
//! aggregates.
//!
//! The first rows of a union in some order are among the first rows of its branches. Of an aggregate, each branch
//! computes its own, and the results are merged.
//!
//! Counts and sums are merged by a sum, the smallest and greatest values and the logical and bitwise aggregates by
//! themselves. Distinct values are grouped by in the branches, so that each branch sends each value once. `avg` is a
//! sum and a count already. Variances, covariances and correlations are merged from several results of each branch,
//! approximate percentiles of floats from digests of the values. Aggregates that cannot be merged like this are
//! computed over the rows.
//!
//! Variance and standard deviation of whole numbers and numerics come from exact sums of each branch. Their sums of
//! squares are exact, so that nothing cancels: the result is that of one node, to the last digit. The sum of the
//! squares of a `bigint` may have more digits than a numeric holds, so a branch computes it in parts: with `x = high *
//! 2^32 + low`, the sums of `high * high`, `high * low` and `low * low`.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type, i256};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::count::{count_all, count_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, Cast};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, Aggregate, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, Filter, Limit, LogicalPlan, Operator,
    Projection, Signature, Sort, SortExpr, Union, Volatility, binary_expr, lit, when,
};
use tidegate_pgsql::{MergedMoments, merged_moments, merged_percentile, part_digest};

use crate::federated::{LOW_BITS, LOW_MASK};

/// `expressions` over the rows of `base`, by the positions of the columns of a plan.
#[derive(Debug, Clone)]
struct Branch {
    base: LogicalPlan,
    expressions: Vec<Expr>,
}

/// The branches of `plan`, if it is a union below projections, aliases and filters, or a branch itself; `None` if an
/// expression cannot be moved into the branches.
fn branches_of(plan: &LogicalPlan) -> Option<Vec<Branch>> {
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

    fn of_input(input: &LogicalPlan) -> Option<Self> {
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
    fn rewrite(&self, expr: &Expr, schema: &DFSchema) -> Option<Expr> {
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
fn column_at(schema: &DFSchemaRef, position: usize) -> Result<Expr> {
    Ok(Expr::Column(Column::from(schema.qualified_field(position))))
}

/// The union of `inputs`, of which there is at least one and which have the same columns.
fn union_of(mut inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
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
                column = cast_expr(column, field.data_type());
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

fn cast_expr(expr: Expr, data_type: &DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type.clone()))
}

/// An approximate percentile.
#[derive(Debug, Clone, PartialEq)]
struct ApproximatePercentile {
    /// From 0 to 1, in ascending order.
    fraction: f64,
    result: DataType,
}

impl ApproximatePercentile {
    /// The percentile that `function` computes over a plan with `schema`; `None` if it is another function, or its
    /// fraction is not valid, which it reports itself.
    fn of_function(function: &AggregateFunction, schema: &DFSchemaRef) -> Option<Self> {
        let params = &function.params;
        let fraction = match (function.func.name(), params.args.as_slice()) {
            ("approx_median", [_]) => 0.5,
            ("approx_percentile_cont", [_, Expr::Literal(ScalarValue::Float64(Some(fraction)), _), centroids @ ..])
                if centroids.iter().all(|number| matches!(number, Expr::Literal(..))) =>
            {
                *fraction
            }
            _ => return None,
        };
        let result = params.args.first()?.get_type(schema).ok()?;
        let is_float = matches!(result, DataType::Float32 | DataType::Float64);
        if params.distinct || !is_float || !(0.0..=1.0).contains(&fraction) {
            return None;
        }
        let is_descending = match params.order_by.as_slice() {
            [] => false,
            [order] => !order.asc,
            _ => return None,
        };
        Some(Self { fraction: if is_descending { 1.0 - fraction } else { fraction }, result })
    }

    /// The arguments of the digest: of the arguments of the percentile those without the fraction.
    fn digest_arguments(args: Vec<Expr>) -> Vec<Expr> {
        args.into_iter().enumerate().filter(|(position, _)| *position != 1).map(|(_, argument)| argument).collect()
    }

    /// The function over the digests of the branches.
    fn merging_function(&self) -> Arc<AggregateUDF> {
        merged_percentile(self.fraction, self.result.clone())
    }
}

/// The digits of each part.
const PART_PRECISION: u8 = 10;
/// The largest precision of a numeric whose squares are added as a whole. A sum has room for 10^8 of the largest squares.
const SQUARE_PRECISION_MAX: u8 = 15;
/// The precision that a `bigint` has as the argument of a variance.
const BIGINT_PRECISION: u8 = 19;

/// PostgreSQL's `sum`, which does not wrap around.
static SUM: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let functions = tidegate_pgsql::aggregate_functions();
    let sum = functions.into_iter().find(|function| function.name() == "sum");
    sum.unwrap_or_else(datafusion::functions_aggregate::sum::sum_udaf)
});

/// How a variance of exact numbers is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ExactVariance {
    /// The function with all rows.
    inner: Arc<AggregateUDF>,
    argument: FieldRef,
    result: FieldRef,
    has_parts: bool,
}

impl ExactVariance {
    /// `None` if the argument of `function` is not exact, or its sums could have too many digits.
    fn new(function: &AggregateFunction, schema: &DFSchema) -> Option<Self> {
        let [argument] = function.params.args.as_slice() else { return None };
        let (_, argument) = argument.to_field(schema).ok()?;
        let has_parts = match argument.data_type() {
            DataType::Decimal128(precision, _) if *precision <= SQUARE_PRECISION_MAX => false,
            DataType::Decimal128(BIGINT_PRECISION, 0) => true,
            _ => return None,
        };
        let result = function.func.return_field(std::slice::from_ref(&argument)).ok()?;
        Some(Self { inner: function.func.clone(), argument, result, has_parts })
    }

    /// The number of sums.
    fn partials_count(&self) -> usize {
        if self.has_parts { 5 } else { 3 }
    }

    /// The functions that a branch computes, with their arguments; `None` if `argument` is not a whole number there.
    fn partials(&self, argument: &Expr, schema: &DFSchema) -> Option<Vec<(Arc<AggregateUDF>, Expr)>> {
        let times = |left: &Expr, right: &Expr| binary_expr(left.clone(), Operator::Multiply, right.clone());
        let sum = || SUM.clone();
        let whole = match argument {
            // A node without the column.
            Expr::Literal(value, _) if value.is_null() && self.has_parts => Some(lit(ScalarValue::Int64(None))),
            argument => whole_number(argument, schema),
        };
        if !self.has_parts {
            let (value, square) = (whole.unwrap_or_else(|| argument.clone()), times(argument, argument));
            return Some(vec![(count_udaf(), value.clone()), (sum(), value), (sum(), square)]);
        }
        let whole = whole.filter(|whole| whole.get_type(schema).is_ok_and(|of| of == DataType::Int64))?;
        let part = |op, constant| {
            let part = binary_expr(whole.clone(), op, lit(constant));
            Expr::Cast(Cast::new(Box::new(part), DataType::Decimal128(PART_PRECISION, 0)))
        };
        let (high, low) = (part(Operator::BitwiseShiftRight, LOW_BITS), part(Operator::BitwiseAnd, LOW_MASK));
        let squares = [(&high, &high), (&high, &low), (&low, &low)];
        let squares = squares.into_iter().map(|(left, right)| (sum(), times(left, right)));
        Some([(count_udaf(), whole.clone()), (sum(), whole.clone())].into_iter().chain(squares).collect())
    }

    /// The function that merges the sums of the branches, which are its arguments.
    fn merging_function(&self) -> Arc<AggregateUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(MergeVariance { variance: self.clone(), signature }))
    }
}

/// The whole number that is cast to `numeric` for the variance.
fn whole_number(argument: &Expr, schema: &DFSchema) -> Option<Expr> {
    match argument {
        Expr::Cast(Cast { expr, .. }) => {
            let is_whole = expr.get_type(schema).is_ok_and(|of| of.is_signed_integer());
            is_whole.then(|| (**expr).clone())
        }
        _ => None,
    }
}

/// The function over the results of branches: the number, the sum, and the sums of squares or of their parts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MergeVariance {
    variance: ExactVariance,
    signature: Signature,
}

impl AggregateUDFImpl for MergeVariance {
    tidegate_pgsql::name_and_signature!("merge_variance");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.variance.result.data_type().clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let input_fields = std::slice::from_ref(&self.variance.argument);
        self.variance.inner.state_fields(StateFieldsArgs { input_fields, ..args })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let expr_fields = std::slice::from_ref(&self.variance.argument);
        let return_field = self.variance.result.clone();
        let inner = self.variance.inner.accumulator(AccumulatorArgs { expr_fields, return_field, ..args })?;
        Ok(Box::new(MergedSums { inner, has_parts: self.variance.has_parts }))
    }
}

/// The accumulator of the function with all rows, whose states are the sums of branches.
#[derive(Debug)]
struct MergedSums {
    inner: Box<dyn Accumulator>,
    has_parts: bool,
}

impl Accumulator for MergedSums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [counts, sums, squares @ ..] = values else { return exec_err!("a variance has a number and a sum") };
        let counts: Int64Array = cast(counts, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
        // A branch without values has no sums.
        let counts: Int64Array = counts.iter().map(|count| Some(count.unwrap_or(0))).collect();
        let sums = units(sums)?.into_iter().collect::<Decimal128Array>().with_precision_and_scale(38, 0)?;
        let squares = match (squares, self.has_parts) {
            ([whole], false) => units(whole)?.into_iter().map(i256::from_i128).collect(),
            ([high, mixed, low], true) => {
                let parts = units(high)?.into_iter().zip(units(mixed)?).zip(units(low)?);
                parts.map(|((high, mixed), low)| join_parts(high, mixed, low)).collect::<Vec<i256>>()
            }
            _ => return exec_err!("a variance has another number of sums"),
        };
        let squares = squares.into_iter().collect::<Decimal256Array>().with_precision_and_scale(76, 0)?;
        self.inner.merge_batch(&[Arc::new(counts), Arc::new(sums), Arc::new(squares)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// The values without their points; zero for null.
fn units(values: &ArrayRef) -> Result<Vec<i128>> {
    if values.data_type().is_integer() {
        let whole = cast(values, &DataType::Int64)?;
        return Ok(whole.as_primitive::<Int64Type>().iter().map(|value| value.unwrap_or(0).into()).collect());
    }
    match values.as_primitive_opt::<Decimal128Type>() {
        Some(values) => Ok(values.iter().map(Option::unwrap_or_default).collect()),
        None => exec_err!("{} is not an exact number", values.data_type()),
    }
}

/// The sum of squares, whose parts have at most 63 bits for each value, and so at most 127 bits for 2^64 values.
fn join_parts(high: i128, mixed: i128, low: i128) -> i256 {
    let [high, mixed, low] = [high, mixed, low].map(i256::from_i128);
    (high << 64) + (mixed << 33) + low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_largest_numbers_are_their_square() {
        for value in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
            let (high, low) = (i128::from(value >> LOW_BITS), i128::from(value & LOW_MASK));
            let square = join_parts(high * high, high * low, low * low);
            assert_eq!(square, i256::from_i128(value.into()) * i256::from_i128(value.into()), "{value}");
        }
    }
}
