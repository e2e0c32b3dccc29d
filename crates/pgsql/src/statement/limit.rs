//! `FETCH … WITH TIES`, and limits that a query gives: rows are numbered and chosen by their number.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result, ScalarValue, exec_err, plan_err};
use datafusion::functions_window::expr_fn::{rank, row_number};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprFunctionExt, Limit, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, SortExpr, Volatility, cast, lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

/// The function around the number of FETCH … WITH TIES.
pub(super) const WITH_TIES: &str = "with_ties*";

/// The function whose name is [`WITH_TIES`].
pub(super) fn with_ties() -> ScalarUDF {
    ScalarUDF::from(RowCountFunction::new(LimitClause::Ties))
}

/// Rewrites limits that DataFusion does not have.
#[derive(Debug)]
pub(crate) struct Limits;

impl AnalyzerRule for Limits {
    fn name(&self) -> &str {
        "limits"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(rewrite_node).data()
    }
}

fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
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
    let limit = |value: &Expr, clause: LimitClause| {
        ScalarUDF::from(RowCountFunction::new(clause)).call(vec![cast(value.clone(), DataType::Int64)])
    };
    let choice = RowChoice {
        skip: skip.as_deref().map(|skip| limit(skip, LimitClause::Offset)),
        fetch: ties.or(fetch.as_deref()).map(|fetch| limit(fetch, LimitClause::Limit)),
        has_ties: ties.is_some(),
    };
    choice.select_rows(input).map(Transformed::yes)
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

fn number_with_ties(fetch: &Expr) -> Option<&Expr> {
    match fetch {
        Expr::ScalarFunction(function) if function.name() == WITH_TIES => function.args.first(),
        _ => None,
    }
}

/// Which rows stay.
struct RowChoice {
    skip: Option<Expr>,
    fetch: Option<Expr>,
    has_ties: bool,
}

impl RowChoice {
    fn select_rows(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        match plan {
            // They change no rows, and the order is below them.
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
        let (number, position) = ("number\u{1}limit", "place\u{1}limit");
        let named = |function: Expr, name: &str| -> Result<Expr> {
            let function = if order.is_empty() { function } else { function.order_by(order.to_vec()).build()? };
            Ok(function.alias(name))
        };
        let column = |name: &str| cast(Expr::Column(Column::new_unqualified(name)), DataType::Int64);
        let mut windows = vec![named(row_number(), number)?];
        if self.has_ties {
            windows.push(named(rank(), position)?);
        }
        let skip = self.skip.clone().unwrap_or_else(|| lit(0_i64));
        let mut chosen = column(number).gt(skip.clone());
        if let Some(fetch) = &self.fetch {
            let last = column(if self.has_ties { position } else { number });
            chosen = chosen.and((last - skip).lt_eq(fetch.clone())).and(fetch.clone().gt(lit(0_i64)));
        }
        let output: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        let rows = LogicalPlanBuilder::from(input.clone()).window(windows)?.filter(chosen)?.project(output)?;
        if order.is_empty() { rows.build() } else { rows.sort(order.to_vec())?.build() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LimitClause {
    Ties,
    Limit,
    Offset,
}

/// A number of rows: all where it is NULL, none to skip, and never less than zero.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RowCountFunction {
    clause: LimitClause,
    signature: Signature,
}

impl RowCountFunction {
    fn new(clause: LimitClause) -> Self {
        Self { clause, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for RowCountFunction {
    fn name(&self) -> &str {
        match self.clause {
            LimitClause::Ties => WITH_TIES,
            LimitClause::Limit => "limit*",
            LimitClause::Offset => "offset*",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (clause, of_null) = match self.clause {
            LimitClause::Limit | LimitClause::Ties => ("LIMIT", i64::MAX),
            LimitClause::Offset => ("OFFSET", 0),
        };
        let values = args.args[0].to_array(args.number_rows)?;
        let rows = values.as_primitive::<Int64Type>().iter().map(|rows| match rows {
            Some(rows) if rows < 0 => exec_err!("{clause} must not be negative"),
            rows => Ok(rows.unwrap_or(of_null)),
        });
        let rows: Int64Array = rows.collect::<Result<Vec<i64>>>()?.into();
        Ok(ColumnarValue::Array(Arc::new(rows)))
    }
}
