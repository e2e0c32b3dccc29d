//! The operators of text and bytes.

use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Like, Operator, binary_expr};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::patterns::{is_plain, text_like};
use super::regexp_functions::{regex_imatch, regex_match};
use super::row_function::TextFunction;
use crate::data_type::{is_text_or_dictionary as is_text, postgres_type_name};
use crate::operands::Operands;

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    use BinaryOperator as Op;
    let both = || vec![operands.left.clone(), operands.right.clone()];
    let planned = match operands.op {
        Op::PGRegexMatch => regex_match().call(both()),
        Op::PGRegexIMatch => regex_imatch().call(both()),
        Op::PGRegexNotMatch => negated(regex_match().call(both())),
        Op::PGRegexNotIMatch => negated(regex_imatch().call(both())),
        Op::PGLikeMatch => like(operands, false),
        Op::PGNotLikeMatch => negated(like(operands, false)),
        Op::PGILikeMatch => like(operands, true),
        Op::PGNotILikeMatch => negated(like(operands, true)),
        Op::PGStartsWith => datafusion::functions::string::starts_with().call(both()),
        Op::StringConcat => return concat(operands),
        Op::Custom(operator) => match byte_comparison(operator) {
            Some(comparison) => binary_expr(operands.left.clone(), comparison, operands.right.clone()),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    for data_type in [&operands.left_type, &operands.right_type] {
        if !is_text(data_type) && *data_type != DataType::Null {
            return operator_error(operands);
        }
    }
    Ok(Some(planned))
}

/// Returns the comparison that `operator` means. It compares bytes whatever the collation is, as each comparison here does.
fn byte_comparison(operator: &str) -> Option<Operator> {
    match operator {
        "~<~" => Some(Operator::Lt),
        "~<=~" => Some(Operator::LtEq),
        "~>=~" => Some(Operator::GtEq),
        "~>~" => Some(Operator::Gt),
        _ => None,
    }
}

fn operator_error<T>(operands: &Operands<'_>) -> Result<T> {
    let (left, right) = (postgres_type_name(&operands.left_type), postgres_type_name(&operands.right_type));
    plan_err!("operator does not exist: {left} {} {right}; cast the operands to text", operands.op)
}

fn negated(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

/// Plans LIKE: as DataFusion's operator if that has the same result. Case is ignored by `lower`.
fn like(operands: &Operands<'_>, is_caseless: bool) -> Expr {
    let (mut left, mut right) = (operands.left.clone(), operands.right.clone());
    if is_caseless {
        let lower = |expr| {
            super::transform::case_functions()
                .into_iter()
                .find(|function| function.has_name("lower"))
                .map(|lower| lower.call(vec![expr]))
        };
        right = match &right {
            Expr::Literal(ScalarValue::Utf8(Some(pattern)), _) => {
                Expr::Literal(ScalarValue::from(crate::pg_regex::lower(pattern)), None)
            }
            _ => lower(right.clone()).unwrap_or(right),
        };
        left = lower(left.clone()).unwrap_or(left);
    }
    if is_plain(&right) {
        return Expr::Like(Like::new(false, Box::new(left), Box::new(right), None, false));
    }
    text_like().call(vec![left, right])
}

/// Plans `||` of two texts, of a text and a value of another type, which is cast to text, or of bytes.
fn concat(operands: &Operands<'_>) -> Result<Option<Expr>> {
    let (left, right) = (&operands.left_type, &operands.right_type);
    let is_list = |data_type: &DataType| {
        matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
    };
    if is_list(left) || is_list(right) {
        return Ok(None);
    }
    if left.is_binary() || right.is_binary() {
        let takes = |data_type: &DataType, operand: &Expr| {
            data_type.is_binary()
                || *data_type == DataType::Null
                || (is_text(data_type) && Operands::is_untyped(operand))
        };
        if !takes(left, operands.left) || !takes(right, operands.right) {
            return operator_error(operands);
        }
        let function = super::bytea::functions().into_iter().find(|function| function.has_name("bytea_concat*"));
        return Ok(
            function.map(|concat: TextFunction| concat.call(vec![operands.left.clone(), operands.right.clone()]))
        );
    }
    let of_text = |data_type: &DataType| is_text(data_type) || *data_type == DataType::Null;
    match (of_text(left), of_text(right)) {
        (true, true) => Ok(None),
        (false, false) => operator_error(operands),
        (is_left_text, _) => {
            let as_text = |expr: &Expr, is_text: bool| {
                let expr = Box::new(expr.clone());
                if is_text { expr } else { Box::new(Expr::Cast(Cast::new(expr, DataType::Utf8))) }
            };
            let (left, right) = (as_text(operands.left, is_left_text), as_text(operands.right, !is_left_text));
            Ok(Some(Expr::BinaryExpr(BinaryExpr::new(left, Operator::StringConcat, right))))
        }
    }
}
