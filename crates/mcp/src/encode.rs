//! Encodes results as bytes, while the reply is produced. All have one envelope: id, server identity, result type, cache
//! hint.
//!
//! In a list of content items, a text item is opened once, and text is escaped into it as it arrives. `GetPromptResult` and
//! `CompleteResult` are small, and collected until the reply ends.
//!
//! MCP 2026-07-28: [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta),
//! [Calling Tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools),
//! [Reading Resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources),
//! [Getting a Prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt),
//! [Completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion)

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tidegate_core::{Completion, Content, ContentRole, Error, ErrorKind, ResourceBody, ResourceContents};
use tidegate_runtime::{AnswerMeta, CacheHint, ReplyPart};

use crate::jsonrpc::{RequestId, ResponseMessage, RpcError, ceil_milliseconds};
use crate::revision::Dialect;
use crate::wire::{encode_content, encode_prompt_message, encode_resource_contents, own_members};

/// The usual number of bytes after the members of a result.
const CLOSING_BYTES: usize = 384;

/// Encodes one reply as one response message, piece by piece.
pub(crate) trait ReplyEncoder: Send {
    /// The bytes for `part`; empty if they are sent at the end. With the end also the error, if the whole response is
    /// one.
    fn encode(&mut self, part: ReplyPart) -> (Bytes, Option<RpcError>);
}

#[derive(Debug, Clone)]
pub(crate) struct ResponseEnvelope {
    pub id: RequestId,
    pub dialect: &'static Dialect,
    /// The server's identity as JSON text.
    pub server_info: Arc<str>,
    /// The type of the result.
    pub result_type: ResultType,
    /// Whether the result is part of another one, without the members of a response.
    pub is_nested: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultType {
    /// The requested result.
    Complete,
    /// Input requests that must be answered first.
    InputRequired,
    /// A task that is running (extension `io.modelcontextprotocol/tasks`).
    Task,
}

impl ResultType {
    fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Task => "task",
        }
    }
}

impl ResponseEnvelope {
    /// Everything before the result's own members.
    pub(crate) fn open(&self) -> String {
        if self.is_nested {
            return "{".to_owned();
        }
        let id = self.id.as_json();
        let mut opening = String::with_capacity(64 + id.len());
        opening.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
        opening.push_str(id);
        opening.push_str(",\"result\":{");
        opening
    }

    /// Everything after the result's own members. `follows` is true if there were any.
    pub(crate) fn close(&self, metadata: &AnswerMeta, cache: Option<CacheHint>, follows: bool) -> String {
        let mut closing = String::with_capacity(CLOSING_BYTES);
        let mut separator = if follows { "," } else { "" };
        let members = meta_members(metadata);
        if self.dialect.stateless {
            if let Some(hint) = cache {
                let scope = if hint.public { "public" } else { "private" };
                let milliseconds = hint.time_to_live.as_millis();
                closing.push_str(&format!("{separator}\"ttlMs\":{milliseconds},\"cacheScope\":\"{scope}\""));
                separator = ",";
            }
            closing.push_str(separator);
            closing.push_str("\"resultType\":\"");
            closing.push_str(self.result_type.name());
            closing.push_str("\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":");
            closing.push_str(&self.server_info);
            for (key, value) in &members {
                // Writing into a string cannot fail.
                let _ = write!(closing, ",{}:{value}", Value::from(key.as_str()));
            }
            closing.push('}');
        } else if !members.is_empty() {
            closing.push_str(&format!("{separator}\"_meta\":{}", Value::Object(members)));
        }
        closing.push_str(if self.is_nested { "}" } else { "}}" });
        closing
    }

    /// A complete response with `members` (JSON text without braces).
    pub(crate) fn encode_response(&self, members: &str, metadata: &AnswerMeta, cache: Option<CacheHint>) -> Bytes {
        let (mut message, closing) = (self.open(), self.close(metadata, cache, !members.is_empty()));
        message.reserve_exact(members.len() + closing.len());
        message.push_str(members);
        message.push_str(&closing);
        message.into()
    }

    pub(crate) fn respond(&self, members: &str, cache: Option<CacheHint>) -> ResponseMessage {
        ResponseMessage::result(self.encode_response(members, &AnswerMeta::default(), cache))
    }

    /// The complete error response of a reply that failed before it began. `resource` is the URI to read.
    fn fail(&self, error: &Error, resource: Option<&str>) -> (Bytes, Option<RpcError>) {
        let error = RpcError::from_error(error, resource, self.dialect);
        (self.encode_error(&error), Some(error))
    }

    /// The same envelope for another type of result.
    pub(crate) fn with_result_type(self, result_type: ResultType) -> Self {
        Self { result_type, ..self }
    }

    pub(crate) fn encode_error(&self, error: &RpcError) -> Bytes {
        error.to_bytes(Some(&self.id))
    }
}

/// The members of `_meta` for an answer.
fn meta_members(metadata: &AnswerMeta) -> Map<String, Value> {
    let mode = metadata.was_buffered.map(|was_buffered| if was_buffered { "batch" } else { "streaming" });
    let elapsed_ms = metadata.elapsed.map(|elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    let write = metadata.write.as_deref();
    let own = [
        ("mode", mode.map(Value::from)),
        ("rows", metadata.rows.map(Value::from)),
        ("bytes", metadata.bytes.map(Value::from)),
        ("elapsed_ms", elapsed_ms.map(Value::from)),
        ("truncated", metadata.is_truncated.map(Value::from)),
        ("cursor", metadata.cursor.as_deref().map(Value::from)),
        ("cached", metadata.is_cached.then_some(Value::Bool(true))),
        ("result", metadata.result_uri.as_deref().map(Value::from)),
        ("rejected", write.map(|write| Value::from(write.rejected))),
        ("sequence", write.map(|write| Value::from(write.sequence))),
        ("created", write.map(|write| Value::from(write.is_created))),
        ("repeated_rows", write.and_then(|write| write.repeated_rows).map(Value::from)),
    ];
    let mut members = metadata.other.clone();
    members.extend(own_members(own));
    if let Some(missing) = &metadata.missing_nodes {
        let missing = missing.to_json_members();
        members.extend(own_members(missing.iter().map(|(name, value)| (name.as_str(), Some(value.clone())))));
    }
    members
}

/// The metadata of a call that failed before its handler ran: the time in milliseconds after which it can be repeated.
fn failure_meta(error: &Error) -> AnswerMeta {
    let retry_after_ms = error.retry_after().map(|time| Value::from(ceil_milliseconds(time)));
    let other = own_members([("retry_after_ms", retry_after_ms)]).collect();
    AnswerMeta { other, ..AnswerMeta::default() }
}

const TEXT_OPENING: &str = "{\"type\":\"text\",\"text\":\"";
const TEXT_CLOSING: &str = "\"}";

/// The state of a growing list of items.
#[derive(Debug)]
pub struct ContentItems {
    /// The JSON text before the first item; empty when it was returned.
    opening: String,
    has_blocks: bool,
    text_is_open: bool,
}

impl ContentItems {
    /// A list that begins with `opening`, JSON text that ends with a bracket.
    pub fn new(opening: String) -> Self {
        Self { opening, has_blocks: false, text_is_open: false }
    }

    /// Whether bytes were returned.
    pub fn has_begun(&self) -> bool {
        self.opening.is_empty()
    }

    /// `text`, escaped into an item of MCP.
    pub fn push_text(&mut self, text: &str) -> Bytes {
        self.push_text_into(TEXT_OPENING, text)
    }

    /// `text`, escaped into the open item, or after `opening`, which opens one up to the first quote of the text.
    fn push_text_into(&mut self, opening: &str, text: &str) -> Bytes {
        if self.text_is_open {
            return escape_json(text);
        }
        let mut bytes = (self.begin_item() + opening).into_bytes();
        self.text_is_open = true;
        bytes.extend_from_slice(&escape_json(text));
        bytes.into()
    }

    /// Closes the open text item, if there is one.
    pub fn end_text(&mut self) -> &'static str {
        if std::mem::take(&mut self.text_is_open) { TEXT_CLOSING } else { "" }
    }

    /// `text` as a complete item of MCP.
    pub fn push_whole_text(&mut self, text: &str) -> Bytes {
        let mut bytes = (self.begin_item() + "{\"type\":\"text\",\"text\":").into_bytes();
        // Writing a string into memory cannot fail.
        let _ = serde_json::to_writer(&mut bytes, text);
        bytes.push(b'}');
        bytes.into()
    }

    /// A complete item.
    pub fn push_item(&mut self, item: &Value) -> String {
        let mut piece = self.begin_item();
        piece.push_str(&item.to_string());
        piece
    }

    /// The end of the list.
    pub fn close(&mut self) -> String {
        let mut piece = std::mem::take(&mut self.opening);
        piece.push_str(self.end_text());
        piece.push(']');
        piece
    }

    fn begin_item(&mut self) -> String {
        let mut piece = std::mem::take(&mut self.opening);
        piece.push_str(self.end_text());
        if std::mem::replace(&mut self.has_blocks, true) {
            piece.push(',');
        }
        piece
    }
}

/// `text`, escaped for a JSON string, without quotes.
fn escape_json(text: &str) -> Bytes {
    let mut buffer = Vec::with_capacity(text.len() + text.len() / 4 + 2);
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(&mut buffer, text);
    let end = buffer.len().saturating_sub(1);
    Bytes::from(buffer).slice(1..end)
}

/// Content comes first, and members that are known last come last: the order of JSON members is free.
pub(crate) struct CallToolEncoder {
    pub(crate) envelope: ResponseEnvelope,
    items: ContentItems,
    structured: Option<Box<RawValue>>,
}

impl CallToolEncoder {
    pub(crate) fn new(envelope: ResponseEnvelope) -> Self {
        let items = ContentItems::new(envelope.open() + "\"content\":[");
        Self { envelope, items, structured: None }
    }

    /// The complete result for a call that failed before its handler ran.
    pub(crate) fn encode_failure(envelope: ResponseEnvelope, error: &Error) -> Bytes {
        Self::new(envelope).finish(Some(error), &failure_meta(error))
    }

    fn encode_item(&mut self, content: &Content) -> String {
        self.items.push_item(&encode_content(content, self.envelope.dialect))
    }

    fn finish(&mut self, failure: Option<&Error>, metadata: &AnswerMeta) -> Bytes {
        let closing = self.envelope.close(metadata, None, true);
        let mut piece = String::with_capacity(64 + closing.len());
        let structured = self.structured.take();
        if let (Some(value), false) = (&structured, self.items.has_begun()) {
            // Clients that do not read structured content receive it as text.
            piece.push_str(&self.encode_item(&Content::text(value.get())));
        }
        if let Some(error) = failure.filter(|error| !error.is_reported()) {
            piece.push_str(&self.encode_item(&Content::text(error.to_string())));
        }
        piece.push_str(&self.items.close());
        piece.push(',');
        if let Some(value) = structured.filter(|value| self.supports_structured(value.get())) {
            piece.push_str(&format!("\"structuredContent\":{},", value.get()));
        }
        piece.push_str(if failure.is_some() { "\"isError\":true" } else { "\"isError\":false" });
        piece.push_str(&closing);
        piece.into()
    }

    /// Whether the error is one of the protocol: the client must correct the problem itself (missing capabilities,
    /// credentials or scopes), or the handler demands it.
    fn is_protocol_error(&self, error: &Error) -> bool {
        let is_for_client = match error.kind() {
            _ if error.protocol_error().is_some() => true,
            ErrorKind::MissingClientCapability => self.envelope.dialect.stateless,
            kind => kind == ErrorKind::Unauthenticated || !error.scopes().is_empty(),
        };
        is_for_client && !self.items.has_begun()
    }

    fn supports_structured(&self, structured: &str) -> bool {
        let dialect = self.envelope.dialect;
        dialect.titles && (structured.starts_with('{') || dialect.structured_content_is_any_value)
    }
}

impl ReplyEncoder for CallToolEncoder {
    fn encode(&mut self, part: ReplyPart) -> (Bytes, Option<RpcError>) {
        let bytes = match part {
            ReplyPart::Text(text) => self.items.push_text(&text),
            ReplyPart::EndOfText => self.items.end_text().into(),
            ReplyPart::Item(Content::Text { text, annotations: None }) => self.items.push_whole_text(&text),
            ReplyPart::Item(content) | ReplyPart::PromptMessage(_, content) => self.encode_item(&content).into(),
            ReplyPart::Structured(value) => {
                self.structured = Some(value);
                Bytes::new()
            }
            ReplyPart::End(Ok(metadata)) => self.finish(None, &metadata),
            ReplyPart::End(Err(error)) if self.is_protocol_error(&error) => return self.envelope.fail(&error, None),
            ReplyPart::End(Err(error)) => self.finish(Some(&error), &AnswerMeta::default()),
            // MCP calls request content, never a body.
            _ => Bytes::new(),
        };
        (bytes, None)
    }
}

/// Encodes one `ReadResourceResult`. Texts are the contents of the requested resource.
pub(crate) struct ReadResourceEncoder {
    envelope: ResponseEnvelope,
    uri: String,
    mime_type: Option<String>,
    cache: CacheHint,
    items: ContentItems,
}

impl ReadResourceEncoder {
    pub(crate) fn new(envelope: ResponseEnvelope, uri: String, mime_type: Option<String>, cache: CacheHint) -> Self {
        let items = ContentItems::new(envelope.open() + "\"contents\":[");
        Self { envelope, uri, mime_type, cache, items }
    }

    fn text_opening(&self) -> String {
        let mime_type = self.mime_type.as_ref().map(|mime| format!("\"mimeType\":{},", Value::from(mime.as_str())));
        format!("{{\"uri\":{},{}\"text\":\"", Value::from(self.uri.as_str()), mime_type.unwrap_or_default())
    }

    fn encode_contents(&self, content: Content) -> Value {
        match content {
            Content::Resource(contents) => encode_resource_contents(&contents),
            Content::Text { text, .. } => self.encode_own_contents(ResourceBody::Text(text), None),
            Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
                self.encode_own_contents(ResourceBody::Blob(data), Some(mime_type))
            }
            Content::Link(link) => json!({"uri": link.uri, "text": link.name}),
        }
    }

    fn encode_own_contents(&self, body: ResourceBody, mime_type: Option<String>) -> Value {
        let mime_type = mime_type.or_else(|| self.mime_type.clone());
        encode_resource_contents(&ResourceContents { uri: self.uri.clone(), mime_type, body })
    }

    fn finish(&mut self, metadata: &AnswerMeta) -> Bytes {
        let mut piece = self.items.close();
        // The missing rows may be back at once.
        let is_partial = metadata.missing_nodes.is_some();
        let cache = if is_partial { CacheHint { time_to_live: Duration::ZERO, public: false } } else { self.cache };
        piece.push_str(&self.envelope.close(metadata, Some(cache), true));
        piece.into()
    }
}

impl ReplyEncoder for ReadResourceEncoder {
    fn encode(&mut self, part: ReplyPart) -> (Bytes, Option<RpcError>) {
        let bytes = match part {
            ReplyPart::Text(text) => {
                let opening = self.text_opening();
                self.items.push_text_into(&opening, &text)
            }
            ReplyPart::EndOfText => self.items.end_text().into(),
            ReplyPart::Item(content) | ReplyPart::PromptMessage(_, content) => {
                let contents = self.encode_contents(content);
                self.items.push_item(&contents).into()
            }
            ReplyPart::End(Ok(metadata)) => self.finish(&metadata),
            ReplyPart::End(Err(error)) if !self.items.has_begun() => {
                return self.envelope.fail(&error, Some(&self.uri));
            }
            ReplyPart::End(Err(error)) => {
                // The contents sent so far remain valid. A second text of the same URI contains the error.
                let contents =
                    self.encode_own_contents(ResourceBody::Text(error.to_string()), Some("text/plain".to_owned()));
                let mut piece = self.items.push_item(&contents).into_bytes();
                piece.extend_from_slice(&self.finish(&AnswerMeta::default()));
                piece.into()
            }
            _ => Bytes::new(),
        };
        (bytes, None)
    }
}

/// Encodes one prompt or one completion at the end of its reply.
pub(crate) struct CollectingEncoder {
    envelope: ResponseEnvelope,
    description: Option<String>,
    messages: Vec<Value>,
    /// `None` for a prompt.
    completion: Option<Completion>,
}

impl CollectingEncoder {
    pub(crate) fn for_prompt(envelope: ResponseEnvelope, description: Option<String>) -> Self {
        Self { envelope, description, messages: Vec::new(), completion: None }
    }

    pub(crate) fn for_completion(envelope: ResponseEnvelope) -> Self {
        Self { completion: Some(Completion::default()), ..Self::for_prompt(envelope, None) }
    }

    fn push_message(&mut self, speaker: ContentRole, content: &Content) {
        self.messages.push(encode_prompt_message(speaker, content, self.envelope.dialect));
    }

    fn members(&mut self) -> String {
        let Some(Completion { values, total, has_more }) = self.completion.take() else {
            let description = self.description.as_ref().map(|text| format!(",\"description\":{}", json!(text)));
            let messages = Value::Array(std::mem::take(&mut self.messages));
            return format!("\"messages\":{messages}{}", description.unwrap_or_default());
        };
        let mut completion =
            json!({"values": &values[..values.len().min(Completion::VALUES_MAX)], "hasMore": has_more});
        if let Some(total) = total {
            completion["total"] = total.into();
        }
        format!("\"completion\":{completion}")
    }
}

impl ReplyEncoder for CollectingEncoder {
    fn encode(&mut self, part: ReplyPart) -> (Bytes, Option<RpcError>) {
        match part {
            ReplyPart::PromptMessage(speaker, content) => self.push_message(speaker, &content),
            ReplyPart::Item(content) => self.push_message(ContentRole::User, &content),
            ReplyPart::Text(text) => self.push_message(ContentRole::User, &Content::text(text)),
            ReplyPart::Completion(completion) if self.completion.is_some() => self.completion = Some(completion),
            ReplyPart::End(Ok(metadata)) => {
                let members = self.members();
                return (self.envelope.encode_response(&members, &metadata, None), None);
            }
            ReplyPart::End(Err(error)) => return self.envelope.fail(&error, None),
            _ => {}
        }
        (Bytes::new(), None)
    }
}
