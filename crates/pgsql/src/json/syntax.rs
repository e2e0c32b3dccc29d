//! Syntax of JSON that becomes calls of functions.

use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, TypedString, Value,
};

use super::build;
use crate::syntax::{call, is_named};

/// The functions that aggregates become.
pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![build::collected(false), build::collected(true), build::collected_object(false), build::collected_object(true)]
}

/// Rewrites syntax that DataFusion's planner lacks, or means otherwise, into calls of functions of this family.
/// Inner expressions were rewritten before.
pub(crate) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    match expression {
        Expr::Cast { expr, data_type, .. } => {
            if let Some(name) = type_name(data_type) {
                *expression = call(name, vec![take(expr)]);
            }
        }
        Expr::TypedString(TypedString { data_type, value, .. }) => {
            if let Some(name) = type_name(data_type) {
                *expression = call(name, vec![Expr::Value(value.clone())]);
            }
        }
        Expr::Function(function) => {
            if let Some(rewritten) = rewrite_function(function)? {
                *expression = rewritten;
            }
        }
        _ => {}
    }
    Ok(())
}

fn take(expression: &mut Expr) -> Expr {
    std::mem::replace(expression, Expr::Value(Value::Null.into()))
}

fn type_name(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::JSON => Some("json"),
        DataType::JSONB => Some("jsonb"),
        _ => None,
    }
}

/// Aggregates collect an array first; rows have names.
const AGGREGATES: [(&str, &str); 4] = [
    ("json_agg", "json_collected*"),
    ("jsonb_agg", "jsonb_collected*"),
    ("json_object_agg", "json_collected_object*"),
    ("jsonb_object_agg", "jsonb_collected_object*"),
];

const OF_ROWS: [&str; 5] = ["row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg"];

fn rewrite_function(function: &mut Function) -> Result<Option<Expr>> {
    let [name] = function.name.0.as_slice() else { return Ok(None) };
    let Some(name) = name.as_ident().map(|name| name.value.to_ascii_lowercase()) else { return Ok(None) };
    if OF_ROWS.contains(&name.as_str()) {
        name_rows(function);
    }
    let Some((_, collected)) = AGGREGATES.iter().find(|(aggregate, _)| *aggregate == name) else { return Ok(None) };
    if collected.ends_with("object*") {
        pair_arguments(&name, function)?;
    }
    function.name = ObjectName::from(vec![Ident::new("array_agg")]);
    crate::array::sort_distinct(function);
    Ok(Some(call(collected, vec![Expr::Function(function.clone())])))
}

/// Gives the members of `ROW(…)` the names that PostgreSQL gives them.
fn name_rows(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for arg in &mut list.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg else { continue };
        let members: Vec<Expr> = match value {
            Expr::Function(row) if is_named(&row.name, "row") => match &row.args {
                FunctionArguments::List(members) => members.args.iter().filter_map(argument).cloned().collect(),
                _ => continue,
            },
            Expr::Tuple(members) => std::mem::take(members),
            _ => continue,
        };
        let name = |place: usize| Expr::Value(Value::SingleQuotedString(format!("f{}", place + 1)).into());
        let named = members.into_iter().enumerate().flat_map(|(place, member)| [name(place), member]);
        *value = call("named_struct", named.collect());
    }
}

fn argument(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
        _ => None,
    }
}

/// Makes one argument of a key and a value.
fn pair_arguments(name: &str, function: &mut Function) -> Result<()> {
    let FunctionArguments::List(list) = &mut function.args else {
        return plan_err!("{name} has a key and a value as its arguments");
    };
    let (Some(key), Some(value), 2) =
        (list.args.first().and_then(argument), list.args.get(1).and_then(argument), list.args.len())
    else {
        return plan_err!("{name} has a key and a value as its arguments");
    };
    let text = |text: &str| Expr::Value(Value::SingleQuotedString(text.to_owned()).into());
    let pair = call("named_struct", vec![text("key"), key.clone(), text("value"), value.clone()]);
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(pair))];
    Ok(())
}
