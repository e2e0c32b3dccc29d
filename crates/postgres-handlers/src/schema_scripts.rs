//! The SQL that installs and removes the schema of handlers: the files in `sql/handlers`, with the name of the schema.

use crate::schema_name::SchemaName;

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
    pub(super) fn begin_sql(&self) -> String {
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
}
