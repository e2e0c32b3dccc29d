//! Applies configurations to a running node, each as a whole or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::database_argument::CommandLineDatabases;
use crate::ingest::{FolderUse, IngestFolders};
use crate::metric_recorder::{MetricRecording, RunningRecorder};
use crate::network_nodes::check_nodes;
use crate::node::{Node, ServedState};
use crate::options::LimitOptions;
use crate::server_tables::ServerTables;
use parking_lot::Mutex;
use tidegate_auth::{CredentialAuthenticator, ReloadableAuthenticator, Role};
use tidegate_core::{Authenticator as _, DatabaseTenants, Grants, Principal};
use tidegate_engines::Engine;
use tidegate_postgres_handlers::{HandlerCatalog, HandlerWatcher};
use tidegate_query::{Database, Databases, WriteTarget};
use tidegate_runtime::CacheHint;
use tidegate_tools::register_file_tools;
use tidegate_transport::http::SharedProtectedResource;
use tokio::sync::watch;

use super::databases::{OpenDatabases, OpenedDatabase, build_tenancy};
use super::declared_entries::add_declared_entries;
use super::handlers::EntriesWithHandlers;
use super::knowledge::load_knowledge;
use super::mqtt::{DeclaredReceiver, MqttReceivers, build_receivers};
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::telemetry_receivers::ReceiverDatabases;
use super::tls::RunningTls;
use super::types::Config;
use super::{
    ConfigError, LoadedConfig, authentication, config_warnings, declared_uses, folders, ingest, ingest_numbers, limits,
    names, safeguards, telemetry_sources, tls,
};

pub(crate) struct ConfigApplier {
    pub(crate) node: Arc<Node>,
    pub(crate) engine: Engine,
    pub(crate) authenticator: Arc<ReloadableAuthenticator>,
    pub(crate) protected_resource: SharedProtectedResource,
    limit_options: LimitOptions,
    is_server: bool,
    command_line: CommandLineDatabases,
    requires_authentication: AtomicBool,
    applied: Mutex<AppliedConfig>,
    applied_generations: watch::Sender<u64>,
    pub(crate) tls: RunningTls,
    pub(crate) metric_recording: Arc<MetricRecording>,
    pub(crate) mqtt: MqttReceivers,
    pub(crate) ingest_folders: IngestFolders,
}

/// The configuration that was applied last, if one was.
#[derive(Default)]
struct AppliedConfig {
    config: Option<Arc<LoadedConfig>>,
    /// The number of applied configurations. Principals and snapshots carry it, so that generations are never mixed.
    generation: u64,
    /// A database whose entry does not change stays open.
    databases: OpenDatabases,
    entries: Option<EntriesWithHandlers>,
}

#[derive(Debug, Default)]
pub(crate) struct ApplyReport {
    pub(crate) warnings: Vec<String>,
    /// The databases that answer and refuse the configured login; each is one of the warnings too.
    pub(crate) refused_logins: Vec<ConfigProblem>,
    /// The databases of ingest folders for which this process takes no rows, though it would.
    pub(crate) read_only: Vec<ReadOnlyDatabase>,
    /// What was recognised in log sources, the nodes of networks that answer, and databases that a role uses by
    /// declared entries only, a line for each.
    pub(crate) notes: Vec<String>,
    pub(crate) databases: usize,
    pub(crate) tools: usize,
}

/// A database that takes no rows.
#[derive(Debug)]
pub(crate) struct ReadOnlyDatabase {
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Whether another process writes to it.
    pub(crate) is_in_use: bool,
}

impl ApplyReport {
    fn new(config: &Config, databases: &[Arc<dyn Database>], read_only: Vec<ReadOnlyDatabase>) -> Self {
        Self {
            read_only,
            notes: declared_uses::role_notes(config, databases),
            databases: databases.len(),
            tools: config.tools.len(),
            ..Self::default()
        }
    }
}

impl ConfigApplier {
    pub(crate) fn new(
        node: Arc<Node>,
        engine: Engine,
        (limit_options, is_server): (LimitOptions, bool),
        command_line: CommandLineDatabases,
        ingest_folders: IngestFolders,
    ) -> Self {
        let mqtt = MqttReceivers::new(engine.node_memory().clone());
        Self {
            node,
            engine,
            authenticator: Arc::new(ReloadableAuthenticator::new(CredentialAuthenticator::allow_all())),
            protected_resource: SharedProtectedResource::default(),
            limit_options,
            is_server,
            command_line,
            requires_authentication: AtomicBool::new(false),
            applied: Mutex::default(),
            applied_generations: watch::Sender::new(0),
            tls: RunningTls::default(),
            metric_recording: Arc::default(),
            mqtt,
            ingest_folders,
        }
    }

    pub(crate) fn require_authentication(&self) {
        self.requires_authentication.store(true, Ordering::Relaxed);
    }

    pub(crate) fn grants_for_roles(&self, roles: &BTreeSet<String>) -> Result<Grants, String> {
        let declared: Vec<Role> =
            self.current_config().map_or_else(Vec::new, |loaded| authentication::roles(&loaded.config));
        let mut sum = Grants::default();
        for name in roles {
            match declared.iter().find(|role| role.name == *name) {
                Some(role) => sum = sum.or(&role.grants),
                None => {
                    let names: Vec<&str> = declared.iter().map(|role| role.name.as_str()).collect();
                    return Err(authentication::unknown_role_message(name, &names));
                }
            }
        }
        Ok(sum)
    }

    pub(crate) fn open_databases(&self) -> Vec<Arc<dyn Database>> {
        self.applied.lock().databases.databases().chain(self.command_line.databases.iter().cloned()).collect()
    }

    pub(crate) fn ingest_targets(&self) -> Vec<Arc<dyn WriteTarget>> {
        self.applied.lock().databases.by_name.values().filter_map(OpenedDatabase::target).collect()
    }

    /// The databases without which the node is not ready.
    pub(crate) fn required_databases(&self) -> Vec<Arc<dyn Database>> {
        self.applied.lock().databases.required().chain(self.command_line.databases.iter().cloned()).collect()
    }

    /// Applies `loaded`; if it has any problem, nothing changes.
    pub(crate) async fn apply_config(&self, loaded: &Arc<LoadedConfig>) -> Result<ApplyReport, ConfigError> {
        let generation = self.applied.lock().generation + 1;
        let PreparedConfig { declared, credential_authenticator, databases, recording, mqtt, mut report } =
            self.prepare_state(loaded, generation).await?;
        let handlers = databases.handlers().chain(self.command_line.handlers.iter().cloned()).collect();
        let entries = EntriesWithHandlers::load_catalogs(declared, handlers, &mut report.warnings).await;
        let state = entries.build_state(&mut report.warnings);
        self.ingest_folders.enter(databases.ingest_folders()).await;
        self.node.metrics().read_ingest(ingest_numbers::reader(&databases, self.mqtt.running()));
        self.metric_recording.enter(recording);
        let config = Some(loaded.clone());
        let applied = AppliedConfig { config, generation, databases, entries: Some(entries) };
        self.enter(applied, state, credential_authenticator, loaded);
        let of_toolsets = config_warnings::toolset_warnings(&loaded.config, &self.node.registry().snapshot());
        report.warnings.extend(of_toolsets.into_iter().map(|warning| loaded.document.redact(&warning)));
        self.tls.reload(loaded);
        self.applied_generations.send_replace(generation);
        self.mqtt.enter(mqtt).await;
        Ok(report)
    }

    /// Replaces databases, entries and credentials.
    fn enter(
        &self,
        applied: AppliedConfig,
        state: ServedState,
        credential_authenticator: CredentialAuthenticator,
        loaded: &LoadedConfig,
    ) {
        // Locked until everything is in place, so that handlers of the previous configuration cannot follow it.
        let mut current = self.applied.lock();
        *current = applied;
        // Between the two swaps, generations differ and calls are rejected; transports retry until they match.
        self.authenticator.swap(credential_authenticator);
        // `prepare_state` has reported its problems.
        self.protected_resource.publish(authentication::protected_resource(&loaded.config).unwrap_or_default());
        self.node.enter_state(state);
    }

    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.applied_generations.subscribe()
    }

    pub(crate) fn handler_changes(&self) -> Vec<(String, HandlerWatcher)> {
        self.applied.lock().entries.as_ref().map(EntriesWithHandlers::handler_watchers).unwrap_or_default()
    }

    /// Replaces the handlers of the database `name`, unless a newer configuration than that of `generation` is applied.
    pub(crate) fn refresh_handlers(&self, generation: u64, name: &str, catalog: HandlerCatalog) {
        let mut applied = self.applied.lock();
        let is_current = applied.generation == generation;
        let Some(entries) = applied.entries.as_mut().filter(|_| is_current) else { return };
        let count = catalog.handlers.len();
        entries.refresh(name, catalog);
        let mut warnings = Vec::new();
        self.node.enter_state(entries.build_state(&mut warnings));
        tracing::info!(database = name, handlers = count, "the handlers have changed");
        for warning in warnings {
            tracing::warn!("{warning}");
        }
    }

    /// Reads keys and certificates again, so that revocations apply even if a new configuration is invalid.
    pub(crate) fn reload_authenticator(&self) {
        let (generation, config) = {
            let applied = self.applied.lock();
            (applied.generation, applied.config.clone())
        };
        let Some(loaded) = config else { return };
        self.tls.reload(&loaded);
        match authentication::rebuild_authenticator(&loaded, generation) {
            Ok(credential_authenticator) => self.authenticator.swap(credential_authenticator),
            Err(error) => tracing::error!("the keys stay as they were: {error}"),
        }
    }

    pub(crate) fn current_config(&self) -> Option<Arc<LoadedConfig>> {
        self.applied.lock().config.clone()
    }

    /// Whether the folder of a database is closed for a reason that may pass.
    pub(crate) fn has_folder_to_try_again(&self) -> bool {
        let applied = self.applied.lock();
        applied.databases.by_name.values().filter_map(OpenedDatabase::folder_use).any(FolderUse::is_tried_again)
    }

    /// Tries to open such folders again. Returns the configuration, which is to be applied again, if this process uses a
    /// folder otherwise now: also one that another process has left, which is open then.
    pub(crate) async fn try_folders_again(&self) -> Option<Arc<LoadedConfig>> {
        let databases = self.applied.lock().databases.clone();
        let loaded = self.current_config()?;
        let problems = Problems::default();
        let folders = ingest::open_folders(&loaded, &self.ingest_folders, &self.engine, &problems).await;
        let is_changed = folders.iter().any(|(name, tables)| {
            let before = databases.by_name.get(name).and_then(OpenedDatabase::folder_use);
            before.is_some_and(|before| !tables.folder_use.is_same_use(before))
        });
        is_changed.then_some(loaded)
    }

    /// Opens the databases of `loaded`. Also returns those that take no rows.
    async fn open_all(
        &self,
        loaded: &LoadedConfig,
        previous: &OpenDatabases,
        tenancy: &DatabaseTenants,
        problems: &Problems,
    ) -> (OpenDatabases, Vec<ReadOnlyDatabase>) {
        let reserved: Vec<&str> = self.command_line.databases.iter().map(|database| database.name()).collect();
        let server_tables = ServerTables {
            jobs: self.node.registry().jobs().clone(),
            sessions: self.node.registry().sessions().clone(),
            store: self.node.store().cloned(),
            engine: self.engine.clone(),
            tenants: tenancy.clone(),
        };
        let folders = ingest::open_folders(loaded, &self.ingest_folders, &self.engine, problems).await;
        let read_only = folders.iter().filter_map(|(name, tables)| {
            let is_in_use = matches!(tables.folder_use, FolderUse::Locked(_));
            Some(ReadOnlyDatabase { name: name.clone(), reason: tables.warning.clone()?, is_in_use })
        });
        let read_only: Vec<ReadOnlyDatabase> = read_only.collect();
        let others =
            folders.iter().flat_map(|(name, tables)| tables.problems.iter().map(move |problem| (name, problem)));
        let of_folders = read_only.iter().map(|database| (&database.name, &database.reason)).chain(others);
        problems.warn(of_folders.map(|(name, reason)| format!("database {name}: {reason}")));
        let open = OpenDatabases::open(loaded, previous, &reserved, &server_tables, folders, problems);
        (open, read_only)
    }

    async fn prepare_state(&self, loaded: &LoadedConfig, generation: u64) -> Result<PreparedConfig, ConfigError> {
        let config = &loaded.config;
        let problems = Problems::default();
        let previous = self.applied.lock().databases.clone();
        let tenancy = build_tenancy(config, &problems);
        let (open, read_only) = self.open_all(loaded, &previous, &tenancy, &problems).await;
        let databases: Vec<_> = open.databases().chain(self.command_line.databases.iter().cloned()).collect();
        let mut report = ApplyReport::new(config, &databases, read_only);
        inspect(&open, &previous, &problems, &mut report).await;
        let built_in = names::allowed_built_in(config);
        problems.warn(config_warnings::find_warnings(loaded, &built_in, &databases));
        let has_authentication = authentication::requires_authentication(config);
        limits::check_limits(config, &problems);
        let limits = limits::resolve_limits(&config.limits, &self.limit_options, self.is_server);
        let limits = if has_authentication { limits.with_default_shares() } else { limits };
        problems.warn(limits::inline_bytes_warnings(config));
        let protection = safeguards::build_answer_protection(config, &problems);
        problems.extend(safeguards::audit_options(loaded).err());
        let before = self.current_config();
        problems.warn(safeguards::restart_warnings(config, before.as_ref().map(|before| &before.config)));
        let list_cache = list_cache_hint(config, &problems);
        let recording = &self.metric_recording;
        let mut sources = telemetry_sources::build_sources(loaded, &databases, recording, &problems).await;
        report.notes.append(&mut sources.notes);
        let receivers = ReceiverDatabases::find(config, &open, &problems).await;
        receivers.add_sources(&mut sources);
        let mqtt = build_receivers(loaded, &open, &problems).await;
        let knowledge = load_knowledge(loaded, &databases, &self.command_line.paths, &problems).await;
        let databases = Databases::new(databases).with_tenancy(tenancy.clone()).with_knowledge(knowledge);
        let (title, instructions) = (config.server.title.clone(), safeguards::instructions(config));
        let state = self.node.new_described_state(databases, &built_in, open.functions(), title, instructions);
        let mut state = state.entries(|entries| {
            let entries = entries.cache_hint(list_cache).allow_shared_caches(!has_authentication);
            let entries = entries.list_all_arguments(config.advanced);
            let entries = entries.argument_redaction(safeguards::argument_redaction(config));
            entries.limits(limits).protection(protection).generation(generation)
        });
        let services = state.services().clone();
        state = state.entries(|entries| sources.register(entries, &services, &built_in));
        let folders = folders::build_folders(loaded, &problems);
        state = state.entries(|entries| register_file_tools(entries, &services, folders, &built_in));
        let kept_up = open.ingest_folders().map(|tables| tables.folder.clone() as _).collect();
        let caller_targets = open.by_name.values().filter_map(OpenedDatabase::caller_target).collect();
        let memory = self.engine.node_memory();
        state = ingest::add_tools(state, config, caller_targets, kept_up, (tenancy.clone(), memory), &built_in);
        state = receivers.add_tools(state, tenancy, memory, &built_in);
        state = state.entries(|entries| {
            names::check_duplicates(config, &entries, &problems);
            entries
        });
        state = names::add_toolsets(state, config, &problems);
        state = add_declared_entries(state, (loaded, memory), limits, &open, &problems).await;
        self.check_unverified_callers(config, &problems);
        tls::check_tls(loaded, &problems);
        let credential_authenticator = authentication::build_authenticator(loaded, generation, &problems);
        report.warnings = problems.take_warnings().iter().map(|warning| loaded.document.redact(warning)).collect();
        match credential_authenticator {
            Some(credential_authenticator) if problems.is_empty() => {
                let (declared, recording) = (state, sources.recording);
                Ok(PreparedConfig { declared, credential_authenticator, databases: open, recording, mqtt, report })
            }
            _ => Err(loaded.to_error(&problems.into_vec())),
        }
    }

    fn check_unverified_callers(&self, config: &Config, problems: &Problems) {
        if authentication::verifies_callers(config) {
            return;
        }
        let has_authentication = authentication::requires_authentication(config);
        if self.requires_authentication.load(Ordering::Relaxed) {
            let (key, message) = match has_authentication {
                true => ("auth.development", "is for servers that listen on this machine only; remove it"),
                false => (
                    "auth",
                    "keys or tokens are missing: the server listens beyond this machine, and everybody could read its data",
                ),
            };
            problems.add(key, message);
        }
        let verified_callers =
            || self.current_config().is_some_and(|before| authentication::verifies_callers(&before.config));
        if has_authentication && verified_callers() {
            let message =
                "is new, and the running server verifies its callers: to declare who calls, restart the server";
            problems.add("auth.development", message);
        }
        if !has_authentication && self.authenticator.enforces_authentication() {
            let message = "is missing, although the running server authenticates callers: to serve without \
                           authentication, restart the server";
            problems.add("auth", message);
        }
    }
}

/// A configuration without problems, before it is applied.
struct PreparedConfig {
    declared: ServedState,
    credential_authenticator: CredentialAuthenticator,
    databases: OpenDatabases,
    recording: Option<RunningRecorder>,
    mqtt: Vec<DeclaredReceiver>,
    report: ApplyReport,
}

/// Inspects the databases of `open` that are not in `previous`, and checks the nodes of new networks.
async fn inspect(open: &OpenDatabases, previous: &OpenDatabases, problems: &Problems, report: &mut ApplyReport) {
    report.refused_logins = open.inspect(previous, problems).await;
    // Another caller may have other rights there, so that a node which refuses is no error.
    for database in open.new_databases(previous) {
        for node in check_nodes(&*database, &Principal::process_user()).await {
            match node.check.is_ok() {
                true => report.notes.push(node.to_string()),
                false => problems.warn([node.to_string()]),
            }
        }
    }
}

/// How long clients may cache lists.
fn list_cache_hint(config: &Config, problems: &Problems) -> CacheHint {
    let entry = config.server.list_cache;
    if entry.public == Some(true) && authentication::requires_authentication(config) {
        let message = "cannot be true together with auth: lists depend on the roles of the caller";
        problems.add("server.list_cache.public", message);
    }
    let CacheHint { time_to_live, public } = CacheHint::LISTS;
    CacheHint { time_to_live: entry.ttl.map_or(time_to_live, |time| time.0), public: entry.public.unwrap_or(public) }
}
