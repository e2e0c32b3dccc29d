//! Plans `FETCH … WITH TIES`, and limits that are subqueries: rows are numbered, and filtered by their number.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, ScalarValue, exec_err, plan_err};
use datafusion::functions_window::expr_fn::{rank, row_number};
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Limit, LogicalPlan, LogicalPlanBuilder, ScalarUDF, SortExpr, cast, lit,
};

use crate::function::{ColumnarFunction, FunctionCall};

/// The function around the number of FETCH … WITH TIES.
pub(super) const WITH_TIES: &str = "with_ties*";

/// Returns the function `name`, which checks the number of rows of `clause`, and replaces NULL with `default`.
macro_rules! row_count {
    ($name:expr, $clause:literal, $default:expr) => {
        ColumnarFunction::new(
            $name,
            |_| Ok(vec![DataType::Int64]),
            |_| Ok(DataType::Int64),
            |call| check_row_counts(call, $clause, $default),
        )
    };
}

/// Returns the function whose name is [`WITH_TIES`].
pub(super) fn with_ties() -> ScalarUDF {
    row_count!(WITH_TIES, "LIMIT", i64::MAX)
}

/// Rewrites limits that DataFusion does not support into filters by row number.
pub(crate) fn rewrite_limit(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Limit(Limit { skip, fetch, input }) = &node else { return Ok(Transformed::no(node)) };
    let ties = fetch.as_deref().and_then(number_with_ties);
    let is_query = |limit: &Option<Box<Expr>>| {
        limit.as_deref().is_some_and(|limit| limit.exists(|inner| Ok(is_subquery(inner))).unwrap_or(false))
    };
    if ties.is_none() && !is_query(skip) && !is_query(fetch) {
        let (Some(whole_skip), Some(whole_fetch)) = (round_limit(skip), round_limit(fetch)) else {
            return Ok(Transformed::no(node));
        };
        let limit = Limit { skip: whole_skip, fetch: whole_fetch, input: input.clone() };
        return Ok(Transformed::yes(LogicalPlan::Limit(limit)));
    }
    let check = |function: ScalarUDF, rows: &Expr| function.call(vec![cast(rows.clone(), DataType::Int64)]);
    let limit = LimitSpec {
        skip: skip.as_deref().map(|skip| check(row_count!("offset*", "OFFSET", 0), skip)),
        fetch: ties.or(fetch.as_deref()).map(|fetch| check(row_count!("limit*", "LIMIT", i64::MAX), fetch)),
        has_ties: ties.is_some(),
    };
    limit.select_rows(input).map(Transformed::yes)
}

/// Rounds the limit to an integer, if it is absent or constant.
fn round_limit(limit: &Option<Box<Expr>>) -> Option<Option<Box<Expr>>> {
    let Some(limit) = limit.as_deref() else { return Some(None) };
    let rows = match limit {
        Expr::Literal(ScalarValue::Int64(rows), _) => *rows,
        Expr::Literal(ScalarValue::Decimal128(Some(value), _, scale), _) => {
            let unit = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            let away_from_zero = if *value < 0 { -unit / 2 } else { unit / 2 };
            Some(i64::try_from((value + away_from_zero) / unit).ok()?)
        }
        _ => return None,
    };
    Some(Some(Box::new(lit(ScalarValue::Int64(rows)))))
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_))
}

/// Whether `fetch` is the number of rows of FETCH … WITH TIES.
pub(crate) fn is_limit_with_ties(fetch: &Expr) -> bool {
    number_with_ties(fetch).is_some()
}

fn number_with_ties(fetch: &Expr) -> Option<&Expr> {
    match fetch {
        Expr::ScalarFunction(function) if function.name() == WITH_TIES => function.args.first(),
        _ => None,
    }
}

/// The rows that a limit keeps.
struct LimitSpec {
    skip: Option<Expr>,
    fetch: Option<Expr>,
    has_ties: bool,
}

impl LimitSpec {
    fn select_rows(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        match plan {
            // These nodes keep all rows, and the order is below them.
            LogicalPlan::Projection(projection) => {
                let input = self.select_rows(&projection.input)?;
                plan.with_new_exprs(projection.expr.clone(), vec![input])
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.select_rows(&alias.input)?;
                LogicalPlanBuilder::from(input).alias(alias.alias.clone())?.build()
            }
            LogicalPlan::Sort(sort) => self.filter_by_number(&sort.input, &sort.expr),
            _ if self.has_ties => plan_err!("WITH TIES cannot be specified without ORDER BY clause"),
            _ => self.filter_by_number(plan, &[]),
        }
    }

    fn filter_by_number(&self, input: &LogicalPlan, order: &[SortExpr]) -> Result<LogicalPlan> {
        let (number, rank_name) = ("number\u{1}limit", "rank\u{1}limit");
        let named = |function: Expr, name: &str| -> Result<Expr> {
            let function = if order.is_empty() { function } else { function.order_by(order.to_vec()).build()? };
            Ok(function.alias(name))
        };
        let column = |name: &str| cast(Expr::Column(Column::new_unqualified(name)), DataType::Int64);
        let mut windows = vec![named(row_number(), number)?];
        if self.has_ties {
            windows.push(named(rank(), rank_name)?);
        }
        let skip = self.skip.clone().unwrap_or_else(|| lit(0_i64));
        let mut is_kept = column(number).gt(skip.clone());
        if let Some(fetch) = &self.fetch {
            let last = column(if self.has_ties { rank_name } else { number });
            is_kept = is_kept.and((last - skip).lt_eq(fetch.clone())).and(fetch.clone().gt(lit(0_i64)));
        }
        let output: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        let rows = LogicalPlanBuilder::from(input.clone()).window(windows)?.filter(is_kept)?.project(output)?;
        if order.is_empty() { rows.build() } else { rows.sort(order.to_vec())?.build() }
    }
}

fn check_row_counts(call: &FunctionCall<'_>, clause: &str, default: i64) -> Result<ArrayRef> {
    let values = call.array(0)?;
    let rows = values.as_primitive::<Int64Type>().iter().map(|rows| match rows {
        Some(rows) if rows < 0 => exec_err!("{clause} must not be negative"),
        rows => Ok(rows.unwrap_or(default)),
    });
    Ok(Arc::new(Int64Array::from(rows.collect::<Result<Vec<i64>>>()?)))
}
