//! `call_tool`: calls any tool that the caller may call, and streams its answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Budget, CallLimits, CallTarget, Caller, Error, ErrorKind};
use tidegate_runtime::{
    AnswerMeta, Call, Chunk, Job, Outcome, Reply, ReplyEvent, ReplyMessage, ReplyNotification, ReplySender, Tool,
    ToolAnnotations,
};

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

async fn handle(node: Arc<ToolContext>, job: Arc<Job>, reply: ReplySender) -> Result<AnswerMeta, Error> {
    let Arguments { name, arguments } = parse_arguments(&job)?;
    let caller = Caller { toolset: None, ..job.caller().clone() };
    let mut call = Call::new(CallTarget::Tool(name), caller);
    call.arguments = arguments;
    call.inline_limit = job.inline_budget();
    call.format = job.format();
    call.on_behalf_of = Some(job.clone());
    call.cancellation = job.cancellation();
    call.wants_progress = job.wants_progress();
    call.log_level = job.log_level();
    call.client_request = job.client_request().cloned();
    call.client_capabilities = job.client_capabilities();
    call.supports_live_input = job.supports_live_input();
    call.input_answers = job.input_answers().clone();
    let mut called = node.registry()?.call(call)?;
    let ended = called.job().cancellation();
    while let Some(reply_message) = called.next_message().await {
        match reply_message {
            ReplyMessage::InputRequest(pending_input_request) => {
                reply.forward_input_request(pending_input_request).await?
            }
            ReplyMessage::Event(ReplyEvent::Chunk(chunk)) => tokio::select! {
                biased;
                handed = forward_chunk(chunk, &reply) => handed?,
                // A stalled reader holds neither call longer than the time limit of the called one.
                () = ended.cancelled() => return drain_outcome(&mut called).await,
            },
            ReplyMessage::Event(ReplyEvent::End(Outcome::Done(metadata))) => return Ok(metadata),
            ReplyMessage::Event(ReplyEvent::End(Outcome::Failed(error))) => return Err(error),
        }
    }
    Err(Error::internal("a called tool ended without an outcome"))
}

async fn drain_outcome(called: &mut Reply) -> Result<AnswerMeta, Error> {
    while let Some(event) = called.next().await {
        if let ReplyEvent::End(Outcome::Failed(error)) = event {
            return Err(error);
        }
    }
    Err(Error::new(ErrorKind::Cancelled, "the call was cancelled"))
}

async fn forward_chunk(chunk: Chunk, reply: &ReplySender) -> Result<(), Error> {
    match chunk {
        Chunk::Text(text) => reply.send_text(text).await,
        Chunk::EndOfText => reply.end_text().await,
        Chunk::Block(content) => reply.send_block(content).await,
        Chunk::PromptMessage(role, content) => reply.send_prompt_message(role, content).await,
        Chunk::Structured(json) => reply.send_structured_json(json.get().to_owned()).await,
        Chunk::Body(head) => reply.begin_body(head).await,
        Chunk::Bytes(bytes) => reply.send_bytes(bytes).await,
        Chunk::Notification(ReplyNotification::Progress { done, total, message }) => {
            reply.send_progress(done, total, message).await
        }
        Chunk::Notification(ReplyNotification::Log { level, logger, data }) => {
            reply.send_log(level, logger, data).await
        }
        // Tools have no completions.
        Chunk::Completion(_) => Ok(()),
    }
}
