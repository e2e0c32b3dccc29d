//! MCP: from a step to a message, and from its answer to an outcome.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::channel::Client;
use super::outcome::{Outcome, StepResult, masked};
use super::step::{CallAsk, StepRequest};

/// The client side of a transport for MCP messages.
#[async_trait]
pub(super) trait Wire: Send {
    /// Sends a request and returns its answer.
    async fn ask(&mut self, method: &str, params: Value) -> McpAnswer;

    /// Sends bytes unchanged and returns the response to them.
    async fn say(&mut self, bytes: &[u8]) -> McpAnswer;

    /// Whether the server has kept the connection open.
    fn is_open(&self) -> bool {
        true
    }
}

/// The response to a message.
#[derive(Debug)]
pub(super) struct McpAnswer {
    /// The messages before the answer.
    pub(super) notices: Vec<Value>,
    pub(super) end: AnswerEnd,
}

#[derive(Debug)]
pub(super) enum AnswerEnd {
    /// A message, and its HTTP status.
    Message(Value, Option<u16>),
    /// The connection was closed with this code and reason.
    Closed(u16, String),
}

/// A client of MCP.
pub(super) struct Mcp<W>(W);

impl<W> Mcp<W> {
    pub(super) fn new(wire: W) -> Self {
        Self(wire)
    }
}

#[async_trait]
impl<W: Wire> Client for Mcp<W> {
    async fn ask(&mut self, ask: &StepRequest) -> StepResult {
        let mcp_answer = match (ask.bytes(), request(ask)) {
            (Some(bytes), _) => self.0.say(&bytes).await,
            (None, Some((method, params))) => self.0.ask(&method, params).await,
            (None, None) => panic!("{ask:?} is nothing that can be said"),
        };
        mcp_answer.into_step_result(ask)
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }
}

/// Method and params of a step.
fn request(ask: &StepRequest) -> Option<(String, Value)> {
    if let Some(CallAsk { tool, arguments, progress }) = ask.call() {
        let mut params = json!({"name": tool, "arguments": arguments});
        if progress {
            params["_meta"] = json!({"progressToken": "p"});
        }
        return Some(("tools/call".to_owned(), params));
    }
    Some(match ask {
        StepRequest::List(list) => {
            let params = list.cursor.as_ref().map_or(json!({}), |cursor| json!({"cursor": cursor}));
            (list.of.method().to_owned(), params)
        }
        StepRequest::Read(uri) => ("resources/read".to_owned(), json!({"uri": uri})),
        StepRequest::Prompt(prompt) => {
            ("prompts/get".to_owned(), json!({"name": prompt.name, "arguments": prompt.arguments}))
        }
        StepRequest::Complete(params) => ("completion/complete".to_owned(), params.clone()),
        StepRequest::Method { name, params } => (name.clone(), params.clone()),
        _ => return None,
    })
}

impl McpAnswer {
    pub(super) fn message(message: Value, status: Option<u16>) -> Self {
        Self { notices: Vec::new(), end: AnswerEnd::Message(message, status) }
    }

    /// The outcome of the step `ask`.
    pub(super) fn into_step_result(self, ask: &StepRequest) -> StepResult {
        let (message, status) = match self.end {
            AnswerEnd::Message(message, status) => (message, status),
            AnswerEnd::Closed(code, reason) => {
                let kind = if code == 1008 { "unauthenticated" } else { "unreadable" };
                return Outcome::refused(Some(kind), &reason).into();
            }
        };
        if let Some(error) = message.get("error") {
            return StepResult { outcome: refusal(error, status), raw: Some(masked(error)) };
        }
        let mut result = message["result"].as_object().unwrap_or_else(|| panic!("{message}")).clone();
        let meta = result.remove("_meta").unwrap_or_default();
        let raw = Some(masked(&Value::Object(result.clone())));
        StepResult { outcome: answer(ask, result, &meta, &self.notices), raw }
    }
}

/// A refusal without code, status and the prefix of JSON-RPC.
fn refusal(error: &Value, status: Option<u16>) -> Outcome {
    let kind = match (error["data"]["kind"].as_str(), error["code"].as_i64().unwrap(), status) {
        (Some(kind), ..) => kind,
        (None, _, Some(401)) => "unauthenticated",
        (None, _, Some(403)) => "forbidden",
        (None, _, Some(503)) => "unavailable",
        (None, -32_601, _) => "unknown_method",
        (None, _, Some(404)) => "not_found",
        (None, -32_700 | -32_600 | -32_602, _) => "unreadable",
        _ => panic!("what sort is {error}"),
    };
    let message = error["message"].as_str().unwrap();
    let params = message.strip_prefix("the params of ").and_then(|rest| rest.split_once(" are wrong: "));
    let message = params.map_or(message, |(_method, rest)| rest);
    let message = ["Parse error: ", "Invalid request: "]
        .iter()
        .find_map(|beginning| message.strip_prefix(beginning))
        .unwrap_or(message);
    Outcome::refused(Some(kind), message)
}

fn answer(ask: &StepRequest, mut result: Map<String, Value>, meta: &Value, notices: &[Value]) -> Outcome {
    Outcome::Answered(match ask {
        StepRequest::List(list) => {
            let entries = result[list.of.member()].as_array().unwrap();
            entries.iter().map(|entry| list.of.bare(entry)).collect()
        }
        StepRequest::Read(_) => result["contents"].take(),
        StepRequest::Prompt(_) => result["messages"].take(),
        StepRequest::Complete(_) => result["completion"].take(),
        StepRequest::Call(_) | StepRequest::CallOfName(_) | StepRequest::CallOfDepth(_) => {
            let failed = result["isError"] == true;
            let content = result["content"].as_array().unwrap();
            if failed {
                // The text before the error is part of the content.
                return Outcome::refused(None, content.last().unwrap()["text"].as_str().unwrap());
            }
            tool_answer(content, result.get("structuredContent"), meta, notices)
        }
        StepRequest::Method { .. } | StepRequest::Bytes(_) | StepRequest::Filler(_) => Value::Object(result),
    })
}

/// The answer of a tool. Structured content is repeated as text for clients that read only text; the text is omitted.
fn tool_answer(content: &[Value], structured: Option<&Value>, meta: &Value, notices: &[Value]) -> Value {
    let retried = |block: &Value| serde_json::from_str::<Value>(block["text"].as_str().unwrap_or_default()).ok();
    let is_repeated = structured.is_some() && content.len() == 1 && retried(&content[0]).as_ref() == structured;
    let mut answer = json!({"content": if is_repeated { &[] } else { content }});
    if let Some(structured) = structured {
        answer["structured"] = structured.clone();
    }
    if meta["dev.tidegate/truncated"] == true {
        answer["truncated"] = true.into();
    }
    if !notices.is_empty() {
        answer["progress"] = notices.iter().map(|notice| notice["params"]["progress"].clone()).collect();
    }
    answer
}
