//! The kinds of databases that a configuration can have, and the keys of each.

use super::ConfiguredDatabase;
use super::federated::FederatedConfig;
use super::files::FilesConfig;
use super::flight_sql::FlightSqlConfig;
use super::ingest_folder::FolderConfig;
use super::journal::JournalConfig;
use super::network::NodesConfig;
use super::postgres::PostgresConfig;
use super::sqlite::SqliteConfig;
use super::system::SystemTablesConfig;
use crate::config::problem::ConfigProblem;
use crate::config::problems::Problems;
use crate::config::types::{ClientTlsConfig, DatabaseConfig, TenancyConfig};

/// Moves the keys of a kind out of an entry; `None` if its own key is missing.
type TakeKeys = fn(&mut DatabaseConfig) -> Option<Box<dyn ConfiguredDatabase>>;

/// The kinds with a key that no other kind has.
const KINDS: [(&str, TakeKeys); 8] = [
    ("files", FilesConfig::take_keys),
    ("sqlite", SqliteConfig::take_keys),
    ("postgres", PostgresConfig::take_keys),
    ("federated", FederatedConfig::take_keys),
    ("flight_sql", FlightSqlConfig::take_keys),
    ("network", NodesConfig::take_keys),
    ("system", SystemTablesConfig::take_keys),
    ("journal", JournalConfig::take_keys),
];

/// Declares the type of a kind, with its own key first, and the function that takes them out of an entry. Keys that are read
/// where the node is assembled are named behind it.
macro_rules! keys_of_kind {
    (
        $(#[$attribute:meta])*
        struct $name:ident { $own:ident: $own_type:ty, $($key:ident: $type:ty,)* }
        elsewhere { $($other:ident)* }
    ) => {
        $(#[$attribute])*
        pub(super) struct $name {
            $own: $own_type,
            $($key: $type,)*
        }

        impl $name {
            pub(super) fn take_keys(
                keys: &mut $crate::config::types::DatabaseConfig,
            ) -> Option<Box<dyn super::ConfiguredDatabase>> {
                let $own = keys.$own.take()?;
                $(keys.$other = Default::default();)*
                Some(Box::new(Self { $own, $($key: std::mem::take(&mut keys.$key),)* }))
            }
        }
    };
}

pub(super) use keys_of_kind;

pub(in crate::config) const TABLES_MESSAGE: &str =
    "is for files and for tables that take rows, and this database has neither";
const FOR_POSTGRES: Option<&str> = Some("is for PostgreSQL, and this database is not");
const FOR_FLIGHT_SQL: Option<&str> = Some("is for flight_sql, and this database is not");
const FOR_ENGINES: Option<&str> = Some("is for PostgreSQL and SQLite, and this database is neither");

/// The database that `entry` at `path` configures. Keys that its kind does not have are problems.
pub(super) fn configured_database(
    entry: &DatabaseConfig,
    path: &str,
) -> Result<Box<dyn ConfiguredDatabase>, Vec<ConfigProblem>> {
    let mut rest = entry.clone();
    let mut chosen: Vec<_> = KINDS.iter().filter_map(|(_, take_keys)| take_keys(&mut rest)).collect();
    if chosen.is_empty() {
        // In other kinds, the key names tables.
        chosen.extend(FolderConfig::take_keys(&mut rest));
    }
    let advice = |key: &str| chosen.iter().find_map(|kind| kind.advice(key, entry));
    let problems = Problems::at_path(path);
    add_misplaced_keys(rest, !chosen.is_empty(), advice, &problems);
    problems.checked(())?;
    match (chosen.pop(), chosen.is_empty()) {
        (Some(database), true) => Ok(database),
        _ => Err(vec![ConfigProblem::new(path, one_kind_message())]),
    }
}

fn one_kind_message() -> String {
    let [others @ .., last] = KINDS.map(|(key, _)| key);
    format!("needs exactly one of {} and {last}, or ingest with a folder", others.join(", "))
}

/// Reports the keys of `rest`, which the kinds of the entry have not taken.
fn add_misplaced_keys(
    rest: DatabaseConfig,
    has_kind: bool,
    advice: impl Fn(&str) -> Option<&'static str>,
    problems: &Problems,
) {
    let set = shared_keys(rest, has_kind).into_iter().filter(|(_, is_set, _)| *is_set);
    for (key, message) in set.filter_map(|(key, _, message)| Some((key, advice(key).or(message)?))) {
        problems.add(key, message);
    }
}

/// The keys that choose no kind by themselves: whether they are in `rest`, and what they are for.
#[rustfmt::skip]
fn shared_keys(rest: DatabaseConfig, has_kind: bool) -> [(&'static str, bool, Option<&'static str>); 27] {
    // Without `..`, so that the compiler reports a key that is missing here.
    let DatabaseConfig {
        name: _, tenants: _,
        files: _, sqlite: _, postgres: _, federated: _, flight_sql: _, network: _, system: _, journal: _,
        policies, ingest, create_tables, tables, log_sources, sensitive, required, connections, cache,
        token, catalog, dialect, timeout, tls,
        role, claims, settings, tenancy, schemas, strict, pgbouncer, max_cost, allow_functions, max_message_bytes,
        handlers, connection_timeout, lock_timeout,
    } = rest;
    let for_ingest = match has_kind {
        true => "is a database of its own, or names tables of postgres, sqlite or network; this database is of another kind",
        false => "is a folder; a list names tables of postgres, sqlite or network",
    };
    [
        ("policies", !policies.is_empty(), None),
        ("tables", !tables.is_empty() && ingest.is_none(), Some(TABLES_MESSAGE)),
        ("ingest", ingest.is_some(), Some(for_ingest)),
        ("create_tables", create_tables.is_some(), Some("is for ingest folders, and this database has none")),
        ("log_sources", log_sources.is_some(), Some("is for files and journals, and this database is neither")),
        ("sensitive", sensitive.is_some(), Some("is for journals, and this database is none")),
        ("required", required.is_some(), Some("is for PostgreSQL and flight_sql, and this database is neither")),
        ("connections", connections.is_some(), FOR_ENGINES),
        ("cache", cache.is_some(), FOR_ENGINES),
        ("token", token.is_some(), FOR_FLIGHT_SQL), ("catalog", catalog.is_some(), FOR_FLIGHT_SQL),
        ("dialect", dialect.is_some(), FOR_FLIGHT_SQL), ("timeout", timeout.is_some(), FOR_FLIGHT_SQL),
        ("tls", tls != ClientTlsConfig::default(), FOR_FLIGHT_SQL),
        ("role", role.is_some(), FOR_POSTGRES), ("claims", claims.is_some(), FOR_POSTGRES),
        ("settings", !settings.is_empty(), FOR_POSTGRES),
        ("tenancy", tenancy != TenancyConfig::default(), FOR_POSTGRES),
        ("schemas", schemas.is_some(), FOR_POSTGRES), ("strict", strict, FOR_POSTGRES),
        ("pgbouncer", pgbouncer, FOR_POSTGRES), ("max_cost", max_cost.is_some(), FOR_POSTGRES),
        ("allow_functions", !allow_functions.is_empty(), FOR_POSTGRES),
        ("max_message_bytes", max_message_bytes.is_some(), FOR_POSTGRES),
        ("handlers", handlers.is_some(), FOR_POSTGRES),
        ("connection_timeout", connection_timeout.is_some(), FOR_POSTGRES),
        ("lock_timeout", lock_timeout.is_some(), FOR_POSTGRES),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(entry: Value) -> Vec<String> {
        let entry: DatabaseConfig = serde_json::from_value(entry).unwrap();
        let problems = configured_database(&entry, "databases[0]").err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_kind_takes_its_own_keys() {
        let entries = [
            json!({"name": "a", "files": "a", "tables": {}, "log_sources": false}),
            json!({"name": "a", "sqlite": "a.db", "ingest": ["t"], "tables": {"t": {}}, "cache": "1s"}),
            json!({"name": "a", "postgres": "host=a", "strict": true, "required": false, "connections": 2}),
            json!({"name": "a", "network": {"nodes": []}, "ingest": ["t"]}),
            json!({"name": "a", "ingest": "a", "create_tables": false, "tables": {"t": {}}}),
        ];
        for entry in entries {
            assert_eq!(problems(entry.clone()), [""; 0], "{entry}");
        }
    }

    #[test]
    fn keys_of_other_kinds_are_problems() {
        let found = problems(json!({"name": "a", "journal": "a", "token": "t", "ingest": "b", "tables": {"t": {}}}));
        let ingest = "is a database of its own, or names tables of postgres, sqlite or network; this database is of another kind";
        let token = "databases[0].token: is for flight_sql, and this database is not";
        assert_eq!(found, [format!("databases[0].ingest: {ingest}").as_str(), token]);
        let none = "databases[0]: needs exactly one of files, sqlite, postgres, federated, flight_sql, network, system and \
                    journal, or ingest with a folder";
        assert_eq!(problems(json!({"name": "a"})), [none]);
        assert_eq!(problems(json!({"name": "a", "files": "a", "sqlite": "b"})), [none]);
    }
}
