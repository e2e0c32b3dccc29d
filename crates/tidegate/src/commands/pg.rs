//! `tidegate pg`: what a PostgreSQL server needs to be asked through Tidegate.

use std::io::Write as _;

use clap::{Args, Subcommand};
use tidegate_postgres::RoleRequest;

use crate::failure::Failure;

/// Prepare a PostgreSQL server
#[derive(Debug, Subcommand)]
pub(crate) enum Pg {
    /// Print the SQL of a role that can read and nothing else
    Role(Role),
}

/// What the role is for.
#[derive(Debug, Args)]
pub(crate) struct Role {
    /// The role that Tidegate logs in as
    #[arg(default_value = "tidegate_reader")]
    login: String,
    /// A schema whose tables may be read; may be given several times
    #[arg(long, value_name = "NAME", default_value = "public")]
    schema: Vec<String>,
    /// A role that calls run as, so that policies can tell callers apart; may be given several times
    #[arg(long, value_name = "ROLE")]
    run_as: Vec<String>,
}

impl Pg {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self::Role(Role { login, schema, run_as }) = self;
        let request = RoleRequest { login, schemas: schema, run_as };
        Ok(write!(std::io::stdout(), "{}", request.sql())?)
    }
}
