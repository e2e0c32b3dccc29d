//! `tidegate call`: calls a tool and prints its answer.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};
use tidegate_client::fetch::OutputFile;
use tidegate_core::{CallTarget, Caller, Error, Format, schema_types};
use tidegate_runtime::Call as CoreCall;

use crate::application::Application;
use crate::command_error::CommandError;
use crate::database_argument::DatabaseArgument;
use crate::options::GlobalOptions;
use crate::output::{self, WrittenFile};
use crate::shutdown::Shutdown;
use crate::terminal;

/// Call a tool and print its answer
#[derive(Debug, Args)]
pub(crate) struct CallCommand {
    /// The tool; `tidegate tools` lists them
    tool: String,

    /// Arguments of the tool; a value that is valid JSON is read as JSON, any other as text
    #[arg(value_name = "KEY=VALUE", value_parser = key_value)]
    arguments: Vec<(String, String)>,

    /// Folder, file, SQLite file, postgres:// or mysql:// address to query, named after it, or NAME; may be repeated
    /// [default: the current folder]
    #[arg(long = "path", value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write arguments as key=value".to_owned()),
    }
}

impl CallCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let tool_caller = ToolCaller::open(&self.paths, options).await?;
        let arguments = tool_caller.parse_arguments(&self.tool, self.arguments);
        tool_caller.call_and_print(&self.tool, arguments).await
    }
}

/// How often a call is repeated because of columns whose types were corrected, each of which is new.
const REPETITIONS_MAX: usize = 64;

pub(super) struct ToolCaller {
    application: Application,
    caller: Caller,
    shutdown: Shutdown,
}

impl ToolCaller {
    pub(super) async fn open(sources: &[DatabaseArgument], options: &GlobalOptions) -> Result<Self, CommandError> {
        let shutdown = Shutdown::on_signals()?;
        let application = Application::open(Some(sources), options).await?;
        Ok(Self { caller: application.local_caller(None)?, application, shutdown })
    }

    /// Parses values that are valid JSON, except for texts: a table may have the name `2024`.
    fn parse_arguments(&self, tool: &str, arguments: Vec<(String, String)>) -> Map<String, Value> {
        let snapshot = self.application.node().registry().snapshot();
        let tool = snapshot.tool(tool, &self.caller).ok();
        let is_text = |key: &str, json: &Value| {
            let kinds = tool.map(|tool| schema_types(&tool.call_schema().json()["properties"][key]));
            kinds.is_some_and(|kinds| {
                kinds.contains(&"string") && (kinds.len() == 1 || (!json.is_array() && !json.is_object()))
            })
        };
        let typed = |key: &str, value: String| match serde_json::from_str(&value) {
            Ok(json) if !is_text(key, &json) => json,
            _ => Value::String(value),
        };
        arguments.into_iter().map(|(key, value)| (key.clone(), typed(&key, value))).collect()
    }

    /// Calls `tool` and prints its answer as it arrives. Input requests are answered at the terminal, if there is one.
    pub(super) async fn call_and_print(self, tool: &str, arguments: Map<String, Value>) -> Result<(), CommandError> {
        let mut call = self.build_call(tool, arguments);
        call.client_capabilities = terminal::terminal_capabilities();
        call.supports_live_input = true;
        let reply = self.application.node().registry().call(call)?;
        let printed = self.shutdown.run_until_forced(output::print_reply(reply)).await;
        self.application.close().await;
        printed?
    }

    /// Calls `tool` and writes its answer to a file. If the type of a column was corrected after rows had been written, an
    /// incomplete file is removed, and the call is repeated.
    pub(super) async fn call_and_write(
        self,
        tool: &str,
        arguments: Map<String, Value>,
        output_file: &OutputFile,
    ) -> Result<WrittenFile, CommandError> {
        let mut repetitions_left = REPETITIONS_MAX;
        let written = loop {
            let mut call = self.build_call(tool, arguments.clone());
            call.format = Some(output_file.requested_format());
            let reply = self.application.node().registry().call(call)?;
            let written = self.shutdown.run_until_forced(output::write_reply(reply, output_file)).await;
            match &written {
                Ok(Err(CommandError::Query(error)))
                    if error.retry_after() == Some(Duration::ZERO) && repetitions_left > 0 =>
                {
                    repetitions_left -= 1;
                }
                _ => break written,
            }
        };
        self.application.close().await;
        written?
    }

    /// Checks that there is a source for the tools of which `tool` is one.
    pub(super) fn require_source(&self, tool: &str, message: &str) -> Result<(), CommandError> {
        match self.application.node().registry().snapshot().tool(tool, &self.caller) {
            Ok(_) => Ok(()),
            Err(_) => Err(CommandError::Usage(message.to_owned())),
        }
    }

    /// Calls `tool`, whose answer is one JSON value.
    pub(super) async fn call_json(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, CommandError> {
        let mut call = self.build_call(tool, arguments);
        call.format = Some(Format::Json);
        let mut reply = self.application.node().registry().call(call)?;
        let (body, _) = reply.collect_body(usize::MAX).await.map_err(CommandError::Query)?;
        let parsed = serde_json::from_slice(&body);
        parsed.map_err(|error| CommandError::Query(Error::internal(format!("the answer of {tool}: {error}"))))
    }

    /// Whether the process receives a signal to stop within `time`.
    pub(super) async fn is_stopped_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.shutdown.graceful.cancelled()).await.is_ok()
    }

    pub(super) async fn close(self) {
        self.application.close().await;
    }

    fn build_call(&self, tool: &str, arguments: Map<String, Value>) -> CoreCall {
        let mut call = CoreCall::new(CallTarget::Tool(tool.to_owned()), self.caller.clone());
        call.arguments = arguments;
        call.cancellation = self.shutdown.graceful.clone();
        call
    }
}
