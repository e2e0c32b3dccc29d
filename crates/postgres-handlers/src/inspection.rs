//! Inspects the schema of handlers in a database, as far as the current role may read it: its owner, its content, and
//! the status of the installation.

use tidegate_core::{Error, ErrorKind};
use tidegate_sql::SqlDialect;
use tokio_postgres::{Client, Row};

use crate::install::{HandlerSchemaScripts, SchemaName};

/// The state of the schema according to the system catalog, which every role may read.
pub(super) struct InstallInspection {
    pub(super) database: String,
    pub(super) schema: SchemaName,
    role: String,
    may_create_schemas: bool,
    /// `None` if the schema does not exist.
    owner: Option<SchemaOwner>,
    pub(super) is_installed: bool,
}

struct SchemaOwner {
    name: String,
    is_current_role: bool,
}

impl InstallInspection {
    pub(super) async fn query(client: &Client, schema: &SchemaName) -> Result<Self, Error> {
        let rows =
            client.query_typed(&INSPECTION_SQL.replace("@schema@", schema.as_str()), &[]).await.map_err(owner_error)?;
        let row = rows.first().ok_or_else(|| Error::internal("the catalog returned no row"))?;
        let read = |row: &Row| -> Result<Self, tokio_postgres::Error> {
            let (owner, is_current_role): (Option<String>, bool) = (row.try_get(3)?, row.try_get(4)?);
            Ok(Self {
                database: row.try_get(0)?,
                schema: schema.clone(),
                role: row.try_get(1)?,
                may_create_schemas: row.try_get(2)?,
                owner: owner.map(|name| SchemaOwner { name, is_current_role }),
                is_installed: row.try_get(5)?,
            })
        };
        read(row).map_err(owner_error)
    }

    pub(super) fn owner(&self) -> &str {
        self.owner.as_ref().map_or("", |owner| owner.name.as_str())
    }

    /// Whether the current role may change the installation.
    pub(super) fn has_owner_rights(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.is_current_role)
    }

    /// Rejects a role that must not create or change the schema, before the server does so in the middle of the work.
    pub(super) fn check_rights(&self) -> Result<(), Error> {
        let Self { database, schema, role, .. } = self;
        match &self.owner {
            None if self.may_create_schemas => Ok(()),
            None => {
                let message = format!(
                    "the role {role} cannot create a schema in the database {database}: it lacks the privilege CREATE"
                );
                let hint = format!(
                    "The owner of the database can run GRANT CREATE ON DATABASE {0} TO {1}, or CREATE SCHEMA {schema} \
                     AUTHORIZATION {1}.",
                    SqlDialect::Postgres.quote_identifier(database),
                    SqlDialect::Postgres.quote_identifier(role)
                );
                Err(Error::new(ErrorKind::Forbidden, message).with_hint(hint))
            }
            Some(owner) if owner.is_current_role => Ok(()),
            Some(SchemaOwner { name, .. }) => {
                let message = format!(
                    "the schema {schema} of the database {database} is owned by {name}, and the role {role} is not a \
                     member of {name}"
                );
                let hint = format!("Connect as {name} or as a member of that role, or choose another schema.");
                Err(Error::new(ErrorKind::Forbidden, message).with_hint(hint))
            }
        }
    }

    pub(super) fn check_installed(&self) -> Result<(), Error> {
        let Self { database, schema, .. } = self;
        let message = match &self.owner {
            _ if self.is_installed => return Ok(()),
            None => format!("the database {database} has no schema {schema}: nothing is installed there"),
            Some(_) => format!("the schema {schema} of the database {database} contains no registry of handlers"),
        };
        Err(Error::new(ErrorKind::NotFound, message).with_hint("Create it with tidegate pg install."))
    }

    /// Rejects handlers of another version, which this program can neither call nor remove.
    pub(super) async fn check_version(&self, client: &Client) -> Result<(), Error> {
        let Self { database, schema, .. } = self;
        let sql = format!("SELECT version FROM {schema}.installation");
        let rows = client.query_typed(&sql, &[]).await.map_err(owner_error)?;
        let installed: i32 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(owner_error)?;
        if u32::try_from(installed) == Ok(HandlerSchemaScripts::VERSION) {
            return Ok(());
        }
        let message = format!(
            "the handlers in the schema {schema} of the database {database} have version {installed}, and this program \
             needs version {}",
            HandlerSchemaScripts::VERSION
        );
        Err(Error::new(ErrorKind::InvalidArguments, message).with_hint(HandlerSchemaScripts::OTHER_VERSION_HINT))
    }
}

/// If handlers are installed, the owner of the registry counts in addition to the owner of the schema. Changes require
/// the privileges of both.
const INSPECTION_SQL: &str = "
    SELECT current_database()::text, current_user::text, has_database_privilege(current_database(), 'CREATE'),
        pg_get_userbyid(CASE WHEN pg_has_role(installed.owner, 'USAGE') THEN nspowner ELSE installed.owner END)::text,
        coalesce(pg_has_role(nspowner, 'USAGE') AND pg_has_role(installed.owner, 'USAGE'), false),
        coalesce(installed.is_installed, false)
    FROM (VALUES (1)) AS one
        LEFT JOIN pg_namespace ON nspname = '@schema@'
        LEFT JOIN LATERAL (
            SELECT count(*) = 3 AS is_installed,
                CASE WHEN count(*) = 3 THEN min(relowner::bigint)::oid ELSE nspowner END AS owner
            FROM pg_class
            WHERE relnamespace = pg_namespace.oid AND relname IN ('installation', 'handler', 'mcp_request')
        ) AS installed ON true";

/// An error for the owner of the schema, who may read all details: the message and hint of the server.
pub(crate) fn owner_error(error: tokio_postgres::Error) -> Error {
    let Some(db_error) = error.as_db_error() else {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        return Error::new(ErrorKind::Unavailable, format!("the connection to the server was lost: {error}{source}"));
    };
    let (kind, advice) = match db_error.code().code() {
        "42501" => (ErrorKind::Forbidden, None),
        "55P03" => (ErrorKind::Unavailable, Some("Another transaction uses the same objects; try again later.")),
        "25006" | "0A000" => (ErrorKind::Unavailable, Some("A standby is read-only; connect to its primary server.")),
        code if code.starts_with("53") || code.starts_with("57") => (ErrorKind::Unavailable, None),
        _ => (ErrorKind::InvalidArguments, None),
    };
    let detail = db_error.detail().map(|detail| format!("\n{detail}")).unwrap_or_default();
    let refused = Error::new(kind, format!("{}{detail}", db_error.message()));
    match db_error.hint().or(advice) {
        Some(hint) => refused.with_hint(hint),
        None => refused,
    }
}

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
    /// The installed version; `None` if the role may not read it.
    pub version: Option<u32>,
    /// The number of handlers of each type that occurs; `None` if the role may not read them.
    pub handlers: Option<Vec<(String, u64)>>,
    /// The call log; `None` if the role may not read it.
    pub call_log: Option<CallLogStatus>,
    /// The roles that may dispatch.
    pub dispatch_roles: Vec<String>,
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
            true => {
                inspection.check_version(client).await?;
                Some(HandlerSchemaScripts::VERSION)
            }
            false => None,
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

/// The tables that the role may read.
const READABLE_TABLES_SQL: &str = "
    SELECT coalesce(bool_or(relname = 'installation'), false), coalesce(bool_or(relname = 'handler'), false),
        coalesce(bool_or(relname = 'registry'), false), coalesce(bool_or(relname = 'exchange'), false)
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
