//! `tidegate pg install`.

use std::io::Write as _;

use clap::Args;

use super::change_report;
use super::schema_arguments::{ExecutionFlags, HandlerSchemaArguments};
use crate::command_error::CommandError;

/// Create the schema of handlers, or upgrade it to this version
#[derive(Debug, Args)]
pub(crate) struct PgInstallCommand {
    #[command(flatten)]
    schema_arguments: HandlerSchemaArguments,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl PgInstallCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let Self { schema_arguments: place, execution: manner } = self;
        if manner.print {
            return Ok(write!(std::io::stdout(), "{}", place.schema.install_script())?);
        }
        let ending = manner.ending();
        let change = place.installer()?.install(ending).await?;
        Ok(write!(std::io::stdout(), "{}", change_report::render_change(&change, ending))?)
    }
}
