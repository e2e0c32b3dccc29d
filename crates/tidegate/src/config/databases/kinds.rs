//! The kinds of databases that a configuration can have: the key that is present chooses one.
//!
//! A kind is a type with its keys in a file of this folder, and a line of [`KINDS`].

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tidegate_postgres_handlers::{DatabaseHandlers, SchemaName};
use tidegate_query::Database;

use super::federated::FederatedConfig;
use super::files::FilesConfig;
use super::flight_sql::FlightSqlConfig;
use super::ingest_folder::FolderConfig;
use super::journal::JournalConfig;
use super::mysql::MySqlConfig;
use super::network::NodesConfig;
use super::postgres::PostgresConfig;
use super::sqlite::SqliteConfig;
use super::system::SystemTablesConfig;
use super::{ConfiguredDatabase, Opening, OpeningResult, UsedKeys};
use crate::config::problem::ConfigProblem;
use crate::config::types::KnowledgeConfig;

/// The kinds. Of several keys that are present, the first one counts: `ingest` is also a key of other kinds.
static KINDS: [Kind; 10] = [
    Kind::new::<FilesConfig>("files"),
    Kind::new::<SqliteConfig>("sqlite"),
    Kind::new::<PostgresConfig>("postgres"),
    Kind::new::<MySqlConfig>("mysql"),
    Kind::new::<FederatedConfig>("federated"),
    Kind::new::<FlightSqlConfig>("flight_sql"),
    Kind::new::<NodesConfig>("network"),
    Kind::new::<SystemTablesConfig>("system"),
    Kind::new::<JournalConfig>("journal"),
    Kind::new::<FolderConfig>("ingest"),
];

/// Opens a database with a name and an address.
type OpenAddress = fn(String, &str) -> Result<Arc<dyn Database>, String>;
type OpenWithHandlers = fn(String, &str, &SchemaName) -> Result<(Arc<dyn Database>, Arc<DatabaseHandlers>), String>;

/// Databases on servers, which have addresses.
pub(crate) struct ServerKind {
    /// The key in the configuration.
    pub(crate) key: &'static str,
    /// The name of the product.
    pub(crate) title: &'static str,
    /// The form of an address.
    pub(crate) form: &'static str,
    pub(crate) is_address: fn(&str) -> bool,
    /// An address without its password, if it has one.
    pub(crate) without_password: fn(&str) -> Result<Option<String>, String>,
    /// The name of the database of an address.
    pub(crate) database: fn(&str) -> Result<String, String>,
    pub(crate) open: OpenAddress,
    /// Opens it with the handlers of a schema, which may only read; `None` if databases of the kind have none.
    pub(crate) open_with_handlers: Option<OpenWithHandlers>,
    /// Environment variables that may have an address, the usual one first.
    pub(crate) variables: &'static [&'static str],
    /// Comments above the address in a new configuration.
    pub(crate) comments: &'static [&'static str],
    /// What to do with a password instead of writing it into a configuration.
    pub(crate) password_advice: &'static str,
}

impl PartialEq for ServerKind {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for ServerKind {}

pub(crate) fn server_kinds() -> impl Iterator<Item = &'static ServerKind> {
    KINDS.iter().filter_map(|kind| (kind.server)())
}

/// The kind of server with the address `text`.
pub(crate) fn server_kind_of(text: &str) -> Option<&'static ServerKind> {
    server_kinds().find(|server| (server.is_address)(text))
}

struct Kind {
    key: &'static str,
    parse: fn(Map<String, Value>) -> Arc<dyn ConfiguredDatabase>,
    schema: fn(&mut SchemaGenerator) -> Schema,
    advice: fn(&str) -> Option<&'static str>,
    server: fn() -> Option<&'static ServerKind>,
}

impl Kind {
    /// The kind with the keys of `T`. The first of them is `key`, and the only one that is required.
    const fn new<T: ConfiguredDatabase + DeserializeOwned + JsonSchema>(key: &'static str) -> Self {
        Self { key, parse: parse_keys::<T>, schema: schema_of::<T>, advice: T::advice, server: T::server }
    }
}

/// What to write instead of `key` in a database of the kind with the key `kind`, if it has something in its place.
pub(in crate::config) fn advice(kind: &str, key: &str) -> Option<&'static str> {
    KINDS.iter().find(|other| other.key == kind).and_then(|kind| (kind.advice)(key))
}

/// A database of the configuration.
#[derive(Clone)]
pub(crate) struct DatabaseConfig {
    pub(crate) name: String,
    pub(crate) tenants: Option<Vec<String>>,
    pub(in crate::config) knowledge: KnowledgeConfig,
    /// The keys that open it, in the order of the file: columns are declared in it.
    keys: String,
    pub(super) kind: Arc<dyn ConfiguredDatabase>,
}

tidegate_core::impl_debug!(DatabaseConfig { name });

impl PartialEq for DatabaseConfig {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

impl DatabaseConfig {
    pub(crate) fn used_keys(&self) -> UsedKeys<'_> {
        self.kind.used_keys()
    }

    /// What is wrong with the value of a key. Without it, the database has no keys of a kind.
    pub(in crate::config) fn value_problem(&self, path: &str) -> Option<ConfigProblem> {
        self.of_kind::<UnreadableKeys>().and_then(|keys| keys.problem(path))
    }

    /// The keys of the kind `T`, if it is of this kind.
    pub(super) fn of_kind<T: ConfiguredDatabase>(&self) -> Option<&T> {
        let kind: &dyn Any = &*self.kind;
        kind.downcast_ref()
    }
}

/// Keys that only say what is in a database.
const MEANING_KEYS: [&str; 5] = ["notes", "examples", "relationships", "measures", "about"];

/// The keys of all kinds.
#[derive(Deserialize, JsonSchema)]
struct SharedKeys {
    /// Name for callers.
    name: String,
    /// Tenants that can see the database and entries that use it. Default: all callers.
    tenants: Option<Vec<String>>,
}

impl<'de> Deserialize<'de> for DatabaseConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys: Map<String, Value> = Map::deserialize(deserializer)?;
        let shared = SharedKeys::deserialize(Value::Object(keys.clone()));
        let SharedKeys { name, tenants } = shared.map_err(D::Error::custom)?;
        let knowledge = KnowledgeConfig::deserialize(Value::Object(keys.clone())).map_err(D::Error::custom)?;
        let kind: Arc<dyn ConfiguredDatabase> = match KINDS.iter().find(|kind| keys.contains_key(kind.key)) {
            Some(kind) => (kind.parse)(keys.clone()),
            None => Arc::new(UnreadableKeys(None)),
        };
        let mut opening = keys;
        opening.retain(|key, _| !MEANING_KEYS.contains(&key.as_str()));
        Ok(Self { name, tenants, knowledge, keys: Value::Object(opening).to_string(), kind })
    }
}

impl JsonSchema for DatabaseConfig {
    fn schema_name() -> Cow<'static, str> {
        "DatabaseConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<Schema> = KINDS.iter().map(|kind| (kind.schema)(generator)).collect();
        json_schema!({ "anyOf": kinds })
    }
}

/// The schema of the keys of a kind, with those of all kinds.
fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    let mut keys = Map::new();
    for mut shared in [SharedKeys::json_schema(generator), KnowledgeConfig::json_schema(generator)] {
        if let Some(Value::Object(properties)) = shared.remove("properties") {
            keys.extend(properties);
        }
    }
    if let Some(Value::Object(own)) = schema.remove("properties") {
        if let (Some(own), Some(shared)) = (own.get("tables"), keys.get("tables")) {
            add_table_keys(own, shared, generator);
        }
        keys.extend(own);
        schema.insert("properties".to_owned(), keys.into());
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.push("name".into());
    }
    let name = T::schema_name();
    let reference = Schema::new_ref(format!("#/$defs/{name}"));
    generator.definitions_mut().insert(name.into_owned(), schema.to_value());
    reference
}

/// Adds the keys of the tables of all kinds to those of one kind. Both are maps, whose values refer to definitions.
fn add_table_keys(own: &Value, shared: &Value, generator: &mut SchemaGenerator) {
    let definition = |tables: &Value| {
        let reference = tables["additionalProperties"]["$ref"].as_str()?;
        reference.strip_prefix("#/$defs/").map(str::to_owned)
    };
    let (Some(own), Some(shared)) = (definition(own), definition(shared)) else { return };
    let definitions = generator.definitions_mut();
    let Some(Value::Object(further)) = definitions.get(&shared).map(|shared| shared["properties"].clone()) else {
        return;
    };
    if let Some(Value::Object(keys)) = definitions.get_mut(&own).and_then(|own| own.get_mut("properties")) {
        for (key, schema) in further {
            keys.entry(key).or_insert(schema);
        }
    }
}

fn parse_keys<T: ConfiguredDatabase + DeserializeOwned>(keys: Map<String, Value>) -> Arc<dyn ConfiguredDatabase> {
    match serde_path_to_error::deserialize::<_, T>(Value::Object(keys)) {
        Ok(keys) => Arc::new(keys),
        Err(error) => Arc::new(UnreadableKeys(Some((error.path().to_string(), error.inner().to_string())))),
    }
}

/// Keys of no kind, which is reported with the keys of other kinds; or a key with a wrong value, and what is wrong with it.
struct UnreadableKeys(Option<(String, String)>);

impl UnreadableKeys {
    fn problem(&self, path: &str) -> Option<ConfigProblem> {
        let (key, message) = self.0.as_ref()?;
        Some(ConfigProblem::new(format!("{path}.{key}"), message.as_str()))
    }
}

impl ConfiguredDatabase for UnreadableKeys {
    fn open(&self, _: &str, path: &str, _: &mut Opening<'_>) -> OpeningResult {
        Err(self.problem(path).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::DatabaseConfig;
    use crate::config::document::Document;
    use crate::config::parsing::parse_config;
    use crate::config::variables::VariableResolver;

    /// What is wrong with the kinds of the keys of databases.
    fn problems(databases: &str) -> Vec<String> {
        let variables = VariableResolver::new(Path::new("/"), |_| None);
        let document = Document::parse(Path::new("/x.yaml"), &format!("databases: [{databases}]"), &variables).unwrap();
        parse_config(&document).unwrap().kind_problems.iter().map(ToString::to_string).collect()
    }

    /// A reload opens a database again whose keys differ.
    #[test]
    fn the_order_of_columns_is_part_of_a_database() {
        let entry = |columns: &str| -> DatabaseConfig {
            let table = format!(r#"{{"name": "a", "ingest": "a", "tables": {{"t": {{"columns": {{{columns}}}}}}}}}"#);
            serde_json::from_str(&table).unwrap()
        };
        let (first, other) = (r#""x": "int64", "y": "string""#, r#""y": "string", "x": "int64""#);
        assert_eq!(entry(first), entry(first));
        assert_ne!(entry(first), entry(other));
    }

    #[test]
    fn notes_do_not_open_a_database_again() {
        let entry = |notes: &str| -> DatabaseConfig {
            serde_json::from_str(&format!(r#"{{"name": "a", "notes": "{notes}", "files": "a"}}"#)).unwrap()
        };
        assert_eq!(entry("first"), entry("second"));
    }

    #[test]
    fn databases_of_all_kinds_have_descriptions() {
        let meanings = "notes: N, examples: [{question: Q, sql: SELECT 1}], relationships: [{from: t.a, to: u.a}], tables: {t: \
                        {description: T, columns: {a: {description: A, unit: EUR, values: {1: paid, open: 2}}}}}";
        for kind in ["files", "sqlite", "postgres", "mysql", "journal", "ingest"] {
            assert_eq!(problems(&format!("{{name: a, {kind}: a, {meanings}}}")), Vec::<String>::new(), "{kind}");
        }
        assert_eq!(problems(&format!("{{name: a, federated: [b], {meanings}}}")), Vec::<String>::new());
    }

    #[test]
    fn keys_of_other_kinds_are_problems() {
        let journal = problems("{name: a, journal: a, token: t, ingest: b, tables: {t: {description: T}}}");
        insta::assert_snapshot!(journal.join("\n"), @r"
        databases[0].token: is for a database with flight_sql; this one has journal
        databases[0].ingest: is for a database of its own, or one with sqlite, postgres, mysql or network; this one has journal
        ");
        let tables = problems(
            "{name: a, files: a, tables: {t: {retention: 1d}}}, {name: b, ingest: b, tables: {t: {quote: x, stamp: {}}}}",
        );
        insta::assert_snapshot!(tables.join("\n"), @r"
        databases[0].tables.t.retention: is for a database with ingest; this one has files
        databases[1].tables.t.quote: is for a database with files; this one has ingest
        ");
        let kinds = problems("{name: a}, {name: b, files: a, sqlite: b}");
        insta::assert_snapshot!(kinds.join("\n"), @r"
        databases[0]: needs exactly one of files, sqlite, postgres, mysql, federated, flight_sql, network, system, journal, ingest
        databases[1].sqlite: is for a database of its own; this one has files
        ");
    }
}
