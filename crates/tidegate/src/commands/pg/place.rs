//! Where handlers are or are to be, and how what is done to them is done, as each verb takes it.

use clap::Args;
use tidegate_postgres::connect::{Surroundings, Target};
use tidegate_postgres::handlers::{Ending, Installer, Layer, SchemaName};

use crate::failure::Failure;

/// A schema of a database.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Connection string of the role that owns the handlers, as psql takes it [default: what the PG* variables say]
    #[arg(value_name = "DSN")]
    dsn: Option<String>,

    #[command(flatten)]
    pub(super) schema: SchemaFlag,
}

/// The schema.
#[derive(Debug, Args)]
pub(super) struct SchemaFlag {
    /// The schema that holds the handlers, and nothing else
    #[arg(long = "schema", value_name = "NAME", default_value = "api", value_parser = SchemaName::parse)]
    name: SchemaName,
}

/// Whether it is done at all.
#[derive(Debug, Args)]
pub(super) struct Manner {
    /// Do all of it, say what it changed, and roll it back
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Print the SQL instead of running it; no server is asked
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) print: bool,
}

impl Place {
    pub(super) fn installer(&self) -> Result<Installer, Failure> {
        Ok(Installer::new(target(self.dsn.as_deref().unwrap_or_default())?, self.schema.layer()))
    }
}

/// Where the connection string `dsn` leads.
pub(super) fn target(dsn: &str) -> Result<Target, Failure> {
    let target = Target::read(dsn, &Surroundings::of_process());
    let target = target.map_err(|error| Failure::Usage(error.to_string()))?;
    for warning in target.warnings() {
        tracing::warn!("{warning}");
    }
    Ok(target)
}

impl SchemaFlag {
    pub(super) fn name(&self) -> &SchemaName {
        &self.name
    }

    pub(super) fn layer(&self) -> Layer {
        Layer::new(self.name.clone())
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

impl Manner {
    pub(super) fn ending(&self) -> Ending {
        if self.dry_run { Ending::RolledBack } else { Ending::Kept }
    }
}
