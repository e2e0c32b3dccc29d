//! Forms of calls: names of arguments, `VARIADIC`, and names of types as functions.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};

use crate::syntax::{
    argument_value, argument_values, binary, boolean, call, cast, nested, number, single_identifier, string, unnamed,
};

/// Functions whose parameters have names. A parameter with a default may be left out.
const PARAMETERS: &[(&str, &str)] = &[
    ("jsonb_insert", "jsonb_in path replacement insert_after=false"),
    ("jsonb_set", "jsonb_in path replacement create_if_missing=true"),
    ("jsonb_set_lax", "jsonb_in path replacement create_if_missing=true null_value_treatment=use_json_null"),
    ("make_date", "year month day"),
    ("make_interval", "years=0 months=0 weeks=0 days=0 hours=0 mins=0 secs=0"),
    ("make_time", "hour min sec"),
    ("make_timestamp", "year month mday hour min sec"),
    ("make_timestamptz", "year month mday hour min sec timezone"),
    ("parse_ident", "str strict=true"),
];
/// The parameters of the functions `jsonb_path_…`.
const PATH_PARAMETERS: &str = "target path vars={} silent=false";

/// Puts the arguments of `function`, whose name is in lower case, in their order, if some are named.
pub(super) fn position_arguments(function: &str, args: &mut Vec<FunctionArg>) -> Result<()> {
    let unnamed_count = args.iter().position(|arg| !matches!(arg, FunctionArg::Unnamed(_))).unwrap_or(args.len());
    let parameters = match PARAMETERS.iter().find(|(name, _)| *name == function) {
        Some((_, parameters)) => *parameters,
        None if function.starts_with("jsonb_path_") => PATH_PARAMETERS,
        None => return Ok(()),
    };
    let parameters: Vec<(&str, Option<&str>)> = parameters
        .split(' ')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, default)) => (name, Some(default)),
            None => (parameter, None),
        })
        .collect();
    let mut values: Vec<Option<Expr>> = vec![None; parameters.len()];
    for arg in args.drain(unnamed_count..) {
        let index = name_of(&arg)
            .and_then(|name| parameters.iter().position(|(parameter, _)| name.value.eq_ignore_ascii_case(parameter)));
        let index = index.filter(|index| *index >= unnamed_count && values[*index].is_none());
        let (Some(index), Some(value)) = (index, named_value(&arg)) else {
            let names: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
            return plan_err!("{function} has no argument {arg} here; its arguments are {}", names.join(", "));
        };
        values[index] = Some(value.clone());
    }
    let Some(last) = values.iter().rposition(Option::is_some) else { return Ok(()) };
    for (value, (name, default)) in values.into_iter().zip(parameters).take(last + 1).skip(unnamed_count) {
        let Some(value) = value.or_else(|| default.map(default_value)) else {
            return plan_err!("{function} needs a value of its argument {name}");
        };
        args.push(unnamed(value));
    }
    Ok(())
}

/// Returns the name that an argument is given.
fn name_of(arg: &FunctionArg) -> Option<&Ident> {
    match arg {
        FunctionArg::Named { name, .. } | FunctionArg::ExprNamed { name: Expr::Identifier(name), .. } => Some(name),
        _ => None,
    }
}

fn named_value(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Named { arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed { arg: FunctionArgExpr::Expr(value), .. } => Some(value),
        _ => None,
    }
}

fn default_value(text: &str) -> Expr {
    match text {
        "true" => boolean(true),
        "false" => boolean(false),
        "0" => number(0),
        _ => string(text),
    }
}

/// Rewrites calls in forms that the planner does not support. Inner expressions are already rewritten.
pub(super) fn rewrite_call(expression: &mut Expr) -> Result<()> {
    if let Expr::Function(function) = &*expression
        && let Some(name) = single_identifier(&function.name)
        && let name = name.value.to_lowercase()
        && (name == "jsonb_delete" || named_type(&name).is_some() || has_variadic_argument(function))
        && let Some(args) = argument_values(function)
        && let Some(rewritten) = rewritten_call(&name, args, function)?
    {
        *expression = rewritten;
    }
    Ok(())
}

fn has_variadic_argument(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    matches!(list.args.last().and_then(argument_value), Some(Expr::Prefixed { .. }))
}

fn rewritten_call(name: &str, mut args: Vec<Expr>, function: &Function) -> Result<Option<Expr>> {
    if name == "jsonb_delete" && args.len() > 2 {
        let keys = Expr::Array(Array { elem: args.split_off(1), named: true });
        return Ok(args.pop().map(|document| call(name, vec![document, keys])));
    }
    let array = match args.pop() {
        Some(Expr::Prefixed { prefix, value }) if prefix.value.eq_ignore_ascii_case("variadic") => *value,
        Some(value) if args.is_empty() && is_plain(function) => {
            return Ok(named_type(name).map(|data_type| cast(value, data_type)));
        }
        _ => return Ok(None),
    };
    let elements = |array: Expr| call("array_elements*", vec![array]);
    let at_path = |document: &Expr, op: BinaryOperator, path: Expr| nested(binary(document.clone(), op, path));
    Ok(Some(match (name, args.as_slice()) {
        ("concat", []) => call("array_to_string", vec![array, string("")]),
        ("concat_ws", [separator]) => call("array_to_string", vec![array, separator.clone()]),
        ("format", [pattern]) => call("format*", vec![pattern.clone(), elements(array)]),
        ("json_build_array", []) => call("json_collected*", vec![elements(array)]),
        ("jsonb_build_array", []) => call("jsonb_collected*", vec![elements(array)]),
        ("json_extract_path" | "jsonb_extract_path", [document]) => at_path(document, BinaryOperator::HashArrow, array),
        ("json_extract_path_text" | "jsonb_extract_path_text", [document]) => {
            at_path(document, BinaryOperator::HashLongArrow, array)
        }
        ("jsonb_delete", [document]) => call("jsonb_delete", vec![document.clone(), array]),
        ("num_nulls", []) => call("num_nulls*", vec![elements(array)]),
        ("num_nonnulls", []) => call("num_nonnulls*", vec![elements(array)]),
        ("json_build_object" | "jsonb_build_object", []) => {
            let object = name.replace("_build", "");
            return plan_err!("VARIADIC is not supported in {name}; write {object}(array), whose values are text");
        }
        _ => return plan_err!("VARIADIC is not supported in {name}; write the arguments one by one"),
    }))
}

/// Whether a call has arguments only.
fn is_plain(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.duplicate_treatment.is_none()
        && list.clauses.is_empty()
        && function.filter.is_none()
        && function.over.is_none()
}

/// Returns the type whose name is also that of its cast; not types whose names are keywords.
fn named_type(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Bool,
        "bytea" => DataType::Bytea,
        "float4" => DataType::Float4,
        "float8" => DataType::Float8,
        "int2" => DataType::Int2(None),
        "int4" => DataType::Int4(None),
        "int8" => DataType::Int8(None),
        "name" => DataType::Custom(ObjectName::from(vec![Ident::new("name")]), Vec::new()),
        "text" => DataType::Text,
        _ => return None,
    })
}
