//! Approximate percentiles of floats, which are merged from digests of the values.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable};
use tidegate_pgsql::merged_percentile;

/// An approximate percentile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApproximatePercentile {
    /// From 0 to 1, in ascending order.
    fraction: f64,
    result: DataType,
}

impl ApproximatePercentile {
    /// The percentile that `function` computes over a plan with `schema`; `None` if it is another function, or its
    /// fraction is not valid, which it reports itself.
    pub(super) fn of_function(function: &AggregateFunction, schema: &DFSchemaRef) -> Option<Self> {
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
    pub(super) fn digest_arguments(args: Vec<Expr>) -> Vec<Expr> {
        args.into_iter().enumerate().filter(|(position, _)| *position != 1).map(|(_, argument)| argument).collect()
    }

    /// The function over the digests of the branches.
    pub(super) fn merging_function(&self) -> Arc<AggregateUDF> {
        merged_percentile(self.fraction, self.result.clone())
    }
}
