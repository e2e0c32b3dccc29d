//! JSON: the types `json` and `jsonb` with their functions, operators and syntax.

mod build;
mod document;
mod elements;
mod jsonpath;
mod modify;
mod operators;
mod plan;
mod reader;
mod value;
mod whole_row;

use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, TypedString,
};

use crate::syntax::{argument_values, call, is_named, single_identifier, sort_distinct, string, take, unnamed};
use whole_row::ROW;

pub(crate) use build::key_text;
pub(crate) use document::{numbers, parse_json_texts};
pub(crate) use elements::column_value;
pub(crate) use operators::{elements_at, subscript_types};
pub(crate) use plan::{
    convert_expression, group_by_document_keys, order_documents, plan_field_access, plan_operator, show_json_as_text,
};
pub(crate) use whole_row::{ROW_VALUE, WHOLE_ROW, row, whole_row};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = document::cast_functions();
    functions.extend(operators::path_functions());
    functions.extend(build::functions());
    functions.extend(elements::functions());
    functions.extend(modify::functions());
    functions.extend(operators::functions());
    functions.extend(elements::record_functions());
    functions.extend([whole_row::row_value(), row()]);
    functions.extend(jsonpath::functions());
    functions.extend(build::collect_functions());
    functions
}

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
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

fn type_name(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::JSON => Some("json"),
        DataType::JSONB => Some("jsonb"),
        DataType::Custom(name, _) if is_named(name, "jsonpath") => Some(jsonpath::CAST),
        _ => None,
    }
}

/// Aggregates, and the functions that convert the collected array to their result.
const AGGREGATES: [(&str, &str); 4] = [
    ("json_agg", "json_collected*"),
    ("jsonb_agg", "jsonb_collected*"),
    ("json_object_agg", "json_collected_object*"),
    ("jsonb_object_agg", "jsonb_collected_object*"),
];

const ROW_FUNCTIONS: [&str; 5] = ["row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg"];

/// Functions whose rows have columns that only FROM can define, and how they are written there.
const RECORD_FUNCTIONS: [(&str, &str); 8] = [
    ("json_to_record", "json_to_record(value) AS t(id int, name text)"),
    ("jsonb_to_record", "jsonb_to_record(value) AS t(id int, name text)"),
    ("json_to_recordset", "json_to_recordset(value) AS t(id int, name text)"),
    ("jsonb_to_recordset", "jsonb_to_recordset(value) AS t(id int, name text)"),
    ("json_populate_record", "json_to_record(value) AS t(id int, name text)"),
    ("jsonb_populate_record", "jsonb_to_record(value) AS t(id int, name text)"),
    ("json_populate_recordset", "json_to_recordset(value) AS t(id int, name text)"),
    ("jsonb_populate_recordset", "jsonb_to_recordset(value) AS t(id int, name text)"),
];

fn rewrite_function(function: &mut Function) -> Result<Option<Expr>> {
    let Some(name) = single_identifier(&function.name) else { return Ok(None) };
    let name = name.value.to_ascii_lowercase();
    if let Some((_, form)) = RECORD_FUNCTIONS.iter().find(|(of_record, _)| *of_record == name) {
        return plan_err!("{name} is not supported in an expression; write it in FROM with its columns: FROM {form}");
    }
    if ROW_FUNCTIONS.contains(&name.as_str()) {
        write_rows(function);
    }
    let Some((_, collected)) = AGGREGATES.iter().find(|(aggregate, _)| *aggregate == name) else { return Ok(None) };
    if collected.ends_with("object*") {
        pair_arguments(&name, function)?;
    }
    function.name = ObjectName::from(vec![Ident::new("array_agg")]);
    sort_distinct(function);
    Ok(Some(call(collected, vec![Expr::Function(function.clone())])))
}

/// Writes ROW before the rows among the arguments: DataFusion plans only rows of columns and literals without it.
fn write_rows(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg
            && let Expr::Tuple(members) = value
        {
            *value = call(ROW, std::mem::take(members));
        }
    }
}

/// Combines the two arguments, a key and a value, into one.
fn pair_arguments(name: &str, function: &mut Function) -> Result<()> {
    let values = argument_values(function);
    let (Some([key, value]), FunctionArguments::List(list)) = (values.as_deref(), &mut function.args) else {
        return plan_err!("{name} takes a key and a value");
    };
    let pair = call("named_struct", vec![string("key"), key.clone(), string("value"), value.clone()]);
    list.args = vec![unnamed(pair)];
    Ok(())
}
