//! Inspects, installs and removes the schema of handlers with the files in `sql/handlers`. Each installation is one transaction
//! on its own connection.
//!
//! It does not use the pool, whose connections are read-only and belong to another role than the owner of the schema. An
//! inspection reads as far as the current role may: the owner of the schema, its content, and the status of the installation.
//! The name of the schema becomes part of SQL unquoted, so only few characters are allowed.

use std::fmt;

use tidegate_core::{Error, ErrorKind};
use tidegate_postgres::connect::ConnectTarget;
use tidegate_sql::SqlDialect;
use tokio_postgres::{Client, Row};

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

    fn owner(&self) -> &str {
        self.owner.as_ref().map_or("", |owner| owner.name.as_str())
    }

    /// Whether the current role may change the installation.
    fn has_owner_rights(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.is_current_role)
    }

    /// Rejects a role that must not create or change the schema, before the server does so in the middle of the work.
    fn check_rights(&self) -> Result<(), Error> {
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

    fn check_installed(&self) -> Result<(), Error> {
        let Self { database, schema, .. } = self;
        let message = match &self.owner {
            _ if self.is_installed => return Ok(()),
            None => format!("the database {database} has no schema {schema}: nothing is installed there"),
            Some(_) => format!("the schema {schema} of the database {database} contains no registry of handlers"),
        };
        Err(Error::new(ErrorKind::NotFound, message).with_hint("Create it with tidegate pg install."))
    }

    /// Rejects handlers of another version, which this program can neither call nor remove.
    async fn check_version(&self, client: &Client) -> Result<(), Error> {
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
fn owner_error(error: tokio_postgres::Error) -> Error {
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

/// The placeholder of the schema name in the files.
const PLACEHOLDER: &str = "@schema@";

/// The SQL layer for one schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerSchemaScripts {
    schema: SchemaName,
}

impl HandlerSchemaScripts {
    /// The version of the layer in this program. It increases with each release that changes the SQL.
    pub const VERSION: u32 = 1;

    /// What to do about a schema of another version.
    pub(crate) const OTHER_VERSION_HINT: &str =
        "Use the Tidegate that installed them, or remove them with its tidegate pg uninstall and install them again.";

    /// Creates the layer for `schema`.
    pub fn new(schema: SchemaName) -> Self {
        Self { schema }
    }

    /// The schema.
    pub fn schema(&self) -> &SchemaName {
        &self.schema
    }

    /// The SQL that creates the schema; it must run in a transaction.
    pub fn install_sql(&self) -> String {
        self.for_schema(&FILES.concat())
    }

    /// The SQL that removes the schema; it must run in a transaction.
    pub fn uninstall_sql(&self) -> String {
        self.for_schema(UNINSTALL)
    }

    /// Wraps `sql`, one of the two above, as a `psql` script with a transaction.
    pub fn script(&self, sql: &str) -> String {
        format!(
            "-- Handlers of MCP in the schema {schema}, version {version}; for psql -v ON_ERROR_STOP=1 -f FILE\n\n\
             {begin}\n\n{sql}\nCOMMIT;\n",
            schema = self.schema,
            version = Self::VERSION,
            begin = self.begin_sql(),
        )
    }

    /// Begins a transaction that changes the schema. It waits for concurrent ones. With a stronger isolation level, the
    /// snapshot from before the wait would not contain their changes.
    fn begin_sql(&self) -> String {
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;\n\
             SET LOCAL client_min_messages = warning;\n\
             SET LOCAL client_encoding = 'UTF8';\n\
             SET LOCAL standard_conforming_strings = on;\n\
             SET LOCAL search_path = pg_catalog, pg_temp;\n\
             DO $lock$ BEGIN PERFORM pg_advisory_xact_lock(hashtext('tidegate handlers {}')); END $lock$;",
            self.schema
        )
    }

    fn for_schema(&self, sql: &str) -> String {
        sql.replace(PLACEHOLDER, self.schema.as_str())
    }
}

macro_rules! files {
    ($($file:literal)*) => {
        &[$(include_str!(concat!("../sql/handlers/", $file))),*]
    };
}

/// The text of each file, in the order in which they are run.
const FILES: &[&str] = files! {
    "001_schema.sql"
    "002_envelope.sql"
    "003_handler.sql"
    "004_columns.sql"
    "010_response.sql"
    "011_identity.sql"
    "012_json_schema.sql"
    "013_arguments.sql"
    "014_uri_template.sql"
    "015_metadata.sql"
    "016_transaction_policy.sql"
    "017_exchange.sql"
    "020_registration.sql"
    "021_access.sql"
    "022_function_tool.sql"
    "030_answer.sql"
    "031_invocation.sql"
    "032_gateway.sql"
    "033_listing.sql"
    "034_session.sql"
    "035_dispatcher.sql"
    "036_database_info.sql"
    "099_privileges.sql"
};

const UNINSTALL: &str = include_str!("../sql/handlers/uninstall.sql");

/// The maximum length of a name, in bytes: the channel `<name>_mcp_handlers` must be a valid identifier.
const BYTES_MAX: usize = 41;

/// The name of a schema of handlers: lower-case letters, digits and `_`, and not an SQL keyword.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaName(String);

/// Why a text is not a [`SchemaName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be the schema of handlers; {reason}")]
pub struct SchemaNameError {
    name: String,
    reason: &'static str,
}

impl SchemaName {
    /// Parses a name.
    ///
    /// # Errors
    /// Fails if the name needs quotes in SQL, or if it is one of the server's own schemas.
    pub fn parse(name: &str) -> Result<Self, SchemaNameError> {
        let refused = |reason| Err(SchemaNameError { name: name.chars().take(60).collect(), reason });
        let has_valid_start = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
        let is_word = name.chars().all(|other| other.is_ascii_lowercase() || other.is_ascii_digit() || other == '_');
        if !has_valid_start || !is_word || name.len() > BYTES_MAX {
            return refused("it must be 1 to 41 lower-case letters, digits and _, and must not begin with a digit");
        }
        if name.starts_with("pg_") || name == "information_schema" {
            return refused("it is reserved by the server");
        }
        if KEY_WORDS.split_whitespace().any(|word| word == name) {
            return refused("it is an SQL keyword");
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The SQL that lets each of `roles`, which are SQL identifiers, call the handlers of the schema.
    pub fn grants_sql(&self, roles: &[String]) -> String {
        let mut sql = format!("\n-- Calling the handlers of the schema {self}.\n");
        for role in roles {
            // The literal of a role's name contains an identifier.
            sql.push_str(&format!("SELECT {self}.grant_mcp_access('{}');\n", role.replace('\'', "''")));
        }
        sql.push_str(&format!(
            "-- A handler that writes runs in a READ WRITE transaction, whatever the default is. It has the rights of its caller:\n\
             -- grant what it writes, as in GRANT INSERT, UPDATE ON some_table TO {};\n",
            roles.first().map_or("", String::as_str)
        ));
        sql
    }

    /// The channel of notifications about changed handlers.
    pub(crate) fn channel(&self) -> String {
        format!("{}_mcp_handlers", self.0)
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Words that PostgreSQL does not accept as an unquoted name, in any version since 15.
///
/// [PostgreSQL, SQL Key Words](https://www.postgresql.org/docs/current/sql-keywords-appendix.html)
const KEY_WORDS: &str = "
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case
    cast char character check coalesce collate collation column concurrently constraint create cross current_catalog
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default
    deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant
    greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join
    json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize
    json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national
    natural nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay
    placing position precision primary real references returning right row select session_user setof similar
    smallint some substring symmetric system_user table tablesample then time timestamp to trailing treat trim true
    union unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_is_run_in_the_order_of_the_names() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/handlers");
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| !path.ends_with("uninstall.sql"));
        paths.sort();
        let texts: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert_eq!(texts, FILES);
    }

    #[test]
    fn sql_states_the_layer_version() {
        let recorded = format!("(version, schema_was_found) VALUES ({}, ", HandlerSchemaScripts::VERSION);
        assert!(FILES[0].contains(&recorded), "001_schema.sql has another version than HandlerSchemaScripts::VERSION");
    }

    #[test]
    fn placeholder_is_replaced_by_schema_name() {
        let layer = HandlerSchemaScripts::new(SchemaName::parse("tools").unwrap());
        for sql in [layer.install_sql(), layer.uninstall_sql()] {
            assert!(!sql.contains(PLACEHOLDER));
            assert!(sql.contains("tools.installation"));
        }
    }

    #[test]
    fn accepts_only_unquoted_identifiers() {
        for name in ["api", "_", "handlers_2", &"a".repeat(41)] {
            assert_eq!(SchemaName::parse(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(42);
        for name in
            ["", "Api", "2api", "a b", "a\"b", "a;drop", "pg_api", "user", "information_schema", "\u{fc}", &long]
        {
            assert!(SchemaName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn error_states_the_valid_form() {
        insta::assert_snapshot!(SchemaName::parse("Api").unwrap_err(), @r#""Api" cannot be the schema of handlers; it must be 1 to 41 lower-case letters, digits and _, and must not begin with a digit"#);
    }
}
