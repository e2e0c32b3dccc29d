//! `tidegate pg`: prepares a PostgreSQL database, and manages handlers in it.

mod install;
mod new;
mod status;
mod test;
mod uninstall;

use clap::{Args, Subcommand};
use tidegate_postgres::RoleRequest;
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres_handlers::{HandlerSchemaScripts, InstallMode, Installer, SchemaName};

use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::output;

/// Prepare a PostgreSQL database, and manage handlers in it
#[derive(Debug, Subcommand)]
pub(crate) enum PgCommand {
    /// Print the SQL of a role that can read and nothing else
    Role(PgRoleCommand),
    Install(install::PgInstallCommand),
    Status(status::PgStatusCommand),
    Uninstall(uninstall::PgUninstallCommand),
    Print(install::PgPrintCommand),
    New(new::PgNewCommand),
    Test(test::PgTestCommand),
}

impl PgCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Role(role) => role.run(),
            Self::Install(install) => install.run().await,
            Self::Status(status) => status.run().await,
            Self::Uninstall(uninstall) => uninstall.run().await,
            Self::Print(print) => print.run(),
            Self::New(new) => new.run(),
            Self::Test(test) => test.run(options).await,
        }
    }
}

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
    fn run(self) -> Result<(), CommandError> {
        let Self { login, schema, run_as, handlers } = self;
        let mut request = RoleRequest { login, schemas: schema, run_as, further_sql: String::new() };
        if let Some(schema) = handlers {
            request.further_sql = schema.grants_sql(&request.readers());
        }
        output::print(request.sql())
    }
}

#[derive(Debug, Args)]
struct HandlerSchemaArguments {
    /// Connection string of the role that owns the handlers, in the syntax of psql [default: the PG* variables]
    #[arg(value_name = "DSN")]
    dsn: Option<String>,

    #[command(flatten)]
    schema: SchemaFlag,
}

#[derive(Debug, Args)]
struct SchemaFlag {
    /// Schema that contains only handlers
    #[arg(long = "schema", value_name = "NAME", default_value = "api", value_parser = SchemaName::parse)]
    name: SchemaName,
}

#[derive(Debug, Args)]
struct ExecutionFlags {
    /// Run everything, print the changes, and roll them back
    #[arg(long)]
    dry_run: bool,

    /// Print the SQL instead of running it; does not connect
    #[arg(long, conflicts_with = "dry_run")]
    print: bool,
}

impl HandlerSchemaArguments {
    fn installer(&self) -> Result<Installer, CommandError> {
        Ok(Installer::new(parse_target(self.dsn.as_deref().unwrap_or_default())?, self.schema.scripts()))
    }
}

fn parse_target(dsn: &str) -> Result<ConnectTarget, CommandError> {
    let target = ConnectTarget::parse(dsn, &ConnectEnvironment::from_process());
    let target = target.map_err(|error| CommandError::Usage(error.to_string()))?;
    for warning in target.warnings() {
        tracing::warn!("{warning}");
    }
    Ok(target)
}

impl SchemaFlag {
    fn scripts(&self) -> HandlerSchemaScripts {
        HandlerSchemaScripts::new(self.name.clone())
    }

    fn install_script(&self) -> String {
        let scripts = self.scripts();
        scripts.script(&scripts.install_sql())
    }

    fn uninstall_script(&self) -> String {
        let scripts = self.scripts();
        scripts.script(&scripts.uninstall_sql())
    }
}

impl ExecutionFlags {
    fn mode(&self) -> InstallMode {
        if self.dry_run { InstallMode::DryRun } else { InstallMode::Commit }
    }
}
