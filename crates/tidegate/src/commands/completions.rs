//! `tidegate completions`: completion scripts for shells. The scripts run the program with [`VARIABLE`] at each request of the
//! user, so it answers within [`values::NODE_TIMEOUT`], prints no errors and changes nothing.
//!
//! - `typed_line`: the words of the shell, and the options that are typed already.
//! - `value_kind`: which values an argument takes.
//! - `values`: these values, from the configuration and from a node that is opened for them.

mod typed_line;
mod value_kind;
mod values;

use std::ffi::OsString;
use std::sync::Arc;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::env::{Elvish, EnvCompleter, Fish};

use self::typed_line::TypedLine;
use self::value_kind::complete_values;
use super::{Cli, usage_error};
use crate::command_error::CommandError;
use crate::output;

/// The environment variable with the name of the shell that requests the words at the cursor.
const VARIABLE: &str = "TIDEGATE_COMPLETE";

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: CompletingShell,
}

/// PowerShell is absent: it inserts a name as it is, which may contain a command.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompletingShell {
    Bash,
    Elvish,
    Fish,
    Zsh,
}

impl CompletionsCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self.shell {
            // Those of clap_complete do not quote names in bash, complete nothing after `=` there, and write a space after it
            // in zsh.
            CompletingShell::Bash => output::print(include_str!("completions/tidegate.bash")),
            CompletingShell::Zsh => output::print(include_str!("completions/tidegate.zsh")),
            CompletingShell::Fish => print_registration(&Fish),
            CompletingShell::Elvish => print_registration(&Elvish),
        }
    }
}

fn print_registration(shell: &dyn EnvCompleter) -> Result<(), CommandError> {
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "tidegate", "tidegate", "tidegate", &mut script).map_err(anyhow::Error::from)?;
    output::print(String::from_utf8_lossy(&script))
}

/// Prints the words that fit at the cursor, if a shell requests them. Whether it does.
pub(super) fn complete_line() -> Result<bool, CommandError> {
    if std::env::var_os(VARIABLE).is_none() {
        return Ok(false);
    }
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let line = Arc::new(TypedLine::new(arguments.skip_while(|argument| argument != "--").skip(1)));
    let words = [program, OsString::from("--")].into_iter().chain(line.words.iter().map(OsString::from));
    let current_dir = std::env::current_dir().ok();
    CompleteEnv::with_factory(|| complete_values(Cli::command(), &line))
        .var(VARIABLE)
        .try_complete(words, current_dir.as_deref())
        .map_err(|error| usage_error(&error))
}
