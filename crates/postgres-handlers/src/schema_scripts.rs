//! The SQL that installs and removes the schema of handlers: the files in `sql/handlers`, with the name of the schema.

use std::fmt;

use crate::schema_name::SchemaName;

/// The placeholder of the schema name in the files.
const PLACEHOLDER: &str = "@schema@";

/// Migration steps with a number above this offset are versions of the whole layer.
const VERSION_OFFSET: u32 = 1000;

/// The SQL layer for one schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerSchemaScripts {
    schema: SchemaName,
}

/// A migration step that was applied to a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MigrationStep {
    /// Steps are applied in the order of their numbers.
    pub number: u32,
    /// The name of the step.
    pub name: String,
}

impl HandlerSchemaScripts {
    /// The version of the layer in this program. It increases with each release that changes the SQL.
    pub const VERSION: u32 = 3;

    /// Creates the layer for `schema`.
    pub fn new(schema: SchemaName) -> Self {
        Self { schema }
    }

    /// The schema.
    pub fn schema(&self) -> &SchemaName {
        &self.schema
    }

    /// The SQL that creates or upgrades the schema; it must run in a transaction.
    pub fn install_sql(&self) -> String {
        let files: String = FILES.iter().map(|(_, _, sql)| *sql).collect();
        self.for_schema(&files)
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

impl MigrationStep {
    /// The version of the layer, if this step records one.
    pub fn version(&self) -> Option<u32> {
        self.number.checked_sub(VERSION_OFFSET).filter(|version| *version > 0)
    }

    /// Whether this program or an older one contains the step.
    pub fn is_known(&self) -> bool {
        match self.version() {
            Some(version) => version <= HandlerSchemaScripts::VERSION,
            None => self.number == 0 || FILES.iter().any(|(number, ..)| *number == self.number),
        }
    }
}

impl fmt::Display for MigrationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03} {}", self.number, self.name)
    }
}

macro_rules! files {
    ($($number:literal $name:literal $file:literal)*) => {
        &[$(($number, $name, include_str!(concat!("../sql/handlers/", $file)))),*]
    };
}

/// Number, name and text of each file, ordered by number.
const FILES: &[(u32, &str, &str)] = files! {
    1 "schema" "001_schema.sql"
    2 "envelope" "002_envelope.sql"
    3 "handler" "003_handler.sql"
    4 "columns" "004_columns.sql"
    10 "response" "010_response.sql"
    11 "identity" "011_identity.sql"
    12 "json schema" "012_json_schema.sql"
    13 "arguments" "013_arguments.sql"
    14 "uri template" "014_uri_template.sql"
    15 "metadata" "015_metadata.sql"
    16 "transaction policy" "016_transaction_policy.sql"
    17 "exchange" "017_exchange.sql"
    20 "registration" "020_registration.sql"
    21 "access" "021_access.sql"
    22 "function tool" "022_function_tool.sql"
    30 "answer" "030_answer.sql"
    31 "invocation" "031_invocation.sql"
    32 "gateway" "032_gateway.sql"
    33 "listing" "033_listing.sql"
    34 "session" "034_session.sql"
    35 "dispatcher" "035_dispatcher.sql"
    99 "privileges" "099_privileges.sql"
};

const UNINSTALL: &str = include_str!("../sql/handlers/uninstall.sql");

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn text(folder: &str, name: &str) -> String {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)).unwrap()
    }

    fn names(folder: &str) -> Vec<String> {
        let folder = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
        let mut names: Vec<String> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_lists_every_sql_file_in_order() {
        let mut names = names("sql/handlers");
        names.retain(|name| name != "uninstall.sql");
        let of_layer: Vec<String> =
            FILES.iter().map(|(number, name, _)| format!("{number:03}_{}.sql", name.replace(' ', "_"))).collect();
        assert_eq!(names, of_layer);
        assert!(FILES.is_sorted_by(|(one, ..), (next, ..)| one < next));
        for (name, (.., sql)) in names.iter().zip(FILES) {
            assert_eq!(text("sql/handlers", name), *sql, "{name}");
        }
    }

    #[test]
    fn each_file_records_its_migration_step() {
        for (number, name, sql) in FILES.iter().filter(|(_, name, _)| *name != "privileges") {
            let insert = format!(
                "INSERT INTO @schema@.migration (version, name) VALUES ({number}, '{name}') ON CONFLICT (version) DO NOTHING;\n"
            );
            assert_eq!(sql.matches(&insert).count(), 1, "{name}");
        }
    }

    #[test]
    fn sql_states_the_layer_version() {
        let declared = format!("c_version CONSTANT integer := {};", HandlerSchemaScripts::VERSION);
        assert!(
            FILES[0].2.contains(&declared),
            "001_schema.sql has another version than HandlerSchemaScripts::VERSION"
        );
    }

    /// Released schemas must stay upgradable, and equal versions must have equal SQL.
    #[test]
    fn changed_sql_requires_a_new_version() {
        let versions: Vec<u32> = names("tests/handlers_released")
            .iter()
            .map(|name| name.trim_end_matches(".sql").parse().unwrap())
            .collect();
        assert_eq!(versions, (1..).take(versions.len()).collect::<Vec<_>>());
        match u32::try_from(versions.len()).unwrap() {
            released if released == HandlerSchemaScripts::VERSION => {
                let now: String = FILES.iter().map(|(_, _, sql)| *sql).collect();
                assert_eq!(
                    text("tests/handlers_released", &format!("{released}.sql")),
                    now,
                    "the SQL changed: increase HandlerSchemaScripts::VERSION"
                );
            }
            released => assert_eq!(HandlerSchemaScripts::VERSION, released + 1),
        }
    }

    #[test]
    fn placeholder_is_replaced_by_schema_name() {
        let layer = HandlerSchemaScripts::new(SchemaName::parse("tools").unwrap());
        for sql in [layer.install_sql(), layer.uninstall_sql()] {
            assert!(!sql.contains(PLACEHOLDER));
            assert!(sql.contains("tools.migration"));
        }
    }

    #[test]
    fn steps_are_known_up_to_this_version() {
        let step = |number| MigrationStep { number, name: String::new() };
        for number in [0, 1, 35, 1001, 1000 + HandlerSchemaScripts::VERSION] {
            assert!(step(number).is_known(), "{number}");
        }
        for number in [5, 36, 1000, 1001 + HandlerSchemaScripts::VERSION] {
            assert!(!step(number).is_known(), "{number}");
        }
    }
}
