//! `tidegate call`: any tool, its answer on standard output.

use clap::Args;
use serde_json::{Map, Value};
use tidegate_core::{Call as CoreCall, Caller, Target};
use tidegate_fetch::Destination;

use crate::failure::Failure;
use crate::opened::{Opened, Sources};
use crate::options::{Audience, Options};
use crate::output::{self, Written};
use crate::shutdown::Shutdown;
use crate::source::Source;
use crate::terminal;

/// Call a tool and print its answer
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool; `tidegate tools` lists them
    tool: String,

    /// Arguments of the tool; values are JSON where they parse as it, else text
    #[arg(value_name = "KEY=VALUE", value_parser = key_value)]
    arguments: Vec<(String, String)>,

    /// Folder or file to ask, called like the folder or NAME; may be repeated [default: the current folder]
    #[arg(long = "path", value_name = "[NAME=]PATH", value_parser = Source::parse, num_args = 1..)]
    paths: Vec<Source>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write arguments as key=value".to_owned()),
    }
}

impl Call {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        let asker = Asker::open(&self.paths, options).await?;
        let arguments = asker.typed(&self.tool, self.arguments);
        asker.ask(&self.tool, arguments).await
    }
}

/// Asks tools for the user of this very process.
pub(super) struct Asker {
    opened: Opened,
    caller: Caller,
    shutdown: Shutdown,
}

impl Asker {
    /// A node over `sources`.
    pub(super) async fn open(sources: &[Source], options: &Options) -> Result<Self, Failure> {
        let shutdown = Shutdown::on_signals()?;
        let opened = Opened::open(Sources::Named(sources), options, Audience::CommandLine).await?;
        Ok(Self { caller: opened.local_caller(None)?, opened, shutdown })
    }

    /// The arguments with their values as JSON where they parse as it. Where the tool wants text
    /// and nothing else, they stay text: a table may be called `2024`.
    fn typed(&self, tool: &str, arguments: Vec<(String, String)>) -> Map<String, Value> {
        let snapshot = self.opened.node().registry().snapshot();
        let tool = snapshot.tool(tool, &self.caller).ok();
        let wants_text =
            |key: &str| tool.is_some_and(|tool| tool.input_schema.json()["properties"][key]["type"] == "string");
        let typed = |key: &str, value: String| match serde_json::from_str(&value) {
            Ok(json) if !wants_text(key) => json,
            _ => Value::String(value),
        };
        arguments.into_iter().map(|(key, value)| (key.clone(), typed(&key, value))).collect()
    }

    /// Calls `tool` and prints its answer as it comes. What the tool asks is asked at the terminal, if there is one.
    pub(super) async fn ask(self, tool: &str, arguments: Map<String, Value>) -> Result<(), Failure> {
        let mut call = self.call(tool, arguments);
        call.abilities = terminal::abilities();
        call.is_asked_live = true;
        let reply = self.opened.node().registry().call(call)?;
        let printed = self.shutdown.guard(output::print(reply)).await;
        self.opened.close().await;
        printed?
    }

    /// Calls `tool` and writes the rows of its answer into `destination`, in its format.
    pub(super) async fn write(
        self,
        tool: &str,
        arguments: Map<String, Value>,
        destination: &Destination,
    ) -> Result<Written, Failure> {
        let mut call = self.call(tool, arguments);
        call.format = Some(destination.format());
        let reply = self.opened.node().registry().call(call)?;
        let written = self.shutdown.guard(output::write(reply, destination)).await;
        self.opened.close().await;
        written?
    }

    fn call(&self, tool: &str, arguments: Map<String, Value>) -> CoreCall {
        let mut call = CoreCall::new(Target::Tool(tool.to_owned()), self.caller.clone());
        call.arguments = arguments;
        call.cancellation = self.shutdown.graceful.clone();
        call
    }
}
