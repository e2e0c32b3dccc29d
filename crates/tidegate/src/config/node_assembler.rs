//! From a configuration to the state of a running node: all of it, or nothing and why.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::node::{Node, NodeState};
use futures::StreamExt as _;
use parking_lot::Mutex;
use tidegate_auth::{ReloadableAuthenticator, Role};
use tidegate_core::{AllowedNames, Authenticator as _, Budget, CallLimits, Grants, Limits};
use tidegate_engines::Engine;
use tidegate_postgres_handlers::{HandlerCatalog, HandlerWatcher};
use tidegate_query::{Database, Databases};
use tidegate_runtime::{CacheHint, SnapshotBuilder};
use tidegate_tools::declared::{AllowedHosts, HttpClient, HttpProblem, PreparedResource};
use tidegate_transport::http::SharedProtectedResource;
use tokio::sync::watch;

use super::databases::OpenDatabases;
use super::handlers::ServedEntries;
use super::problem::{ConfigProblem, accept};
use super::tls::RunningTls;
use super::types::Config;
use super::{ConfigError, LoadedConfig, authentication, databases, declarations, limits, names, safeguards, tls};

/// Statements that are prepared at the same time.
const PREPARED_AT_ONCE: usize = 8;

/// Puts configurations into a running node, one after the other.
pub(crate) struct NodeAssembler {
    pub(crate) node: Arc<Node>,
    engine: Engine,
    authenticator: Arc<ReloadableAuthenticator>,
    /// The OAuth metadata of the configuration in force.
    pub(crate) protected_resource: SharedProtectedResource,
    /// Bounds by flag, environment and default; the file counts where neither flag nor environment sets them.
    limits: Box<dyn Fn(&Config) -> Limits + Send + Sync>,
    /// Databases that the command line adds.
    command_line_databases: Vec<Arc<dyn Database>>,
    /// Whether callers beyond this machine reach the node, so that they must authenticate.
    requires_authentication: AtomicBool,
    /// The configuration that was entered last.
    current_config: Mutex<Option<Arc<LoadedConfig>>>,
    /// How many were entered. Principals and entries carry it, so that they meet those of the same one only.
    generation: AtomicU64,
    /// Databases that are open: one that stays the same stays open.
    open_databases: Mutex<OpenDatabases>,
    /// What is served now.
    served_entries: Mutex<Option<ServedEntries>>,
    /// Tells of each generation that was entered.
    applied_generations: watch::Sender<u64>,
    /// The TLS of the server that runs.
    pub(crate) tls: RunningTls,
}

/// What became of a configuration.
#[derive(Debug, Default)]
pub(crate) struct ApplyReport {
    /// What works, but not as it should.
    pub(crate) warnings: Vec<String>,
    pub(crate) databases: usize,
    pub(crate) tools: usize,
}

impl NodeAssembler {
    pub(crate) fn new(
        node: Arc<Node>,
        engine: Engine,
        authenticator: Arc<ReloadableAuthenticator>,
        limits: impl Fn(&Config) -> Limits + Send + Sync + 'static,
        command_line_databases: Vec<Arc<dyn Database>>,
    ) -> Self {
        Self {
            node,
            engine,
            authenticator,
            protected_resource: SharedProtectedResource::default(),
            limits: Box::new(limits),
            command_line_databases,
            requires_authentication: AtomicBool::new(false),
            current_config: Mutex::default(),
            generation: AtomicU64::new(0),
            open_databases: Mutex::default(),
            served_entries: Mutex::default(),
            applied_generations: watch::Sender::new(0),
            tls: RunningTls::default(),
        }
    }

    /// From now on refuses configurations that let everybody in.
    pub(crate) fn require_authentication(&self) {
        self.requires_authentication.store(true, Ordering::Relaxed);
    }

    /// What somebody with `roles` of the configuration that was entered last may reach.
    pub(crate) fn grants_for_roles(&self, roles: &BTreeSet<String>) -> Result<Grants, String> {
        let known: Vec<Role> =
            self.current_config.lock().as_ref().map_or_else(Vec::new, |loaded| authentication::roles(&loaded.config));
        let mut sum = Grants::default();
        for name in roles {
            match known.iter().find(|role| role.name == *name) {
                Some(role) => sum = sum.or(&role.grants),
                None => {
                    let known: Vec<&str> = known.iter().map(|role| role.name.as_str()).collect();
                    return Err(format!("there is no role {name:?}; known are {}", known.join(", ")));
                }
            }
        }
        Ok(sum)
    }

    /// The databases of the node now.
    pub(crate) fn open_databases(&self) -> Vec<Arc<dyn Database>> {
        self.open_databases.lock().databases().chain(self.command_line_databases.iter().cloned()).collect()
    }

    /// Makes the node what `loaded_config` says.
    ///
    /// # Errors
    /// Everything that is wrong with it; then nothing has changed.
    pub(crate) async fn apply_config(&self, loaded: &Arc<LoadedConfig>) -> Result<ApplyReport, ConfigError> {
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        let (declared, credential_authenticator, open, mut assembled) = self.prepare_state(loaded, generation).await?;
        let now = ServedEntries::load_catalogs(declared, &open, &mut assembled.warnings).await;
        let state = now.build_state(&mut assembled.warnings);
        *self.open_databases.lock() = open;
        *self.current_config.lock() = Some(loaded.clone());
        // Held until all is in place, so that no handlers of the configuration before come after it.
        let mut served = self.served_entries.lock();
        *served = Some(now);
        self.generation.store(generation, Ordering::Relaxed);
        // Between the two nobody reaches anything; doors ask again until they belong together.
        self.authenticator.swap(credential_authenticator);
        // What is wrong with it was told before.
        self.protected_resource.publish(authentication::protected_resource(&loaded.config).unwrap_or_default());
        self.node.enter_state(state);
        drop(served);
        self.tls.reload(loaded);
        self.applied_generations.send_replace(generation);
        Ok(assembled)
    }

    /// Tells of each generation of the configuration that was entered.
    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.applied_generations.subscribe()
    }

    /// What follows the handlers of each database, by its name.
    pub(crate) fn handler_changes(&self) -> Vec<(String, HandlerWatcher)> {
        self.served_entries.lock().as_ref().map(ServedEntries::handler_watchers).unwrap_or_default()
    }

    /// The handlers of the database `name` are those of `catalog` now, if the configuration is still that of
    /// `generation`.
    pub(crate) fn refresh_handlers(&self, generation: u64, name: &str, catalog: HandlerCatalog) {
        let mut served = self.served_entries.lock();
        let Some(now) = served.as_mut().filter(|_| self.generation.load(Ordering::Relaxed) == generation) else {
            return;
        };
        let count = catalog.handlers.len();
        now.refresh(name, catalog);
        let mut warnings = Vec::new();
        self.node.enter_state(now.build_state(&mut warnings));
        tracing::info!(database = name, handlers = count, "the handlers have changed");
        for warning in warnings {
            tracing::warn!("{warning}");
        }
    }

    /// Reads the keys and certificates again for the configuration in force. What was revoked ends so, whatever is wrong
    /// with a new configuration or with anything else that entering one takes.
    pub(crate) fn reload_authenticator(&self) {
        let Some(loaded) = self.current_config() else { return };
        self.tls.reload(&loaded);
        match authentication::rebuild_authenticator(&loaded, self.generation.load(Ordering::Relaxed)) {
            Ok(credential_authenticator) => self.authenticator.swap(credential_authenticator),
            Err(error) => tracing::error!("the keys stay as they were: {error}"),
        }
    }

    /// The configuration that was entered last.
    pub(crate) fn current_config(&self) -> Option<Arc<LoadedConfig>> {
        self.current_config.lock().clone()
    }

    async fn prepare_state(&self, loaded: &LoadedConfig, generation: u64) -> Result<PreparedConfig, ConfigError> {
        let config = &loaded.config;
        let mut problems = Vec::new();
        let further: Vec<&str> = self.command_line_databases.iter().map(|database| database.name()).collect();
        let known = self.open_databases.lock().clone();
        let open = OpenDatabases::open(loaded, &known, &further, &self.engine, &mut problems);
        let databases: Vec<_> = open.databases().chain(self.command_line_databases.iter().cloned()).collect();
        let mut assembled =
            ApplyReport { databases: databases.len(), warnings: loaded.deprecations(), ..ApplyReport::default() };
        open.inspect(&known, &mut problems, &mut assembled.warnings).await;
        let built_in =
            config.built_in.as_ref().map_or(AllowedNames::Everything, |names| AllowedNames::matching(names.clone()));
        let is_private = authentication::requires_authentication(config);
        limits::check_limits(config, &mut problems);
        let tenancy = databases::build_tenancy(config, &mut problems);
        let limits = (self.limits)(config);
        let limits = if is_private { limits.with_default_shares() } else { limits };
        let guard = safeguards::build_answer_protection(config, &mut problems);
        safeguards::audit_options(loaded, &mut problems);
        let before = self.current_config();
        assembled.warnings.extend(safeguards::restart_warning(config, before.as_ref().map(|before| &before.config)));
        let mut state =
            self.node.new_state(Databases::new(databases).with_tenancy(tenancy), &built_in).entries(|entries| {
                let cache = CacheHint { time_to_live: Duration::from_secs(60), public: !is_private };
                entries.limits(limits).cache_hint(cache).protection(guard).generation(generation)
            });
        let offered = tidegate_tools::register_allowed(SnapshotBuilder::new(), state.view(), &built_in).build();
        names::check_duplicates(config, &offered, &mut problems);
        state = names::add_toolsets(state, config, &mut problems);
        let inline = CallLimits { timeout: Some(limits.timeout), inline: Some(limits.inline), ..CallLimits::default() };
        state = add_sql_tools(state, config, inline, &mut problems, &mut assembled.warnings).await;
        state = add_http_tools(state, loaded, &mut problems);
        state = add_resources(state, loaded, &mut problems, &mut assembled.warnings).await;
        state = add_prompts(state, config, &mut problems);
        if self.requires_authentication.load(Ordering::Relaxed) && !is_private {
            let message =
                "keys or tokens are missing: the node listens beyond this machine, and everybody could read its data";
            problems.push(ConfigProblem::new("auth", message));
        }
        if self.authenticator.enforces_authentication() && !is_private {
            let message = "is gone: what asked callers who they are would let everybody in from now on; if that is meant, \
                           start the node anew";
            problems.push(ConfigProblem::new("auth", message));
        }
        tls::check_tls(loaded, &mut problems);
        let credential_authenticator =
            authentication::build_authenticator(loaded, generation, &mut problems, &mut assembled.warnings);
        assembled.tools = config.tools.len();
        assembled.warnings.iter_mut().for_each(|warning| *warning = loaded.document.redact(warning));
        match credential_authenticator {
            Some(credential_authenticator) if problems.is_empty() => {
                Ok((state, credential_authenticator, open, assembled))
            }
            _ => Err(loaded.to_error(&problems)),
        }
    }
}

type PreparedConfig = (NodeState, tidegate_auth::CredentialAuthenticator, OpenDatabases, ApplyReport);

/// The declared tools that ask a database; several statements are prepared at the same time.
async fn add_sql_tools(
    mut state: NodeState,
    config: &Config,
    limits: CallLimits,
    problems: &mut Vec<ConfigProblem>,
    warnings: &mut Vec<String>,
) -> NodeState {
    let view = state.view().clone();
    let of_databases = config.tools.iter().enumerate().filter(|(_, entry)| entry.http.is_none());
    let preparing: Vec<_> = of_databases
        .map(|(index, entry)| {
            let (view, path) = (&view, format!("tools[{index}]"));
            async move {
                let tool = declarations::build_sql_tool(entry, &path)?;
                tool.prepare(view, limits).await.map_err(|wrong| nest_problems(&path, wrong))
            }
        })
        .collect();
    let mut prepared = futures::stream::iter(preparing).buffered(PREPARED_AT_ONCE);
    while let Some(prepared) = prepared.next().await {
        if let Some((tool, unreachable)) = accept(prepared, problems) {
            warnings.extend(unreachable.map(|error| format!("tool {}: {error}", tool.name)));
            state = state.entries(|entries| entries.tool(tool));
        }
    }
    state
}

/// The declared tools that ask an HTTP API.
fn add_http_tools(mut state: NodeState, loaded: &LoadedConfig, problems: &mut Vec<ConfigProblem>) -> NodeState {
    let config = &loaded.config;
    if config.tools.iter().all(|tool| tool.http.is_none()) {
        return state;
    }
    let wrong = |problems: Vec<HttpProblem>| {
        let problem =
            |wrong: HttpProblem| ConfigProblem::new(wrong.field, format!("{}; {}", wrong.message, wrong.hint));
        problems.into_iter().map(problem).collect::<Vec<_>>()
    };
    let client = AllowedHosts::parse(&config.http.allow_hosts).map_err(wrong).and_then(|hosts| {
        let client = HttpClient::new(Arc::new(hosts), env!("CARGO_PKG_VERSION"));
        client.map_err(|error| vec![ConfigProblem::new("http", error.to_string())])
    });
    let Some(client) = accept(client, problems) else { return state };
    for (index, entry) in config.tools.iter().enumerate() {
        let Some(http) = &entry.http else { continue };
        let path = format!("tools[{index}]");
        let tool = declarations::build_http_tool(entry, http, &path, loaded);
        let tool =
            tool.and_then(|tool| tool.prepare(state.view(), &client).map_err(|wrong| nest_problems(&path, wrong)));
        if let Some(tool) = accept(tool, problems) {
            state = state.entries(|entries| entries.tool(tool));
        }
    }
    state
}

async fn add_resources(
    mut state: NodeState,
    loaded: &LoadedConfig,
    problems: &mut Vec<ConfigProblem>,
    warnings: &mut Vec<String>,
) -> NodeState {
    for (index, entry) in loaded.config.resources.iter().enumerate() {
        let path = format!("resources[{index}]");
        let resource = match declarations::build_resource(entry, &path, loaded.folder()) {
            Ok(resource) => resource.prepare(state.view()).await.map_err(|wrong| nest_problems(&path, wrong)),
            Err(wrong) => Err(wrong),
        };
        let Some((prepared, unreachable)) = accept(resource, problems) else { continue };
        warnings.extend(unreachable.map(|error| format!("resource {}: {error}", entry.name)));
        state = state.entries(|entries| match prepared {
            PreparedResource::Resource(resource) => entries.resource(*resource),
            PreparedResource::Template(template) => entries.template(*template),
        });
    }
    state
}

fn add_prompts(mut state: NodeState, config: &Config, problems: &mut Vec<ConfigProblem>) -> NodeState {
    for (index, entry) in config.prompts.iter().enumerate() {
        let path = format!("prompts[{index}]");
        let prompt = declarations::build_prompt(entry, &path);
        let prompt =
            prompt.and_then(|prompt| prompt.prepare(state.view()).map_err(|wrong| nest_problems(&path, wrong)));
        if let Some(prompt) = accept(prompt, problems) {
            state = state.entries(|entries| entries.prompt(prompt));
        }
    }
    state
}

/// The problems of a declaration as those of the file.
fn nest_problems(path: &str, problems: Vec<tidegate_tools::declared::DeclarationProblem>) -> Vec<ConfigProblem> {
    problems
        .into_iter()
        .map(|problem| ConfigProblem::new(format!("{path}.{}", problem.path), problem.error.to_string()))
        .collect()
}

/// The inline budget that the file asks for, over `default`.
pub(crate) fn inline_budget(config: &Config, default: Budget) -> Budget {
    Budget {
        rows: config.limits.inline_rows.map_or(default.rows, |bound| bound.0.limit()),
        bytes: config.limits.inline_bytes.map_or(default.bytes, |bound| bound.0.limit()),
    }
}
