//! `tidegate pg install` and `print`: the schema of handlers, created or printed.

use clap::Args;
use tidegate_postgres_handlers::{HandlerSchemaScripts, InstallMode, Installation};

use super::{ExecutionFlags, HandlerSchemaArguments, SchemaFlag};
use crate::command_error::CommandError;
use crate::output;

/// Create the schema of handlers
#[derive(Debug, Args)]
pub(crate) struct PgInstallCommand {
    #[command(flatten)]
    schema_arguments: HandlerSchemaArguments,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl PgInstallCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let Self { schema_arguments, execution } = self;
        if execution.print {
            // The script itself checks what exists.
            return output::print(schema_arguments.schema.install_script());
        }
        let mode = execution.mode();
        let installation = schema_arguments.installer()?.install(mode).await?;
        output::print(render_installation(&installation, mode))
    }
}

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
        output::print(script)
    }
}

fn render_installation(installation: &Installation, mode: InstallMode) -> String {
    let Installation { database, schema, was_installed } = installation;
    let (location, version) =
        (format!("the schema {schema} of the database {database}"), HandlerSchemaScripts::VERSION);
    match (*was_installed, mode) {
        (true, _) => {
            format!("{location} has the handlers of this program, version {version}: there is nothing to change\n")
        }
        (false, InstallMode::Commit) => format!(
            "handlers are installed in {location}, version {version}\n\
             a role that is to call them needs SELECT {schema}.grant_mcp_access('ROLE')\n"
        ),
        (false, InstallMode::DryRun) => format!(
            "handlers would be installed in {location}, version {version}\nthis was a dry run: nothing is changed\n"
        ),
    }
}
