//! Where handlers are or are to be, and how what is done to them is done, as each verb takes it.

use clap::Args;
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres_handlers::{InstallMode, Installer, SchemaName, SqlLayer};

use crate::command_error::CommandError;

/// A schema of a database.
#[derive(Debug, Args)]
pub(super) struct HandlerSchemaArguments {
    /// Connection string of the role that owns the handlers, in the syntax of psql [default: the PG* variables]
    #[arg(value_name = "DSN")]
    dsn: Option<String>,

    #[command(flatten)]
    pub(super) schema: SchemaFlag,
}

/// The schema.
#[derive(Debug, Args)]
pub(super) struct SchemaFlag {
    /// Schema that contains only handlers
    #[arg(long = "schema", value_name = "NAME", default_value = "api", value_parser = SchemaName::parse)]
    name: SchemaName,
}

/// Whether it is done at all.
#[derive(Debug, Args)]
pub(super) struct ExecutionFlags {
    /// Run everything, print the changes, and roll them back
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Print the SQL instead of running it; does not connect
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) print: bool,
}

impl HandlerSchemaArguments {
    pub(super) fn installer(&self) -> Result<Installer, CommandError> {
        Ok(Installer::new(parse_target(self.dsn.as_deref().unwrap_or_default())?, self.schema.layer()))
    }
}

/// Where the connection string `dsn` leads.
pub(super) fn parse_target(dsn: &str) -> Result<ConnectTarget, CommandError> {
    let target = ConnectTarget::parse(dsn, &ConnectEnvironment::from_process());
    let target = target.map_err(|error| CommandError::Usage(error.to_string()))?;
    for warning in target.warnings() {
        tracing::warn!("{warning}");
    }
    Ok(target)
}

impl SchemaFlag {
    pub(super) fn name(&self) -> &SchemaName {
        &self.name
    }

    pub(super) fn layer(&self) -> SqlLayer {
        SqlLayer::new(self.name.clone())
    }

    /// The script that makes the schema.
    pub(super) fn install_script(&self) -> String {
        let layer = self.layer();
        layer.script(&layer.install_sql())
    }

    /// The script that takes it away.
    pub(super) fn uninstall_script(&self) -> String {
        let layer = self.layer();
        layer.script(&layer.uninstall_sql())
    }
}

impl ExecutionFlags {
    pub(super) fn ending(&self) -> InstallMode {
        if self.dry_run { InstallMode::DryRun } else { InstallMode::Commit }
    }
}
