//! `tidegate man`: manual pages, for packages.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};

use super::Cli;
use crate::command_error::CommandError;

/// Write a manual page for each command into a folder
#[derive(Debug, Args)]
pub(crate) struct ManCommand {
    /// The folder
    folder: PathBuf,
}

impl ManCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let failed = || format!("cannot write manual pages into {}", self.folder.display());
        std::fs::create_dir_all(&self.folder).with_context(failed)?;
        Ok(clap_mangen::generate_to(Cli::command(), &self.folder).with_context(failed)?)
    }
}
