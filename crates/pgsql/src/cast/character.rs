//! `character(n)`: text that is padded with spaces, which are not significant.
//!
//! The type exists only in the syntax. A cast to it is replaced depending on its context:
//!
//! - in comparisons, concatenation and arguments of text functions: the text without trailing spaces,
//! - in the output, or where its bytes are counted: the padded text,
//! - as the type of any other column or value: an error.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Value,
};

use crate::column_names::column_name;
use crate::syntax::{call, cast, number, quoted};

/// The maximum length in PostgreSQL.
const LENGTH_MAX: u64 = 10_485_760;
/// Text functions, which receive a `character(n)` without trailing spaces.
const TEXT_FUNCTIONS: &str = "\
    ascii bit_length btrim char_length character_length initcap left length lower lpad ltrim md5 overlay position \
    quote_ident quote_literal regexp_match regexp_matches regexp_replace regexp_split_to_array repeat replace \
    reverse right rpad rtrim split_part starts_with string_agg string_to_array strpos substr substring to_date \
    to_number to_timestamp translate upper";
/// Functions that receive the padded text.
const ANY_TYPE_FUNCTIONS: &[&str] = &["concat", "concat_ws", "count", "format", "octet_length"];

/// Returns the operand of a cast to `character(n)` and the length; `None` for `bpchar`, which leaves the text
/// unchanged.
fn character_cast(expression: &Expr) -> Option<(&Expr, Option<u64>)> {
    match expression {
        Expr::Nested(inner) => character_cast(inner),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, array: false, .. } => {
            Some((expr, character_length(data_type)?))
        }
        _ => None,
    }
}

fn character_length(data_type: &DataType) -> Option<Option<u64>> {
    match data_type {
        DataType::Character(None) | DataType::Char(None) => Some(Some(1)),
        DataType::Character(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Char(Some(CharacterLength::IntegerLength { length, .. })) => Some(Some(*length)),
        DataType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("bpchar") => Some(None),
        _ => None,
    }
}

/// Replaces a typed literal with the equivalent cast.
fn with_cast(expression: &mut Expr) {
    if let Expr::TypedString(typed) = &*expression
        && character_length(&typed.data_type).is_some()
    {
        *expression = cast(Expr::Value(typed.value.clone()), typed.data_type.clone());
    }
}

fn as_text(operand: &Expr) -> Expr {
    cast(operand.clone(), DataType::Varchar(None))
}

/// Replaces a cast to `character(n)` with the padded text.
fn pad(expression: &mut Expr) {
    with_cast(expression);
    if let Some((operand, length)) = character_cast(expression) {
        let text = as_text(operand);
        *expression = match length {
            Some(length) => call("rpad", vec![text, number(length)]),
            None => text,
        };
    }
}

/// Replaces a cast to `character(n)` with the text without trailing spaces. Returns whether it was such a cast.
fn strip(expression: &mut Expr) -> bool {
    with_cast(expression);
    let Some((operand, length)) = character_cast(expression) else { return false };
    let text = as_text(operand);
    let text = match length {
        Some(length) => call("left", vec![text, number(length)]),
        None => text,
    };
    *expression = call("rtrim", vec![text]);
    true
}

/// Strips a literal that is compared with a `character(n)`, because it takes that type.
fn strip_literal(expression: &mut Expr) {
    match expression {
        Expr::Nested(inner) => strip_literal(inner),
        Expr::Value(value) => {
            if let Value::SingleQuotedString(text) = &mut value.value {
                text.truncate(text.trim_end_matches(' ').len());
            }
        }
        _ => {}
    }
}

fn is_character(expression: &Expr) -> bool {
    match expression {
        Expr::TypedString(typed) => character_length(&typed.data_type).is_some(),
        other => character_cast(other).is_some(),
    }
}

/// Strips all of `operands` if one of them is a `character(n)`.
fn strip_compared<'a>(operands: impl Iterator<Item = &'a mut Expr>) {
    let operands: Vec<&mut Expr> = operands.collect();
    if operands.iter().any(|operand| is_character(operand)) {
        for operand in operands {
            if !strip(operand) {
                strip_literal(operand);
            }
        }
    }
}

/// Rewrites casts to `character(n)` in `expression`, before its parts are rewritten.
pub(crate) fn rewrite_characters(expression: &mut Expr) -> Result<()> {
    if is_character(expression) {
        return refuse_character_cast(expression);
    }
    match expression {
        Expr::BinaryOp { left, op, right } => rewrite_operator(left, op, right),
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            strip_compared([left.as_mut(), right.as_mut()].into_iter());
        }
        Expr::InList { expr, list, .. } => strip_compared(std::iter::once(expr.as_mut()).chain(list)),
        Expr::Between { expr, low, high, .. } => strip_compared([expr, low, high].into_iter().map(AsMut::as_mut)),
        Expr::Case { operand: Some(operand), conditions, .. } => {
            strip_compared(
                std::iter::once(operand.as_mut()).chain(conditions.iter_mut().map(|branch| &mut branch.condition)),
            );
        }
        // Trailing spaces are significant in pattern matching.
        Expr::Like { expr, .. } | Expr::ILike { expr, .. } | Expr::SimilarTo { expr, .. } => pad(expr),
        Expr::IsNull(operand) | Expr::IsNotNull(operand) => pad(operand),
        Expr::Cast { expr, .. }
        | Expr::Trim { expr, .. }
        | Expr::Substring { expr, .. }
        | Expr::Overlay { expr, .. } => {
            strip(expr);
        }
        Expr::Position { expr, r#in } => {
            strip(expr);
            strip(r#in);
        }
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
            for arg in &mut list.args {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else { continue };
                if ANY_TYPE_FUNCTIONS.contains(&name.as_str()) {
                    pad(arg);
                } else if TEXT_FUNCTIONS.split(' ').any(|function| function == name) {
                    strip(arg);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn rewrite_operator(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) {
    match op {
        BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Lt
        | BinaryOperator::LtEq
        | BinaryOperator::Gt
        | BinaryOperator::GtEq => strip_compared([left, right].into_iter()),
        BinaryOperator::StringConcat => {
            strip(left);
            strip(right);
        }
        BinaryOperator::PGRegexMatch
        | BinaryOperator::PGRegexIMatch
        | BinaryOperator::PGRegexNotMatch
        | BinaryOperator::PGRegexNotIMatch
        | BinaryOperator::PGLikeMatch
        | BinaryOperator::PGILikeMatch
        | BinaryOperator::PGNotLikeMatch
        | BinaryOperator::PGNotILikeMatch => pad(left),
        _ => {}
    }
}

/// Refuses other casts to `character(n)`. Text of one character has trailing spaces only if it is empty.
fn refuse_character_cast(expression: &mut Expr) -> Result<()> {
    with_cast(expression);
    match character_cast(expression) {
        Some((_, Some(0))) => plan_err!("length for type character must be at least 1"),
        Some((_, Some(1))) => {
            pad(expression);
            Ok(())
        }
        Some((_, Some(length))) if length > LENGTH_MAX => {
            plan_err!("length for type character cannot exceed {LENGTH_MAX}")
        }
        _ => plan_err!(
            "character(n) is supported in comparisons, in concatenation with text, as an argument of a text function, \
             and as a column of the outermost SELECT; elsewhere write x::varchar(n), or rpad(x, n) for the padded text"
        ),
    }
}

/// Rewrites casts to `character(n)` in ORDER BY and GROUP BY.
pub(crate) fn rewrite_character_keys(query: &mut Query) {
    if let Some(OrderByKind::Expressions(orders)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
        orders.iter_mut().for_each(|order| pad(&mut order.expr));
    }
    if let SetExpr::Select(select) = query.body.as_mut()
        && let GroupByExpr::Expressions(groups, _) = &mut select.group_by
    {
        groups.iter_mut().for_each(pad);
    }
}

/// Rewrites casts to `character(n)` that are columns of `select`, the outermost SELECT.
pub(crate) fn rewrite_character_columns(select: &mut Select) {
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) if is_character(expr) => {
                let alias = quoted(column_name(expr));
                let mut expr = expr.clone();
                pad(&mut expr);
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            SelectItem::ExprWithAlias { expr, .. } => pad(expr),
            _ => {}
        }
    }
}
