//! `tidegate completions`: completion scripts for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;
use crate::command_error::CommandError;
use crate::output;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self.shell {
            Shell::Bash => output::print(include_str!("completions/tidegate.bash")),
            Shell::Zsh => output::print(include_str!("completions/tidegate.zsh")),
            Shell::Fish => output::print(include_str!("completions/tidegate.fish")),
            // Commands, flags and their fixed values only.
            other => {
                let mut script = Vec::new();
                clap_complete::generate(other, &mut Cli::command(), "tidegate", &mut script);
                output::print(String::from_utf8_lossy(&script))
            }
        }
    }
}
