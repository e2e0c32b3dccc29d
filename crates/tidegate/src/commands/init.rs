//! `tidegate init`: a first configuration, from what is found and from four questions.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::client::describe_installation;
use super::doctor;
use crate::command_error::CommandError;
use crate::config::CONFIG_FILE_NAME;
use crate::init::{
    Audience, InitAnswers, InitProposal, ProposedDatabase, ask_questions, discover, parse_source, render_config,
};
use crate::mcp_clients::{
    ConfigLocations, InstallScope, McpClient as Kind, McpServerConnection, StartCommand, install,
};
use crate::options::GlobalOptions;
use crate::standard_stream::standard_error;
use crate::{database_argument, output};

/// Write a first tidegate.yaml, from what is in this folder and from four questions
#[derive(Debug, Args)]
pub(crate) struct InitCommand {
    /// Folder, file, SQLite file, postgres:// or mysql:// address without a password to serve [default: what is found
    /// here and in DATABASE_URL, PG* and Compose files]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,

    /// Take the proposals instead of asking; adds the server to no client that is not named
    #[arg(long, short)]
    yes: bool,

    /// Let other machines use the server, with keys
    #[arg(long)]
    network: bool,

    /// Offer no tool for SQL of callers
    #[arg(long)]
    no_sql: bool,

    /// Client to add the server to; can be repeated
    #[arg(long, value_name = "CLIENT", value_enum, hide_possible_values = true)]
    client: Vec<Kind>,
}

impl InitCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let file = options.config.clone().unwrap_or_else(|| PathBuf::from(CONFIG_FILE_NAME));
        if file.exists() {
            let message = format!("{} exists; edit it, or name another file: --config FILE", file.display());
            return Err(CommandError::Usage(message));
        }
        let config_locations = ConfigLocations::current().ok();
        let proposal = self.proposal(config_locations.as_ref())?;
        let answers = if self.yes {
            take_proposals(proposal)?
        } else {
            let answered = ask_questions(proposal, &mut std::io::stdin().lock(), &mut standard_error())?;
            answered
                .ok_or_else(|| CommandError::Usage("the questions were not answered; nothing was written".to_owned()))?
        };
        write_new(&file, &render_config(&answers))?;
        output::print(format_args!("wrote {}\n", file.display()))?;
        let wrong = doctor::print_report(&[], &options.with_config(file.clone())).await?;
        for client in &answers.clients {
            add_to_client(*client, &file, config_locations.as_ref())?;
        }
        print_next_steps(&answers);
        if wrong > 0 {
            output::print_note("\nMend what is WRONG above. `tidegate doctor` checks it again.\n");
        }
        Ok(())
    }

    fn proposal(&self, config_locations: Option<&ConfigLocations>) -> Result<InitProposal, CommandError> {
        let named: Vec<ProposedDatabase> =
            self.paths.iter().map(|path| parse_source(path)).collect::<Result<_, _>>().map_err(CommandError::Usage)?;
        let found = if named.is_empty() {
            let folder = std::env::current_dir().context("the current folder cannot be read")?;
            discover(&folder, &|name| std::env::var(name).ok())
        } else {
            Vec::new()
        };
        Ok(InitProposal {
            found,
            sources: Some(named).filter(|named| !named.is_empty()),
            audience: self.network.then_some(Audience::Network),
            allows_sql: self.no_sql.then_some(false),
            found_clients: config_locations.map(find_clients).unwrap_or_default(),
            clients: Some(self.client.clone()).filter(|clients| !clients.is_empty()),
        })
    }
}

fn take_proposals(proposal: InitProposal) -> Result<InitAnswers, CommandError> {
    let sources = proposal.sources.unwrap_or(proposal.found);
    if sources.is_empty() {
        let message = "no data was found here; name a folder, a file or a postgres:// address: tidegate init ./data";
        return Err(CommandError::Usage(message.to_owned()));
    }
    Ok(InitAnswers {
        sources,
        audience: proposal.audience.unwrap_or(Audience::Machine),
        allows_sql: proposal.allows_sql.unwrap_or(true),
        clients: proposal.clients.unwrap_or_default(),
    })
}

/// The clients whose folder for settings, or whose file, exists.
fn find_clients(config_locations: &ConfigLocations) -> Vec<Kind> {
    let is_present = |client: &Kind| {
        let file = client.config_file(InstallScope::User, config_locations);
        file.is_ok_and(|file| {
            let has_folder = file.parent().is_some_and(|folder| folder != config_locations.home && folder.is_dir());
            has_folder || file.is_file()
        })
    };
    <Kind as clap::ValueEnum>::value_variants().iter().copied().filter(is_present).collect()
}

/// Creates the file; one that appeared in the meantime stays as it is.
fn write_new(file: &Path, text: &str) -> anyhow::Result<()> {
    let created = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
    let written = created.and_then(|mut created| created.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", file.display()))
}

fn add_to_client(client: Kind, file: &Path, config_locations: Option<&ConfigLocations>) -> Result<(), CommandError> {
    let Some(config_locations) = config_locations else {
        return Err(CommandError::Usage("the home folder is unknown; set HOME".to_owned()));
    };
    let StartCommand { command, mut args } = StartCommand::current().map_err(anyhow::Error::from)?;
    let file = std::path::absolute(file).map_err(anyhow::Error::from)?;
    args.extend(database_argument::stdio_arguments(Some(&file), &[]));
    let connection = McpServerConnection::Stdio { command, args };
    let path = client.config_file(InstallScope::User, config_locations).map_err(anyhow::Error::from)?;
    let installed = install(&path, client, "tidegate", &connection).map_err(anyhow::Error::from)?;
    output::print(format_args!("{}: {}\n", client.title(), describe_installation(&installed)))?;
    if let Some(next_step) = client.next_step() {
        output::print_note(format_args!("{next_step}\n"));
    }
    Ok(())
}

fn print_next_steps(answers: &InitAnswers) {
    let steps = match answers.audience {
        Audience::Machine => {
            "\nNext:\n  tidegate serve           serves these databases over HTTP\n  \
                              tidegate client CLIENT   prints the entry for an MCP client, which starts the server itself\n"
        }
        Audience::Network => {
            "\nNext:\n  tidegate key add NAME --role reader   makes the first key\n  \
                              tidegate serve                        serves these databases to callers with a key\n"
        }
    };
    output::print_note(steps);
}
