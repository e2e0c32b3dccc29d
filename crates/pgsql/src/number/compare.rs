//! Comparisons of numerics whose scales differ.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};

/// Makes the operands of a comparison of one type that holds both; coercion knows only the types that quotients and
/// averages had before they got PostgreSQL's.
pub(crate) fn compare(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let Some(common) = type_of_all(&[&left, &right], schema)? else {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            };
            let (left, right) = (Box::new(cast(*left, common.clone())), Box::new(cast(*right, common)));
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let Some(common) = type_of_all(&[&expr, &low, &high], schema)? else {
                return Ok(Transformed::no(Expr::Between(Between { expr, negated, low, high })));
            };
            let [expr, low, high] = [expr, low, high].map(|operand| Box::new(cast(*operand, common.clone())));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// The type that holds all values of `operands`, which are numerics; none where they have one type already.
fn type_of_all(operands: &[&Expr], schema: &DFSchema) -> Result<Option<DataType>> {
    let mut types = Vec::new();
    for operand in operands {
        match operand.get_type(schema)? {
            DataType::Decimal128(precision, scale) => types.push((precision, scale)),
            _ => return Ok(None),
        }
    }
    if types.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(None);
    }
    let scale = types.iter().map(|(_, scale)| *scale).max().unwrap_or(0);
    let whole = types.iter().map(|(precision, scale)| i16::from(*precision) - i16::from(*scale)).max().unwrap_or(0);
    let precision = u8::try_from(whole + i16::from(scale)).unwrap_or(u8::MAX);
    Ok(Some(match precision {
        0..=38 => DataType::Decimal128(precision, scale),
        39..=76 => DataType::Decimal256(precision, scale),
        _ => DataType::Decimal256(76, scale),
    }))
}
