//! `tidegate pg role`.

use std::io::Write as _;

use clap::Args;
use tidegate_postgres::RoleRequest;
use tidegate_postgres_handlers::SchemaName;

use crate::command_error::CommandError;

/// What the role is for.
#[derive(Debug, Args)]
pub(crate) struct PgRoleCommand {
    /// Role that Tidegate logs in as
    #[arg(default_value = "tidegate_reader")]
    login: String,
    /// Schema whose tables may be read; can be repeated
    #[arg(long, value_name = "NAME", default_value = "public")]
    schema: Vec<String>,
    /// Role that calls run as, so that policies can distinguish callers; can be repeated
    #[arg(long, value_name = "ROLE")]
    run_as: Vec<String>,
    /// Schema of handlers that the role may call
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
