//! Opens the databases of a configuration, and inspects new ones. What only one kind of database has is in its own file.

mod federated;
mod files;
mod flight_sql;
mod ingest_folder;
mod journal;
mod kinds;
mod network;
mod postgres;
mod remote;
mod sqlite;
mod system;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use tidegate_engines::{Engine, FileDatabase};
use tidegate_postgres_handlers::DatabaseHandlers;
use tidegate_query::{CountedTarget, Database, IngestTarget, RowPolicies};
use tidegate_tools::FunctionSource;

use super::problem::ConfigProblem;
use super::problems::Problems;
use super::quantities::{OneOrMany, SecretText};
use super::types::{DatabaseConfig, PolicyConfig};
use super::{LoadedConfig, policies};
use crate::ingest::{DeclaredTables, OpenedTables};
use crate::node_tables::{ConnectionPool, NodeTables};
use ingest_folder::IngestDatabase;
use remote::ClientTlsFiles;

pub(super) use kinds::TABLES_MESSAGE;
pub(super) use remote::client_tls_files;

/// The databases of a configuration that could be opened.
#[derive(Clone, Default)]
pub(super) struct OpenDatabases {
    pub(super) by_name: BTreeMap<String, OpenedDatabase>,
}

#[derive(Clone)]
pub(super) struct OpenedDatabase {
    entry: DatabaseConfig,
    path: String,
    policies_key: Option<SecretText>,
    pub(super) database: Arc<dyn Database>,
    parts: KindParts,
}

/// What only databases of some kinds have.
#[derive(Clone, Default)]
struct KindParts {
    /// Files with globs and options of tables.
    files: Option<Arc<FileDatabase>>,
    connections: Option<ConnectionPool>,
    handlers: Option<Arc<DatabaseHandlers>>,
    /// The tables that are offered as functions.
    functions: Option<Arc<dyn FunctionSource>>,
    /// Tables that take rows elsewhere than in a folder, which has counters of its own.
    target: Option<Arc<CountedTarget>>,
    folder: Option<Arc<IngestDatabase>>,
    /// The content of the files of its TLS when it was opened.
    tls_files: Option<Arc<ClientTlsFiles>>,
}

type OpeningResult = Result<(Arc<dyn Database>, KindParts), Vec<ConfigProblem>>;

/// A database as its keys configure it. Each kind has a type with only its own keys.
trait ConfiguredDatabase {
    /// What to write instead of a key of other kinds, if this kind has something in its place.
    fn advice(&self, _key: &str, _entry: &DatabaseConfig) -> Option<&'static str> {
        None
    }

    /// Whether `old`, which was opened from equal keys, stays open.
    fn may_keep(&self, _old: &OpenedDatabase, _path: &str, _opening: &Opening<'_>) -> bool {
        true
    }

    /// Opens the database `name`, whose keys stand at `path`.
    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult;
}

/// The databases that are opened, and what is needed for it.
struct Opening<'a> {
    loaded: &'a LoadedConfig,
    previous: &'a OpenDatabases,
    node_tables: &'a NodeTables,
    /// Opened folders of tables that take rows, by database.
    folders: BTreeMap<String, OpenedTables>,
    opened: OpenDatabases,
}

impl<'a> Opening<'a> {
    fn engine(&self) -> &'a Engine {
        &self.node_tables.engine
    }

    fn resolve(&self, paths: &OneOrMany) -> Vec<PathBuf> {
        paths.clone().into_vec().into_iter().map(|path| self.loaded.resolve(path)).collect()
    }

    fn row_policies(&self, entries: &[PolicyConfig], path: &str) -> Result<RowPolicies, Vec<ConfigProblem>> {
        policies::build_row_policies(entries, &self.loaded.config, path)
    }

    /// Opens the database of `entry`, unless the previous one can stay.
    fn open(
        &mut self,
        entry: &DatabaseConfig,
        path: String,
        configured: &dyn ConfiguredDatabase,
    ) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
        let (previous, policies_key) = (self.previous, self.loaded.config.policies_key.clone());
        let is_same = |old: &&OpenedDatabase| {
            let has_key = entry.policies.is_empty() || old.policies_key == policies_key;
            old.entry == *entry && has_key && configured.may_keep(old, &path, self)
        };
        if let Some(old) = previous.by_name.get(&entry.name).filter(is_same) {
            return Ok(old.clone());
        }
        let (database, parts) = configured.open(&entry.name, &path, self)?;
        Ok(OpenedDatabase { entry: entry.clone(), path, policies_key, database, parts })
    }
}

/// The problem `error` of the key `key` of the database at `path`.
fn key_problem(path: &str, key: &str, error: impl Display) -> Vec<ConfigProblem> {
    vec![ConfigProblem::new(format!("{path}.{key}"), error.to_string())]
}

impl OpenDatabases {
    /// Opens the databases of `loaded`; unchanged ones come from `previous`. The command line has taken `reserved`.
    pub(super) fn open(
        loaded: &LoadedConfig,
        previous: &Self,
        reserved: &[&str],
        node_tables: &NodeTables,
        folders: BTreeMap<String, OpenedTables>,
        problems: &Problems,
    ) -> Self {
        let mut names: BTreeMap<&str, Option<usize>> = reserved.iter().map(|name| (*name, None)).collect();
        let (mut configured, mut has_system) = (Vec::new(), false);
        for (index, entry) in loaded.config.databases.iter().enumerate() {
            let path = format!("databases[{index}]");
            if let Some(first) = names.get(entry.name.as_str()) {
                let (key, message) = (format!("{path}.name"), format!("{} is the name of another", entry.name));
                match first {
                    Some(first) => problems.add_related(key, format_args!("databases[{first}].name"), message),
                    None => problems.add(key, message),
                }
                continue;
            }
            names.insert(&entry.name, Some(index));
            if entry.system.is_some() && std::mem::replace(&mut has_system, true) {
                problems.add(path, "is a second database of system tables, and one is enough");
                continue;
            }
            let database = problems.accept(kinds::configured_database(entry, &path));
            configured.extend(database.map(|database| (entry, path, database)));
        }
        // Databases that show others follow them.
        configured.sort_by_key(|(entry, ..)| (entry.federated.is_some(), entry.system.is_some()));
        let mut opening = Opening { loaded, previous, node_tables, folders, opened: Self::default() };
        for (entry, path, database) in configured {
            if let Some(opened) = problems.accept(opening.open(entry, path, &*database)) {
                opening.opened.by_name.insert(entry.name.clone(), opened);
            }
        }
        opening.opened.continue_counters(previous);
        opening.opened
    }

    /// Continues the counters of the databases in `previous`, which were opened again because their entries changed.
    fn continue_counters(&mut self, previous: &Self) {
        for (name, opened) in &mut self.by_name {
            let before = previous.by_name.get(name).and_then(|before| before.parts.target.as_ref());
            if let (Some(target), Some(before)) = (&mut opened.parts.target, before)
                && !Arc::ptr_eq(target, before)
            {
                *target = Arc::new(target.with_counters_of(before));
            }
        }
    }

    /// The databases that are not in `previous`, or were opened again.
    pub(super) fn new_databases(&self, previous: &Self) -> impl Iterator<Item = Arc<dyn Database>> {
        let is_known = |database: &Arc<dyn Database>| {
            previous.by_name.get(database.name()).is_some_and(|old| Arc::ptr_eq(&old.database, database))
        };
        self.databases().filter(move |database| !is_known(database))
    }

    pub(super) fn databases(&self) -> impl Iterator<Item = Arc<dyn Database>> {
        self.by_name.values().map(|opened| opened.database.clone())
    }

    /// The databases without which the node is not ready.
    pub(super) fn required(&self) -> impl Iterator<Item = Arc<dyn Database>> {
        let required = self.by_name.values().filter(|opened| opened.entry.required.unwrap_or(true));
        required.map(|opened| opened.database.clone())
    }

    pub(super) fn with_handlers(&self) -> impl Iterator<Item = (&str, &Arc<DatabaseHandlers>)> {
        self.by_name.iter().filter_map(|(name, opened)| Some((name.as_str(), opened.parts.handlers.as_ref()?)))
    }

    /// The tables that are offered as functions.
    pub(super) fn functions(&self) -> Option<Arc<dyn FunctionSource>> {
        self.by_name.values().find_map(|opened| opened.parts.functions.clone())
    }

    /// The tables that take rows, by database.
    pub(super) fn ingest_targets(&self) -> Vec<Arc<dyn IngestTarget>> {
        self.by_name.values().filter_map(OpenedDatabase::target).collect()
    }

    /// The tables that take rows elsewhere than in folders.
    pub(super) fn counted_targets(&self) -> impl Iterator<Item = &Arc<CountedTarget>> {
        self.by_name.values().filter_map(|opened| opened.parts.target.as_ref())
    }

    /// The folders of tables that take rows.
    pub(super) fn ingest_folders(&self) -> impl Iterator<Item = &DeclaredTables> {
        self.by_name.values().filter_map(OpenedDatabase::declared_tables)
    }

    /// Reports globs without files, options of tables that do not fit, and problems of databases that are not in
    /// `previous`: of their policies, and, for PostgreSQL, whether they answer and what their roles could do beyond
    /// reading. Returns the databases that refuse the configured login, which are only a warning for the node: it serves the
    /// others.
    pub(super) async fn inspect(&self, previous: &Self, problems: &Problems) -> Vec<ConfigProblem> {
        let mut refused_logins = Vec::new();
        let is_new = |opened: &&OpenedDatabase| {
            previous.by_name.get(&opened.entry.name).is_none_or(|old| old.entry != opened.entry)
        };
        let warn = |opened: &OpenedDatabase, found: Vec<String>| {
            problems.warn(found.into_iter().map(|warning| format!("database {}: {warning}", opened.entry.name)));
        };
        for opened in self.by_name.values() {
            if let Some(files) = &opened.parts.files {
                warn(opened, files::warnings(files).await);
            }
            if is_new(&opened) {
                opened.check_policies(&problems.at(&opened.path)).await;
            }
        }
        let new = self.by_name.values().filter(is_new).filter_map(|opened| match &opened.parts.connections {
            Some(ConnectionPool::Postgres(server)) => Some((opened, server)),
            Some(ConnectionPool::Sqlite(_)) | None => None,
        });
        let inspections = new.map(|(opened, server)| async move {
            (opened, postgres::inspect(server, opened.entry.strict, &opened.path).await)
        });
        for (opened, inspection) in join_all(inspections).await {
            problems.extend(inspection.problems);
            warn(opened, inspection.warnings);
            refused_logins.extend(inspection.refused_login);
        }
        refused_logins
    }
}

impl OpenedDatabase {
    async fn check_policies(&self, problems: &Problems) {
        if self.entry.policies.is_empty() {
            return;
        }
        let checked = self.database.check_policies().await.map(|found| match &self.parts.folder {
            Some(folder) => folder.admit_later_tables(found),
            None => found,
        });
        match checked {
            Ok(found) => policies::report_policy_problems(found, &self.entry.name, problems),
            Err(error) => problems.add("policies", error.to_string()),
        }
    }

    /// Its tables that take rows.
    pub(super) fn target(&self) -> Option<Arc<dyn IngestTarget>> {
        match &self.parts.target {
            Some(target) => Some(target.clone()),
            None => self.declared_tables().and_then(|_| self.caller_target()),
        }
    }

    /// Where callers write to: the tables that take rows, or a target that refuses rows while another process writes.
    pub(super) fn caller_target(&self) -> Option<Arc<dyn IngestTarget>> {
        match &self.parts.folder {
            Some(folder) => folder.is_target().then(|| folder.clone() as Arc<dyn IngestTarget>),
            None => self.target(),
        }
    }

    /// What the configuration declares of its folder, if this process writes to it.
    pub(super) fn declared_tables(&self) -> Option<&DeclaredTables> {
        self.parts.folder.as_ref()?.declared_tables()
    }
}
