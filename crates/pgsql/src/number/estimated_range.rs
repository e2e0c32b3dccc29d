//! Comparisons of bigints with doubles.
//!
//! DataFusion estimates how many rows a filter keeps, from the smallest and largest values of the columns, which it converts
//! to doubles and back. Beyond 2^53 that gives a larger range than the column has, and an internal error. The conversion is a
//! function here, of which no range is known.
//!
//! `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, Cast};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, ScalarUDF};

use crate::cast::Conversion;

/// Hides the range of bigints in `expression`, if it compares them with doubles of other columns.
pub(crate) fn hide_ranges(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let operands: Vec<&Expr> = match &expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => vec![left, right],
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        _ => return Ok(Transformed::no(expression)),
    };
    let mut has_bigint = false;
    for operand in &operands {
        has_bigint |= is_converted_bigint(operand, schema)?;
    }
    if !has_bigint || operands.iter().filter(|operand| !matches!(operand, Expr::Literal(..))).count() < 2 {
        return Ok(Transformed::no(expression));
    }
    let hide = |operand: Box<Expr>| -> Result<Box<Expr>> {
        if !is_converted_bigint(&operand, schema)? {
            return Ok(operand);
        }
        let Expr::Cast(Cast { expr, field }) = *operand else { return Ok(operand) };
        Ok(Box::new(ScalarUDF::new_from_impl(Conversion::new(field.data_type().clone())).call(vec![*expr])))
    };
    Ok(Transformed::yes(match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            Expr::BinaryExpr(BinaryExpr { left: hide(left)?, op, right: hide(right)? })
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            Expr::Between(Between { expr: hide(expr)?, negated, low: hide(low)?, high: hide(high)? })
        }
        other => other,
    }))
}

fn is_converted_bigint(expression: &Expr, schema: &DFSchema) -> Result<bool> {
    let Expr::Cast(Cast { expr, field }) = expression else { return Ok(false) };
    let is_constant = matches!(**expr, Expr::Literal(..));
    Ok(field.data_type().is_floating() && !is_constant && expr.get_type(schema)? == DataType::Int64)
}
