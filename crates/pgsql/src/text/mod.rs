//! Text, bytes and patterns, and SQL's own forms of their functions.

mod bytea;
mod format;
mod operators;
mod patterns;
mod regexp_functions;
mod row_function;
mod transform;

use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, TrimWhereField, UnaryOperator, Value,
    ValueWithSpan,
};

use crate::syntax::{argument_values, binary, call, cast, is_named, not, number, string, take, without_parentheses};
use patterns::with_backslashes;

pub(crate) use operators::plan_operator;

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let families = [
        bytea::functions(),
        transform::case_functions(),
        transform::functions(),
        bytea::encoding_functions(),
        format::functions(),
        patterns::functions(),
        patterns::quantified_functions(),
        transform::substring_functions(),
        format::quote_functions(),
        regexp_functions::functions(),
    ];
    families.into_iter().flatten().map(ScalarUDF::new_from_impl).collect()
}

/// Collations that order by code point.
const COLLATIONS: &[&str] = &["C", "POSIX", "ucs_basic", "C.UTF-8", "C.utf8", "default"];

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    *expression = rewrite_expression(take(expression))?;
    Ok(())
}

fn rewrite_expression(expression: Expr) -> Result<Expr> {
    Ok(match expression {
        Expr::Like { negated, any, expr, pattern, escape_char } => {
            let operator = if negated { BinaryOperator::PGNotLikeMatch } else { BinaryOperator::PGLikeMatch };
            like(*expr, *pattern, escape_char, any, operator)?
        }
        Expr::ILike { negated, any, expr, pattern, escape_char } => {
            let operator = if negated { BinaryOperator::PGNotILikeMatch } else { BinaryOperator::PGILikeMatch };
            like(*expr, *pattern, escape_char, any, operator)?
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let mut args = vec![*pattern];
            args.extend(escape_char.map(Expr::Value));
            let operator = if negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            binary(*expr, operator, call("similar_to_escape", args))
        }
        Expr::RLike { .. } => return not_impl_err!("RLIKE and REGEXP, which PostgreSQL does not have; write ~"),
        Expr::AnyOp { left, compare_op, right, .. } if is_pattern_operator(&compare_op) && !is_subquery(&right) => {
            quantified("matches_any*", &compare_op, *left, *right)
        }
        Expr::AllOp { left, compare_op, right } if is_pattern_operator(&compare_op) && !is_subquery(&right) => {
            quantified("matches_all*", &compare_op, *left, *right)
        }
        Expr::Substring { substring_from: None, substring_for: None, .. } => {
            return plan_err!("substring(text) does not exist; write substring(x FROM 1 FOR 3)");
        }
        Expr::Substring { expr, substring_from, substring_for, shorthand, .. } => {
            let name = if shorthand { "substr" } else { "substring" };
            let start = substring_from.map_or_else(|| number(1), |from| *from);
            let mut args = vec![*expr, start];
            args.extend(substring_for.map(|count| *count));
            call(name, args)
        }
        Expr::Position { expr, r#in } => call("strpos", vec![*r#in, *expr]),
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let mut args = vec![*expr, *overlay_what, *overlay_from];
            args.extend(overlay_for.map(|count| *count));
            call("overlay", args)
        }
        Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
            let name = match trim_where {
                Some(TrimWhereField::Leading) => "ltrim",
                Some(TrimWhereField::Trailing) => "rtrim",
                _ => "btrim",
            };
            let mut args = vec![*expr];
            args.extend(trim_what.map(|subject| *subject));
            args.extend(trim_characters.unwrap_or_default());
            call(name, args)
        }
        Expr::IsNormalized { expr, form, negated } => {
            let mut args = vec![*expr];
            args.extend(form.map(|form| string(form.to_string())));
            let is_normalized = call("is_normalized", args);
            if negated { not(is_normalized) } else { is_normalized }
        }
        Expr::Collate { expr, collation } => {
            let name = collation.0.last().and_then(|part| part.as_ident()).map(|name| name.value.as_str());
            if !name.is_some_and(|name| COLLATIONS.contains(&name)) {
                return plan_err!("collation {collation} does not exist; text is ordered by code point: COLLATE \"C\"");
            }
            *expr
        }
        Expr::Value(value) => Expr::Value(literal(value)),
        Expr::Function(function) => Expr::Function(rewrite_keyword_argument(function)),
        other => other,
    })
}

/// Converts a literal of any form to a plain one.
fn literal(value: ValueWithSpan) -> ValueWithSpan {
    let plain = match value.value {
        Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) | Value::NationalStringLiteral(text) => {
            Value::SingleQuotedString(text)
        }
        Value::DollarQuotedString(text) => Value::SingleQuotedString(text.value),
        other => other,
    };
    ValueWithSpan { value: plain, span: value.span }
}

/// Rewrites `normalize(x, NFC)`, whose form is a word, and gives an integer literal of `to_hex` 32 bits if it fits.
fn rewrite_keyword_argument(mut function: ast::Function) -> ast::Function {
    let name = function.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return function };
    match (name.as_str(), list.args.as_mut_slice()) {
        ("normalize", [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(form))]) => {
            if let Expr::Identifier(word) = form {
                *form = string(word.value.as_str());
            }
        }
        ("to_hex", [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))]) if is_int4(value) => {
            *value = cast(take(value), ast::DataType::Int(None));
        }
        _ => {}
    }
    function
}

fn is_int4(value: &Expr) -> bool {
    match value {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse::<i32>().is_ok(),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_int4(expr),
        Expr::Nested(inner) => is_int4(inner),
        _ => false,
    }
}

fn like(
    expr: Expr,
    pattern: Expr,
    escape: Option<ValueWithSpan>,
    is_any: bool,
    operator: BinaryOperator,
) -> Result<Expr> {
    if is_any {
        if escape.is_some() {
            return not_impl_err!("ESCAPE in LIKE ANY; escape with a backslash");
        }
        return Ok(quantified("matches_any*", &operator, expr, pattern));
    }
    if let Some(patterns) = all_patterns(&pattern) {
        return Ok(quantified("matches_all*", &operator, expr, patterns));
    }
    let pattern = match (escape, pattern) {
        (None, pattern) => pattern,
        (Some(escape), pattern) => match (literal_text(&Expr::Value(escape.clone())), literal_text(&pattern)) {
            (Some(escape), Some(pattern)) => string(with_backslashes(&pattern, &escape)?),
            _ => call("like_escape", vec![pattern, Expr::Value(escape)]),
        },
    };
    Ok(binary(expr, operator, pattern))
}

/// Returns the patterns of `ALL (…)`, which the parser reads as a call.
fn all_patterns(pattern: &Expr) -> Option<Expr> {
    let Expr::Function(function) = pattern else { return None };
    if !is_named(&function.name, "all") {
        return None;
    }
    let mut args = argument_values(function)?;
    match args.len() {
        1 => args.pop(),
        _ => Some(Expr::Tuple(args)),
    }
}

fn quantified(name: &str, operator: &BinaryOperator, expr: Expr, patterns: Expr) -> Expr {
    let patterns = match patterns {
        Expr::Nested(inner) => *inner,
        Expr::Tuple(elem) => Expr::Array(ast::Array { elem, named: true }),
        other => other,
    };
    call(name, vec![string(operator.to_string()), expr, patterns])
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(without_parentheses(expr), Expr::Subquery(_))
}

fn is_pattern_operator(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::PGLikeMatch
            | BinaryOperator::PGILikeMatch
            | BinaryOperator::PGNotLikeMatch
            | BinaryOperator::PGNotILikeMatch
            | BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
    )
}

fn literal_text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => literal(value.clone()).value.into_string(),
        _ => None,
    }
}
