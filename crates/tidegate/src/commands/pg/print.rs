//! `tidegate pg print`.

use std::io::Write as _;

use clap::Args;

use super::schema_arguments::SchemaFlag;
use crate::command_error::CommandError;

/// Print the SQL that creates the schema of handlers, for psql
#[derive(Debug, Args)]
pub(crate) struct PgPrintCommand {
    #[command(flatten)]
    schema: SchemaFlag,
    /// Print the SQL that removes the schema
    #[arg(long)]
    uninstall: bool,
}

impl PgPrintCommand {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let script = if self.uninstall { self.schema.uninstall_script() } else { self.schema.install_script() };
        Ok(write!(std::io::stdout(), "{script}")?)
    }
}
