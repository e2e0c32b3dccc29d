//! What every result has: its encoder, and the members around it: id, server identity, result type, cache hint.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tidegate_core::Error;
use tidegate_runtime::{AnswerMeta, CacheHint, ReplyPart};

use super::answer_meta::meta_members;
use crate::jsonrpc::{RequestId, ResponseMessage, RpcError};
use crate::revision::Dialect;

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
    pub(super) fn fail(&self, error: &Error, resource: Option<&str>) -> (Bytes, Option<RpcError>) {
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
