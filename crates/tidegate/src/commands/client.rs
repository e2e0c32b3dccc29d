//! `tidegate client`: the configuration of an MCP client, printed or put where the client looks for it.

use std::io::Write as _;

use clap::Args;

use crate::client::{Bearer, Client as Kind, Connection, Installed, Outcome, Places, Scope, install, snippet};
use crate::config::FILE_NAME;
use crate::failure::Failure;
use crate::options::Options;
use crate::source::{Source, sources_or_here};

/// Print an MCP client's configuration for this server, or write it
#[derive(Debug, Args)]
pub(crate) struct Client {
    /// The client: claude-code, claude-desktop, cursor, vscode, codex, gemini-cli, windsurf, zed, kiro, opencode, lm-studio
    #[arg(value_parser = Kind::parse)]
    client: Kind,

    /// Folder or file to serve, when the client starts the server [default: the configuration, else the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = Source::parse)]
    paths: Vec<Source>,

    /// Connect over HTTP to the server at this address, instead of starting one
    #[arg(long, value_name = "URL", conflicts_with = "paths")]
    url: Option<String>,

    /// The environment variable that holds the key where the client runs
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    key_env: Option<String>,

    /// The key itself, which then stands in the client's file
    #[arg(long, value_name = "KEY", requires = "url", conflicts_with = "key_env")]
    key: Option<String>,

    /// Only this toolset, when the client starts the server
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    toolset: Option<String>,

    /// What the client calls the server
    #[arg(long, value_name = "NAME", default_value = "tidegate")]
    name: String,

    /// Write it into the client's file, keeping what is there, with a backup
    #[arg(long)]
    write: bool,

    /// The file of this folder instead of the user's
    #[arg(long)]
    project: bool,
}

impl Client {
    pub(crate) fn run(self, options: &Options) -> Result<(), Failure> {
        let connection = self.connection(options)?;
        if self.write {
            let scope = if self.project { Scope::Project } else { Scope::User };
            let places = Places::current().map_err(anyhow::Error::from)?;
            let file = self.client.file(scope, &places).map_err(anyhow::Error::from)?;
            if scope == Scope::Project && connection.holds_secret() {
                tell("mind: the key stands in a file of the project; do not share it\n");
            }
            let installed = install(&file, self.client, &self.name, &connection).map_err(anyhow::Error::from)?;
            writeln!(std::io::stdout(), "{}", described(&installed))?;
        } else {
            let text = snippet(self.client, &self.name, &connection).map_err(anyhow::Error::from)?;
            writeln!(std::io::stdout(), "{}", text.trim_end())?;
        }
        if let Some(afterwards) = self.client.afterwards() {
            tell(&format!("{afterwards}\n"));
        }
        Ok(())
    }

    fn connection(&self, options: &Options) -> Result<Connection, Failure> {
        if let Some(url) = &self.url {
            let key = self.key.clone().map(Bearer::Key);
            let bearer = key.or_else(|| self.key_env.clone().map(Bearer::Variable));
            return Ok(Connection::Http { url: url.clone(), bearer });
        }
        let command = std::env::current_exe().map_err(anyhow::Error::from)?;
        let mut args = vec!["stdio".to_owned()];
        let file = options.config.clone().or_else(|| {
            let file = std::path::PathBuf::from(FILE_NAME);
            (self.paths.is_empty() && file.is_file()).then_some(file)
        });
        match &file {
            Some(file) => {
                let file = std::path::absolute(file).map_err(anyhow::Error::from)?;
                args.extend(["--config".to_owned(), file.display().to_string()]);
                args.extend(self.paths.iter().map(Source::absolute_argument));
            }
            None => args.extend(sources_or_here(&self.paths).iter().map(Source::absolute_argument)),
        }
        args.extend(self.toolset.iter().flat_map(|name| ["--toolset".to_owned(), name.clone()]));
        Ok(Connection::Stdio { command, args, env: Vec::new() })
    }
}

fn described(installed: &Installed) -> String {
    let path = installed.path.display();
    let what = match installed.outcome {
        Outcome::Created => format!("made {path}"),
        Outcome::Added => format!("added to {path}"),
        Outcome::Replaced => format!("replaced the entry in {path}"),
        Outcome::Unchanged => format!("{path} says so already"),
    };
    match &installed.backup {
        Some(backup) => format!("{what}; as it was: {}", backup.display()),
        None => what,
    }
}

fn tell(text: &str) {
    // Without standard error there is nobody to tell.
    let _ = anstream::stderr().write_all(text.as_bytes());
}
