//! From a configuration to the state of a running node: all of it, or nothing and why.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use parking_lot::Mutex;
use tidegate::{Node, State};
use tidegate_auth::{Doorkeeper, Role};
use tidegate_core::{Allowed, Authenticator as _, Budget, CacheHint, CallLimits, Grants, Limits, SnapshotBuilder};
use tidegate_engines::Engine;
use tidegate_postgres::handlers::{HandlerCatalog, HandlerChanges};
use tidegate_query::{Database, Databases};
use tidegate_tools::declared::{AllowedHosts, HttpClient, HttpProblem, Prepared};
use tidegate_transport::http::Published;
use tokio::sync::watch;

use super::databases::OpenDatabases;
use super::handlers::Served;
use super::problem::Problem;
use super::tls::RunningTls;
use super::types::Config;
use super::{Broken, Loaded, doubles, entries, identity, limits, safeguards, tenants, tls, toolsets};

/// Statements that are prepared at the same time.
const PREPARED_AT_ONCE: usize = 8;

/// Puts configurations into a running node, one after the other.
pub(crate) struct Assembly {
    node: Arc<Node>,
    engine: Engine,
    doorkeeper: Arc<Doorkeeper>,
    /// What clients of OAuth are told.
    published: Published,
    /// Bounds by flag, environment and default; the file is asked where neither flag nor environment spoke.
    limits: Box<dyn Fn(&Config) -> Limits + Send + Sync>,
    /// Databases that the command line adds.
    further: Vec<Arc<dyn Database>>,
    /// Whether callers beyond this machine reach the node, so that it must ask them who they are.
    must_ask: AtomicBool,
    /// The configuration that was entered last.
    entered: Mutex<Option<Arc<Loaded>>>,
    /// How many were entered. Principals and entries carry it, so that they meet those of the same one only.
    generation: AtomicU64,
    /// Databases that are open: one that stays the same stays open.
    open: Mutex<OpenDatabases>,
    /// What is served now.
    served: Mutex<Option<Served>>,
    /// Tells of each generation that was entered.
    entries: watch::Sender<u64>,
    tls: RunningTls,
}

/// What became of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Assembled {
    /// What works, but not as it should.
    pub(crate) warnings: Vec<String>,
    pub(crate) databases: usize,
    pub(crate) tools: usize,
}

impl Assembly {
    pub(crate) fn new(
        node: Arc<Node>,
        engine: Engine,
        doorkeeper: Arc<Doorkeeper>,
        limits: impl Fn(&Config) -> Limits + Send + Sync + 'static,
        further: Vec<Arc<dyn Database>>,
    ) -> Self {
        Self {
            node,
            engine,
            doorkeeper,
            published: Published::default(),
            limits: Box::new(limits),
            further,
            must_ask: AtomicBool::new(false),
            entered: Mutex::default(),
            generation: AtomicU64::new(0),
            open: Mutex::default(),
            served: Mutex::default(),
            entries: watch::Sender::new(0),
            tls: RunningTls::default(),
        }
    }

    /// From now on refuses configurations that let everybody in.
    pub(crate) fn must_ask(&self) {
        self.must_ask.store(true, Ordering::Relaxed);
    }

    /// What somebody with `roles` of the configuration that was entered last may reach.
    pub(crate) fn grants_of(&self, roles: &BTreeSet<String>) -> Result<Grants, String> {
        let known: Vec<Role> =
            self.entered.lock().as_ref().map_or_else(Vec::new, |loaded| identity::roles(&loaded.config));
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
    pub(crate) fn databases_open(&self) -> Vec<Arc<dyn Database>> {
        self.open.lock().all().chain(self.further.iter().cloned()).collect()
    }

    /// What clients of OAuth are told, now and after each configuration to come.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    /// The node.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Makes the node what `loaded` says.
    ///
    /// # Errors
    /// Everything that is wrong with it; then nothing has changed.
    pub(crate) async fn enter(&self, loaded: &Arc<Loaded>) -> Result<Assembled, Broken> {
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        let (declared, gate, open, mut assembled) = self.prepare(loaded, generation).await?;
        let now = Served::read(declared, &open, &mut assembled.warnings).await;
        let state = now.state(&mut assembled.warnings);
        *self.open.lock() = open;
        *self.entered.lock() = Some(loaded.clone());
        // Held until all is in place, so that no handlers of the configuration before come after it.
        let mut served = self.served.lock();
        *served = Some(now);
        self.generation.store(generation, Ordering::Relaxed);
        // Between the two nobody reaches anything; doors ask again until they belong together.
        self.doorkeeper.swap(gate);
        // What is wrong with it was told before.
        self.published.publish(identity::protected_resource(&loaded.config).unwrap_or_default());
        self.node.enter(state);
        drop(served);
        self.tls.renew(loaded);
        self.entries.send_replace(generation);
        Ok(assembled)
    }

    /// Tells of each generation of the configuration that was entered.
    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.entries.subscribe()
    }

    /// What follows the handlers of each database, by its name.
    pub(crate) fn handler_changes(&self) -> Vec<(String, HandlerChanges)> {
        self.served.lock().as_ref().map(Served::changes).unwrap_or_default()
    }

    /// The handlers of the database `name` are those of `catalog` now, if the configuration is still that of
    /// `generation`.
    pub(crate) fn refresh_handlers(&self, generation: u64, name: &str, catalog: HandlerCatalog) {
        let mut served = self.served.lock();
        let Some(now) = served.as_mut().filter(|_| self.generation.load(Ordering::Relaxed) == generation) else {
            return;
        };
        let count = catalog.handlers.len();
        now.refresh(name, catalog);
        let mut warnings = Vec::new();
        self.node.enter(now.state(&mut warnings));
        tracing::info!(database = name, handlers = count, "the handlers have changed");
        for warning in warnings {
            tracing::warn!("{warning}");
        }
    }

    /// The TLS of the server that runs.
    pub(crate) fn tls(&self) -> &RunningTls {
        &self.tls
    }

    /// Reads the keys and certificates again for the configuration in force. What was revoked ends so, whatever is wrong
    /// with a new configuration or with anything else that entering one takes.
    pub(crate) fn renew_gate(&self) {
        let Some(loaded) = self.entered() else { return };
        self.tls.renew(&loaded);
        match identity::renewed_gate(&loaded, self.generation.load(Ordering::Relaxed)) {
            Ok(gate) => self.doorkeeper.swap(gate),
            Err(error) => tracing::error!("the keys stay as they were: {error}"),
        }
    }

    /// The configuration that was entered last.
    pub(crate) fn entered(&self) -> Option<Arc<Loaded>> {
        self.entered.lock().clone()
    }

    async fn prepare(&self, loaded: &Loaded, generation: u64) -> Result<Prepare, Broken> {
        let config = &loaded.config;
        let mut problems = Vec::new();
        let further: Vec<&str> = self.further.iter().map(|database| database.name()).collect();
        let known = self.open.lock().clone();
        let open = OpenDatabases::open(loaded, &known, &further, &self.engine, &mut problems);
        let databases: Vec<_> = open.all().chain(self.further.iter().cloned()).collect();
        let mut assembled = Assembled { databases: databases.len(), ..Assembled::default() };
        open.inspect(&known, &mut problems, &mut assembled.warnings).await;
        let built_in = config.built_in.as_ref().map_or(Allowed::Everything, |names| Allowed::matching(names.clone()));
        let is_private = identity::is_configured(config);
        limits::check(config, &mut problems);
        let tenancy = tenants::tenancy(config, &mut problems);
        let limits = (self.limits)(config);
        let limits = if is_private { limits.shared() } else { limits };
        let guard = safeguards::guard(config, &mut problems);
        safeguards::audit(loaded, &mut problems);
        let before = self.entered();
        assembled.warnings.extend(safeguards::warnings(config, before.as_ref().map(|before| &before.config)));
        let mut state = self.node.state(Databases::new(databases).of_tenants(tenancy), &built_in).entries(|entries| {
            let cache = CacheHint { time_to_live: Duration::from_secs(60), public: !is_private };
            entries.limits(limits).cache(cache).guard(guard).generation(generation)
        });
        let offered = tidegate_tools::register_allowed(SnapshotBuilder::new(), state.view(), &built_in).build();
        doubles::check(config, &offered, &mut problems);
        state = toolsets::enter(state, config, &mut problems);
        let inline = CallLimits { timeout: Some(limits.timeout), inline: Some(limits.inline), ..CallLimits::default() };
        state = sql_tools(state, config, inline, &mut problems, &mut assembled.warnings).await;
        state = http_tools(state, loaded, &mut problems);
        state = resources(state, loaded, &mut problems, &mut assembled.warnings).await;
        state = prompts(state, config, &mut problems);
        if self.must_ask.load(Ordering::Relaxed) && !is_private {
            let message =
                "keys or tokens are missing: the node listens beyond this machine, and everybody could read its data";
            problems.push(Problem::new("auth", message));
        }
        if self.doorkeeper.is_configured() && !is_private {
            let message = "is gone: what asked callers who they are would let everybody in from now on; if that is meant, \
                           start the node anew";
            problems.push(Problem::new("auth", message));
        }
        tls::check(loaded, &mut problems);
        let gate = identity::gate(loaded, generation, &mut problems, &mut assembled.warnings);
        assembled.tools = config.tools.len();
        assembled.warnings.iter_mut().for_each(|warning| *warning = loaded.told(warning));
        match gate {
            Some(gate) if problems.is_empty() => Ok((state, gate, open, assembled)),
            _ => Err(loaded.broken(&problems)),
        }
    }
}

type Prepare = (State, tidegate_auth::Gate, OpenDatabases, Assembled);

/// The declared tools that ask a database; several statements are prepared at the same time.
async fn sql_tools(
    mut state: State,
    config: &Config,
    limits: CallLimits,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> State {
    let view = state.view().clone();
    let of_databases = config.tools.iter().enumerate().filter(|(_, entry)| entry.http.is_none());
    let preparing: Vec<_> = of_databases
        .map(|(index, entry)| {
            let (view, path) = (&view, format!("tools[{index}]"));
            async move {
                let tool = entries::sql_tool(entry, &path)?;
                tool.prepare(view, limits).await.map_err(|wrong| within(&path, wrong))
            }
        })
        .collect();
    let mut prepared = futures::stream::iter(preparing).buffered(PREPARED_AT_ONCE);
    while let Some(prepared) = prepared.next().await {
        match prepared {
            Ok((tool, unreachable)) => {
                warnings.extend(unreachable.map(|error| format!("tool {}: {error}", tool.name)));
                state = state.entries(|entries| entries.tool(tool));
            }
            Err(mut wrong) => problems.append(&mut wrong),
        }
    }
    state
}

/// The declared tools that ask an HTTP API.
fn http_tools(mut state: State, loaded: &Loaded, problems: &mut Vec<Problem>) -> State {
    let config = &loaded.config;
    if config.tools.iter().all(|tool| tool.http.is_none()) {
        return state;
    }
    let wrong = |problems: Vec<HttpProblem>| {
        let problem = |wrong: HttpProblem| Problem::new(wrong.field, format!("{}; {}", wrong.wrong, wrong.right));
        problems.into_iter().map(problem).collect::<Vec<_>>()
    };
    let client = AllowedHosts::parse(&config.http.allow_hosts).map_err(wrong).and_then(|hosts| {
        let client = HttpClient::new(Arc::new(hosts), env!("CARGO_PKG_VERSION"));
        client.map_err(|error| vec![Problem::new("http", error.to_string())])
    });
    let client = match client {
        Ok(client) => client,
        Err(mut wrong) => {
            problems.append(&mut wrong);
            return state;
        }
    };
    for (index, entry) in config.tools.iter().enumerate() {
        let Some(http) = &entry.http else { continue };
        let path = format!("tools[{index}]");
        let tool = entries::http_tool(entry, http, &path, loaded);
        match tool.and_then(|tool| tool.prepare(state.view(), &client).map_err(|wrong| within(&path, wrong))) {
            Ok(tool) => state = state.entries(|entries| entries.tool(tool)),
            Err(mut wrong) => problems.append(&mut wrong),
        }
    }
    state
}

async fn resources(
    mut state: State,
    loaded: &Loaded,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> State {
    for (index, entry) in loaded.config.resources.iter().enumerate() {
        let path = format!("resources[{index}]");
        let resource = match entries::resource(entry, &path, loaded.folder()) {
            Ok(resource) => resource.prepare(state.view()).await.map_err(|wrong| within(&path, wrong)),
            Err(wrong) => Err(wrong),
        };
        match resource {
            Ok((prepared, unreachable)) => {
                warnings.extend(unreachable.map(|error| format!("resource {}: {error}", entry.name)));
                state = state.entries(|entries| match prepared {
                    Prepared::Resource(resource) => entries.resource(*resource),
                    Prepared::Template(template) => entries.template(*template),
                });
            }
            Err(mut wrong) => problems.append(&mut wrong),
        }
    }
    state
}

fn prompts(mut state: State, config: &Config, problems: &mut Vec<Problem>) -> State {
    for (index, entry) in config.prompts.iter().enumerate() {
        let path = format!("prompts[{index}]");
        let prompt = entries::prompt(entry, &path);
        match prompt.and_then(|prompt| prompt.prepare(state.view()).map_err(|wrong| within(&path, wrong))) {
            Ok(prompt) => state = state.entries(|entries| entries.prompt(prompt)),
            Err(mut wrong) => problems.append(&mut wrong),
        }
    }
    state
}

/// The problems of a declaration as those of the file.
fn within(path: &str, problems: Vec<tidegate_tools::declared::Problem>) -> Vec<Problem> {
    problems
        .into_iter()
        .map(|problem| Problem::new(format!("{path}.{}", problem.at), problem.error.to_string()))
        .collect()
}

/// The inline budget that the file asks for, over `default`.
pub(crate) fn inline(config: &Config, default: Budget) -> Budget {
    Budget {
        rows: config.limits.inline_rows.map_or(default.rows, |bound| bound.0.limit()),
        bytes: config.limits.inline_bytes.map_or(default.bytes, |bound| bound.0.limit()),
    }
}
