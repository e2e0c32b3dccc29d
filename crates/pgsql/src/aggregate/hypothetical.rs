//! `rank`, `dense_rank`, `percent_rank` and `cume_dist` of a hypothetical row, `WITHIN GROUP (ORDER BY x)`.
//!
//! They are rewritten into counts of rows.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    OrderByExpr,
};

use crate::syntax::{argument_value, binary, boolean, call, cast, function, nested, number, single_identifier};

/// Rewrites a hypothetical-set aggregate into counts.
pub(super) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expression else { return Ok(()) };
    if function.within_group.is_empty() || function.over.is_some() {
        return Ok(());
    }
    let name = single_identifier(&function.name).map(|name| name.value.to_ascii_lowercase()).unwrap_or_default();
    if !matches!(name.as_str(), "rank" | "dense_rank" | "percent_rank" | "cume_dist") {
        return Ok(());
    }
    let keys = order_keys(&name, function)?;
    let filter = function.filter.take().map(|filter| *filter);
    *expression = nested(count_expression(&name, &keys, filter.as_ref()));
    Ok(())
}

/// A sort key, and its value in the hypothetical row.
struct OrderKey {
    expr: Expr,
    value: Expr,
    is_descending: bool,
    nulls_first: bool,
}

fn order_keys(name: &str, function: &Function) -> Result<Vec<OrderKey>> {
    let FunctionArguments::List(list) = &function.args else { return plan_err!("{name} needs a value to rank") };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        return plan_err!("cannot use DISTINCT with WITHIN GROUP");
    }
    if list.args.len() != function.within_group.len() {
        return plan_err!(
            "{name} received {} values for {} columns of WITHIN GROUP (ORDER BY …); it needs one for each: \
             {name}(1, 'a') WITHIN GROUP (ORDER BY x, y)",
            list.args.len(),
            function.within_group.len()
        );
    }
    let pair = |(argument, key): (&FunctionArg, &OrderByExpr)| {
        let Some(value) = argument_value(argument) else {
            return plan_err!("{name} takes values as arguments: {name}(1) WITHIN GROUP (ORDER BY x)");
        };
        let is_descending = key.options.asc == Some(false);
        Ok(OrderKey {
            expr: nested(key.expr.clone()),
            value: nested(value.clone()),
            is_descending,
            nulls_first: key.options.nulls_first.unwrap_or(is_descending),
        })
    };
    list.args.iter().zip(&function.within_group).map(pair).collect()
}

fn count_expression(name: &str, keys: &[OrderKey], filter: Option<&Expr>) -> Expr {
    let before = || count(None, and_filter(precedes(keys), filter));
    match name {
        "rank" => binary(number(1), BinaryOperator::Plus, before()),
        "dense_rank" => {
            let row = call("struct", keys.iter().map(|key| key.expr.clone()).collect());
            binary(number(1), BinaryOperator::Plus, count(Some(row), and_filter(precedes(keys), filter)))
        }
        "percent_rank" => {
            let rows = count(None, filter.cloned());
            let rows = call("nullif", vec![rows, number(0)]);
            let share = binary(double(before()), BinaryOperator::Divide, double(rows));
            double(call("coalesce", vec![share, number(0)]))
        }
        _ => {
            let peers = keys.iter().map(equals_key).reduce(|left, right| binary(left, BinaryOperator::And, right));
            let reached = match peers {
                Some(peers) => nested(binary(precedes(keys), BinaryOperator::Or, peers)),
                None => precedes(keys),
            };
            let reached = binary(number(1), BinaryOperator::Plus, count(None, and_filter(reached, filter)));
            let rows = binary(number(1), BinaryOperator::Plus, count(None, filter.cloned()));
            binary(double(nested(reached)), BinaryOperator::Divide, double(nested(rows)))
        }
    }
}

/// Whether a row sorts before the hypothetical one.
fn precedes(keys: &[OrderKey]) -> Expr {
    let Some((first, rest)) = keys.split_first() else { return boolean(false) };
    let op = if first.is_descending { BinaryOperator::Gt } else { BinaryOperator::Lt };
    let by_value = binary(first.expr.clone(), op, first.value.clone());
    let (null, not_null) = if first.nulls_first { (&first.expr, &first.value) } else { (&first.value, &first.expr) };
    let by_null =
        binary(Expr::IsNull(Box::new(null.clone())), BinaryOperator::And, Expr::IsNotNull(Box::new(not_null.clone())));
    let mut before = binary(by_value, BinaryOperator::Or, nested(by_null));
    if !rest.is_empty() {
        let later = binary(equals_key(first), BinaryOperator::And, precedes(rest));
        before = binary(before, BinaryOperator::Or, nested(later));
    }
    nested(before)
}

fn equals_key(key: &OrderKey) -> Expr {
    Expr::IsNotDistinctFrom(Box::new(key.expr.clone()), Box::new(key.value.clone()))
}

fn and_filter(condition: Expr, filter: Option<&Expr>) -> Option<Expr> {
    Some(match filter {
        Some(filter) => binary(condition, BinaryOperator::And, nested(filter.clone())),
        None => condition,
    })
}

fn double(expr: Expr) -> Expr {
    cast(expr, DataType::DoublePrecision)
}

/// Builds `count(*)`, or `count(DISTINCT argument)`.
fn count(distinct: Option<Expr>, filter: Option<Expr>) -> Expr {
    let duplicate_treatment = distinct.as_ref().map(|_| DuplicateTreatment::Distinct);
    let argument = distinct.map_or(FunctionArgExpr::Wildcard, FunctionArgExpr::Expr);
    let mut count = function("count", vec![FunctionArg::Unnamed(argument)]);
    if let FunctionArguments::List(list) = &mut count.args {
        list.duplicate_treatment = duplicate_treatment;
    }
    count.filter = filter.map(Box::new);
    Expr::Function(count)
}
