//! `tidegate tools`: the tools that a client can call.

use clap::Args;
use serde_json::{Value, json};
use tidegate_runtime::{Tool, ToolAnnotations};

use crate::application::Application;
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::output;

/// List the tools that a client can call
#[derive(Debug, Args)]
pub(crate) struct ToolsCommand {
    /// Print the tools as JSON, with the schemas of their arguments
    #[arg(long)]
    json: bool,

    /// List only the tools of this toolset
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,
}

impl ToolsCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let application = Application::open(None, options).await?;
        let caller = application.local_caller(self.toolset.as_deref())?;
        let snapshot = application.node().registry().snapshot();
        let tools = snapshot.tools(&caller);
        if self.json {
            let tools: Value = tools.map(|tool| tool_json(tool)).collect();
            output::print(format_args!("{tools:#}\n"))?;
        } else {
            for tool in tools {
                let description = tool.description.as_deref().unwrap_or_default();
                output::print(format_args!("{}({})\n    {description}\n", tool.name, render_arguments(tool)))?;
            }
        }
        application.close().await;
        Ok(())
    }
}

fn tool_json(tool: &Tool) -> Value {
    json!({
        "name": tool.name, "title": tool.title, "description": tool.description,
        "annotations": tool.annotations.as_ref().map(annotations),
        "inputSchema": tool.input_schema.json(),
    })
}

fn annotations(hints: &ToolAnnotations) -> Value {
    let named = [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ];
    named.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), Value::from(hint?)))).collect()
}

fn render_arguments(tool: &Tool) -> String {
    let schema = tool.input_schema.json();
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    let marked = names.map(|name| {
        let is_required = required.iter().any(|other| other == name.as_str());
        if is_required { name.clone() } else { format!("{name}?") }
    });
    marked.collect::<Vec<_>>().join(", ")
}
