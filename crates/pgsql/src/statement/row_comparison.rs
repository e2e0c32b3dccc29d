//! Comparisons of rows, as comparisons of their values: `(a, b) < (c, d)`.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value,
};

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
        Expr::IsNull(inner) => row_values(inner).map(|values| all_of(values.into_iter().map(is_null))),
        Expr::IsNotNull(inner) => row_values(inner).map(|values| all_of(values.into_iter().map(is_not_null))),
        Expr::Between { expr, negated, low, high } => between_symmetric(expr, *negated, low, high),
        Expr::CompoundFieldAccess { root, access_chain } => field(root, access_chain),
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expression = Expr::Nested(Box::new(rewritten));
    }
    Ok(())
}

/// `(ROW(a, b)).f2`.
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

/// The values of a row that is written out.
pub(super) fn row_values(expression: &Expr) -> Option<Vec<Expr>> {
    match expression {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        Expr::Nested(inner) => row_values(inner),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let values = list.args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            });
            values.collect()
        }
        _ => None,
    }
}

fn is_null(value: Expr) -> Expr {
    Expr::IsNull(nested(value))
}

fn is_not_null(value: Expr) -> Expr {
    Expr::IsNotNull(nested(value))
}

fn nested(expression: Expr) -> Box<Expr> {
    Box::new(Expr::Nested(Box::new(expression)))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: nested(left), op, right: nested(right) }
}

fn join_conditions(mut parts: impl Iterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    let first = parts.next().unwrap_or_else(|| Expr::value(Value::Boolean(true)));
    parts.fold(first, |left, right| binary(left, op.clone(), right))
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
        left.iter().zip(right).map(move |(left, right)| binary(left.clone(), op.clone(), right.clone()))
    };
    Ok(Some(match op {
        BinaryOperator::Eq => all_of(pairs(BinaryOperator::Eq)),
        BinaryOperator::NotEq => any_of(pairs(BinaryOperator::NotEq)),
        BinaryOperator::Lt | BinaryOperator::LtEq => order_rows(left, &BinaryOperator::Lt, op, right),
        BinaryOperator::Gt | BinaryOperator::GtEq => order_rows(left, &BinaryOperator::Gt, op, right),
        _ => return Ok(None),
    }))
}

/// The first values that differ decide by `strict`, the last ones by `last`.
fn order_rows(left: &[Expr], strict: &BinaryOperator, last: &BinaryOperator, right: &[Expr]) -> Expr {
    let mut pairs = left.iter().cloned().zip(right.iter().cloned()).rev();
    let decided = pairs
        .next()
        .map_or_else(|| Expr::value(Value::Boolean(true)), |(left, right)| binary(left, last.clone(), right));
    pairs.fold(decided, |rest, (left, right)| {
        let equal = binary(left.clone(), BinaryOperator::Eq, right.clone());
        let differs = binary(left, strict.clone(), right);
        binary(differs, BinaryOperator::Or, binary(equal, BinaryOperator::And, rest))
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
    let found = any_of(equalities.into_iter());
    Ok(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: nested(found) } } else { found })
}

/// `x BETWEEN SYMMETRIC a AND b`.
fn between_symmetric(value: &Expr, negated: bool, low: &Expr, high: &Expr) -> Option<Expr> {
    let Expr::Prefixed { prefix, value: low } = low else { return None };
    if !prefix.value.eq_ignore_ascii_case("symmetric") {
        return None;
    }
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: nested(value.clone()),
        negated,
        low: nested(low.clone()),
        high: nested(high.clone()),
    };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    Some(binary(between(low, high), op, between(high, low)))
}
