//! Installs, upgrades and removes the schema of handlers. Each operation is one transaction on its own connection.
//!
//! It does not use the pool, whose connections are read-only and belong to another role than the owner of the schema.

use tidegate_core::{Error, ErrorKind};
use tidegate_postgres::connect::ConnectTarget;
use tokio_postgres::Client;

use crate::inspection::{InstallInspection, InstallStatus, SchemaInventory, owner_error};
use crate::schema_name::SchemaName;
use crate::schema_scripts::{HandlerSchemaScripts, MigrationStep};

/// Time limits: for waiting for a concurrent installation, and for each statement.
const TIMEOUTS_SQL: &str = "SET LOCAL lock_timeout = '30s'; SET LOCAL statement_timeout = '10min'";

/// Installs handlers in a database and removes them.
#[derive(Debug, Clone)]
pub struct Installer {
    target: ConnectTarget,
    layer: HandlerSchemaScripts,
}

/// Whether the changes are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallMode {
    /// They are committed.
    Commit,
    /// They are executed and rolled back.
    DryRun,
}

/// The changes of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallChanges {
    /// The database.
    pub database: String,
    /// The schema of handlers.
    pub schema: SchemaName,
    /// Whether the schema contained handlers before.
    pub was_installed: bool,
    /// The version before; `None` if there was none, or if the installation is older than version numbers.
    pub version_before: Option<u32>,
    /// The migration steps that were missing.
    pub steps: Vec<MigrationStep>,
    /// The number of new functions.
    pub functions_added: usize,
    /// The number of changed functions.
    pub functions_replaced: usize,
    /// The number of removed functions.
    pub functions_dropped: usize,
}

impl InstallChanges {
    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.functions_added + self.functions_replaced + self.functions_dropped == 0
    }

    fn between(inspection: &InstallInspection, before: &SchemaInventory, after: &SchemaInventory) -> Self {
        let steps = after.steps.iter().filter(|step| !before.steps.contains(step)).cloned();
        let (old, new) = (&before.functions, &after.functions);
        Self {
            database: inspection.database.clone(),
            schema: inspection.schema.clone(),
            was_installed: inspection.is_installed,
            version_before: before.steps.iter().filter_map(MigrationStep::version).max(),
            steps: steps.collect(),
            functions_added: new.keys().filter(|name| !old.contains_key(*name)).count(),
            functions_replaced: new
                .iter()
                .filter(|(name, hash)| old.get(*name).is_some_and(|was| was != *hash))
                .count(),
            functions_dropped: old.keys().filter(|name| !new.contains_key(*name)).count(),
        }
    }
}

impl Installer {
    /// Creates an installer for the database at `target`.
    pub fn new(target: ConnectTarget, layer: HandlerSchemaScripts) -> Self {
        Self { target, layer }
    }

    /// Creates the schema, or upgrades an existing one to the version of this program.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, if the role lacks the privileges, if the schema has another owner or was
    /// created by a newer program, or if the server rejects a statement. In all these cases nothing is changed.
    pub async fn install(&self, mode: InstallMode) -> Result<InstallChanges, Error> {
        self.apply(mode, |_| Ok(())).await
    }

    /// Like [`Self::install`], but requires that handlers are installed.
    ///
    /// # Errors
    /// As [`Self::install`], and if no handlers are installed.
    pub async fn upgrade(&self, mode: InstallMode) -> Result<InstallChanges, Error> {
        self.apply(mode, InstallInspection::check_installed).await
    }

    /// Removes the schema with all handlers.
    ///
    /// # Errors
    /// As [`Self::upgrade`], and if an object outside the schema depends on it.
    pub async fn uninstall(&self, mode: InstallMode) -> Result<(), Error> {
        let remove = async |client: &Client| {
            let inspection = self.begin(client).await?;
            inspection.check_installed()?;
            inspection.check_rights()?;
            check_not_newer(&inspection, &SchemaInventory::read(client, self.layer.schema()).await?.steps)?;
            execute(client, &self.layer.uninstall_sql()).await?;
            end(client, mode).await
        };
        self.with_connection(remove).await
    }

    /// The installation status. Changes nothing and also works on a standby.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or if no handlers are installed.
    pub async fn status(&self) -> Result<InstallStatus, Error> {
        let read = async |client: &Client| {
            let begin = format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {TIMEOUTS_SQL}; SET LOCAL search_path = pg_catalog, pg_temp"
            );
            execute(client, &begin).await?;
            let inspection = InstallInspection::query(client, self.layer.schema()).await?;
            inspection.check_installed()?;
            InstallStatus::query(client, &inspection).await
        };
        self.with_connection(read).await
    }

    async fn apply(
        &self,
        mode: InstallMode,
        check: fn(&InstallInspection) -> Result<(), Error>,
    ) -> Result<InstallChanges, Error> {
        let change = async |client: &Client| {
            let schema = self.layer.schema();
            let inspection = self.begin(client).await?;
            check(&inspection)?;
            inspection.check_rights()?;
            let before = match inspection.is_installed {
                true => SchemaInventory::read(client, schema).await?,
                false => SchemaInventory::default(),
            };
            check_not_newer(&inspection, &before.steps)?;
            execute(client, &self.layer.install_sql()).await?;
            let after = SchemaInventory::read(client, schema).await?;
            end(client, mode).await?;
            Ok(InstallChanges::between(&inspection, &before, &after))
        };
        self.with_connection(change).await
    }

    /// Runs `work` on a new connection. After an error, its transaction ends with the connection.
    async fn with_connection<T>(&self, work: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Result<T, Error> {
        let connection = self.target.connect("tidegate pg").await;
        let connection = connection.map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))?;
        let outcome = work(connection.client()).await;
        connection.close().await;
        outcome
    }

    /// Begins the transaction and waits for concurrent installations.
    async fn begin(&self, client: &Client) -> Result<InstallInspection, Error> {
        let begin = self.layer.begin_sql();
        let (begin, lock) = begin.split_once('\n').unwrap_or((&begin, ""));
        execute(client, begin).await?;
        execute(client, TIMEOUTS_SQL).await?;
        execute(client, lock).await?;
        InstallInspection::query(client, self.layer.schema()).await
    }
}

/// Rejects a downgrade: this program does not support the schema of a newer one.
fn check_not_newer(inspection: &InstallInspection, steps: &[MigrationStep]) -> Result<(), Error> {
    let Some(unknown) = steps.iter().rfind(|step| !step.is_known()) else { return Ok(()) };
    let subject = match unknown.version() {
        Some(version) => {
            format!("it has version {version}, and this program has version {}", HandlerSchemaScripts::VERSION)
        }
        None => format!("this program does not contain its migration step {unknown}"),
    };
    let message = format!(
        "the schema {} of the database {} was created by a newer Tidegate: {subject}",
        inspection.schema, inspection.database
    );
    Err(Error::new(ErrorKind::InvalidArguments, message).with_hint("Use that version of Tidegate or a newer one."))
}

async fn end(client: &Client, mode: InstallMode) -> Result<(), Error> {
    let sql = match mode {
        InstallMode::Commit => "COMMIT",
        InstallMode::DryRun => "ROLLBACK",
    };
    execute(client, sql).await
}

async fn execute(client: &Client, sql: &str) -> Result<(), Error> {
    client.batch_execute(sql).await.map_err(owner_error)
}
