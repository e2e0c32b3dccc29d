//! `tidegate client`: the configuration of an MCP client, printed or written.

use std::borrow::Cow;

use clap::Args;

use crate::argument_secrets::mask_secrets;
use crate::command_error::CommandError;
use crate::database_argument::{self, DatabaseArgument};
use crate::mcp_clients::{
    BearerValue, ConfigLocations, InstallOutcome, InstallScope, Installation, McpClient as Kind, McpServerConnection,
    StartCommand, install, snippet,
};
use crate::options::GlobalOptions;
use crate::output;

/// Print the entry of this server for an MCP client's configuration, or write it
#[derive(Debug, Args)]
pub(crate) struct ClientCommand {
    /// The client: claude-code, claude-desktop, cursor, vscode, codex, gemini-cli, windsurf, zed, kiro, opencode, lm-studio
    #[arg(value_enum, hide_possible_values = true)]
    client: Kind,

    /// Folder, file, SQLite file, postgres:// or mysql:// address to serve, if the client starts the server [default:
    /// the configuration, else the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,

    /// Connect over HTTP to the server at this address, instead of starting one
    #[arg(long, value_name = "URL", conflicts_with = "paths")]
    url: Option<String>,

    /// Environment variable that contains the key where the client runs
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    key_env: Option<String>,

    /// The key itself, which is then written into the client's file
    #[arg(long, value_name = "KEY", requires = "url", conflicts_with = "key_env")]
    key: Option<String>,

    /// Serve only this toolset, if the client starts the server
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    toolset: Option<String>,

    /// Name of the server in the client
    #[arg(long, value_name = "NAME", default_value = "tidegate")]
    name: String,

    /// Write the entry into the client's file; keeps its other content and makes a backup
    #[arg(long)]
    write: bool,

    /// Use the client's file of this folder instead of the user's
    #[arg(long)]
    project: bool,
}

impl ClientCommand {
    pub(crate) fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let connection = self.connection(options)?;
        if self.write {
            let scope = if self.project { InstallScope::Project } else { InstallScope::User };
            let config_locations = ConfigLocations::current().map_err(anyhow::Error::from)?;
            let file = self.client.config_file(scope, &config_locations).map_err(anyhow::Error::from)?;
            if scope == InstallScope::Project && connection.holds_secret() {
                output::print_note("note: the file of the project contains the key; do not share it\n");
            }
            let installed = install(&file, self.client, &self.name, &connection).map_err(anyhow::Error::from)?;
            output::print(format_args!("{}\n", describe_installation(&installed)))?;
        } else {
            let text = snippet(self.client, &self.name, &connection).map_err(anyhow::Error::from)?;
            output::print(format_args!("{}\n", text.trim_end()))?;
        }
        if let Some(afterwards) = self.client.next_step() {
            output::print_note(format_args!("{afterwards}\n"));
        }
        Ok(())
    }

    fn connection(&self, options: &GlobalOptions) -> Result<McpServerConnection, CommandError> {
        if let Some(url) = &self.url {
            if matches!(mask_secrets(url), Cow::Owned(_)) {
                let message =
                    "--url contains a password, which would stand in the client's file; use --key-env VARIABLE";
                return Err(CommandError::Usage(message.to_owned()));
            }
            let key = self.key.clone().map(BearerValue::Key);
            let bearer = key.or_else(|| self.key_env.clone().map(BearerValue::Variable));
            return Ok(McpServerConnection::Http { url: url.clone(), bearer });
        }
        let StartCommand { command, args: mut arguments } = StartCommand::current().map_err(anyhow::Error::from)?;
        let file = if self.paths.is_empty() { options.config_file() } else { options.config.clone() };
        let file = file.map(std::path::absolute).transpose().map_err(anyhow::Error::from)?;
        let paths: Vec<DatabaseArgument> =
            self.paths.iter().map(DatabaseArgument::without_password).collect::<Result<_, _>>()?;
        if paths != self.paths {
            output::print_note(
                "note: the entry has no password; put it into PGPASSWORD in env of the entry, or into .pgpass, which \
                 needs no change of the entry\n",
            );
        }
        arguments.extend(database_argument::stdio_arguments(file.as_deref(), &paths));
        arguments.extend(self.toolset.iter().flat_map(|name| ["--toolset".to_owned(), name.clone()]));
        Ok(McpServerConnection::Stdio { command, args: arguments })
    }
}

pub(super) fn describe_installation(installed: &Installation) -> String {
    let path = installed.path.display();
    let subject = match installed.outcome {
        InstallOutcome::Created => format!("made {path}"),
        InstallOutcome::Added => format!("added to {path}"),
        InstallOutcome::Replaced => format!("replaced the entry in {path}"),
        InstallOutcome::Unchanged => format!("{path} says so already"),
    };
    match &installed.backup {
        Some(backup) => format!("{subject}; as it was: {}", backup.display()),
        None => subject,
    }
}
