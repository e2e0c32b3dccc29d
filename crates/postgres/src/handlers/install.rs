//! Making, renewing and taking away the schema of handlers, each in one transaction on a connection of its own.
//!
//! Not on the pool's, which only read, and as whoever owns the schema, who is not the role that calls run as.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::Client;

use super::inspection::{InstallInspection, SchemaInventory};
use super::install_error;
use super::schema_name::SchemaName;
use super::sql_layer::{MigrationStep, SqlLayer};
use super::status::InstallStatus;
use crate::connect::{ConnectTarget, OpenConnection, StartupParameters};

/// Bounds of the work: how long it waits for somebody else's, and how long the whole may take.
const TIMEOUTS_SQL: &str = "SET LOCAL lock_timeout = '30s'; SET LOCAL statement_timeout = '10min'";

/// Puts handlers into a database, and takes them out of it.
#[derive(Debug, Clone)]
pub struct Installer {
    target: ConnectTarget,
    layer: SqlLayer,
}

/// Whether what was done stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallMode {
    /// It stays.
    Commit,
    /// It is rolled back: all of it was done, and nothing is changed.
    DryRun,
}

/// What an installation changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallChanges {
    /// The database that it was in.
    pub database: String,
    /// The schema.
    pub schema: SchemaName,
    /// Whether the schema held handlers before.
    pub was_installed: bool,
    /// The version that the schema had before; none where it had none, or was made before versions were counted.
    pub version_before: Option<u32>,
    /// The steps that it had not seen.
    pub steps: Vec<MigrationStep>,
    /// Functions that it had not.
    pub functions_added: usize,
    /// Functions that it had, and that are other ones now.
    pub functions_replaced: usize,
    /// Functions that it has no longer.
    pub functions_dropped: usize,
}

impl InstallChanges {
    /// Whether all is as it was.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.functions_added + self.functions_replaced + self.functions_dropped == 0
    }

    fn between(install_inspection: &InstallInspection, before: &SchemaInventory, after: &SchemaInventory) -> Self {
        let steps = after.steps.iter().filter(|step| !before.steps.contains(step)).cloned();
        let count = |of: &SchemaInventory, holds: &dyn Fn(&str, &String) -> bool| {
            of.functions.iter().filter(|(name, digest)| holds(name, digest)).count()
        };
        Self {
            database: install_inspection.database.clone(),
            schema: install_inspection.schema.clone(),
            was_installed: install_inspection.is_installed,
            version_before: before.steps.iter().filter_map(MigrationStep::version).max(),
            steps: steps.collect(),
            functions_added: count(after, &|name, _| !before.functions.contains_key(name)),
            functions_replaced: count(after, &|name, digest| {
                before.functions.get(name).is_some_and(|was| was != digest)
            }),
            functions_dropped: count(before, &|name, _| !after.functions.contains_key(name)),
        }
    }
}

impl Installer {
    /// For the database at `target`.
    pub fn new(target: ConnectTarget, layer: SqlLayer) -> Self {
        Self { target, layer }
    }

    /// Makes the schema, or brings one that is there to this program's version.
    ///
    /// # Errors
    /// When the server cannot be reached, the role may not do it, the schema is somebody else's or a newer program's,
    /// or the server refuses a statement. Nothing is changed then.
    pub async fn install(&self, ending: InstallMode) -> Result<InstallChanges, Error> {
        self.apply(ending, |_| Ok(())).await
    }

    /// The same where handlers are installed.
    ///
    /// # Errors
    /// As [`Self::install`], and where none are.
    pub async fn upgrade(&self, ending: InstallMode) -> Result<InstallChanges, Error> {
        self.apply(ending, InstallInspection::check_installed).await
    }

    /// Takes the schema away with all handlers.
    ///
    /// # Errors
    /// As [`Self::upgrade`], and where something outside the schema needs it.
    pub async fn uninstall(&self, ending: InstallMode) -> Result<(), Error> {
        let connected = self.connect().await?;
        let done = async {
            let client = connected.client();
            let install_inspection = self.begin(client).await?;
            install_inspection.check_installed()?;
            install_inspection.check_rights()?;
            check_not_newer(&install_inspection, &SchemaInventory::read(client, self.layer.schema()).await?.steps)?;
            execute(client, &self.layer.uninstall_sql()).await?;
            end(client, ending).await
        };
        let done = done.await;
        connected.close().await;
        done
    }

    /// What is installed. It changes nothing, and asks a standby as well.
    ///
    /// # Errors
    /// When the server cannot be reached, or no handlers are installed.
    pub async fn status(&self) -> Result<InstallStatus, Error> {
        let connected = self.connect().await?;
        let status = async {
            let client = connected.client();
            let begin = format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {TIMEOUTS_SQL}; SET LOCAL search_path = pg_catalog, pg_temp"
            );
            execute(client, &begin).await?;
            let install_inspection = InstallInspection::query(client, self.layer.schema()).await?;
            install_inspection.check_installed()?;
            InstallStatus::query(client, &install_inspection).await
        };
        let status = status.await;
        connected.close().await;
        status
    }

    async fn apply(
        &self,
        ending: InstallMode,
        check: impl FnOnce(&InstallInspection) -> Result<(), Error>,
    ) -> Result<InstallChanges, Error> {
        let connected = self.connect().await?;
        let changed = async {
            let client = connected.client();
            let schema = self.layer.schema();
            let install_inspection = self.begin(client).await?;
            check(&install_inspection)?;
            install_inspection.check_rights()?;
            let before = match install_inspection.is_installed {
                true => SchemaInventory::read(client, schema).await?,
                false => SchemaInventory::default(),
            };
            check_not_newer(&install_inspection, &before.steps)?;
            execute(client, &self.layer.install_sql()).await?;
            let after = SchemaInventory::read(client, schema).await?;
            end(client, ending).await?;
            Ok(InstallChanges::between(&install_inspection, &before, &after))
        };
        let changed = changed.await;
        // Where it failed in between, the transaction ends with the connection.
        connected.close().await;
        changed
    }

    async fn connect(&self) -> Result<OpenConnection, Error> {
        let startup = StartupParameters { application_name: "tidegate pg", settings: &[] };
        let connected = self.target.connect(&startup).await;
        connected.map_err(|error| Error::new(ErrorKind::Unavailable, error.log_message()))
    }

    /// Begins the transaction and waits until nobody else is at the same work.
    async fn begin(&self, client: &Client) -> Result<InstallInspection, Error> {
        let begin = self.layer.begin_sql();
        let (begin, lock) = begin.split_once('\n').unwrap_or((&begin, ""));
        execute(client, begin).await?;
        execute(client, TIMEOUTS_SQL).await?;
        execute(client, lock).await?;
        InstallInspection::query(client, self.layer.schema()).await
    }
}

/// Refuses to go back: what a newer program made, this one does not understand.
fn check_not_newer(install_inspection: &InstallInspection, steps: &[MigrationStep]) -> Result<(), Error> {
    let Some(unknown) = steps.iter().rfind(|step| !step.is_known()) else { return Ok(()) };
    let subject = match unknown.version() {
        Some(version) => format!("it has version {version}, and this program brings {}", SqlLayer::VERSION),
        None => format!("this program does not know its step {unknown}"),
    };
    let message = format!(
        "the schema {} of the database {} was made by a newer Tidegate: {subject}",
        install_inspection.schema, install_inspection.database
    );
    Err(Error::new(ErrorKind::InvalidArguments, message).with_hint("Use that Tidegate or a newer one."))
}

async fn end(client: &Client, ending: InstallMode) -> Result<(), Error> {
    let sql = match ending {
        InstallMode::Commit => "COMMIT",
        InstallMode::DryRun => "ROLLBACK",
    };
    execute(client, sql).await
}

async fn execute(client: &Client, sql: &str) -> Result<(), Error> {
    client.batch_execute(sql).await.map_err(install_error::from_driver)
}
