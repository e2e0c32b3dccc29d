//! The status of an installation, as far as the current role may read it.

use tidegate_core::Error;
use tokio_postgres::Client;

use crate::inspection::{self, InstallInspection, owner_error};
use crate::schema_name::SchemaName;
use crate::sql_layer::MigrationStep;

/// The maximum number of lines of the exchange log that are counted.
const LINES_COUNTED_MAX: i64 = 1_000_000;

/// The status of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallStatus {
    /// The database.
    pub database: String,
    /// The schema of handlers.
    pub schema: SchemaName,
    /// The role that owns it.
    pub owner: String,
    /// Whether the current role has the owner's privileges. Other roles see less.
    pub has_owner_rights: bool,
    /// The installed version.
    pub version: InstalledVersion,
    /// The number of handlers of each type that occurs; `None` if the role may not read them.
    pub handlers: Option<Vec<(String, u64)>>,
    /// The exchange log; `None` if the role may not read it or if it does not exist.
    pub exchange: Option<ExchangeLogStatus>,
    /// The roles that may dispatch.
    pub dispatch_roles: Vec<String>,
}

/// The installed version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledVersion {
    /// The role may not read it.
    Hidden,
    /// The installation is older than version numbers.
    Unversioned,
    /// The version number.
    Version(u32),
}

/// The status of the exchange log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLogStatus {
    /// Whether calls are recorded.
    pub is_on: bool,
    /// The number of lines; `None` if the role may not read them.
    pub lines: Option<LineCount>,
}

/// A number of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineCount {
    /// The exact number.
    Exactly(u64),
    /// More than this number.
    MoreThan(u64),
}

/// The tables that the role may read.
struct ReadableTables {
    migration: bool,
    handler: bool,
    registry: bool,
    exchange: bool,
}

impl InstallStatus {
    pub(super) async fn query(client: &Client, install_inspection: &InstallInspection) -> Result<Self, Error> {
        let ask = async |sql: &str| {
            let sql = sql.replace("@schema@", install_inspection.schema.as_str());
            client.query_typed(&sql, &[]).await.map_err(owner_error)
        };
        let rows = ask(READABLE_TABLES_SQL).await?;
        let readable = rows.first().map(|row| {
            Ok(ReadableTables {
                migration: row.try_get(0)?,
                handler: row.try_get(1)?,
                registry: row.try_get(2)?,
                exchange: row.try_get(3)?,
            })
        });
        let readable = readable.ok_or_else(|| Error::internal("the catalog returned no row"))?.map_err(owner_error)?;
        let version = match readable.migration {
            true => InstalledVersion::from_steps(&inspection::read_steps(client, &install_inspection.schema).await?),
            false => InstalledVersion::Hidden,
        };
        let handlers = match readable.handler {
            true => Some(read_counts(&ask(HANDLER_COUNTS_SQL).await?).map_err(owner_error)?),
            false => None,
        };
        let lines = match readable.exchange {
            true => Some(LineCount::from_count(
                ask(LINE_COUNT_SQL).await?.first().map_or(Ok(0), |row| row.try_get(0)).map_err(owner_error)?,
            )),
            false => None,
        };
        let exchange = match readable.registry {
            true => {
                let is_on = ask(LOGGING_SWITCH_SQL)
                    .await?
                    .first()
                    .map_or(Ok(false), |row| row.try_get(0))
                    .map_err(owner_error)?;
                Some(ExchangeLogStatus { is_on, lines })
            }
            false => None,
        };
        let dispatching = ask(DISPATCH_ROLES_SQL).await?;
        let dispatching =
            dispatching.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(owner_error)?;
        Ok(Self {
            database: install_inspection.database.clone(),
            schema: install_inspection.schema.clone(),
            owner: install_inspection.owner().to_owned(),
            has_owner_rights: install_inspection.has_owner_rights(),
            version,
            handlers,
            exchange,
            dispatch_roles: dispatching,
        })
    }
}

impl InstalledVersion {
    fn from_steps(steps: &[MigrationStep]) -> Self {
        steps.iter().filter_map(MigrationStep::version).max().map_or(Self::Unversioned, Self::Version)
    }
}

impl LineCount {
    fn from_count(counted: i64) -> Self {
        match u64::try_from(counted.min(LINES_COUNTED_MAX)).unwrap_or(0) {
            count if counted > LINES_COUNTED_MAX => Self::MoreThan(count),
            count => Self::Exactly(count),
        }
    }
}

fn read_counts(rows: &[tokio_postgres::Row]) -> Result<Vec<(String, u64)>, tokio_postgres::Error> {
    let count = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs()));
    rows.iter().map(count).collect()
}

/// The exchange log was added later, so its switch may be missing.
const READABLE_TABLES_SQL: &str = "
    SELECT coalesce(bool_or(relname = 'migration'), false), coalesce(bool_or(relname = 'handler'), false),
        coalesce(bool_or(relname = 'registry' AND EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'logs_exchanges' AND NOT attisdropped
        )), false),
        coalesce(bool_or(relname = 'exchange'), false)
    FROM pg_class
    WHERE relnamespace = '@schema@'::regnamespace AND relkind = 'r'
        AND has_schema_privilege(relnamespace, 'USAGE') AND has_table_privilege(oid, 'SELECT')";

const HANDLER_COUNTS_SQL: &str =
    "SELECT type, count(*) FROM @schema@.handler GROUP BY type ORDER BY type = 'prompt', type = 'resource', type";
const LOGGING_SWITCH_SQL: &str = "SELECT logs_exchanges FROM @schema@.registry";
const LINE_COUNT_SQL: &str = "SELECT count(*) FROM (SELECT FROM @schema@.exchange LIMIT 1000001) AS line";
const DISPATCH_ROLES_SQL: &str = "
    SELECT DISTINCT rolname::text
    FROM pg_proc, aclexplode(proacl) AS entry JOIN pg_roles ON pg_roles.oid = grantee
    WHERE pronamespace = '@schema@'::regnamespace AND proname = 'mcp_handle_request' AND grantee <> proowner
    ORDER BY 1";
