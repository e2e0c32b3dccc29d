//! `tidegate completions`: completion scripts for shells.

use std::io::Write as _;

use clap::{Args, Command, CommandFactory as _};
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
        let mut command = Cli::command();
        clap_complete::generate(self.shell, &mut command, "tidegate", &mut script);
        if self.shell == Shell::Fish {
            script.extend(fish_argument_values(&command).into_bytes());
        }
        let mut output = std::io::stdout().lock();
        output.write_all(&script)?;
        Ok(output.flush()?)
    }
}

/// Completes the values of arguments without a flag, such as the names of clients, which the script for fish lacks.
fn fish_argument_values(command: &Command) -> String {
    let mut script = String::new();
    for subcommand in command.get_subcommands() {
        for argument in subcommand.get_positionals() {
            let values = argument.get_possible_values();
            let values: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
            if !values.is_empty() {
                let (name, values) = (subcommand.get_name(), values.join(" "));
                let condition = format!("__fish_tidegate_using_subcommand {name}");
                script.push_str(&format!("complete -c tidegate -n \"{condition}\" -f -a \"{values}\"\n"));
            }
        }
    }
    script
}
