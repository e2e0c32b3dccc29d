//! Tools: a name, a description for the model, a schema for the arguments, and an async function that answers.

mod elicitation;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate::core::{Content, Error, ErrorKind, JsonSchemaError, LogLevel, ResourceBody, ResourceContents};
use tidegate::runtime::{Answer, Handler, Tool, handler_fn};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::media::{pixel, silence};

/// Between two signs of life, so that they arrive one by one.
const STEP: Duration = Duration::from_millis(50);

/// Every tool, in the order in which it is listed. `handler_watchers` is notified when a tool changes the lists.
pub(crate) fn all(changes: &Arc<Notify>) -> Result<Vec<Tool>, JsonSchemaError> {
    let mut tools = contents();
    tools.extend(["test_trigger_tool_change", "test_trigger_prompt_change"].map(|name| triggering(name, changes)));
    tools.extend([failing(), reporting_progress(), logging(), logging_unasked(), asking_nothing()]);
    tools.extend([with_composed_schema()?, with_mirrored_argument()?]);
    tools.extend(elicitation::all()?);
    tools.extend(tasks::all()?);
    Ok(tools)
}

/// Tools that answer with content and nothing else, one for each kind of content.
fn contents() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_simple_text",
            "Answers with a text.",
            answering([Content::text("This is a simple text response for testing.")]),
        ),
        Tool::new("test_image_content", "Answers with a picture.", answering([pixel()])),
        Tool::new("test_audio_content", "Answers with a sound.", answering([silence()])),
        Tool::new(
            "test_embedded_resource",
            "Answers with an embedded resource.",
            answering([embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]),
        ),
        Tool::new(
            "test_multiple_content_types",
            "Answers with a text, a picture and an embedded resource.",
            answering([
                Content::text("Multiple content types test:"),
                pixel(),
                embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
            ]),
        ),
    ]
}

/// A handler that always sends the same blocks.
fn answering(blocks: impl IntoIterator<Item = Content>) -> Arc<dyn Handler> {
    let blocks: Vec<Content> = blocks.into_iter().collect();
    handler_fn(move |_call| {
        let blocks = blocks.clone();
        async { Ok(Answer::content(blocks)) }
    })
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::Resource(ResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        body: ResourceBody::Text(text.to_owned()),
    })
}

/// Has the host offer its entries anew.
fn triggering(name: &str, changes: &Arc<Notify>) -> Tool {
    let changes = changes.clone();
    let handler = handler_fn(move |_call| {
        changes.notify_one();
        async { Ok(Answer::text("The lists change.")) }
    });
    Tool::new(name, "Changes the lists.", handler)
}

/// An error of the handler reaches the model as an answer with `isError`, never as an error of the protocol.
fn failing() -> Tool {
    let handler = handler_fn(|_call| async {
        Err(Error::new(ErrorKind::Unavailable, "This tool intentionally returns an error for testing"))
    });
    Tool::new("test_error_handling", "Fails.", handler)
}

/// Progress goes only to a caller that asked for it; the handler need not care who did.
fn reporting_progress() -> Tool {
    let handler = handler_fn(|call| async move {
        let total = 100.0;
        for done in [0.0, 50.0, 100.0] {
            if done > 0.0 {
                sleep(STEP).await;
            }
            call.progress(done, Some(total), None).await?;
        }
        Ok(Answer::text("All of it is done."))
    });
    Tool::new("test_tool_with_progress", "Reports progress three times.", handler)
}

/// Log messages, likewise, go only to a caller that asked for messages of their level.
fn logging() -> Tool {
    let handler = handler_fn(|call| async move {
        call.log(LogLevel::Info, None, json!("Tool execution started")).await?;
        sleep(STEP).await;
        call.log(LogLevel::Info, None, json!("Tool processing data")).await?;
        sleep(STEP).await;
        call.log(LogLevel::Info, None, json!("Tool execution completed")).await?;
        Ok(Answer::text("It was logged."))
    });
    Tool::new("test_tool_with_logging", "Logs three messages.", handler)
}

/// The suite calls this one without asking for log messages, and none may come.
fn logging_unasked() -> Tool {
    let handler = handler_fn(|call| async move {
        call.log(LogLevel::Info, None, json!("Nobody asked for this")).await?;
        Ok(Answer::text("It was logged for those who asked."))
    });
    Tool::new("test_logging_tool", "Logs a message.", handler)
}

/// The suite looks at the stream of this one for requests of the server, which a modern stream must not hold.
fn asking_nothing() -> Tool {
    let answer = answering([Content::text("Nothing had to be asked.")]);
    Tool::new("test_streaming_elicitation", "Answers on a stream of its own.", answer)
}

/// A schema may use all of JSON Schema 2020-12; it is listed word for word.
fn with_composed_schema() -> Result<Tool, JsonSchemaError> {
    let answer = answering([Content::text("The arguments were valid.")]);
    Tool::new("json_schema_2020_12_tool", "Takes arguments of a composed schema.", answer).with_input_schema(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    }))
}

/// An argument marked with `x-mcp-header` is mirrored in a header of its own (`Mcp-Param-Region`), for proxies that route the
/// request without reading its body. The transport compares the two; the handler sees only the argument.
fn with_mirrored_argument() -> Result<Tool, JsonSchemaError> {
    let handler = handler_fn(|call| async move {
        let region = call.text_argument("region").unwrap_or("none");
        Ok(Answer::text(format!("The region is {region}.")))
    });
    Tool::new("test_x_mcp_header", "Takes a region that is mirrored in a header.", handler).with_input_schema(json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "additionalProperties": false,
    }))
}
