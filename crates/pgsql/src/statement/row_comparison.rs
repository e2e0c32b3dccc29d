//! Replaces comparisons of rows, such as `(a, b) < (c, d)`, with comparisons of their values.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Value};

use crate::syntax::{argument_values, binary, boolean, is_named, nested, not};

/// Rewrites `expression` if it compares rows.
pub(super) fn rewrite_comparison(expression: &mut Expr) -> Result<()> {
    let rewritten = match &*expression {
        Expr::BinaryOp { left, op, right } => match (row_values(left), row_values(right)) {
            (Some(left), Some(right)) => compare_rows(&left, op, &right)?,
            _ => None,
        },
        Expr::InList { expr, list, negated } => match row_values(expr) {
            Some(left) if !list.is_empty() => Some(in_list(&left, list, *negated)?),
            _ => None,
        },
        Expr::IsNull(inner) => {
            row_values(inner).map(|values| all_of(values.into_iter().map(|value| Expr::IsNull(parenthesized(value)))))
        }
        Expr::IsNotNull(inner) => row_values(inner)
            .map(|values| all_of(values.into_iter().map(|value| Expr::IsNotNull(parenthesized(value))))),
        Expr::Between { expr, negated, low, high } => between_symmetric(expr, *negated, low, high),
        Expr::CompoundFieldAccess { root, access_chain } => field(root, access_chain),
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expression = nested(rewritten);
    }
    Ok(())
}

/// Returns the value of `(ROW(a, b)).f2`.
fn field(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let name = match chain {
        [AccessExpr::Dot(Expr::Identifier(name))] => &name.value,
        [AccessExpr::Dot(Expr::Value(name))] => match &name.value {
            Value::SingleQuotedString(name) => name,
            _ => return None,
        },
        _ => return None,
    };
    let position = name.strip_prefix('f')?.parse::<usize>().ok()?.checked_sub(1)?;
    row_values(root)?.into_iter().nth(position)
}

/// Returns the values of a row constructor.
pub(super) fn row_values(expression: &Expr) -> Option<Vec<Expr>> {
    match expression {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        Expr::Nested(inner) => row_values(inner),
        Expr::Function(function) if is_named(&function.name, "row") => argument_values(function),
        _ => None,
    }
}

fn parenthesized(expression: Expr) -> Box<Expr> {
    Box::new(nested(expression))
}

fn operation(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    binary(nested(left), op, nested(right))
}

fn join_conditions(mut parts: impl Iterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    let first = parts.next().unwrap_or_else(|| boolean(true));
    parts.fold(first, |left, right| operation(left, op.clone(), right))
}

fn all_of(parts: impl Iterator<Item = Expr>) -> Expr {
    join_conditions(parts, &BinaryOperator::And)
}

fn any_of(parts: impl Iterator<Item = Expr>) -> Expr {
    join_conditions(parts, &BinaryOperator::Or)
}

fn compare_rows(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Result<Option<Expr>> {
    if left.len() != right.len() {
        return plan_err!("a row of {} values is compared with one of {}", left.len(), right.len());
    }
    let pairs = |op: BinaryOperator| {
        left.iter().zip(right).map(move |(left, right)| operation(left.clone(), op.clone(), right.clone()))
    };
    Ok(Some(match op {
        BinaryOperator::Eq => all_of(pairs(BinaryOperator::Eq)),
        BinaryOperator::NotEq => any_of(pairs(BinaryOperator::NotEq)),
        BinaryOperator::Lt | BinaryOperator::LtEq => order_rows(left, &BinaryOperator::Lt, op, right),
        BinaryOperator::Gt | BinaryOperator::GtEq => order_rows(left, &BinaryOperator::Gt, op, right),
        _ => return Ok(None),
    }))
}

/// Compares rows by the first values that differ: the last ones with `last`, the others with `strict`.
fn order_rows(left: &[Expr], strict: &BinaryOperator, last: &BinaryOperator, right: &[Expr]) -> Expr {
    let mut pairs = left.iter().cloned().zip(right.iter().cloned()).rev();
    let decided = pairs.next().map_or_else(|| boolean(true), |(left, right)| operation(left, last.clone(), right));
    pairs.fold(decided, |rest, (left, right)| {
        let equal = operation(left.clone(), BinaryOperator::Eq, right.clone());
        let differs = operation(left, strict.clone(), right);
        operation(differs, BinaryOperator::Or, operation(equal, BinaryOperator::And, rest))
    })
}

fn in_list(left: &[Expr], list: &[Expr], negated: bool) -> Result<Expr> {
    let mut equalities = Vec::new();
    for item in list {
        let Some(right) = row_values(item) else {
            return plan_err!("a row of {} values is compared with {item}", left.len());
        };
        equalities.extend(compare_rows(left, &BinaryOperator::Eq, &right)?);
    }
    let is_listed = any_of(equalities.into_iter());
    Ok(if negated { not(is_listed) } else { is_listed })
}

/// Rewrites `x BETWEEN SYMMETRIC a AND b`.
fn between_symmetric(value: &Expr, negated: bool, low: &Expr, high: &Expr) -> Option<Expr> {
    let Expr::Prefixed { prefix, value: low } = low else { return None };
    if !prefix.value.eq_ignore_ascii_case("symmetric") {
        return None;
    }
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: parenthesized(value.clone()),
        negated,
        low: parenthesized(low.clone()),
        high: parenthesized(high.clone()),
    };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    Some(operation(between(low, high), op, between(high, low)))
}
