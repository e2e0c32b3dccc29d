//! Offsets of window frames: DataFusion's planner takes plain literals only (its issue 15714; see `docs/decisions/upstream`).

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Interval, Value, ValueWithSpan, WindowFrameBound, WindowSpec,
};

use crate::syntax::{number, without_parentheses};

/// Replaces the offsets of the frame of `window` with literals of the same value.
pub(super) fn write_offsets(window: &mut WindowSpec) -> Result<()> {
    let Some(frame) = &mut window.window_frame else { return Ok(()) };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) = bound {
            let Some(literal) = literal(without_parentheses(offset)) else {
                return plan_err!(
                    "the offset {offset} of a window frame is not supported; write a literal, such as 2 or \
                     interval '1 day'"
                );
            };
            **offset = literal;
        }
    }
    Ok(())
}

fn literal(offset: &Expr) -> Option<Expr> {
    match offset {
        Expr::Value(_) | Expr::Interval(_) => Some(offset.clone()),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            let Expr::Value(ValueWithSpan { value, .. }) = without_parentheses(expr) else { return None };
            match (value, data_type) {
                (Value::SingleQuotedString(_), DataType::Interval { fields: None, precision: None }) => {
                    Some(Expr::Interval(Interval {
                        value: expr.clone(),
                        leading_field: None,
                        leading_precision: None,
                        last_field: None,
                        fractional_seconds_precision: None,
                    }))
                }
                (Value::Number(digits, _) | Value::SingleQuotedString(digits), data_type) => {
                    is_exact(digits, data_type).then(|| number(digits))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether the number `digits` keeps its value in `data_type`.
fn is_exact(digits: &str, data_type: &DataType) -> bool {
    use DataType::{BigInt, DoublePrecision, Float8, Int, Int2, Int4, Int8, Integer, Numeric, SmallInt};
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match data_type {
        SmallInt(_) | Int2(_) => digits.parse::<i16>().is_ok_and(|value| value >= 0),
        Int(_) | Integer(_) | Int4(_) => digits.parse::<i32>().is_ok_and(|value| value >= 0),
        BigInt(_) | Int8(_) => digits.parse::<i64>().is_ok_and(|value| value >= 0),
        DoublePrecision | Float8 | Numeric(ExactNumberInfo::None) => is_number && digits.parse::<f64>().is_ok(),
        _ => false,
    }
}
