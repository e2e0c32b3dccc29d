//! `call_tool`: calls any tool that the caller may call, and streams its answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Budget, CallLimits, CallTarget, Caller, Error, ErrorKind};
use tidegate_runtime::{Answer, AnswerMeta, Call, Reply, ReplyPart, ReplySender, RunningCall, Tool, ToolAnnotations};

use crate::arguments::parse_arguments;
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, context_handler};

/// The called tool has its own time limit, which ends the call earlier.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn tool(node: &Arc<ToolContext>) -> Tool {
    let tool = built_in_tool(
        "call_tool",
        "Call a tool",
        "Calls a tool that find_tool found.",
        InputSchemaBuilder::new()
            .with_required("name", json!({"type": "string"}))
            .with("arguments", json!({"type": "object", "description": "As in the tool's inputSchema"})),
        // The called tool may do anything that the caller may do.
        ToolAnnotations::default(),
        context_handler(node, handle),
    );
    // The budget of the called tool and of the transport apply.
    tool.with_limits(CallLimits { timeout: Some(TIMEOUT), inline: Some(Budget::default()), ..CallLimits::default() })
}

#[derive(Deserialize)]
struct Arguments {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { name, arguments } = parse_arguments(&call)?;
    let caller = Caller { toolset: None, ..call.caller().clone() };
    let mut inner = Call::new(CallTarget::Tool(name), caller);
    inner.arguments = arguments;
    inner.inline_limit = call.limits().inline;
    inner.on_behalf_of = Some(call.job().clone());
    inner.cancellation = call.cancellation();
    inner.supports_live_input = call.supports_live_input();
    let request = call.request();
    inner.format = request.format;
    inner.wants_progress = request.wants_progress;
    inner.log_level = request.log_level;
    inner.client_request = request.client_request.clone();
    inner.client_capabilities = request.client_capabilities;
    inner.input_answers = request.input_answers.clone();
    let called = node.registry()?.call(inner)?;
    Ok(Answer::written(move |reply| async move { forward(called, &reply).await }))
}

async fn forward(mut called: Reply, reply: &ReplySender) -> Result<AnswerMeta, Error> {
    let ended = called.job().cancellation();
    while let Some(part) = called.next().await {
        if let ReplyPart::End(end) = part {
            return end;
        }
        tokio::select! {
            biased;
            forwarded = reply.forward(part) => forwarded?,
            // A stalled reader holds neither call longer than the time limit of the called one.
            () = ended.cancelled() => break,
        }
    }
    while let Some(part) = called.next().await {
        if let ReplyPart::End(Err(error)) = part {
            return Err(error);
        }
    }
    Err(Error::new(ErrorKind::Cancelled, "the call was cancelled"))
}
