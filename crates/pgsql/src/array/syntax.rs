//! Rewrites syntax of arrays into function calls.

use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, DataType, Expr, Function, FunctionArguments, Ident, Subscript, Value,
};

use super::flatten;
use super::literal::plan_array_fill;
use super::quantified::FUNCTIONS;
use crate::syntax::{argument_values, call, is_named, nested, number, sort_distinct, without_parentheses};

/// The upper bound of a slice without an upper bound.
const LAST_SUBSCRIPT: &str = "2147483647";

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    let rewritten = match expression {
        Expr::AnyOp { left, compare_op, right, .. } => call_quantified(left, compare_op, right, true),
        Expr::AllOp { left, compare_op, right } => call_quantified(left, compare_op, right, false),
        Expr::Cast { expr, data_type: DataType::Text | DataType::Varchar(_), array: false, .. } => {
            check_scales(without_parentheses(expr))?;
            None
        }
        Expr::Array(Array { elem, .. }) => {
            elem.iter_mut().for_each(call_row);
            None
        }
        Expr::CompoundFieldAccess { root, access_chain } => call_subscripts(root, access_chain)?,
        Expr::Function(function) => {
            if is_named(&function.name, "array_agg") {
                sort_distinct(function);
            } else if is_named(&function.name, "unnest") {
                flatten::rewrite_unnest(function);
            }
            if is_named(&function.name, "array_fill") {
                Some(plan_array_fill(&argument_values(function).unwrap_or_default())?)
            } else {
                find_array_subquery(function)?
            }
        }
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expression = rewritten;
    }
    Ok(())
}

fn call_quantified(left: &Expr, op: &BinaryOperator, right: &Expr, is_any: bool) -> Option<Expr> {
    let right = without_parentheses(right);
    if matches!(right, Expr::Subquery(_)) {
        return None;
    }
    let is_list = match op {
        BinaryOperator::Eq => is_any,
        BinaryOperator::NotEq => !is_any,
        _ => false,
    };
    // A list has the same meaning, and lets files be pruned. But fractions in a list after a `real` are `real`, too.
    if let Expr::Array(Array { elem, .. }) = right
        && is_list
        && !elem.is_empty()
        && elem.iter().all(|element| matches!(element, Expr::Value(value) if !is_fraction(&value.value)))
    {
        let expr = Box::new(left.clone());
        return Some(nested(Expr::InList { expr, list: elem.clone(), negated: !is_any }));
    }
    let symbol = op.to_string();
    let (name, ..) = FUNCTIONS.iter().find(|(_, operator, of_any, _)| *operator == symbol && *of_any == is_any)?;
    let mut value = without_parentheses(left).clone();
    call_row(&mut value);
    Some(call(name, vec![nested(value), right.clone()]))
}

fn is_fraction(value: &Value) -> bool {
    matches!(value, Value::Number(digits, _) if digits.contains(['.', 'e', 'E']))
}

/// Writes `(a, b)` as `ROW(a, b)`, because the planner takes the former with names and literals only.
fn call_row(value: &mut Expr) {
    if let Expr::Tuple(values) = value {
        *value = call("row", std::mem::take(values));
    }
}

/// Plans `root[1][2]` and `root[1:2]`, where `root` may contain field accesses.
fn call_subscripts(root: &Expr, chain: &[AccessExpr]) -> Result<Option<Expr>> {
    let is_name = |access: &AccessExpr| match access {
        AccessExpr::Dot(_) => true,
        AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) }) => {
            matches!(value.value, Value::SingleQuotedString(_) | Value::DoubleQuotedString(_))
        }
        AccessExpr::Subscript(_) => false,
    };
    let names = chain.iter().rposition(is_name).map_or(0, |position| position + 1);
    let (names, subscripts) = chain.split_at(names);
    if subscripts.is_empty() {
        return Ok(None);
    }
    let root = access_member(root, names);
    if subscripts.len() > 1
        && subscripts.iter().any(|access| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. })))
    {
        return call_slices(root, subscripts).map(Some);
    }
    let mut indexes = Vec::new();
    for access in subscripts {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) => indexes.push(index.clone()),
            AccessExpr::Subscript(Subscript::Slice { .. }) => {
                let bounds = slice_bounds(access)?;
                return Ok(Some(call("array_slice_between*", [vec![root], bounds].concat())));
            }
            AccessExpr::Dot(_) => {
                return not_impl_err!("access to a field of an array element; unnest the array instead");
            }
        }
    }
    Ok(Some(call("array_subscript*", [vec![root], indexes].concat())))
}

/// Returns the bounds of a slice. A subscript beside slices starts at the first element.
fn slice_bounds(access: &AccessExpr) -> Result<Vec<Expr>> {
    match access {
        AccessExpr::Subscript(Subscript::Index { index }) => Ok(vec![number("1"), index.clone()]),
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => Ok(vec![
            lower_bound.clone().unwrap_or_else(|| number("1")),
            upper_bound.clone().unwrap_or_else(|| number(LAST_SUBSCRIPT)),
        ]),
        _ => not_impl_err!("slices with a stride; write two bounds: x[1:2]"),
    }
}

/// Plans `root[1:2][2:2]`.
fn call_slices(root: Expr, subscripts: &[AccessExpr]) -> Result<Expr> {
    let mut args = vec![root];
    for access in subscripts {
        args.extend(slice_bounds(access)?);
    }
    Ok(call("array_slices*", args))
}

fn access_member(root: &Expr, names: &[AccessExpr]) -> Expr {
    let identifier = |access: &AccessExpr| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    };
    let first = match root {
        Expr::Identifier(name) => Some(vec![name.clone()]),
        Expr::CompoundIdentifier(names) => Some(names.clone()),
        _ => None,
    };
    if names.is_empty() {
        return root.clone();
    }
    match (first, names.iter().map(identifier).collect::<Option<Vec<Ident>>>()) {
        (Some(first), Some(rest)) => Expr::CompoundIdentifier([first, rest].concat()),
        _ => Expr::CompoundFieldAccess { root: Box::new(root.clone()), access_chain: names.to_vec() },
    }
}

/// Refuses the text of an array of numbers with different scales, because an Arrow array has only one scale.
fn check_scales(expression: &Expr) -> Result<()> {
    let Expr::Array(Array { elem, .. }) = expression else { return Ok(()) };
    let mut scales = elem.iter().filter_map(|element| match element {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(number.split_once('.').map_or(0, |(_, fraction)| fraction.len())),
            _ => None,
        },
        _ => None,
    });
    let first = scales.next();
    if scales.all(|scale| Some(scale) == first) {
        return Ok(());
    }
    plan_err!(
        "{expression} as text is not supported, because its numbers have different scales; write them with the same \
         number of digits after the point"
    )
}

/// Finds `ARRAY(SELECT …)`.
fn find_array_subquery(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::Subquery(query) = &function.args else { return Ok(None) };
    if !is_named(&function.name, "array") {
        return Ok(None);
    }
    super::subquery::rewrite_array_subquery(query).map(Some)
}
