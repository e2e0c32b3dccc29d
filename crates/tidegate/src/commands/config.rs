//! `tidegate config`: what a configuration may say, and what is wrong with one.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Subcommand;

use crate::command_error::CommandError;
use crate::config::{CONFIG_FILE_NAME, schema};
use crate::open_node::{OpenNode, ServedSources};
use crate::options::{Audience, GlobalOptions};
use crate::startup_checks;

/// Check a configuration, or print its JSON Schema
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report all errors of a configuration and of its statements
    Check {
        /// The configuration [default: tidegate.yaml in the current folder]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of a configuration, for editors
    Schema,
}

impl ConfigCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Schema => Ok(writeln!(std::io::stdout(), "{:#}", schema())?),
            Self::Check { file } => {
                let named = file.or_else(|| options.config.clone());
                let file = named.unwrap_or_else(|| PathBuf::from(CONFIG_FILE_NAME));
                check_file(file, options).await
            }
        }
    }
}

async fn check_file(file: PathBuf, options: &GlobalOptions) -> Result<(), CommandError> {
    let options = options.with_config(file.clone());
    let opened = OpenNode::open(ServedSources::None, &options, Audience::CommandLine).await?;
    let assembled = &opened.apply_report;
    let warnings = match assembled.warnings.len() {
        0 => String::new(),
        1 => "; 1 warning above".to_owned(),
        count => format!("; {count} warnings above"),
    };
    let obstacles = startup_checks::find_startup_problems(&opened.loaded_config);
    opened.close().await;
    if !obstacles.is_empty() {
        return Err(opened.loaded_config.to_error(&obstacles).into());
    }
    let (databases, tools) = (assembled.databases, assembled.tools);
    writeln!(
        std::io::stdout(),
        "{}: {databases} databases and {tools} tools, nothing wrong{warnings}",
        file.display()
    )?;
    Ok(())
}
