//! The OpenAPI document for one caller, generated from its view of the registry.
//!
//! [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.1.html)

mod results;
mod schema;

use axum::http::Method;
use serde_json::{Map, Value, json};
use tidegate_core::{Caller, Format};
use tidegate_runtime::{Snapshot, Tool};

use super::super::state::HttpState;
use super::route::{RestDocument, RestHandler};
use crate::http::answer::{FORMAT, PROBLEM_MEDIA_TYPE, ParameterKind, ProblemType, QueryParameter};
use crate::http::data::PARAMETERS;
use crate::http::endpoints::{ENDPOINTS, Endpoint, EndpointHandler};

pub(super) fn build_document(http_state: &HttpState, snapshot: &Snapshot, caller: &Caller) -> Value {
    let description = http_state.service.description();
    let mut paths = Map::new();
    let mut schemas = schema::common_schemas();
    let mut has_results = false;
    for endpoint in ENDPOINTS {
        let encoded = match endpoint.handler {
            EndpointHandler::Rest(Some(handler)) => rest_operation(endpoint, handler, snapshot, caller),
            EndpointHandler::Results(Some(view)) => {
                let encoded = results::operation(http_state, endpoint, view, snapshot, caller);
                if encoded.is_some() {
                    has_results = true;
                    schemas.extend(results::schemas());
                }
                encoded
            }
            EndpointHandler::Rows(Some(entry)) => snapshot.tool(entry.name(), caller).ok().map(|tool| {
                schemas.extend(rows_schemas());
                rows_operation(endpoint, tool)
            }),
            EndpointHandler::Rest(None) | EndpointHandler::Results(None) | EndpointHandler::Rows(None) => None,
            EndpointHandler::Mcp | EndpointHandler::SseStream | EndpointHandler::SseMessages => None,
            EndpointHandler::WebSocket | EndpointHandler::Telemetry(..) | EndpointHandler::Metadata => None,
            EndpointHandler::Health | EndpointHandler::Ready | EndpointHandler::Metrics => None,
            EndpointHandler::NotFound => None,
        };
        let Some(encoded) = encoded else { continue };
        // The first one is GET where HEAD is supported, too.
        let method = endpoint.methods.split(',').next().unwrap_or_default().to_ascii_lowercase();
        paths.entry(endpoint.path).or_insert_with(|| json!({}))[method] = encoded;
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

/// The operation of an endpoint of REST; `None` if the caller may not call its tool.
fn rest_operation(endpoint: &Endpoint, handler: RestHandler, snapshot: &Snapshot, caller: &Caller) -> Option<Value> {
    let (tool, parameters) = match handler {
        RestHandler::Document(document) => return Some(read_operation(endpoint, document)),
        RestHandler::Call { tool, parameters } => (snapshot.tool(tool, caller).ok()?, parameters),
        // The document has a path for each tool.
        RestHandler::CallNamed => return None,
        RestHandler::Page | RestHandler::Transports | RestHandler::SwitchTransport { .. } => return None,
    };
    let mut encoded = call_operation(endpoint.operation_id, endpoint.summary, tool, parameters);
    if let Value::Array(parameters) = &mut encoded["parameters"] {
        parameters.splice(..0, path_parameters(endpoint.path));
    }
    if endpoint.methods == Method::POST.as_str() {
        encoded["requestBody"] = request_body(tool, handler.takes_sql());
    }
    Some(encoded)
}

fn read_operation(endpoint: &Endpoint, document: RestDocument) -> Value {
    let media_type = document.media_type();
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
        "operationId": endpoint.operation_id,
        "summary": endpoint.summary,
        "tags": ["registry"],
        "parameters": path_parameters(endpoint.path),
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

fn rows_schemas() -> Map<String, Value> {
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer", "minimum": 0});
    let rejection = json!({
        "type": "object",
        "properties": {"line": number(), "row": number(), "column": text(), "reason": text(), "text": text()},
        "required": ["reason"],
    });
    let stored = json!({
        "type": "object",
        "properties": {
            "database": text(),
            "table": text(),
            "rows": number(),
            "rejected": number(),
            "rejections": {"type": "array", "items": rejection, "description": "The first hundred"},
            "sequence": {"type": "integer", "description": "A reader that sees this position sees the rows"},
            "created": {"type": "boolean", "description": "Whether the table was created"},
            "repeated": {"type": "boolean", "description": "Whether an earlier request with the same key stored the rows"},
        },
        "required": ["database", "table", "rows", "rejected", "rejections", "sequence", "created", "repeated"],
    });
    Map::from_iter([("StoredRows".to_owned(), stored)])
}

/// An operation that sends rows. Its path is outside `/rest`, but belongs to the same document.
fn rows_operation(endpoint: &Endpoint, tool: &Tool) -> Value {
    let mut responses = Map::new();
    let mut parameters = path_parameters(endpoint.path);
    match tool.request_body {
        Some(_) => {
            let answer = |description: &str| {
                let schema = json!({"$ref": "#/components/schemas/StoredRows"});
                json!({"description": description, "content": {"application/json": {"schema": schema}}})
            };
            responses.insert("200".to_owned(), answer("The rows are on disk and visible"));
            responses.insert("201".to_owned(), answer("The same, and the table was created"));
            responses.insert("204".to_owned(), json!({"description": "As 200, with Prefer: return=minimal"}));
            parameters.extend(PARAMETERS.iter().map(query_parameter));
            let headers = [
                ("Content-Encoding", "gzip or zstd"),
                ("Idempotency-Key", "Makes a repeat safe: rows with the same key are stored once"),
                ("Prefer", "return=minimal for an answer without a body"),
            ];
            parameters.extend(headers.map(|(name, description)| {
                json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}})
            }));
        }
        None => {
            let schema = json!({"type": "object"});
            let content = json!({"application/json": {"schema": schema}});
            responses.insert("200".to_owned(), json!({"description": "The table is removed", "content": content}));
        }
    }
    responses.extend(ProblemType::ALL.map(schema::problem_reference));
    let mut encoded = json!({
        "operationId": endpoint.operation_id,
        "summary": endpoint.summary,
        "tags": ["rows"],
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(types) = tool.request_body {
        let content = types.media_types.iter().map(|name| ((*name).to_owned(), json!({}))).collect::<Map<_, _>>();
        encoded["requestBody"] = json!({"required": true, "content": content});
    }
    encoded
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
