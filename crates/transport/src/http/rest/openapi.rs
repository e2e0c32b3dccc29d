//! The OpenAPI document for one caller, generated from its view of the registry: the paths and the schemas of tools, and of
//! problems. The paths of stored results are outside `/rest`, but belong to the same document.
//!
//! [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.1.html)

use axum::http::Method;
use serde_json::{Map, Value, json};
use tidegate_core::{Caller, Format};
use tidegate_runtime::{Snapshot, Tool};
use uuid::Uuid;

use super::super::answer::{PROBLEM_MEDIA_TYPE, ProblemType, TYPE_PREFIX};
use super::super::data::PARAMETERS;
use super::super::endpoints::{ENDPOINTS, Endpoint, EndpointHandler};
use super::super::parameters::{FORMAT, ParameterKind, QueryParameter};
use super::super::results::{PARTIAL, ResultView, offered_formats, view_uri};
use super::super::state::HttpState;
use super::{RestDocument, RestHandler};

pub(super) fn build_document(http_state: &HttpState, snapshot: &Snapshot, caller: &Caller) -> Value {
    let description = http_state.service.description();
    let mut paths = Map::new();
    let mut schemas = common_schemas();
    let mut has_results = false;
    for endpoint in ENDPOINTS {
        let encoded = match endpoint.handler {
            EndpointHandler::Rest(Some(handler)) => rest_operation(endpoint, handler, snapshot, caller),
            EndpointHandler::Results(Some(view)) => {
                let encoded = result_operation(http_state, endpoint, view, snapshot, caller);
                if encoded.is_some() {
                    has_results = true;
                    schemas.extend(result_schemas());
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
            EndpointHandler::Console | EndpointHandler::NotFound => None,
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
        schemas.extend(tool_schemas(tool));
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
    if let Some((name, scheme)) = security_scheme(http_state).filter(|_| has_results) {
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
        let in_path: Vec<&str> = path_names(endpoint.path).collect();
        if !in_path.is_empty() {
            encoded["requestBody"] = further_arguments(tool, &in_path);
        }
    }
    Some(encoded)
}

/// A body with the arguments of `tool` that are not in the path.
fn further_arguments(tool: &Tool, in_path: &[&str]) -> Value {
    let mut schema = tool.input_schema.json().clone();
    for name in in_path {
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.shift_remove(*name);
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|required| required != name);
        }
    }
    let is_required = schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    json!({"required": is_required, "content": {"application/json": {"schema": schema}}})
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
    let mut responses = json!({ "200": answer_response(tool) });
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
    operation["x-tidegate"] = json!({
        "supports_pagination": tool.supports_pagination,
        "supports_streaming": tool.supports_streaming,
        "cache_seconds": tool.cache.map_or(0, |cache| cache.time_to_live.as_secs()),
    });
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
    responses.extend(ProblemType::ALL.map(problem_reference));
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
    let mut content = json!({"application/json": {"schema": {"$ref": input_reference(tool)}}});
    if takes_sql {
        content["application/sql"] = json!({"schema": {"type": "string"}});
        content["text/plain"] = json!({"schema": {"type": "string"}});
    }
    let is_required =
        tool.input_schema.json().get("required").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    json!({"required": is_required, "content": content})
}

fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameters(path: &str) -> Vec<Value> {
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}});
    path_names(path).map(parameter).collect()
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
    for (status, refusal) in ProblemType::ALL.map(problem_reference) {
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

const LINK: &str = "link";

fn result_schemas() -> Map<String, Value> {
    Map::from_iter([("StoredResult".to_owned(), manifest_schema())])
}

fn security_scheme(http_state: &HttpState) -> Option<(&'static str, Value)> {
    let description = "A link to one stored result, from its manifest; valid for a few minutes";
    let scheme = json!({"type": "apiKey", "in": "query", "name": "link", "description": description});
    http_state.options.links.is_some().then_some((LINK, scheme))
}

/// The operation of `view`; `None` if the caller reaches no stored results.
fn result_operation(
    http_state: &HttpState,
    endpoint: &Endpoint,
    view: ResultView,
    snapshot: &Snapshot,
    caller: &Caller,
) -> Option<Value> {
    if !snapshot.has_resource(&view_uri(&Uuid::nil().to_string(), view, "0"), caller) {
        return None;
    }
    let mut responses = Map::from_iter([
        ("200".to_owned(), view_response(view, "The whole body")),
        ("304".to_owned(), json!({"description": "The client already has the current version"})),
    ]);
    if view != ResultView::Manifest {
        let mut part = view_response(view, "The requested range");
        part["headers"]["Content-Range"] = header_schema("The range of these bytes and the total length");
        responses.insert("206".to_owned(), part);
    }
    // A manifest has no ranges.
    let applies =
        |problem_type: &ProblemType| *problem_type != ProblemType::RangeNotSatisfiable || view != ResultView::Manifest;
    responses.extend(ProblemType::STORED_RESULTS.into_iter().filter(applies).map(problem_reference));
    let mut encoded = json!({
        "operationId": endpoint.operation_id,
        "summary": endpoint.summary,
        "tags": ["results"],
        "parameters": parameters(view),
        "responses": responses,
    });
    if http_state.options.links.is_some() {
        let key =
            if http_state.options.authenticator.enforces_authentication() { json!({"bearer": []}) } else { json!({}) };
        encoded["security"] = json!([key, {LINK: []}]);
    }
    Some(encoded)
}

fn parameters(view: ResultView) -> Vec<Value> {
    let in_path = |name: &str, schema: Value| json!({"name": name, "in": "path", "required": true, "schema": schema});
    let mut parameters = vec![in_path("id", json!({"type": "string", "format": "uuid"}))];
    if view == ResultView::Block {
        parameters.push(in_path("n", json!({"type": "integer", "minimum": 0, "maximum": u32::MAX})));
    }
    if view == ResultView::Data {
        parameters.push(in_query(&PARTIAL, &json!({"type": "boolean"})));
    }
    let formats: Vec<&str> = offered_formats(view).into_iter().map(Format::name).collect();
    parameters.push(in_query(&FORMAT, &json!({ "enum": formats })));
    let mut headers = vec![
        ("If-None-Match", "Entity tags that the client has; 304 if one of them is current"),
        ("If-Match", "Entity tags, one of which must be current; otherwise 412"),
    ];
    if view != ResultView::Manifest {
        headers.push(("Range", "One range of bytes; 206 if the length is known, otherwise the whole body"));
        headers.push(("If-Range", "Range applies only if this entity tag is current"));
    }
    let in_header = |(name, description): (&str, &str)| json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}});
    parameters.extend(headers.into_iter().map(in_header));
    parameters
}

fn in_query(parameter: &QueryParameter, schema: &Value) -> Value {
    json!({"name": parameter.name, "in": "query", "description": parameter.description, "schema": schema})
}

fn header_schema(description: &str) -> Value {
    json!({"description": description, "schema": {"type": "string"}})
}

fn view_response(view: ResultView, description: &str) -> Value {
    let headers = json!({
        "ETag": header_schema("Identifies the bytes; present only if they never change"),
        "Tidegate-Job": header_schema("The id of the job"),
    });
    let mut response = json!({"description": description, "headers": headers, "content": {}});
    if view != ResultView::Manifest {
        response["headers"]["Accept-Ranges"] = header_schema("`bytes` if the length is known");
        response["headers"]["Content-Disposition"] = header_schema("A file name for the download");
    }
    for format in offered_formats(view) {
        let schema = match (view, format) {
            (ResultView::Manifest, _) => json!({"$ref": "#/components/schemas/StoredResult"}),
            (_, Format::Json) => json!({"$ref": "#/components/schemas/Table"}),
            _ if format.is_binary() => json!({}),
            _ => json!({"type": "string"}),
        };
        response["content"][format.media_type()] = json!({ "schema": schema });
    }
    if view == ResultView::Data {
        // A stored file keeps its own media type.
        response["content"]["*/*"] = json!({});
    }
    response
}

fn manifest_schema() -> Value {
    let text = || json!({"type": "string"});
    let time = || json!({"type": "string", "format": "date-time"});
    let count = || json!({"type": "integer", "minimum": 0});
    let column = json!({
        "type": "object",
        "properties": {"name": text(), "type": text(), "nullable": {"type": "boolean"}},
        "required": ["name", "type", "nullable"],
    });
    let sha256 = json!({"type": "string", "description": "SHA-256 of the bytes of the Arrow block, in hexadecimal"});
    let block = json!({
        "type": "object",
        "properties": {"index": count(), "first_row": count(), "rows": count(), "bytes": count(), "sha256": sha256},
        "required": ["index", "first_row", "rows", "bytes", "sha256"],
    });
    let file = json!({
        "type": "object",
        "description": "The stored file, whose bytes the rows contain",
        "properties": {"media_type": text(), "name": text(), "bytes": count()},
        "required": ["name", "bytes"],
    });
    let links = json!({
        "type": "object",
        "properties": {"expires_at": time(), "manifest": text(), "data": text()},
        "required": ["expires_at", "manifest", "data"],
    });
    json!({
        "type": "object",
        "description": "The manifest of a stored result",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "uri": {"type": "string", "description": "The URI of its resource over MCP"},
            "status": {"enum": ["running", "complete", "incomplete"]},
            "reason": {"type": "string", "description": "Why it is incomplete"},
            "asked_for": {
                "type": "integer",
                "description": "The requested number of rows, if the result has that many and more may exist",
            },
            "created_at": time(),
            "expires_at": time(),
            "tool": {"type": "string", "description": "The tool that was called"},
            "resource": {"type": "string", "description": "The resource that was read"},
            "database": {"type": "string", "description": "The database that was queried"},
            "job": {"type": "string", "format": "uuid"},
            "rows": count(),
            "bytes": {"type": "integer", "minimum": 0, "description": "The size of all its blocks"},
            "columns": {"type": "array", "items": column},
            "blocks": {"type": "array", "items": block},
            "file": file,
            "links": links,
        },
        "required": ["id", "uri", "status", "created_at", "expires_at", "job", "rows", "bytes", "columns", "blocks"],
    })
}

/// Schemas of every document. The schema names of tools contain a dot, these names do not.
fn common_schemas() -> Map<String, Value> {
    let text = || json!({"type": "string"});
    let column =
        json!({"type": "object", "properties": {"name": text(), "type": text()}, "required": ["name", "type"]});
    let table = json!({
        "type": "object",
        "description": "The rows (with extract: the values of one column), the columns, and statistics",
        "properties": {
            "Query": {"type": "array"},
            "columns": {"type": "array", "items": column},
            "rows": {"type": "integer", "minimum": 0},
            "elapsed_ms": {"type": "integer", "minimum": 0},
            "truncated": {"type": "boolean", "description": "Whether more rows exist"},
            "error": {"type": "string", "description": "Why the rows are incomplete; the connection is then broken"},
        },
        "required": ["Query", "columns", "rows", "elapsed_ms", "truncated"],
    });
    let block = json!({"type": "object", "properties": {"type": text()}, "required": ["type"]});
    let violation =
        json!({"type": "object", "properties": {"path": text(), "message": text()}, "required": ["path", "message"]});
    let problem_types = ProblemType::ALL.into_iter().chain(ProblemType::DOWNLOAD_ONLY);
    let problem = json!({
        "type": "object",
        "description": "RFC 9457",
        "properties": {
            "type": {"enum": problem_types.map(|problem_type| format!("{TYPE_PREFIX}{}", problem_type.name())).collect::<Vec<_>>()},
            "title": text(),
            "status": {"type": "integer"},
            "detail": text(),
            "violations": {"type": "array", "items": violation, "description": "Each error, with its path"},
            "choices": {"type": "array", "items": text(), "description": "Valid values, nearest first"},
            "hint": {"type": "string", "description": "The next step"},
            "id": {"type": "string", "description": "The id under which the log of the server has the detail"},
        },
        "required": ["type", "title", "status", "detail"],
    });
    Map::from_iter([("Table".to_owned(), table), ("Block".to_owned(), block), ("Problem".to_owned(), problem)])
}

/// The status of a problem type, and the reference to its response.
fn problem_reference(problem_type: ProblemType) -> (String, Value) {
    let status = problem_type.status().as_u16().to_string();
    let refusal = json!({"$ref": format!("#/components/responses/{status}")});
    (status, refusal)
}

fn tool_schemas(tool: &Tool) -> impl Iterator<Item = (String, Value)> {
    let component = |part: &str, schema: &Value| {
        let name = format!("{}.{part}", tool.name);
        let schema = rebase_references(schema, &format!("#/components/schemas/{name}"));
        (name, schema)
    };
    let input = component("input", tool.call_schema().json());
    let output = tool.output_schema.as_ref().map(|schema| component("output", schema.json()));
    std::iter::once(input).chain(output)
}

fn input_reference(tool: &Tool) -> String {
    format!("#/components/schemas/{}.input", tool.name)
}

fn answer_response(tool: &Tool) -> Value {
    let mut blocks = json!({
        "type": "object",
        "description": "An answer that is not a table",
        "properties": {
            "content": {"type": "array", "items": {"$ref": "#/components/schemas/Block"}},
            "structured": {},
            "truncated": {"type": "boolean"},
            "error": {"type": "string"},
        },
        "required": ["content"],
    });
    if tool.output_schema.is_some() {
        blocks["properties"]["structured"] = json!({"$ref": format!("#/components/schemas/{}.output", tool.name)});
    }
    let rows =
        json!({"type": "array", "description": "With format=mcp: the rows (with extract: the values of one column)"});
    let mut content = Map::new();
    for format in Format::FOR_REST {
        let schema = match format {
            Format::Json => json!({"anyOf": [{"$ref": "#/components/schemas/Table"}, rows, blocks]}),
            // It has the media type of `json`.
            Format::Mcp => continue,
            _ if format.is_binary() => json!({}),
            _ => json!({"type": "string"}),
        };
        content.insert(format.media_type().to_owned(), json!({ "schema": schema }));
    }
    // An argument may name other formats, and a tool may return a file.
    let others = Format::FOR_MODELS.map(Format::media_type).into_iter();
    for other in others.chain(["image/*", "audio/*", "application/octet-stream"]) {
        content.entry(other).or_insert_with(|| json!({}));
    }
    let field = |kind: &str, description: &str| json!({"description": description, "schema": {"type": kind}});
    json!({
        "description": "The answer, in the format that the parameter or Accept requests",
        "headers": {
            "Tidegate-Job": field("string", "The id of the job"),
            "Tidegate-Rows-Max": field("integer", "The maximum number of rows in the answer"),
            "Tidegate-Bytes-Max": field("integer", "The maximum number of bytes in the answer"),
            "Tidegate-Rows": field("integer", "The number of rows; in the trailer if the answer is long"),
            "Tidegate-Partial": field("string", "The nodes whose rows the answer lacks, separated by commas"),
            "Tidegate-Truncated": field("boolean", "Whether more rows exist; in the trailer if the answer is long"),
        },
        "content": content,
    })
}

/// Moves `schema` to `path` in a document: references to its root are rewritten to `path`.
fn rebase_references(schema: &Value, path: &str) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match value.as_str().filter(|_| name == "$ref").and_then(|to| to.strip_prefix('#')) {
                // Anchors resolve wherever the schema is.
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                    (name.clone(), format!("{path}{pointer}").into())
                }
                _ => (name.clone(), rebase_references(value, path)),
            })
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| rebase_references(item, path)).collect(),
        other => other.clone(),
    }
}
