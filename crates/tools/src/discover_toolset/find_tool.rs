//! `find_tool`: finds tools by words.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Caller, Error};
use tidegate_runtime::{Answer, RunningCall, Tool};

use crate::arguments::parse_arguments;
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};

const LIMIT_DEFAULT: usize = 5;
const LIMIT_MAX: usize = 50;
/// Weights: a word in the name counts more than one in the title, and that more than one in the description.
const NAME_WEIGHT: usize = 4;
const TITLE_WEIGHT: usize = 2;

pub(super) fn tool(node: &Arc<ToolContext>) -> Tool {
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
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    words: String,
    limit: Option<usize>,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { words, limit } = parse_arguments(&call)?;
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let snapshot = node.registry()?.snapshot_for(call.caller());
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
