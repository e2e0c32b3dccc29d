//! The paths of stored results: they are outside `/rest`, but belong to the same document.

use serde_json::{Map, Value, json};
use tidegate_core::{Caller, Format};
use tidegate_runtime::Snapshot;
use uuid::Uuid;

use super::schema;
use crate::http::answer::{FORMAT, ProblemType, QueryParameter};
use crate::http::endpoints::Endpoint;
use crate::http::results::{PARTIAL, ResultView, offered_formats, view_uri};
use crate::http::state::HttpState;

const LINK: &str = "link";

pub(super) fn schemas() -> Map<String, Value> {
    Map::from_iter([("StoredResult".to_owned(), manifest_schema())])
}

pub(super) fn security_scheme(http_state: &HttpState) -> Option<(&'static str, Value)> {
    let description = "A link to one stored result, from its manifest; valid for a few minutes";
    let scheme = json!({"type": "apiKey", "in": "query", "name": "link", "description": description});
    http_state.options.links.is_some().then_some((LINK, scheme))
}

/// The operation of `view`; `None` if the caller reaches no stored results.
pub(super) fn operation(
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
    responses.extend(ProblemType::STORED_RESULTS.into_iter().filter(applies).map(schema::problem_reference));
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
