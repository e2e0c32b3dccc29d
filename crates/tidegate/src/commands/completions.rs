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
        let mut output = std::io::stdout().lock();
        match self.shell {
            Shell::Bash => output.write_all(include_bytes!("completions/tidegate.bash"))?,
            Shell::Zsh => output.write_all(include_bytes!("completions/tidegate.zsh"))?,
            Shell::Fish => output.write_all(include_bytes!("completions/tidegate.fish"))?,
            // Commands, flags and their fixed values only.
            other => {
                let mut script = Vec::new();
                clap_complete::generate(other, &mut Cli::command(), "tidegate", &mut script);
                output.write_all(&script)?;
            }
        }
        Ok(output.flush()?)
    }
}
