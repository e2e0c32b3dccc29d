//! Databases of other servers: servers of Flight SQL, and networks of nodes.

#[cfg(feature = "network")]
mod flight_sql;
#[cfg(feature = "network")]
mod holds;
#[cfg(feature = "network")]
mod nodes;
#[cfg(feature = "network")]
mod trust;
#[cfg(feature = "network")]
mod urls;

use std::path::PathBuf;

use tidegate_engines::Engine;

use super::LoadedConfig;
use super::databases::{self, ONE_KIND_MESSAGE, OpenedDatabase};
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{ClientTlsConfig, DatabaseConfig};

/// Whether the tables of the database are on other servers that speak Flight SQL.
pub(super) fn is_remote(entry: &DatabaseConfig) -> bool {
    entry.flight_sql.is_some() || entry.network.is_some()
}

/// Opens the database of `entry`, without a connection. It is `previous` if neither it nor a file of its TLS changed.
pub(super) fn open_database(
    entry: &DatabaseConfig,
    path: String,
    loaded: &LoadedConfig,
    previous: Option<&OpenedDatabase>,
    engine: &Engine,
) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
    databases::check_keys_of_kind(entry, &path)?;
    let is_other =
        entry.files.is_some() || entry.sqlite.is_some() || entry.postgres.is_some() || entry.journal.is_some();
    if is_other || entry.flight_sql.is_some() && entry.network.is_some() {
        return Err(vec![ConfigProblem::new(path, ONE_KIND_MESSAGE)]);
    }
    imp::open(entry, path, loaded, previous, engine)
}

/// Problems of keys that are about other servers.
pub(super) fn check_keys(entry: &DatabaseConfig, path: &str) -> Vec<ConfigProblem> {
    let keys = [
        ("token", entry.token.is_some()),
        ("catalog", entry.catalog.is_some()),
        ("dialect", entry.dialect.is_some()),
        ("timeout", entry.timeout.is_some()),
        ("tls", entry.tls != ClientTlsConfig::default()),
    ];
    let misplaced = keys.into_iter().filter(|(_, is_set)| *is_set && entry.flight_sql.is_none());
    let problem = |(member, _): (&str, bool)| {
        let message = match entry.network.is_some() && member != "catalog" && member != "dialect" {
            true => "is for flight_sql; the one of a network is a key within network",
            false => "is for flight_sql, and this database is not",
        };
        ConfigProblem::new(format!("{path}.{member}"), message)
    };
    let mut problems: Vec<ConfigProblem> = misplaced.map(problem).collect();
    if entry.required.is_some() && entry.postgres.is_none() && entry.flight_sql.is_none() {
        let message = "is for PostgreSQL and flight_sql, and this database is neither";
        problems.push(ConfigProblem::new(format!("{path}.required"), message));
    }
    if is_remote(entry) && !entry.policies.is_empty() {
        let message = "is for files and SQLite; put policies into the configuration of the server that has the tables";
        problems.push(ConfigProblem::new(format!("{path}.policies"), message));
    }
    problems
}

/// The files of the TLS of `entry`, with the path of each key.
fn tls_files(entry: &DatabaseConfig) -> impl Iterator<Item = (&'static str, &ClientTlsConfig)> {
    let of_network = entry.network.iter().map(|network| ("network.tls", &network.tls));
    [("tls", &entry.tls)].into_iter().chain(of_network)
}

/// The files that the databases of `entries` read when they are opened.
pub(super) fn files(entries: &[DatabaseConfig]) -> impl Iterator<Item = &PathBuf> {
    entries.iter().flat_map(tls_files).flat_map(|(_, tls)| tls.files())
}

/// The content of the files of a [`ClientTlsConfig`], so that a database is opened again when they change.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ClientTlsFiles {
    authorities: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl ClientTlsFiles {
    #[cfg_attr(not(feature = "network"), expect(dead_code, reason = "nothing is opened"))]
    fn read(entry: &DatabaseConfig, path: &str, loaded: &LoadedConfig) -> Result<Self, Vec<ConfigProblem>> {
        let problems = Problems::at_path(path);
        let mut files = Self::default();
        for (parent, tls) in tls_files(entry) {
            let read = |member: &str, file: &Option<PathBuf>| {
                let file = loaded.resolve(file.as_ref()?);
                let text = std::fs::read_to_string(&file);
                let add = |error| {
                    let message = format!("{} cannot be read: {error}", file.display());
                    problems.add(format_args!("{parent}.{member}"), message);
                };
                text.map_err(add).ok()
            };
            files.authorities = read("authorities", &tls.authorities).or(files.authorities);
            files.certificate = read("certificate", &tls.certificate).or(files.certificate);
            files.key = read("key", &tls.key).or(files.key);
            if tls.certificate.is_some() != tls.key.is_some() {
                let message = "needs both certificate and key, the one that this server presents and its private key";
                problems.add(parent, message);
            }
        }
        problems.checked(files)
    }
}

#[cfg(not(feature = "network"))]
mod imp {
    use super::*;

    pub(super) fn open(
        entry: &DatabaseConfig,
        path: String,
        _loaded: &LoadedConfig,
        _previous: Option<&OpenedDatabase>,
        _engine: &Engine,
    ) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
        let member = if entry.network.is_some() { "network" } else { "flight_sql" };
        let message = "this program was built without Flight SQL; build it with the feature `full`";
        Err(vec![ConfigProblem::new(format!("{path}.{member}"), message)])
    }
}

#[cfg(feature = "network")]
mod imp {
    use std::sync::Arc;

    use tidegate_engines::NetworkIngest;
    use tidegate_network::FlightTls;
    use tidegate_query::Database;

    use super::super::databases::DatabaseEngine;
    use super::super::opened_target::OpenedTarget;
    use super::super::quantities::OneOrMany;
    use super::nodes::PreviousNetwork;
    use super::*;

    pub(super) fn open(
        entry: &DatabaseConfig,
        path: String,
        loaded: &LoadedConfig,
        previous: Option<&OpenedDatabase>,
        engine: &Engine,
    ) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
        let tls_files = ClientTlsFiles::read(entry, &path, loaded)?;
        let has_same_tls =
            |old: &&OpenedDatabase| matches!(&old.engine, DatabaseEngine::Remote(files) if *files == tls_files);
        let previous = previous.filter(has_same_tls);
        if let Some(previous) = previous.filter(|old| old.entry == *entry) {
            return Ok(previous.clone());
        }
        let tls = FlightTls {
            authorities: tls_files.authorities.clone(),
            certificate: tls_files.certificate.clone().zip(tls_files.key.clone()),
        };
        let (database, target): (Arc<dyn Database>, _) = match (&entry.flight_sql, &entry.network) {
            (Some(addresses), _) => (flight_sql::open(entry, addresses, tls, &path)?, None),
            (None, Some(network)) => {
                let previous = previous.and_then(PreviousNetwork::of_database);
                let network = nodes::open(&entry.name, network, tls, &format!("{path}.network"), previous, engine)?;
                let tables = entry.ingest.clone().map(OneOrMany::into_vec);
                let target = tables.map(|tables| NetworkIngest::new(network.clone(), tables));
                (network, target.map(OpenedTarget::with_counters))
            }
            (None, None) => return Err(vec![ConfigProblem::new(path, ONE_KIND_MESSAGE)]),
        };
        let (entry, engine) = (entry.clone(), DatabaseEngine::Remote(tls_files));
        Ok(OpenedDatabase { entry, path, policies_key: None, database, engine, target })
    }
}
