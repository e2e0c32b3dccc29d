//! `tidegate pg`: what a PostgreSQL server needs to be asked through Tidegate, and the handlers that live in one.

mod install;
mod new;
mod role;
mod schema_arguments;
mod status;
mod test;
mod uninstall;

use clap::Subcommand;

use crate::command_error::CommandError;
use crate::options::GlobalOptions;

/// Prepare a PostgreSQL database, and manage handlers in it
#[derive(Debug, Subcommand)]
pub(crate) enum PgCommand {
    /// Print the SQL of a role that can read and nothing else
    Role(role::PgRoleCommand),
    /// Create the schema of handlers, or upgrade it to this version
    Install(install::PgInstallArguments),
    Status(status::PgStatusCommand),
    /// Upgrade an existing schema of handlers to this version
    Upgrade(install::PgInstallArguments),
    Uninstall(uninstall::PgUninstallCommand),
    Print(install::PgPrintCommand),
    New(new::PgNewCommand),
    Test(test::PgTestCommand),
}

impl PgCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Role(role) => role.run(),
            Self::Install(install) => install.run(false).await,
            Self::Status(status) => status.run().await,
            Self::Upgrade(upgrade) => upgrade.run(true).await,
            Self::Uninstall(uninstall) => uninstall.run().await,
            Self::Print(print) => print.run(),
            Self::New(new) => new.run(),
            Self::Test(test) => test.run(options).await,
        }
    }
}
