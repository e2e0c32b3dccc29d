//! `server_info`: the identity and limits of the server.

use std::sync::Arc;

use tidegate_core::Error;
use tidegate_runtime::{Answer, RunningCall, Tool};

use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, text_column};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "server_info",
        "Server information",
        "Name, version, SQL dialects, and the limits of an answer.",
        InputSchemaBuilder::new().with_output_arguments(),
        context_handler(node, handle),
    )
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let shape: OutputArguments = parse_arguments(&call)?;
    let limits = node.limits()?;
    let inline = call.limits().inline;
    let mut dialects: Vec<&str> =
        node.databases.visible_to(call.principal()).map(|database| database.dialect().name()).collect();
    dialects.sort_unstable();
    dialects.dedup();
    let label = |value: &str| text_column([Some(value.to_owned())].into_iter());
    let one = |value: Option<u64>| count_column([value].into_iter());
    let answer = TableBuilder::new()
        .with_column("name", label(&node.identity.name))
        .with_column("title", label(&node.identity.title))
        .with_column("version", label(&node.identity.version))
        .with_column("sql", label(&dialects.join(", ")))
        .with_column("timeout_seconds", one(Some(limits.timeout.as_secs())))
        .with_column("inline_rows", one(inline.rows))
        .with_column("inline_bytes", one(inline.bytes.map(|bytes| bytes as u64)));
    Ok(node.executor.answer_rows(answer.into_rows()?, shape.output_options("")?))
}
