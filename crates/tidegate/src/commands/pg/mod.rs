//! `tidegate pg`: what a PostgreSQL server needs to be asked through Tidegate, and the handlers that live in one.

mod change;
mod install;
mod new;
mod place;
mod print;
mod role;
mod status;
mod test;
mod uninstall;
mod upgrade;

use clap::Subcommand;

use crate::failure::Failure;
use crate::options::Options;

/// Prepare a PostgreSQL server, and keep handlers of MCP in it
#[derive(Debug, Subcommand)]
pub(crate) enum Pg {
    /// Print the SQL of a role that can read and nothing else
    Role(role::Role),
    Install(install::Install),
    Status(status::Status),
    Upgrade(upgrade::Upgrade),
    Uninstall(uninstall::Uninstall),
    Print(print::Print),
    New(new::New),
    Test(test::Test),
}

impl Pg {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
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
