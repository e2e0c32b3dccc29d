//! A whole node: databases, registry, limits, metrics, and MCP over them.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{AllowedNames, AnswerProtection, Limits, Redactor, RowPolicyFingerprinter, StoredResults};
use tidegate_mcp::{McpService, ServerDescription, TaskFolder};
use tidegate_query::{Database, Databases, Executor, UsageTracker};
use tidegate_results::ResultStore;
use tidegate_runtime::{
    Auditor, Registry, SnapshotBuilder,
    event::{EventDispatcher, LogSubscriber, Subscriber},
};
use tidegate_tools::{FENCE_INSTRUCTIONS, INSTRUCTIONS, NodeIdentity, NodeView};
use tidegate_transport::Metrics;

/// A node that is ready to be served.
pub struct Node {
    registry: Arc<Registry>,
    service: Arc<McpService>,
    metrics: Arc<Metrics>,
    identity: NodeIdentity,
    store: Option<Arc<ResultStore>>,
    /// Outlives each configuration, as the names that it counts do.
    usage: Arc<UsageTracker>,
}

/// What a node offers from some moment on: databases, and entries that may lean on them.
#[derive(Clone)]
pub struct NodeState {
    view: Arc<NodeView>,
    entries: SnapshotBuilder,
}

/// Puts a [`Node`] together.
pub struct NodeBuilder {
    databases: Vec<Arc<dyn Database>>,
    limits: Limits,
    identity: NodeIdentity,
    instructions: String,
    subscribers: Vec<Arc<dyn Subscriber>>,
    entries: Vec<EntryAdder>,
    has_built_in_tools: bool,
    store: Option<Arc<ResultStore>>,
    auditor: Option<Arc<dyn Auditor>>,
    guard: AnswerProtection,
}

type EntryAdder = Box<dyn FnOnce(SnapshotBuilder) -> SnapshotBuilder>;

impl Node {
    /// A node with the built-in tools and nothing to ask yet.
    pub fn builder() -> NodeBuilder {
        NodeBuilder {
            databases: Vec::new(),
            limits: Limits::default(),
            identity: NodeIdentity {
                name: "tidegate".to_owned(),
                title: "Tidegate".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            instructions: INSTRUCTIONS.to_owned(),
            subscribers: Vec::new(),
            entries: Vec::new(),
            has_built_in_tools: true,
            store: None,
            auditor: None,
            guard: AnswerProtection::default(),
        }
    }

    /// The one door to everything that can be called.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// MCP over the registry, for any transport.
    pub fn service(&self) -> &Arc<McpService> {
        &self.service
    }

    /// The node's counts and times.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Where answers are kept that do not fit.
    pub fn store(&self) -> Option<&Arc<ResultStore>> {
        self.store.as_ref()
    }

    /// A next state over `databases`: with the built-in entries whose names `built_in` allows, and nothing else yet.
    pub fn new_state(&self, databases: Databases, built_in: &AllowedNames) -> NodeState {
        let executor = Executor::new(self.registry.events().clone());
        let executor = executor.with_store(self.store.clone()).with_usage(self.usage.clone());
        let nothing = empty_entries(&databases);
        let view = NodeView::new(databases, executor, self.identity.clone());
        view.attach(&self.registry);
        let entries = tidegate_tools::register_allowed(nothing, &view, built_in);
        NodeState { view, entries }
    }

    /// Enters `state`, whole and at once: calls that run end on what they began with, and clients are told.
    pub fn enter_state(&self, state: NodeState) {
        self.registry.swap(state.entries.build());
    }

    /// Waits until every call has ended; after `within`, calls that still run are cancelled.
    pub async fn drain(&self, within: Duration) {
        self.service.drain(within).await;
    }
}

impl NodeState {
    /// What its entries know of the node.
    pub fn view(&self) -> &Arc<NodeView> {
        &self.view
    }

    /// Adds tools, resources, prompts and toolsets; they win over built-in ones of the same name.
    #[must_use]
    pub fn entries(self, add: impl FnOnce(SnapshotBuilder) -> SnapshotBuilder) -> Self {
        Self { entries: add(self.entries), ..self }
    }
}

impl NodeBuilder {
    /// Adds a database.
    #[must_use]
    pub fn database(mut self, database: Arc<dyn Database>) -> Self {
        self.databases.push(database);
        self
    }

    /// Sets the bounds of calls.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets who the node says it is.
    #[must_use]
    pub fn identity(mut self, identity: NodeIdentity) -> Self {
        self.identity = identity;
        self
    }

    /// Sets what the node is called for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.identity.title = title.into();
        self
    }

    /// Sets the playbook that a model is given at the start.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Adds somebody who hears of events, beside the log and the metrics.
    #[must_use]
    pub fn subscriber(mut self, subscriber: Arc<dyn Subscriber>) -> Self {
        self.subscribers.push(subscriber);
        self
    }

    /// Adds tools, resources and prompts of the host; they win over built-in ones of the same name.
    #[must_use]
    pub fn entries(mut self, add: impl FnOnce(SnapshotBuilder) -> SnapshotBuilder + 'static) -> Self {
        self.entries.push(Box::new(add));
        self
    }

    /// Keeps in `store` what does not fit into an answer.
    #[must_use]
    pub fn results(mut self, store: Option<Arc<ResultStore>>) -> Self {
        self.store = store;
        self
    }

    /// Lets `auditor` write down every call.
    #[must_use]
    pub fn auditor(mut self, auditor: Arc<dyn Auditor>) -> Self {
        self.auditor = Some(auditor);
        self
    }

    /// Masks secrets in the answers of the first state as `screen` finds them.
    #[must_use]
    pub fn screen(mut self, screen: Arc<dyn Redactor>) -> Self {
        self.guard.redactor = Some(screen);
        self
    }

    /// Puts a fence around rows that a model reads, in the first state, and tells the model so.
    #[must_use]
    pub fn fenced(mut self) -> Self {
        self.guard.fences_data = true;
        self
    }

    /// Leaves the built-in tools, resources and prompts out.
    #[must_use]
    pub fn without_built_in_tools(mut self) -> Self {
        self.has_built_in_tools = false;
        self
    }

    /// The finished node.
    pub fn build(self) -> Node {
        let results = self.store.clone().map(|store| store as Arc<dyn StoredResults>);
        let metrics = Arc::new(Metrics::new().with_results(results).with_auditor(self.auditor.clone()));
        let own: [Arc<dyn Subscriber>; 2] = [Arc::new(LogSubscriber), metrics.clone()];
        let events = EventDispatcher::new(own.into_iter().chain(self.subscribers));
        let events = self.auditor.into_iter().fold(events, EventDispatcher::with_auditor);
        let executor = Executor::new(events.clone()).with_store(self.store.clone());
        let usage_tracker = executor.usage().clone();
        let databases = Databases::new(self.databases);
        let mut entries = empty_entries(&databases);
        let view = NodeView::new(databases, executor, self.identity.clone());
        if self.has_built_in_tools {
            entries = tidegate_tools::register(entries, &view);
        }
        let entries = self.entries.into_iter().fold(entries, |entries, add| add(entries));
        let registry = Registry::new(entries.limits(self.limits).protection(self.guard.clone()).build(), events);
        view.attach(&registry);
        let instructions = match self.guard.fences_data {
            true => format!("{}\n{FENCE_INSTRUCTIONS}", self.instructions.trim_end()),
            false => self.instructions,
        };
        let about = ServerDescription {
            name: self.identity.name.clone(),
            title: Some(self.identity.title.clone()),
            version: self.identity.version.clone(),
            instructions: Some(instructions),
        };
        Node {
            service: McpService::with_task_folder(open_task_folder(self.store.as_deref()), registry.clone(), about),
            registry,
            metrics,
            identity: self.identity,
            store: self.store,
            usage: usage_tracker,
        }
    }
}

/// No entry yet, and what a state knows of its databases: whose they are, and how their row policies bind a principal.
fn empty_entries(databases: &Databases) -> SnapshotBuilder {
    let bound = databases.clone();
    let row_policies = RowPolicyFingerprinter::new(move |principal| bound.row_policy_fingerprint(principal));
    SnapshotBuilder::new().database_tenants(databases.tenancy().clone()).row_policy_fingerprinter(row_policies)
}

/// Where tasks are written down: beside the stored results, in the place of this process. Without it they live as long
/// as the process.
fn open_task_folder(store: Option<&ResultStore>) -> Option<TaskFolder> {
    let folder = store?.folder().join("tasks");
    TaskFolder::open(&folder)
        .inspect_err(|error| tracing::warn!("tasks are not written down: {}: {error}", folder.display()))
        .ok()
}
