//! `regr_r2`: one where all y are the same and x differ, which DataFusion has as NULL.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::functions_aggregate::regr::{regr_sxx_udaf, regr_syy_udaf};
use datafusion::logical_expr::{AggregateUDF, Expr, lit, when};

/// The share that is explained, from `call`, which makes the call of one of the functions of regression.
pub(super) fn plan_regr_r2(call: impl Fn(Option<Arc<AggregateUDF>>) -> Expr) -> Result<Expr> {
    let is_flat = call(Some(regr_syy_udaf())).eq(lit(0.0_f64)).and(call(Some(regr_sxx_udaf())).gt(lit(0.0_f64)));
    when(is_flat, lit(1.0_f64)).otherwise(call(None))
}
