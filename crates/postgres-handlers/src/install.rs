//! Installs and removes the schema of handlers with the files in `sql/handlers`. Each operation is one transaction on its own
//! connection.
//!
//! It does not use the pool, whose connections are read-only and belong to another role than the owner of the schema. The name
//! of the schema becomes part of SQL unquoted, so only few characters are allowed.

use std::fmt;

use tidegate_core::{Error, ErrorKind};
use tidegate_postgres::connect::ConnectTarget;
use tokio_postgres::Client;

use crate::inspection::{InstallInspection, InstallStatus, owner_error};

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
