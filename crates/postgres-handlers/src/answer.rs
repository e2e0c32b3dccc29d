//! Parses the answer of a handler: a JSON-RPC envelope with a result of its kind, whose content has the format of MCP.
//!
//! Handlers are code of the database: their answers are checked before a client receives any part of them.
//!
//! [JSON-RPC 2.0, Response object](https://www.jsonrpc.org/specification#response_object),
//! [MCP 2026-07-28, Tool Result](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result)

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tidegate_core::{
    Annotations, Content, ContentRole, Error, ErrorKind, Icon, JsonSchema, ResourceBody, ResourceContents, ResourceLink,
};
use tidegate_runtime::{Answer, AnswerMeta};

use crate::record::{Compatibility, HandlerKind, HandlerRecord};

#[derive(Debug)]
pub(crate) enum HandlerAnswer {
    Done(HandlerOutput),
    /// A tool reports in its content that it failed.
    Failed(HandlerOutput),
    Error(Error),
}

#[derive(Debug, Default)]
pub(crate) struct HandlerOutput {
    items: Vec<(ContentRole, Content)>,
    structured: Option<Box<RawValue>>,
    meta: Map<String, Value>,
}

#[derive(Deserialize)]
struct JsonRpcEnvelope<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    message: String,
    data: Option<Value>,
}

#[derive(Deserialize)]
struct ToolResult {
    content: Vec<Value>,
    #[serde(default, rename = "structuredContent", deserialize_with = "deserialize_present")]
    structured: Option<Box<RawValue>>,
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

#[derive(Deserialize)]
struct ResourceResult {
    contents: Vec<Value>,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

#[derive(Deserialize)]
struct PromptResult {
    messages: Vec<PromptMessage>,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

#[derive(Deserialize)]
struct PromptMessage {
    role: String,
    content: Value,
}

/// Deserialises a present value, which may be null.
fn deserialize_present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl HandlerAnswer {
    /// Parses the answer of the handler of `record`, whose id is checked already. The error is for the log.
    pub(crate) fn parse(
        record: &HandlerRecord,
        compatibility: Compatibility,
        text: Option<&str>,
    ) -> Result<Self, String> {
        let text = text.ok_or("it returned NULL")?;
        let envelope: JsonRpcEnvelope<'_> =
            serde_json::from_str(text).map_err(|error| format!("its envelope is not valid JSON-RPC: {error}"))?;
        if envelope.jsonrpc != "2.0" {
            return Err("its envelope is not JSON-RPC 2.0".to_owned());
        }
        match (envelope.result, envelope.error) {
            (Some(result), None) => read_result(record, result.get()),
            (None, Some(error)) => read_error(error, compatibility).map(Self::Error),
            _ => Err("its envelope must have either a result or an error".to_owned()),
        }
    }

    /// Validates the structured content against `schema`. The error is for the log.
    pub(crate) fn check_schema(&self, schema: Option<&JsonSchema>) -> Result<(), String> {
        let (Self::Done(HandlerOutput { structured: Some(structured), .. }), Some(schema)) = (self, schema) else {
            return Ok(());
        };
        let value: Value = serde_json::from_str(structured.get()).map_err(|error| error.to_string())?;
        schema
            .check(&value)
            .map_err(|violations| format!("its structuredContent does not match its outputSchema: {violations:?}"))
    }
}

impl HandlerOutput {
    pub(crate) fn into_answer(self, kind: HandlerKind) -> Answer {
        let answer = match kind {
            HandlerKind::Prompt => Answer::messages(self.items),
            HandlerKind::Tool | HandlerKind::Resource => {
                Answer::content(self.items.into_iter().map(|(_, item)| item).collect())
            }
        };
        let answer = answer.with_meta(AnswerMeta { other: self.meta, ..AnswerMeta::default() });
        match self.structured {
            Some(structured) => answer.with_structured(structured),
            None => answer,
        }
    }

    /// The first text item, for clients that read only one.
    pub(crate) fn first_text(&self) -> Option<&str> {
        self.items.iter().find_map(|(_, item)| match item {
            Content::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }
}

fn read_result(record: &HandlerRecord, result: &str) -> Result<HandlerAnswer, String> {
    let invalid =
        |error: serde_json::Error| format!("its result is not a valid {} result: {error}", record.kind.name());
    match record.kind {
        HandlerKind::Tool => {
            let result: ToolResult = serde_json::from_str(result).map_err(invalid)?;
            if record.definition.contains_key("outputSchema") && result.structured.is_none() && !result.is_error {
                return Err("it has an outputSchema, and its result has no structuredContent".to_owned());
            }
            let item = |item| Ok((ContentRole::Assistant, parse_content(item)?));
            let items = result.content.into_iter().map(item).collect::<Result<_, String>>()?;
            let output = HandlerOutput { items, structured: result.structured, meta: result.meta };
            Ok(if result.is_error { HandlerAnswer::Failed(output) } else { HandlerAnswer::Done(output) })
        }
        HandlerKind::Resource => {
            let result: ResourceResult = serde_json::from_str(result).map_err(invalid)?;
            let item = |contents| Ok((ContentRole::Assistant, Content::Resource(parse_resource_contents(contents)?)));
            let items = result.contents.into_iter().map(item).collect::<Result<_, String>>()?;
            Ok(HandlerAnswer::Done(HandlerOutput { items, structured: None, meta: result.meta }))
        }
        HandlerKind::Prompt => {
            let result: PromptResult = serde_json::from_str(result).map_err(invalid)?;
            let message = |message: PromptMessage| {
                let role = match message.role.as_str() {
                    "user" => ContentRole::User,
                    "assistant" => ContentRole::Assistant,
                    other => return Err(format!("the role of a message is {other:?}, neither user nor assistant")),
                };
                Ok((role, parse_content(message.content)?))
            };
            let items = result.messages.into_iter().map(message).collect::<Result<_, String>>()?;
            Ok(HandlerAnswer::Done(HandlerOutput { items, structured: None, meta: result.meta }))
        }
    }
}

/// Among the codes that the protocol reserves, handlers may use only those of JSON-RPC, -32001 and the old -32002.
fn read_error(error: ErrorObject, compatibility: Compatibility) -> Result<Error, String> {
    let ErrorObject { code, message, data } = error;
    let kind = match code {
        -32_602 => ErrorKind::InvalidArguments,
        -32_002 => ErrorKind::NotFound,
        -32_001 => ErrorKind::Unauthenticated,
        -32_700 | -32_600 | -32_601 | -32_603 => ErrorKind::Failed,
        -32_768..=-32_000 => return Err(format!("handlers must not use the error code {code}")),
        _ => ErrorKind::Failed,
    };
    let error = Error::new(kind, message);
    Ok(match compatibility {
        Compatibility::Pgmi => error.with_protocol_error(code, data),
        Compatibility::None if (-32_768..=-32_000).contains(&code) => error,
        Compatibility::None => error.with_code(code),
    })
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentItem {
    Text {
        text: String,
        annotations: Option<Value>,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    Audio {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    ResourceLink(Link),
    Resource {
        resource: Value,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    size: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    uri: String,
    mime_type: Option<String>,
    /// `Some(None)` for null.
    #[serde(default, deserialize_with = "deserialize_present")]
    text: Option<Option<String>>,
    blob: Option<String>,
}

/// Parses a content item. The error is for the log.
fn parse_content(item: Value) -> Result<Content, String> {
    let item = ContentItem::deserialize(item).map_err(|error| format!("a content item is invalid: {error}"))?;
    Ok(match item {
        ContentItem::Text { text, annotations } => {
            Content::Text { text, annotations: annotations.as_ref().map(parse_annotations) }
        }
        ContentItem::Image { data, mime_type } => Content::Image { data: decode_base64(&data)?, mime_type },
        ContentItem::Audio { data, mime_type } => Content::Audio { data: decode_base64(&data)?, mime_type },
        ContentItem::ResourceLink(Link { uri, name, title, description, mime_type, size }) => {
            Content::Link(ResourceLink { uri, name, title, description, mime_type, size_bytes: size })
        }
        ContentItem::Resource { resource } => Content::Resource(parse_resource_contents(resource)?),
    })
}

/// Parses the contents of a resource. The error is for the log.
fn parse_resource_contents(contents: Value) -> Result<ResourceContents, String> {
    let contents =
        Contents::deserialize(contents).map_err(|error| format!("its resource contents are invalid: {error}"))?;
    let body = match (contents.text, contents.blob) {
        // A text that is NULL in SQL is empty, as in `mcp_text`.
        (Some(text), None) => ResourceBody::Text(text.unwrap_or_default()),
        (None | Some(None), Some(blob)) => ResourceBody::Blob(decode_base64(&blob)?),
        _ => return Err("its resource contents must have either text or blob".to_owned()),
    };
    Ok(ResourceContents { uri: contents.uri, mime_type: contents.mime_type, body })
}

/// Parses annotations; ignores invalid members.
pub(crate) fn parse_annotations(annotations: &Value) -> Annotations {
    let role = |role: &Value| match role.as_str() {
        Some("user") => Some(ContentRole::User),
        Some("assistant") => Some(ContentRole::Assistant),
        _ => None,
    };
    Annotations {
        audience: annotations
            .get("audience")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(role)
            .collect(),
        priority: annotations.get("priority").and_then(Value::as_f64),
        last_modified: annotations.get("lastModified").and_then(Value::as_str).map(str::to_owned),
    }
}

/// Parses icons; ignores those without a source.
pub(crate) fn parse_icons(icons: Option<&Value>) -> Vec<Icon> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let icon = |icon: &Value| {
        let sizes = icon.get("sizes").and_then(Value::as_array).into_iter().flatten();
        let sizes = sizes.filter_map(|size| size.as_str().map(str::to_owned)).collect();
        Some(Icon { src: text(icon.get("src"))?, mime_type: text(icon.get("mimeType")), sizes })
    };
    icons.and_then(Value::as_array).into_iter().flatten().filter_map(icon).collect()
}

/// Decodes base64; PostgreSQL's base64 contains line breaks.
fn decode_base64(text: &str) -> Result<Bytes, String> {
    let unbroken: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD
        .decode(unbroken)
        .map(Bytes::from)
        .map_err(|error| format!("data in its content is not valid base64: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(kind: HandlerKind, definition: Value) -> HandlerRecord {
        HandlerRecord {
            kind,
            name: "it".to_owned(),
            definition: definition.as_object().cloned().unwrap_or_default(),
            requires_auth: false,
            read_only: true,
            returns_rows: false,
            columns: None,
            commits_on_error: false,
            transaction: Default::default(),
            timeout: None,
            function: "api.mcp_tool_it".to_owned(),
            roles: [None].into(),
        }
    }

    fn read(kind: HandlerKind, answer: &Value) -> Result<HandlerAnswer, String> {
        HandlerAnswer::parse(&record(kind, json!({})), Compatibility::None, Some(&answer.to_string()))
    }

    fn result(result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": "1", "result": result})
    }

    #[test]
    fn malformed_answer_is_rejected() {
        assert!(HandlerAnswer::parse(&record(HandlerKind::Tool, json!({})), Compatibility::None, None).is_err());
        for invalid in [
            json!(null),
            json!([]),
            json!({}),
            json!({"jsonrpc": "1.0", "id": "1", "result": {"content": []}}),
            json!({"jsonrpc": "2.0", "id": "1"}),
            json!({"jsonrpc": "2.0", "id": "1", "result": {"content": []}, "error": {"code": 1, "message": ""}}),
            json!({"jsonrpc": "2.0", "id": "1", "error": {"code": -32_050, "message": "not theirs"}}),
            json!({"jsonrpc": "2.0", "id": "1", "error": {"code": 1.5, "message": "no number of theirs"}}),
            result(json!({})),
            result(json!({"content": [{"type": "text"}]})),
            result(json!({"content": [{"type": "image", "data": "no base64!", "mimeType": "image/png"}]})),
            result(json!({"content": [{"type": "poem", "text": ""}]})),
            result(json!({"content": [], "isError": "no"})),
        ] {
            assert!(read(HandlerKind::Tool, &invalid).is_err(), "{invalid}");
        }
        let both = result(json!({"contents": [{"uri": "a:b", "text": "", "blob": ""}]}));
        assert!(read(HandlerKind::Resource, &both).is_err());
        let none = result(json!({"contents": [{"uri": "a:b"}]}));
        assert!(read(HandlerKind::Resource, &none).is_err());
        let nobody = result(json!({"messages": [{"role": "system", "content": {"type": "text", "text": ""}}]}));
        assert!(read(HandlerKind::Prompt, &nobody).is_err());
    }

    #[test]
    fn null_counts_as_structured_content() {
        let promised = record(HandlerKind::Tool, json!({"outputSchema": {}}));
        let answer = result(json!({"content": [], "structuredContent": null})).to_string();
        let Ok(HandlerAnswer::Done(output)) = HandlerAnswer::parse(&promised, Compatibility::None, Some(&answer))
        else {
            panic!("{answer}")
        };
        assert_eq!(output.structured.unwrap().get(), "null");
        let none = result(json!({"content": []})).to_string();
        assert!(HandlerAnswer::parse(&promised, Compatibility::None, Some(&none)).is_err());
    }

    #[test]
    fn structured_content_is_checked_against_schema() {
        let schema = JsonSchema::new(json!({"type": "object", "required": ["a"]})).unwrap();
        let answer = |structured: Value| {
            read(HandlerKind::Tool, &result(json!({"content": [], "structuredContent": structured}))).unwrap()
        };
        assert!(answer(json!({"a": 1})).check_schema(Some(&schema)).is_ok());
        assert!(answer(json!({})).check_schema(Some(&schema)).is_err());
        assert!(answer(json!({})).check_schema(None).is_ok());
    }

    #[test]
    fn protocol_codes_become_error_kinds() {
        let error = |code: i64| {
            let answer = json!({"jsonrpc": "2.0", "id": "1", "error": {"code": code, "message": "said"}});
            let Ok(HandlerAnswer::Error(error)) = read(HandlerKind::Resource, &answer) else { panic!("{answer}") };
            (error.kind(), error.code())
        };
        assert_eq!(error(-32_602), (ErrorKind::InvalidArguments, None));
        assert_eq!(error(-32_002), (ErrorKind::NotFound, None));
        assert_eq!(error(-32_001), (ErrorKind::Unauthenticated, None));
        assert_eq!(error(-32_603), (ErrorKind::Failed, None));
        assert_eq!(error(7), (ErrorKind::Failed, Some(7)));
    }
}
