//! Input requests and their answers: the same in each revision, however they are transported.
//!
//! [MCP 2026-07-28, Multi Round-Trip Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)

use serde_json::{Map, Value, json};
use tidegate_core::{ClientCapabilities, InputAnswer, InputRequest, InputRequestKind};

/// The extension with which a client can retrieve the result of a call later.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Decodes a client's capabilities (`ClientCapabilities`).
pub(crate) fn parse_client_capabilities(capabilities: &Value) -> ClientCapabilities {
    let has = |name: &str| capabilities.get(name).is_some_and(Value::is_object);
    let elicits = |mode: &str| capabilities["elicitation"].get(mode).is_some_and(Value::is_object);
    ClientCapabilities {
        // A client that names no mode supports forms.
        forms: has("elicitation") && (elicits("form") || !elicits("url")),
        urls: elicits("url"),
        sampling: has("sampling"),
        roots: has("roots"),
        tasks: capabilities["extensions"].get(TASKS_EXTENSION).is_some_and(Value::is_object),
    }
}

/// Encodes the capabilities in `needed`, which a client must declare.
pub(crate) fn encode_client_capabilities(needed: ClientCapabilities) -> Value {
    let mut capabilities = Map::new();
    if needed.forms || needed.urls {
        let modes = [("form", needed.forms), ("url", needed.urls)];
        let modes = modes.into_iter().filter(|(_, is_needed)| *is_needed);
        capabilities.insert("elicitation".to_owned(), modes.map(|(mode, _)| (mode.to_owned(), json!({}))).collect());
    }
    for (name, is_needed) in [("sampling", needed.sampling), ("roots", needed.roots)] {
        if is_needed {
            capabilities.insert(name.to_owned(), json!({}));
        }
    }
    if needed.tasks {
        capabilities.insert("extensions".to_owned(), json!({TASKS_EXTENSION: {}}));
    }
    Value::Object(capabilities)
}

/// The method and the params of `request`.
pub(crate) fn encode_input_request(request: &InputRequest) -> (&'static str, Value) {
    let message = request.client_message();
    match &request.kind {
        // Without a mode it is a form in every revision.
        InputRequestKind::Form { schema, .. } => {
            ("elicitation/create", json!({"message": message, "requestedSchema": schema}))
        }
        InputRequestKind::Url { url, .. } => {
            ("elicitation/create", json!({"mode": "url", "message": message, "url": url}))
        }
        InputRequestKind::Sampling(params) => ("sampling/createMessage", Value::Object(params.clone())),
        InputRequestKind::Roots => ("roots/list", json!({})),
    }
}

pub(crate) fn encode_input_requests<'a>(requests: impl IntoIterator<Item = (&'a str, &'a InputRequest)>) -> Value {
    let entries = requests.into_iter().map(|(key, request)| {
        let (method, params) = encode_input_request(request);
        (key.to_owned(), json!({"method": method, "params": params}))
    });
    Value::Object(entries.collect())
}

/// Decodes a client's result.
pub(crate) fn parse_input_answer(result: &Value) -> Result<InputAnswer, String> {
    let Value::Object(members) = result else { return Err("it must be an object".to_owned()) };
    if let Some(action) = members.get("action") {
        return match (action.as_str(), members.get("content")) {
            (Some("accept"), Some(Value::Object(content))) => Ok(InputAnswer::Accepted(content.clone())),
            (Some("accept"), None | Some(Value::Null)) => Ok(InputAnswer::Accepted(Map::new())),
            (Some("accept"), Some(_)) => Err("its content must be an object".to_owned()),
            (Some("decline"), _) => Ok(InputAnswer::Declined),
            (Some("cancel"), _) => Ok(InputAnswer::Cancelled),
            _ => Err("its action must be accept, decline or cancel".to_owned()),
        };
    }
    if let Some(roots) = members.get("roots") {
        let roots = roots.as_array().ok_or("its roots must be a list")?;
        return Ok(InputAnswer::Roots(roots.clone()));
    }
    if members.contains_key("content") && members.contains_key("role") {
        return Ok(InputAnswer::Sampled(members.clone()));
    }
    Err("it must have an action, roots, or role and content".to_owned())
}
