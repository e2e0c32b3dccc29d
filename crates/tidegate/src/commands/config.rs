//! `tidegate config`: what a configuration may say, and what is wrong with one.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Subcommand;

use crate::config::{FILE_NAME, schema};
use crate::failure::Failure;
use crate::opened::{Opened, Sources};
use crate::options::{Audience, Options};
use crate::serving;

/// Check a configuration, or print its JSON Schema
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Find everything that is wrong with a configuration, its statements included
    Check {
        /// The configuration [default: tidegate.yaml in the current folder]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of a configuration, for editors
    Schema,
}

impl Config {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Schema => Ok(writeln!(std::io::stdout(), "{:#}", schema())?),
            Self::Check { file } => {
                let named = file.or_else(|| options.config.clone());
                let file = named.unwrap_or_else(|| PathBuf::from(FILE_NAME));
                check(file, options).await
            }
        }
    }
}

async fn check(file: PathBuf, options: &Options) -> Result<(), Failure> {
    let options = options.with_config(file.clone());
    let opened = Opened::open(Sources::None, &options, Audience::CommandLine).await?;
    let assembled = &opened.assembled;
    let warnings = match assembled.warnings.len() {
        0 => String::new(),
        1 => "; 1 warning above".to_owned(),
        count => format!("; {count} warnings above"),
    };
    let obstacles = serving::obstacles(&opened.loaded);
    opened.close().await;
    if !obstacles.is_empty() {
        return Err(opened.loaded.broken(&obstacles).into());
    }
    let (databases, tools) = (assembled.databases, assembled.tools);
    writeln!(
        std::io::stdout(),
        "{}: {databases} databases and {tools} tools, nothing wrong{warnings}",
        file.display()
    )?;
    Ok(())
}
