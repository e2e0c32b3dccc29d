//! `gen_random_uuid`; `random` is DataFusion's, a double of [0, 1).

use datafusion::functions::string::expr_fn::uuid;
use datafusion::logical_expr::{Expr, ScalarUDF};

pub(super) fn functions() -> Vec<ScalarUDF> {
    // Version 4, as PostgreSQL's.
    match uuid() {
        Expr::ScalarFunction(call) => vec![call.func.as_ref().clone().with_aliases(["gen_random_uuid"])],
        _ => Vec::new(),
    }
}
