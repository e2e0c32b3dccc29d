//! Installs and removes the schema of handlers. Each operation is one transaction on its own connection.
//!
//! It does not use the pool, whose connections are read-only and belong to another role than the owner of the schema.

use tidegate_core::{Error, ErrorKind};
use tidegate_postgres::connect::ConnectTarget;
use tokio_postgres::Client;

use crate::inspection::{InstallInspection, InstallStatus, owner_error};
use crate::schema_name::SchemaName;
use crate::schema_scripts::HandlerSchemaScripts;

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

/// Where handlers are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The database.
    pub database: String,
    /// The schema of handlers.
    pub schema: SchemaName,
    /// Whether they were installed before, so that nothing was changed.
    pub was_installed: bool,
}

impl Installer {
    /// Creates an installer for the database at `target`.
    pub fn new(target: ConnectTarget, layer: HandlerSchemaScripts) -> Self {
        Self { target, layer }
    }

    /// Creates the schema. Changes nothing if it contains the handlers of this program.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, if the role lacks the privileges, if the schema has another owner or
    /// another version, or if the server rejects a statement. In all these cases nothing is changed.
    pub async fn install(&self, mode: InstallMode) -> Result<Installation, Error> {
        let create = async |client: &Client| {
            let inspection = self.begin(client).await?;
            inspection.check_rights()?;
            if inspection.is_installed {
                inspection.check_version(client).await?;
            } else {
                execute(client, &self.layer.install_sql()).await?;
            }
            end(client, mode).await?;
            let InstallInspection { database, schema, is_installed, .. } = inspection;
            Ok(Installation { database, schema, was_installed: is_installed })
        };
        self.with_connection(create).await
    }

    /// Removes the schema with all handlers.
    ///
    /// # Errors
    /// As [`Self::install`], if no handlers are installed, and if an object outside the schema depends on them.
    pub async fn uninstall(&self, mode: InstallMode) -> Result<(), Error> {
        let remove = async |client: &Client| {
            let inspection = self.begin(client).await?;
            inspection.check_installed()?;
            inspection.check_rights()?;
            inspection.check_version(client).await?;
            execute(client, &self.layer.uninstall_sql()).await?;
            end(client, mode).await
        };
        self.with_connection(remove).await
    }

    /// The installation status. Changes nothing and also works on a standby.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or if no handlers or those of another version are installed.
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
