//! The OpenAPI document for one caller, generated from its view of the registry.
//!
//! [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.1.html)

mod data;
mod results;
mod schema;

use axum::http::Method;
use serde_json::{Map, Value, json};
use tidegate_core::{Caller, Format};
use tidegate_runtime::{Snapshot, Tool};

use super::super::state::HttpState;
use super::route::RestRoute;
use crate::http::answer::{FORMAT, PROBLEM_MEDIA_TYPE, ParameterKind, ProblemType, QueryParameter};

struct FixedOperation {
    id: &'static str,
    path: &'static str,
    method: Method,
    summary: &'static str,
}

pub(super) fn build_document(http_state: &HttpState, snapshot: &Snapshot, caller: &Caller) -> Value {
    let description = http_state.service.description();
    let mut paths = Map::new();
    let mut schemas = schema::common_schemas();
    for fixed in FIXED_OPERATIONS {
        // A template of a path is itself a path of its route.
        let Ok(route) = RestRoute::parse(fixed.path) else { continue };
        let Some(tool_request) = route.tool_request(&fixed.method) else {
            add_operation(&mut paths, &fixed, read_operation(&fixed));
            continue;
        };
        let Ok(tool) = snapshot.tool(tool_request.tool, caller) else { continue };
        let mut operation = call_operation(fixed.id, fixed.summary, tool, tool_request.parameters);
        if let Value::Array(parameters) = &mut operation["parameters"] {
            parameters.splice(..0, path_parameters(fixed.path));
        }
        if fixed.method == Method::POST {
            operation["requestBody"] = request_body(tool, tool_request.takes_sql);
        }
        add_operation(&mut paths, &fixed, operation);
    }
    let result_paths = results::paths(http_state, snapshot, caller);
    let has_results = !result_paths.is_empty();
    if has_results {
        schemas.extend(results::schemas());
        paths.extend(result_paths.into_iter().map(|(path, methods)| (path.to_owned(), methods)));
    }
    if let Some((path, methods)) = data::path(snapshot, caller) {
        schemas.extend(data::schemas());
        paths.insert(path.to_owned(), methods);
    }
    for tool in snapshot.tools(caller) {
        let summary = tool.title.as_deref().unwrap_or(&tool.name);
        let mut operation = call_operation(&format!("call_{}", tool.name), summary, tool, &[]);
        operation["requestBody"] = request_body(tool, false);
        operation["tags"] = json!(["tools"]);
        paths.insert(format!("/rest/tools/{}/call", tool.name), json!({ "post": operation }));
        schemas.extend(schema::tool_schemas(tool));
    }
    let mut components = json!({ "schemas": schemas, "responses": problem_responses() });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": description.title.as_deref().unwrap_or(&description.name),
            "version": description.version,
            "description": "The tools of this server. The document contains only what the caller may use.",
        },
        "paths": paths,
    });
    if http_state.options.authenticator.enforces_authentication() {
        let description = "A key or a token of this server";
        components["securitySchemes"] =
            json!({"bearer": {"type": "http", "scheme": "bearer", "description": description}});
        document["security"] = json!([{"bearer": []}]);
    }
    if let Some((name, scheme)) = results::security_scheme(http_state).filter(|_| has_results) {
        components["securitySchemes"][name] = scheme;
    }
    document["components"] = components;
    document
}

const FIXED_OPERATIONS: [FixedOperation; 20] = [
    fixed("list_tools", "/rest/tools", Method::GET, "The tools that the caller may use"),
    fixed("get_tool", "/rest/tools/{name}", Method::GET, "One tool"),
    fixed("get_tool_schema", SCHEMA_PATH, Method::GET, "The JSON Schema of the arguments of a tool"),
    fixed("query", "/rest/query", Method::POST, "Rows of a table"),
    fixed("sql", "/rest/sql", Method::POST, "The result of one SQL statement"),
    fixed("list_databases", "/rest/databases", Method::GET, "The databases"),
    fixed("list_tables", "/rest/databases/{database}/tables", Method::GET, "The tables of a database"),
    fixed("get_table", "/rest/databases/{database}/tables/{table}", Method::GET, "The columns of a table"),
    fixed("get_rows", "/rest/databases/{database}/tables/{table}/rows", Method::GET, "Rows of a table"),
    fixed("list_log_sources", "/rest/logs", Method::GET, "The log sources"),
    fixed("get_log_entries", "/rest/logs/{source}", Method::GET, "Entries of a log"),
    fixed("get_log_fields", "/rest/logs/{source}/fields", Method::GET, "The fields of a log"),
    fixed(
        "get_log_values",
        "/rest/logs/{source}/fields/{field}",
        Method::GET,
        "The values of a field with their counts",
    ),
    fixed("list_metrics", "/rest/metrics", Method::GET, "The metrics"),
    fixed("list_source_metrics", "/rest/metrics/{source}", Method::GET, "The metrics of a source"),
    fixed("get_metric_points", "/rest/metrics/{source}/{metric}", Method::GET, "Points of a metric over time"),
    fixed("list_jobs", "/rest/jobs", Method::GET, "The jobs of the caller"),
    fixed("get_job", "/rest/jobs/{id}", Method::GET, "One job"),
    fixed("cancel_job", "/rest/jobs/{id}", Method::DELETE, "Cancels a job"),
    fixed("get_openapi", "/rest/openapi.json", Method::GET, "This document"),
];

const SCHEMA_PATH: &str = "/rest/tools/{name}/schema";

const fn fixed(id: &'static str, path: &'static str, method: Method, summary: &'static str) -> FixedOperation {
    FixedOperation { id, path, method, summary }
}

fn add_operation(paths: &mut Map<String, Value>, fixed: &FixedOperation, operation: Value) {
    let methods = paths.entry(fixed.path).or_insert_with(|| json!({}));
    methods[fixed.method.as_str().to_ascii_lowercase()] = operation;
}

fn read_operation(fixed: &FixedOperation) -> Value {
    let media_type = if fixed.path == SCHEMA_PATH { super::document::SCHEMA } else { super::document::JSON };
    let mut responses = json!({
        "200": {
            "description": "The document",
            "headers": {"ETag": {"schema": {"type": "string"}}},
            "content": {media_type: {"schema": {"type": "object"}}},
        },
        "304": {"description": "The client already has the current version"},
    });
    add_problem_responses(&mut responses);
    json!({
        "operationId": fixed.id,
        "summary": fixed.summary,
        "tags": ["registry"],
        "parameters": path_parameters(fixed.path),
        "responses": responses,
    })
}

/// An operation that calls `tool`, without its request body.
fn call_operation(id: &str, summary: &str, tool: &Tool, parameters: &[QueryParameter]) -> Value {
    let mut responses = json!({ "200": schema::answer_response(tool) });
    add_problem_responses(&mut responses);
    let parameters: Vec<Value> = parameters.iter().chain([&FORMAT]).map(query_parameter).collect();
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "tags": ["questions"],
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(description) = &tool.description {
        operation["description"] = description.clone().into();
    }
    operation
}

fn request_body(tool: &Tool, takes_sql: bool) -> Value {
    let mut content = json!({"application/json": {"schema": {"$ref": schema::input_reference(tool)}}});
    if takes_sql {
        content["application/sql"] = json!({"schema": {"type": "string"}});
        content["text/plain"] = json!({"schema": {"type": "string"}});
    }
    let is_required =
        tool.input_schema.json().get("required").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    json!({"required": is_required, "content": content})
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}});
    names.map(parameter).collect()
}

fn query_parameter(parameter: &QueryParameter) -> Value {
    let schema = match parameter.kind {
        ParameterKind::Text if parameter.name == FORMAT.name => {
            json!({"enum": Format::FOR_REST.map(Format::name)})
        }
        ParameterKind::Text => json!({"type": "string"}),
        ParameterKind::Flag => json!({"type": "boolean"}),
        ParameterKind::Integer => json!({"type": "integer"}),
        ParameterKind::List => json!({"type": "array", "items": {"type": "string"}}),
    };
    let mut encoded =
        json!({"name": parameter.name, "in": "query", "description": parameter.description, "schema": schema});
    if parameter.kind == ParameterKind::List {
        encoded["style"] = "form".into();
        encoded["explode"] = false.into();
    }
    encoded
}

fn add_problem_responses(responses: &mut Value) {
    for (status, refusal) in ProblemType::ALL.map(schema::problem_reference) {
        responses[&status] = refusal;
    }
}

fn problem_responses() -> Value {
    let mut problems = json!({});
    for problem_type in ProblemType::ALL.into_iter().chain(ProblemType::DOWNLOAD_ONLY) {
        let status = problem_type.status().as_u16().to_string();
        let before = problems[&status]["description"].as_str().map(|before| format!("{before}. "));
        problems[&status] = json!({
            "description": format!("{}{}", before.unwrap_or_default(), problem_type.title()),
            "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        });
    }
    problems
}
