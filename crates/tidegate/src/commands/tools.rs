//! `tidegate tools`: what a client finds.

use std::io::Write as _;

use clap::Args;
use serde_json::{Value, json};
use tidegate::Node;
use tidegate_core::{Principal, Tool};

use super::call::ORIGIN;
use crate::failure::Failure;

/// List the tools that a client finds
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Print them as JSON, with the schemas of their arguments
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let node = Node::builder().build();
        let snapshot = node.registry().snapshot();
        let owner = Principal::owner();
        let tools = snapshot.tools(&owner, ORIGIN);
        let mut output = std::io::stdout().lock();
        if self.json {
            let tools: Vec<Value> = tools.map(|tool| as_json(tool)).collect();
            writeln!(output, "{:#}", Value::Array(tools))?;
        } else {
            for tool in tools {
                let description = tool.description.as_deref().unwrap_or_default();
                writeln!(output, "{}({})\n    {description}", tool.name, arguments(tool))?;
            }
        }
        Ok(output.flush()?)
    }
}

fn as_json(tool: &Tool) -> Value {
    json!({
        "name": tool.name, "title": tool.title, "description": tool.description,
        "inputSchema": tool.input_schema.json(),
    })
}

/// The names of its arguments; those that may be left out with a question mark.
fn arguments(tool: &Tool) -> String {
    let schema = tool.input_schema.json();
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    let marked = names.map(|name| {
        let is_required = required.iter().any(|other| other == name.as_str());
        if is_required { name.clone() } else { format!("{name}?") }
    });
    marked.collect::<Vec<_>>().join(", ")
}
