//! The built-in toolset `discover`: two tools instead of a long list. `find_tool` finds tools by words, and `call_tool`
//! calls any tool that the caller may call, and streams its answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Access, AllowedNames, Budget, CallLimits, CallTarget, Caller, Error, Toolset};
use tidegate_runtime::{
    Answer, AnswerMeta, Call, Reply, ReplyPart, ReplySender, RunningCall, SnapshotBuilder, Tool, ToolAnnotations,
};

use crate::arguments::parse_arguments;
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, context_handler, read_only_tool};
use crate::tool_services::ToolServices;

/// The name of the toolset.
pub const DISCOVER_TOOLSET: &str = "discover";

/// Adds the toolset and its tools, which no other toolset contains.
pub(crate) fn register(builder: SnapshotBuilder, services: &Arc<ToolServices>) -> SnapshotBuilder {
    let tools = [find_tool(services), call_tool(services)];
    let entries = AllowedNames::matching(tools.iter().map(|tool| tool.name.clone()));
    let builder = builder.toolset(Toolset { name: DISCOVER_TOOLSET.to_owned(), entries });
    tools.into_iter().map(restrict_to_discover).fold(builder, SnapshotBuilder::tool)
}

fn restrict_to_discover(tool: Tool) -> Tool {
    tool.with_access(Access { toolset: Some(DISCOVER_TOOLSET.to_owned()), ..Access::default() })
}

const LIMIT_DEFAULT: usize = 5;
const LIMIT_MAX: usize = 50;
/// Weights: a word in the name counts more than one in the title, and that more than one in the description.
const NAME_WEIGHT: usize = 4;
const TITLE_WEIGHT: usize = 2;

fn find_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "find_tool",
        "Find a tool",
        "Finds tools by what you want to do, best first, with their input schemas. Use call_tool to call one.",
        InputSchemaBuilder::new()
            .with_required(
                "words",
                json!({"type": "string", "description": "What you want to do; if empty, all tools are listed by name"}),
            )
            .with("limit", json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT})),
        context_handler(services, handle_find_tool),
    )
}

#[derive(Deserialize)]
struct FindToolArguments {
    words: String,
    limit: Option<usize>,
}

async fn handle_find_tool(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let FindToolArguments { words, limit } = parse_arguments(&call)?;
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let snapshot = services.registry()?.snapshot_for(call.caller());
    // The search covers everything that the caller may call, not only this toolset.
    let caller = Caller { toolset: None, ..call.caller().clone() };
    let mut found: Vec<(usize, &Arc<Tool>)> = snapshot
        .tools(&caller)
        .map(|tool| (score(tool, &words), tool))
        .filter(|(score, _)| *score > 0 || words.is_empty())
        .collect();
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.name.cmp(&other.name)));
    let visible = limit.unwrap_or(LIMIT_DEFAULT);
    let tools: Vec<_> = found.iter().take(visible).map(|(_, tool)| tool_json(tool)).collect();
    Ok(Answer::text(json!({"tools": tools, "found": found.len()}).to_string()))
}

/// The relevance of a tool: the sum of the weights of all matching words.
fn score(tool: &Tool, words: &[String]) -> usize {
    let count = |text: Option<&str>, word: &str, weight: usize| {
        if text.is_some_and(|text| text.to_lowercase().contains(word)) { weight } else { 0 }
    };
    let of_word = |word: &String| {
        count(Some(&tool.name), word, NAME_WEIGHT)
            + count(tool.title.as_deref(), word, TITLE_WEIGHT)
            + count(tool.description.as_deref(), word, 1)
    };
    words.iter().map(of_word).sum()
}

fn tool_json(tool: &Tool) -> serde_json::Value {
    json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema.json()})
}

/// The called tool has its own time limit, which ends the call earlier.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

fn call_tool(services: &Arc<ToolServices>) -> Tool {
    let tool = built_in_tool(
        "call_tool",
        "Call a tool",
        "Calls a tool that find_tool found.",
        InputSchemaBuilder::new()
            .with_required("name", json!({"type": "string"}))
            .with("arguments", json!({"type": "object", "description": "As in the tool's inputSchema"})),
        // The called tool may do anything that the caller may do.
        ToolAnnotations::default(),
        context_handler(services, handle_call_tool),
    );
    // The budget of the called tool and of the transport apply.
    tool.with_limits(CallLimits { timeout: Some(TIMEOUT), inline: Some(Budget::default()), ..CallLimits::default() })
}

#[derive(Deserialize)]
struct CallToolArguments {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

async fn handle_call_tool(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let CallToolArguments { name, arguments } = parse_arguments(&call)?;
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
    let called = services.registry()?.call(inner)?;
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
    Err(Error::cancelled())
}
