//! `tidegate config`: checks a configuration, or prints the JSON Schema.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Subcommand;

use crate::command_error::CommandError;
use crate::config::{CONFIG_FILE_NAME, schema};
use crate::logging;
use crate::open_node::OpenNode;
use crate::options::{GlobalOptions, LimitDefaults};
use crate::output;
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
    let open_node = OpenNode::open(None, &options, LimitDefaults::CommandLine).await?;
    let report = &open_node.apply_report;
    // Otherwise the log contains them.
    if !logging::contains_warnings(&options.log) {
        report.warnings.iter().try_for_each(|warning| output::print(format_args!("warning: {warning}\n")))?;
    }
    let warnings = match report.warnings.len() {
        0 => String::new(),
        1 => "; 1 warning above".to_owned(),
        count => format!("; {count} warnings above"),
    };
    let problems = startup_checks::find_startup_problems(&open_node.loaded_config);
    open_node.close().await;
    if !problems.is_empty() {
        return Err(open_node.loaded_config.to_error(&problems).into());
    }
    let (databases, tools) = (report.databases, report.tools);
    writeln!(
        std::io::stdout(),
        "{}: {databases} databases and {tools} tools, nothing wrong{warnings}",
        file.display()
    )?;
    Ok(())
}
