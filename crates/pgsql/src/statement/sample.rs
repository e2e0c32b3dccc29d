//! Plans `TABLESAMPLE`: rows are selected at random, or by their position and the seed.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion::common::{Column, Result, plan_err};
use datafusion::functions::math::expr_fn::random;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::sql::sqlparser::ast::{self, TableSample, TableSampleMethod, Value};

use crate::function::{ColumnarFunction, FunctionCall, keep_types};

/// The column with the position of a row.
const POSITION: &str = "position\u{1}";

/// Selects rows of `plan` as `sample` defines.
pub(super) fn plan_sample(plan: LogicalPlan, sample: &TableSample) -> Result<LogicalPlan> {
    if !matches!(sample.name, Some(TableSampleMethod::Bernoulli | TableSampleMethod::System)) {
        return plan_err!("TABLESAMPLE takes a method and a percentage: TABLESAMPLE BERNOULLI (10)");
    }
    let percentage = match &sample.quantity {
        Some(quantity) if quantity.unit.is_none() => number(&quantity.value),
        _ => None,
    };
    let Some(percentage) = percentage else {
        return plan_err!("TABLESAMPLE takes a percentage as a number: TABLESAMPLE BERNOULLI (10)");
    };
    if !(0.0..=100.0).contains(&percentage) {
        return plan_err!("the sample percentage must be between 0 and 100, not {percentage}");
    }
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let chance = lit(percentage / 100.0);
    let Some(seed) = &sample.seed else {
        return LogicalPlanBuilder::from(plan).filter(random().lt(chance))?.build();
    };
    let Some(seed) = number(&ast::Expr::Value(seed.value.clone())) else {
        return plan_err!("REPEATABLE takes a number: REPEATABLE (42)");
    };
    let position = Expr::Column(Column::new_unqualified(POSITION));
    let fraction = ColumnarFunction::new("sample*", keep_types, |_| Ok(DataType::Float64), sample_fractions);
    LogicalPlanBuilder::from(plan)
        .window(vec![row_number().alias(POSITION)])?
        .filter(fraction.call(vec![position, lit(seed)]).lt(chance))?
        .project(columns)?
        .build()
}

fn number(expression: &ast::Expr) -> Option<f64> {
    match expression {
        ast::Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.to_string().parse().ok(),
            _ => None,
        },
        ast::Expr::Nested(inner) => number(inner),
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => number(expr).map(|number| -number),
        _ => None,
    }
}

/// Computes a number from 0 up to 1 from a position and a seed.
fn sample_fractions(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (positions, seeds) = (call.array(0)?, call.array(1)?);
    let pairs =
        positions.as_primitive::<UInt64Type>().values().iter().zip(seeds.as_primitive::<Float64Type>().values());
    Ok(Arc::new(pairs.map(|(position, seed)| Some(fraction(*position, *seed))).collect::<Float64Array>()))
}

/// Computes a fraction from the upper 53 bits of SplitMix64.
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
fn fraction(position: u64, seed: f64) -> f64 {
    let mix = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    (mix(mix(seed.to_bits()) ^ position) >> 11) as f64 / (1_u64 << 53) as f64
}
