//! Opens the databases of a configuration, and inspects new ones. What only one kind of database has is in its own file.

mod federated;
mod files;
mod flight_sql;
mod ingest_folder;
mod journal;
mod kinds;
mod mysql;
mod network;
mod postgres;
mod remote;
mod sqlite;
mod system;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::{DatabaseTenants, PrincipalRule};
use tidegate_engines::{EmbeddedDatabase, Engine, LiveTable};
use tidegate_postgres_handlers::DatabaseHandlers;
use tidegate_query::{CountedTarget, Database, RESULTS_DATABASE, RowPolicies, WriteTarget};
use tidegate_tools::TableFunctions;

use super::problem::ConfigProblem;
use super::problems::Problems;
use super::quantities::{OneOrMany, SecretText};
use super::types::{AboutConfig, ClientTlsConfig, Config, PolicyConfig, RoleChoice};
use super::{LoadedConfig, policies};
use crate::ingest::{DeclaredTables, FolderUse, OpenedTables};
use crate::server_tables::ServerTables;
use ingest_folder::IngestDatabase;
use remote::ClientTlsFiles;

pub(crate) use ingest_folder::FolderConfig;
pub(super) use kinds::{DatabaseConfig, advice};
pub(crate) use kinds::{ServerKind, server_kind_of, server_kinds};
pub(super) use remote::client_tls_files;

const RESERVED_NAME_MESSAGE: &str =
    "results is the database of stored results (save_as); choose another name, such as results_db";

/// The maximum number of connections to a server.
const CONNECTIONS_MAX: usize = 1_000;
/// The messages about a connection and a statement, other than its rows, are smaller.
const MESSAGE_BYTES_MIN: u64 = 64 << 10;

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
pub(super) struct KindParts {
    /// Files with globs and options of tables.
    files: Option<Arc<EmbeddedDatabase>>,
    handlers: Option<Arc<DatabaseHandlers>>,
    /// The tables that are offered as functions.
    functions: Option<Arc<dyn TableFunctions>>,
    /// Tables that take rows elsewhere than in a folder, which has counters of its own.
    target: Option<Arc<CountedTarget>>,
    folder: Option<Arc<IngestDatabase>>,
    /// The content of the files of its TLS when it was opened.
    tls_files: Option<Arc<ClientTlsFiles>>,
}

pub(super) type OpeningResult = Result<(Arc<dyn Database>, KindParts), Vec<ConfigProblem>>;

/// A database as its keys configure it. Each kind has a type with only its own keys.
pub(super) trait ConfiguredDatabase: Any + Send + Sync {
    /// What to write instead of a key of other kinds, if this kind has something in its place.
    fn advice(_key: &str) -> Option<&'static str>
    where
        Self: Sized,
    {
        None
    }

    /// How it is named by an address.
    fn server() -> Option<&'static ServerKind>
    where
        Self: Sized,
    {
        None
    }

    /// Opens the database `name`, whose keys stand at `path`.
    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult;

    /// Whether `old`, which was opened from equal keys, stays open.
    fn may_keep(&self, old: &OpenedDatabase, opening: &Opening<'_>) -> bool {
        self.used_keys().tls.is_none_or(|tls| ClientTlsFiles::are_unchanged(tls, old, opening))
    }

    fn used_keys(&self) -> UsedKeys<'_> {
        UsedKeys::default()
    }

    /// Live tables about `database`, which is open, for callers that `readers` allows.
    fn live_tables(&self, _database: &Arc<dyn Database>, _readers: &PrincipalRule) -> Vec<Arc<dyn LiveTable>> {
        Vec::new()
    }
}

/// Values of keys that are used beyond opening the database.
#[derive(Default)]
pub(crate) struct UsedKeys<'a> {
    /// The databases that it joins.
    pub(crate) members: &'a [String],
    /// Databases with a greater number are opened later, because they show others.
    pub(crate) opening_order: u8,
    /// What a configuration has one database of, at most.
    pub(crate) single: Option<&'static str>,
    pub(crate) policies: &'a [PolicyConfig],
    pub(crate) required: Option<bool>,
    /// Whether privileges beyond reading refuse it.
    pub(crate) strict: bool,
    pub(crate) log_sources: Option<bool>,
    /// With changed files, it is opened again.
    pub(crate) tls: Option<&'a ClientTlsConfig>,
    pub(crate) role: Option<&'a RoleChoice>,
    pub(crate) settings: Option<&'a BTreeMap<String, String>>,
    /// The tables that take rows, as far as they have names. `None` if it takes no rows.
    pub(crate) ingest_tables: Option<Vec<String>>,
    /// The folder of the tables that take rows.
    pub(crate) folder: Option<&'a FolderConfig>,
    /// Whether the types of columns can be declared.
    pub(crate) has_column_types: bool,
    /// Files that may have one beside them that describes them, and how it is read.
    pub(crate) about: Option<(AboutConfig, Vec<String>)>,
}

/// The databases that are opened, and what is needed for it.
pub(super) struct Opening<'a> {
    loaded: &'a LoadedConfig,
    previous: &'a OpenDatabases,
    server_tables: &'a ServerTables,
    /// Opened folders of tables that take rows, by database.
    folders: BTreeMap<String, OpenedTables>,
    opened: OpenDatabases,
}

impl<'a> Opening<'a> {
    fn engine(&self) -> &'a Engine {
        &self.server_tables.engine
    }

    fn resolve(&self, paths: &OneOrMany) -> Vec<PathBuf> {
        paths.clone().into_vec().into_iter().map(|path| self.loaded.resolve(path)).collect()
    }

    fn row_policies(&self, entries: &[PolicyConfig], path: &str) -> Result<RowPolicies, Vec<ConfigProblem>> {
        policies::build_row_policies(entries, &self.loaded.config, path)
    }

    /// Counts what is written to `target` of the database `name`. The counters of the previous one go on.
    fn counted(&self, name: &str, target: impl WriteTarget) -> Arc<CountedTarget> {
        let target = CountedTarget::new(Arc::new(target));
        let previous = self.previous.by_name.get(name).and_then(|previous| previous.parts.target.as_ref());
        Arc::new(match previous {
            Some(previous) => target.with_counters_of(previous),
            None => target,
        })
    }

    /// Opens the database of `entry`, unless the previous one can stay.
    fn open(&mut self, entry: &DatabaseConfig, path: String) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
        let (previous, policies_key) = (self.previous, self.loaded.config.policies_key.clone());
        let is_same = |old: &&OpenedDatabase| {
            let has_key = entry.used_keys().policies.is_empty() || old.policies_key == policies_key;
            old.entry == *entry && has_key && entry.kind.may_keep(old, self)
        };
        if let Some(old) = previous.by_name.get(&entry.name).filter(is_same) {
            return Ok(old.clone());
        }
        let (database, parts) = entry.kind.open(&entry.name, &path, self)?;
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
        server_tables: &ServerTables,
        folders: BTreeMap<String, OpenedTables>,
        problems: &Problems,
    ) -> Self {
        let mut names: BTreeMap<&str, Option<usize>> = reserved.iter().map(|name| (*name, None)).collect();
        let (mut entries, mut singles) = (Vec::new(), BTreeSet::new());
        let kind_problems = &loaded.config.kind_problems;
        problems.extend(kind_problems.iter().cloned());
        for (index, entry) in loaded.config.databases.iter().enumerate() {
            let path = format!("databases[{index}]");
            if entry.name.eq_ignore_ascii_case(RESULTS_DATABASE) {
                problems.add(format!("{path}.name"), RESERVED_NAME_MESSAGE);
                continue;
            }
            if let Some(first) = names.get(entry.name.as_str()) {
                let (key, message) = (format!("{path}.name"), format!("{} is the name of another", entry.name));
                match first {
                    Some(first) => problems.add_related(key, format_args!("databases[{first}].name"), message),
                    None => problems.add(key, message),
                }
                continue;
            }
            names.insert(&entry.name, Some(index));
            if let Some(single) = entry.used_keys().single.filter(|single| !singles.insert(*single)) {
                problems.add(&path, format!("is a second database of {single}, and one is enough"));
                continue;
            }
            let is_own = |rest: &str| rest.is_empty() || rest.starts_with('.');
            if !kind_problems.iter().any(|problem| problem.path.strip_prefix(&path).is_some_and(is_own)) {
                entries.push((entry, path));
            }
        }
        entries.sort_by_key(|(entry, _)| entry.used_keys().opening_order);
        let mut opening = Opening { loaded, previous, server_tables, folders, opened: Self::default() };
        for (entry, path) in entries {
            if let Some(opened) = problems.accept(opening.open(entry, path)) {
                opening.opened.by_name.insert(entry.name.clone(), opened);
            }
        }
        opening.opened
    }

    /// The databases that are not in `previous`, or were opened again.
    pub(super) fn new_databases(&self, previous: &Self) -> impl Iterator<Item = Arc<dyn Database>> {
        let new = self.by_name.values().filter(move |opened| !opened.is_kept_from(previous));
        new.map(|opened| opened.database.clone())
    }

    pub(super) fn databases(&self) -> impl Iterator<Item = Arc<dyn Database>> {
        self.by_name.values().map(|opened| opened.database.clone())
    }

    /// The databases without which the node is not ready.
    pub(super) fn required(&self) -> impl Iterator<Item = Arc<dyn Database>> {
        let required = self.by_name.values().filter(|opened| opened.entry.used_keys().required.unwrap_or(true));
        required.map(|opened| opened.database.clone())
    }

    /// The handlers of databases, by their names.
    pub(super) fn handlers(&self) -> impl Iterator<Item = (String, Arc<DatabaseHandlers>)> {
        self.by_name.iter().filter_map(|(name, opened)| Some((name.clone(), opened.parts.handlers.clone()?)))
    }

    /// The tables that are offered as functions.
    pub(super) fn functions(&self) -> Option<Arc<dyn TableFunctions>> {
        self.by_name.values().find_map(|opened| opened.parts.functions.clone())
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
    /// `previous` or were opened again: of their policies, whether servers answer, and what their roles could do beyond reading. Returns the databases that refuse the configured login, which are only a warning for the node: it serves the
    /// others.
    pub(super) async fn inspect(&self, previous: &Self, problems: &Problems) -> Vec<ConfigProblem> {
        let mut refused_logins = Vec::new();
        let is_new = |opened: &&OpenedDatabase| !opened.is_kept_from(previous);
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
        let new = self.by_name.values().filter(is_new);
        let inspected = new.map(|opened| async move { (opened, opened.database.excess_privileges().await) });
        for (opened, privileges) in join_all(inspected).await {
            match privileges {
                Ok(found) if opened.entry.used_keys().strict => {
                    found.into_iter().for_each(|privilege| problems.at(&opened.path).add("strict", privilege));
                }
                Ok(found) => warn(opened, found),
                Err(error) => {
                    let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
                    warn(opened, vec![reason]);
                    // The warning has the details of the connection.
                    let problem = || ConfigProblem::new(opened.path.as_str(), error.message());
                    refused_logins.extend(error.is_configuration_fault().then(problem));
                }
            }
        }
        refused_logins
    }
}

impl OpenedDatabase {
    /// Whether it is in `previous`, and was not opened again.
    fn is_kept_from(&self, previous: &OpenDatabases) -> bool {
        previous.by_name.get(&self.entry.name).is_some_and(|old| Arc::ptr_eq(&old.database, &self.database))
    }

    /// What this process does with its folder.
    pub(super) fn folder_use(&self) -> Option<&FolderUse> {
        self.parts.folder.as_ref().map(|folder| &folder.folder_use)
    }

    async fn check_policies(&self, problems: &Problems) {
        if self.entry.used_keys().policies.is_empty() {
            return;
        }
        let checked = self.database.check_policies().await.map(|found| match self.entry.used_keys().folder {
            Some(folder) => {
                let is_closed =
                    self.parts.folder.as_ref().is_some_and(|open| matches!(open.folder_use, FolderUse::Closed(_)));
                folder.admit_later_tables(found, is_closed)
            }
            None => found,
        });
        match checked {
            Ok(found) => policies::report_policy_problems(found, &self.entry.name, problems),
            Err(error) => problems.add("policies", error.to_string()),
        }
    }

    /// Its tables that take rows.
    pub(super) fn target(&self) -> Option<Arc<dyn WriteTarget>> {
        match &self.parts.target {
            Some(target) => Some(target.clone()),
            None => self.declared_tables().and_then(|_| self.caller_target()),
        }
    }

    /// Where callers write to: the tables that take rows, or a target that refuses rows while another process writes.
    pub(super) fn caller_target(&self) -> Option<Arc<dyn WriteTarget>> {
        match &self.parts.folder {
            Some(folder) if matches!(folder.folder_use, FolderUse::Reads) => None,
            Some(folder) => Some(folder.clone()),
            None => self.target(),
        }
    }

    /// What the configuration declares of its folder, if this process writes to it.
    pub(super) fn declared_tables(&self) -> Option<&DeclaredTables> {
        self.parts.folder.as_ref()?.folder_use.declared()
    }
}

/// The tenants of each database. A federated database belongs to the tenants that may query all its members.
pub(super) fn build_tenancy(config: &Config, problems: &Problems) -> DatabaseTenants {
    let mut tenants_by_database = Vec::new();
    for (index, entry) in config.databases.iter().enumerate() {
        let problems = problems.at(format_args!("databases[{index}]"));
        if entry.tenants.as_ref().is_some_and(Vec::is_empty) {
            let message = "is empty; omit it to allow all tenants, or list the tenants that may use the database";
            problems.add("tenants", message);
            continue;
        }
        let Some(tenants) = tenants_allowed(entry, config) else { continue };
        if tenants.is_empty() {
            problems.add("federated", "joins databases that no tenant may use together");
        }
        tenants_by_database.push((entry.name.clone(), tenants));
    }
    DatabaseTenants::new(tenants_by_database)
}

/// The tenants of `entry`; `None` for all.
fn tenants_allowed(entry: &DatabaseConfig, config: &Config) -> Option<BTreeSet<String>> {
    let members = entry.used_keys().members.iter();
    let members = members.filter_map(|name| config.databases.iter().find(|database| database.name == *name));
    let restricted = std::iter::once(entry).chain(members).filter_map(|database| database.tenants.as_ref());
    let tenants = restricted.map(|tenants| tenants.iter().cloned().collect::<BTreeSet<String>>());
    tenants.reduce(|all, others| all.intersection(&others).cloned().collect())
}
