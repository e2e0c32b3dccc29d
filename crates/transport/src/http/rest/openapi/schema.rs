//! The schemas of an OpenAPI document: the arguments and answers of tools, and problems.

use serde_json::{Map, Value, json};
use tidegate_core::Format;
use tidegate_runtime::Tool;

use crate::http::answer::{ProblemType, TYPE_PREFIX};

/// Schemas of every document. The schema names of tools contain a dot, these names do not.
pub(super) fn common_schemas() -> Map<String, Value> {
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
pub(super) fn problem_reference(problem_type: ProblemType) -> (String, Value) {
    let status = problem_type.status().as_u16().to_string();
    let refusal = json!({"$ref": format!("#/components/responses/{status}")});
    (status, refusal)
}

pub(super) fn tool_schemas(tool: &Tool) -> impl Iterator<Item = (String, Value)> {
    let component = |part: &str, schema: &Value| {
        let name = format!("{}.{part}", tool.name);
        let schema = rebase_references(schema, &format!("#/components/schemas/{name}"));
        (name, schema)
    };
    let input = component("input", tool.call_schema().json());
    let output = tool.output_schema.as_ref().map(|schema| component("output", schema.json()));
    std::iter::once(input).chain(output)
}

pub(super) fn input_reference(tool: &Tool) -> String {
    format!("#/components/schemas/{}.input", tool.name)
}

pub(super) fn answer_response(tool: &Tool) -> Value {
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
    let mut content = Map::new();
    for format in Format::FOR_REST {
        let schema = match format {
            Format::Json => json!({"anyOf": [{"$ref": "#/components/schemas/Table"}, blocks.clone()]}),
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
