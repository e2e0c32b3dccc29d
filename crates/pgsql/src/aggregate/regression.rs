//! `regr_r2`, which is 1 where all y are equal and x differ. DataFusion returns NULL there.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::functions_aggregate::regr::{regr_sxx_udaf, regr_syy_udaf};
use datafusion::logical_expr::{AggregateUDF, Expr, lit, when};

/// Builds the share of explained variance. `call` builds the call of a regression function.
pub(super) fn plan_regr_r2(call: impl Fn(Option<Arc<AggregateUDF>>) -> Expr) -> Result<Expr> {
    let is_flat = call(Some(regr_syy_udaf())).eq(lit(0.0_f64)).and(call(Some(regr_sxx_udaf())).gt(lit(0.0_f64)));
    when(is_flat, lit(1.0_f64)).otherwise(call(None))
}
