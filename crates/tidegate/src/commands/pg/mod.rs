//! `tidegate pg`: what a PostgreSQL server needs to be asked through Tidegate, and the handlers that live in one.

mod change_report;
mod install;
mod new;
mod print;
mod role;
mod schema_arguments;
mod status;
mod test;
mod uninstall;
mod upgrade;

use clap::Subcommand;

use crate::command_error::CommandError;
use crate::options::GlobalOptions;

/// Prepare a PostgreSQL database, and manage handlers in it
#[derive(Debug, Subcommand)]
pub(crate) enum PgCommand {
    /// Print the SQL of a role that can read and nothing else
    Role(role::PgRoleCommand),
    Install(install::PgInstallCommand),
    Status(status::PgStatusCommand),
    Upgrade(upgrade::PgUpgradeCommand),
    Uninstall(uninstall::PgUninstallCommand),
    Print(print::PgPrintCommand),
    New(new::PgNewCommand),
    Test(test::PgTestCommand),
}

impl PgCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Role(role) => role.run(),
            Self::Install(install) => install.run().await,
            Self::Status(status) => status.run().await,
            Self::Upgrade(upgrade) => upgrade.run().await,
            Self::Uninstall(uninstall) => uninstall.run().await,
            Self::Print(print) => print.run(),
            Self::New(new) => new.run(),
            Self::Test(test) => test.run(options).await,
        }
    }
}
