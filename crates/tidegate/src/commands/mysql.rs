//! `tidegate mysql`: prepares a server of MySQL or MariaDB.

use clap::{Args, Subcommand};
use tidegate_mysql::AccountRequest;

use crate::command_error::CommandError;
use crate::output;

/// Prepare a MySQL or MariaDB server
#[derive(Debug, Subcommand)]
pub(crate) enum MySqlCommand {
    /// Print the SQL of an account that can read and nothing else
    Role(MySqlRoleCommand),
}

impl MySqlCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Role(MySqlRoleCommand { login, host, database, run_as }) => {
                output::print(AccountRequest { login, host, databases: database, run_as }.sql())
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct MySqlRoleCommand {
    /// Account that Tidegate logs in as
    #[arg(default_value = "tidegate_reader")]
    login: String,
    /// Hosts from which it may log in, with % for any characters
    #[arg(long, value_name = "HOST", default_value = "%")]
    host: String,
    /// Database whose tables may be read; can be repeated
    #[arg(long, value_name = "NAME", required = true)]
    database: Vec<String>,
    /// Role that calls run as, so that grants can distinguish callers; can be repeated
    #[arg(long, value_name = "ROLE")]
    run_as: Vec<String>,
}
