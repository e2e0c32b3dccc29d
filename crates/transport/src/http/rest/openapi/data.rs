//! The paths of rows that are sent: they are outside `/rest`, but belong to the same document.

use axum::http::Method;
use serde_json::{Map, Value, json};
use tidegate_core::Caller;
use tidegate_runtime::{Snapshot, Tool};

use super::{path_parameters, query_parameter, schema};
use crate::http::answer::ProblemType;
use crate::http::data::{PARAMETERS, tool_for};

const PATH: &str = "/data/{database}/{table}";

struct DataOperation {
    method: Method,
    summary: &'static str,
}

const OPERATIONS: [DataOperation; 3] = [
    DataOperation { method: Method::POST, summary: "Adds rows to a table" },
    DataOperation { method: Method::PUT, summary: "Replaces all rows of a table" },
    DataOperation { method: Method::DELETE, summary: "Removes a table with its rows" },
];

/// The path with the methods that `caller` may use; `None` if there are none.
pub(super) fn path(snapshot: &Snapshot, caller: &Caller) -> Option<(&'static str, Value)> {
    let operations = OPERATIONS.iter().filter_map(|operation| {
        let tool = snapshot.tool(tool_for(&operation.method)?, caller).ok()?;
        Some((operation.method.as_str().to_ascii_lowercase(), build_operation(operation, tool)))
    });
    let operations = operations.collect::<Map<_, _>>();
    (!operations.is_empty()).then(|| (PATH, Value::Object(operations)))
}

pub(super) fn schemas() -> Map<String, Value> {
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

fn build_operation(operation: &DataOperation, tool: &Tool) -> Value {
    let mut responses = Map::new();
    let mut parameters = path_parameters(PATH);
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
        "operationId": format!("{}_of_table", operation.method.as_str().to_ascii_lowercase()),
        "summary": operation.summary,
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
