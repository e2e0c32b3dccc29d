//! `list_functions`: the functions of a node, or the parameters and columns of one.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_query::QueryRows;
use tidegate_runtime::{Answer, RunningCall, Tool};
use tidegate_system::{SystemParameter, SystemTableDescription};

use super::FunctionSource;
use super::execute_function::log_hint;
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, text_column};

pub(crate) fn tool(node: &Arc<ToolContext>, functions: &Arc<dyn FunctionSource>) -> Tool {
    let functions = functions.clone();
    read_only_tool(
        "list_functions",
        "List functions",
        "Live views of the machine: processes, connections, disks and more. With function: its parameters and columns.",
        InputSchemaBuilder::new().with("function", json!({"type": "string"})).with_output_arguments(),
        context_handler(node, move |node, call| handle(node, functions.clone(), call)),
    )
}

#[derive(Deserialize)]
struct Arguments {
    function: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(
    node: Arc<ToolContext>,
    functions: Arc<dyn FunctionSource>,
    call: RunningCall,
) -> Result<Answer, Error> {
    let Arguments { function, shape } = parse_arguments(&call)?;
    let all = functions.functions(call.principal());
    let rows = match &function {
        None => function_rows(&all)?,
        Some(name) => match all.iter().find(|function| function.name == *name) {
            Some(function) => detail_rows(function)?,
            None => return Err(unknown_function(name, &all)),
        },
    };
    let output_options = shape.output_options("Name one function.")?;
    Ok(node.executor.answer_rows(rows, output_options))
}

/// The error for a function that does not exist or is hidden from the caller.
pub(super) fn unknown_function(name: &str, all: &[&SystemTableDescription]) -> Error {
    let names = || all.iter().map(|function| function.name.as_ref());
    let near = nearest_names(name, names());
    let choices = if near.is_empty() { names().map(str::to_owned).collect() } else { near };
    let error = Error::new(ErrorKind::NotFound, format!("there is no function {name:?}"));
    match log_hint(name) {
        Some(hint) => error.with_hint(hint),
        None => error.with_choices(choices),
    }
}

fn function_rows(all: &[&SystemTableDescription]) -> Result<QueryRows, Error> {
    let parameters = |function: &SystemTableDescription| {
        let names: Vec<String> = function.parameters.iter().map(described_parameter).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    TableBuilder::new()
        .with_column("function", text_column(all.iter().map(|function| Some(function.name.to_string()))))
        .with_column("description", text_column(all.iter().map(|function| Some(function.description.to_string()))))
        .with_column("parameters", text_column(all.iter().map(|function| parameters(function))))
        .into_rows()
}

/// The name of a parameter, with its options.
fn described_parameter(parameter: &SystemParameter) -> String {
    let options = if parameter.options.is_empty() {
        parameter.parameter_type.name().to_owned()
    } else {
        parameter.options.join("|")
    };
    format!("{} ({options})", parameter.name)
}

struct DetailRow<'a> {
    kind: &'static str,
    name: &'a str,
    type_name: &'static str,
    unit: Option<&'a str>,
    description: Cow<'a, str>,
}

fn detail_rows(function: &SystemTableDescription) -> Result<QueryRows, Error> {
    let parameters = function.parameters.iter().map(|parameter| DetailRow {
        kind: "parameter",
        name: &parameter.name,
        type_name: parameter.parameter_type.name(),
        unit: None,
        description: match parameter.options.as_slice() {
            [] => parameter.description.clone(),
            options => format!("{} Options: {}.", parameter.description, options.join(", ")).into(),
        },
    });
    let columns = function.columns.iter().map(|column| DetailRow {
        kind: if column.is_sensitive { "sensitive column" } else { "column" },
        name: &column.name,
        type_name: column.column_type.name(),
        unit: column.unit.as_deref(),
        description: column.description.clone(),
    });
    let rows: Vec<DetailRow<'_>> = parameters.chain(columns).collect();
    TableBuilder::new()
        .with_column("kind", text_column(rows.iter().map(|row| Some(row.kind.to_owned()))))
        .with_column("name", text_column(rows.iter().map(|row| Some(row.name.to_owned()))))
        .with_column("type", text_column(rows.iter().map(|row| Some(row.type_name.to_owned()))))
        .with_column("unit", text_column(rows.iter().map(|row| row.unit.map(str::to_owned))))
        .with_column("description", text_column(rows.iter().map(|row| Some(row.description.to_string()))))
        .into_rows()
}
