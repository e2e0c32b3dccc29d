//! `tidegate completions`: completion scripts for shells.

use std::io::Write as _;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;
use crate::command_error::CommandError;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tidegate", &mut script);
        let mut output = std::io::stdout().lock();
        output.write_all(&script)?;
        Ok(output.flush()?)
    }
}
