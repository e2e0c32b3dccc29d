//! The status of an installation, as far as the current role may read it.

use tidegate_core::Error;
use tokio_postgres::Client;

use crate::inspection::{self, InstallInspection, owner_error};
use crate::schema_name::SchemaName;
use crate::sql_layer::MigrationStep;

/// The maximum number of lines of the call log that are counted.
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
    /// The call log; `None` if the role may not read it or if it does not exist.
    pub call_log: Option<CallLogStatus>,
    /// The roles that may dispatch.
    pub dispatch_roles: Vec<String>,
}

/// The installed version of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledVersion {
    /// The role may not read it.
    Hidden,
    /// The installation is older than version numbers.
    Unversioned,
    /// The version number.
    Version(u32),
}

/// The status of the call log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLogStatus {
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

impl InstallStatus {
    pub(super) async fn query(client: &Client, inspection: &InstallInspection) -> Result<Self, Error> {
        let query = async |sql: &str| {
            let sql = sql.replace("@schema@", inspection.schema.as_str());
            client.query_typed(&sql, &[]).await.map_err(owner_error)
        };
        let rows = query(READABLE_TABLES_SQL).await?;
        let row = rows.first().ok_or_else(|| Error::internal("the catalog returned no row"))?;
        let is_readable = |column: usize| row.try_get::<_, bool>(column).map_err(owner_error);
        let version = match is_readable(0)? {
            true => InstalledVersion::from_steps(&inspection::read_steps(client, &inspection.schema).await?),
            false => InstalledVersion::Hidden,
        };
        let handlers = match is_readable(1)? {
            true => Some(read_counts(&query(HANDLER_COUNTS_SQL).await?).map_err(owner_error)?),
            false => None,
        };
        let lines = match is_readable(3)? {
            true => {
                let rows = query(LINE_COUNT_SQL).await?;
                let count = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(owner_error)?;
                Some(LineCount::from_count(count))
            }
            false => None,
        };
        let call_log = match is_readable(2)? {
            true => {
                let rows = query(LOGGING_SWITCH_SQL).await?;
                let is_on = rows.first().map_or(Ok(false), |row| row.try_get(0)).map_err(owner_error)?;
                Some(CallLogStatus { is_on, lines })
            }
            false => None,
        };
        let roles = query(DISPATCH_ROLES_SQL).await?;
        let dispatch_roles = roles.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(owner_error)?;
        Ok(Self {
            database: inspection.database.clone(),
            schema: inspection.schema.clone(),
            owner: inspection.owner().to_owned(),
            has_owner_rights: inspection.has_owner_rights(),
            version,
            handlers,
            call_log,
            dispatch_roles,
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

/// The tables that the role may read. The call log was added later, so its switch may be missing.
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
