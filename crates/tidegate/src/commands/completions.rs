//! `tidegate completions`: what a shell needs to complete this command line.

use std::io::Write as _;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tidegate", &mut script);
        let mut output = std::io::stdout().lock();
        output.write_all(&script)?;
        Ok(output.flush()?)
    }
}
