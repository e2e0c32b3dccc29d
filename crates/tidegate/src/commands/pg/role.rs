//! `tidegate pg role`.

use std::io::Write as _;

use clap::Args;
use tidegate_postgres::RoleRequest;
use tidegate_postgres_handlers::SchemaName;

use crate::command_error::CommandError;

/// What the role is for.
#[derive(Debug, Args)]
pub(crate) struct PgRoleCommand {
    /// The role that Tidegate logs in as
    #[arg(default_value = "tidegate_reader")]
    login: String,
    /// A schema whose tables may be read; may be given several times
    #[arg(long, value_name = "NAME", default_value = "public")]
    schema: Vec<String>,
    /// A role that calls run as, so that policies can tell callers apart; may be given several times
    #[arg(long, value_name = "ROLE")]
    run_as: Vec<String>,
    /// A schema of handlers, which the role is to call
    #[arg(long, value_name = "SCHEMA", value_parser = SchemaName::parse)]
    handlers: Option<SchemaName>,
}

impl PgRoleCommand {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let Self { login, schema, run_as, handlers } = self;
        let mut request = RoleRequest { login, schemas: schema, run_as, further_sql: String::new() };
        if let Some(schema) = handlers {
            request.further_sql = schema.grants_sql(&request.readers());
        }
        Ok(write!(std::io::stdout(), "{}", request.sql())?)
    }
}
