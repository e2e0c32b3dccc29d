//! `tidegate pg upgrade`.

use std::io::Write as _;

use clap::Args;

use super::change_report;
use super::schema_arguments::{ExecutionFlags, HandlerSchemaArguments};
use crate::command_error::CommandError;

/// Upgrade an existing schema of handlers to this version
#[derive(Debug, Args)]
pub(crate) struct PgUpgradeCommand {
    #[command(flatten)]
    schema_arguments: HandlerSchemaArguments,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl PgUpgradeCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let Self { schema_arguments: place, execution: manner } = self;
        if manner.print {
            // What makes the schema finds out itself what is there.
            return Ok(write!(std::io::stdout(), "{}", place.schema.install_script())?);
        }
        let ending = manner.ending();
        let change = place.installer()?.upgrade(ending).await?;
        Ok(write!(std::io::stdout(), "{}", change_report::render_change(&change, ending))?)
    }
}
