//! Checks that messages are valid in their revision.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_mcp::Revision;

/// The schema of one revision, and its definitions that were compiled.
struct RevisionSchema {
    schema: Value,
    key: &'static str,
    parts: Mutex<HashMap<String, Arc<Validator>>>,
}

impl RevisionSchema {
    fn read(revision: Revision) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schemas");
        let text = std::fs::read(folder.join(format!("{}.json", revision.name()))).unwrap();
        let schema: Value = serde_json::from_slice(&text).unwrap();
        let key = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        Self { schema, key, parts: Mutex::default() }
    }

    fn has(&self, definition: &str) -> bool {
        self.schema[self.key].get(definition).is_some()
    }

    fn message_definition(&self, method: &str) -> Option<&str> {
        let definitions = self.schema[self.key].as_object().unwrap();
        definitions
            .iter()
            .find(|(name, definition)| {
                let is_message = name.ends_with("Request") || name.ends_with("Notification");
                is_message && definition["properties"]["method"]["const"] == method
            })
            .map(|(name, _)| name.as_str())
    }

    /// The definition of the error with that code; most codes have none of their own.
    fn error_definition(&self, code: &Value) -> Option<&str> {
        let definitions = self.schema[self.key].as_object().unwrap();
        let own = definitions.iter().find(|(_, definition)| {
            let parts = definition["properties"]["error"]["allOf"].as_array();
            parts.is_some_and(|parts| parts.iter().any(|part| part["properties"]["code"]["const"] == *code))
        });
        own.map(|(name, _)| name.as_str())
    }

    fn check(&self, definition: &str, value: &Value) {
        let validator =
            self.parts.lock().entry(definition.to_owned()).or_insert_with(|| self.compile(definition)).clone();
        let errors: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "not a valid {definition}: {value}\n{}", errors.join("\n"));
    }

    fn compile(&self, definition: &str) -> Arc<Validator> {
        let mut schema = self.schema.clone();
        schema["$ref"] = json!(format!("#/{}/{definition}", self.key));
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .with_format("byte", |text: &str| STANDARD.decode(text).is_ok());
        Arc::new(options.build(&schema).unwrap())
    }
}

fn schema_of(revision: Revision) -> &'static RevisionSchema {
    static SCHEMAS: LazyLock<[RevisionSchema; Revision::ALL.len()]> =
        LazyLock::new(|| Revision::ALL.map(RevisionSchema::read));
    &SCHEMAS[revision as usize]
}

/// Checks the response to a request of `method`.
pub fn check_response(revision: Revision, method: &str, response: &Value) {
    let schema = schema_of(revision);
    let Some(result) = response.get("result") else { return check_error(revision, response) };
    let result_of = |request: &str| format!("{}Result", request.trim_end_matches("Request"));
    let definition = schema.message_definition(method).map(result_of).filter(|definition| schema.has(definition));
    let definition = match result["resultType"].as_str() {
        Some("input_required") => {
            assert!(["tools/call", "prompts/get", "resources/read"].contains(&method), "{method} may not ask");
            "InputRequiredResult"
        }
        Some("task") => "Result",
        _ => definition.as_deref().unwrap_or(if method == "tasks/get" { "Result" } else { "EmptyResult" }),
    };
    schema.check(definition, result);
    if result["resultType"] == "task" || method == "tasks/get" {
        check_task(result);
    }
    let envelope = if schema.has("JSONRPCResultResponse") { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
    schema.check(envelope, response);
    for field in ["resultType", "ttlMs", "cacheScope"] {
        assert!(!revision.is_legacy() || result.get(field).is_none(), "{field} in a legacy result: {result}");
    }
}

/// Checks a `Task` of the tasks extension, with the members that its status adds; the schema has no definition of it.
fn check_task(task: &Value) {
    static TASK: LazyLock<Validator> = LazyLock::new(|| {
        let only_when = |member: &str, status: &str| json!({"if": {"required": [member]}, "then": {"properties": {"status": {"const": status}}}});
        let schema = json!({
            "type": "object",
            "required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"],
            "properties": {
                "taskId": {"type": "string", "minLength": 1},
                "status": {"enum": ["working", "input_required", "completed", "failed", "cancelled"]},
                "statusMessage": {"type": "string"},
                "createdAt": {"type": "string", "format": "date-time"},
                "lastUpdatedAt": {"type": "string", "format": "date-time"},
                "ttlMs": {"type": ["integer", "null"], "exclusiveMinimum": 0},
                "pollIntervalMs": {"type": "integer", "exclusiveMinimum": 0},
                "result": {"type": "object", "required": ["content"]},
                "error": {"type": "object", "required": ["code", "message"]},
                "inputRequests": {"type": "object", "minProperties": 1},
            },
            "not": {"required": ["requestState"]},
            "allOf": [
                only_when("result", "completed"),
                only_when("error", "failed"),
                only_when("inputRequests", "input_required"),
            ],
        });
        jsonschema::options().offline().should_validate_formats(true).build(&schema).unwrap()
    });
    let errors: Vec<String> = TASK.iter_errors(task).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "not a valid task: {task}\n{}", errors.join("\n"));
}

/// Checks an error. If the request could not be read, the id is null in JSON-RPC, while the schema, from 2025-11-25 on,
/// omits it.
fn check_error(revision: Revision, response: &Value) {
    let mut response = response.clone();
    let members = response.as_object_mut().unwrap();
    let revision = match members.get("id") {
        Some(Value::Null) => {
            members.remove("id");
            revision.max(Revision::V2025_11_25)
        }
        _ => revision,
    };
    let schema = schema_of(revision);
    let generic = if schema.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" };
    let own = schema.error_definition(&response["error"]["code"]).map(str::to_owned);
    schema.check(own.as_deref().unwrap_or(generic), &response);
    let is_legacy_code = response["error"]["code"] == -32_002;
    assert!(revision.is_legacy() || !is_legacy_code, "a legacy code: {response}");
}

/// Checks a request of the server, which only legacy revisions have.
pub fn check_request(revision: Revision, request: &Value) {
    let schema = schema_of(revision);
    let method = request["method"].as_str().unwrap();
    let definition =
        schema.message_definition(method).unwrap_or_else(|| panic!("{method} is not of {}", revision.name()));
    schema.check(definition, request);
    schema.check("ServerRequest", request);
    schema.check("JSONRPCRequest", request);
}

/// Checks a notification of the server.
pub fn check_notification(revision: Revision, notification: &Value) {
    let schema = schema_of(revision);
    let method = notification["method"].as_str().unwrap();
    if method == "notifications/tasks" {
        return check_task(&notification["params"]);
    }
    let definition =
        schema.message_definition(method).unwrap_or_else(|| panic!("{method} is not of {}", revision.name()));
    schema.check(definition, notification);
    schema.check("ServerNotification", notification);
    assert_eq!(notification["jsonrpc"], "2.0");
    assert!(notification.get("id").is_none());
}
