//! `call_tool`: a call of any tool that the caller may reach, its answer handed on as it comes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{
    Budget, Call, CallLimits, Caller, Chunk, Error, ErrorKind, Handler, Job, Metadata, Notice, Outcome, Reply,
    ReplyEvent, ReplySender, Said, Target, Tool, ToolAnnotations,
};

use crate::arguments::arguments;
use crate::definition::{Input, built_in};
use crate::node::NodeView;

/// The called tool has a time limit of its own, which ends the call earlier.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn tool(node: &Arc<NodeView>) -> Tool {
    let tool = built_in(
        "call_tool",
        "Call a tool",
        "Calls a tool that find_tool found.",
        Input::new()
            .requiring("name", json!({"type": "string"}))
            .with("arguments", json!({"type": "object", "description": "As the tool's inputSchema has them"})),
        // The tool behind it may do anything that the caller may do.
        ToolAnnotations::default(),
        CallTool(node.clone()),
    );
    // The budget of the called tool counts, and what the transport can carry.
    tool.with_limits(CallLimits { timeout: Some(TIMEOUT), inline: Some(Budget::default()), ..CallLimits::default() })
}

struct CallTool(Arc<NodeView>);

#[derive(Deserialize)]
struct Arguments {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[async_trait]
impl Handler for CallTool {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let Arguments { name, arguments } = arguments(&job)?;
        let caller = Caller { toolset: None, ..job.caller().clone() };
        let mut call = Call::new(Target::Tool(name), caller);
        call.arguments = arguments;
        call.carries = job.inline_budget();
        call.format = job.format();
        call.on_behalf_of = Some(job.clone());
        call.cancellation = job.cancellation();
        call.wants_progress = job.wants_progress();
        call.log_level = job.log_level();
        call.abilities = job.abilities();
        call.is_asked_live = job.is_asked_live();
        call.answers = job.answers().clone();
        let mut called = self.0.registry()?.call(call)?;
        let ended = called.job().cancellation();
        while let Some(said) = called.next_said().await {
            match said {
                Said::Asked(asked) => reply.hand_on(asked).await?,
                Said::Event(ReplyEvent::Chunk(chunk)) => tokio::select! {
                    biased;
                    handed = hand_on(chunk, &reply) => handed?,
                    // A reader that stalls holds neither call longer than the called one may run.
                    () = ended.cancelled() => return outcome(&mut called).await,
                },
                Said::Event(ReplyEvent::End(Outcome::Done(metadata))) => return Ok(metadata),
                Said::Event(ReplyEvent::End(Outcome::Failed(error))) => return Err(error),
            }
        }
        Err(Error::internal("a called tool ended without an outcome"))
    }
}

/// How a call ended whose answer is read no further.
async fn outcome(called: &mut Reply) -> Result<Metadata, Error> {
    while let Some(event) = called.next().await {
        if let ReplyEvent::End(Outcome::Failed(error)) = event {
            return Err(error);
        }
    }
    Err(Error::new(ErrorKind::Cancelled, "the call was cancelled"))
}

async fn hand_on(chunk: Chunk, reply: &ReplySender) -> Result<(), Error> {
    match chunk {
        Chunk::Text(text) => reply.text(text).await,
        Chunk::EndOfText => reply.end_text().await,
        Chunk::Block(content) => reply.block(content).await,
        Chunk::Message(role, content) => reply.message(role, content).await,
        Chunk::Structured(json) => reply.structured_text(json.get().to_owned()).await,
        Chunk::Body(head) => reply.body(head).await,
        Chunk::Bytes(bytes) => reply.bytes(bytes).await,
        Chunk::Notice(Notice::Progress { done, total, message }) => reply.progress(done, total, message).await,
        Chunk::Notice(Notice::Log { level, logger, data }) => reply.log(level, logger, data).await,
        // Tools complete nothing.
        Chunk::Completion(_) => Ok(()),
    }
}
