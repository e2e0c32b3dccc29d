//! A node: databases, registry, limits, metrics and the MCP service.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{AllowedNames, AnswerProtection, Limits, Redactor, RowPolicyFingerprints, StoredResults};
use tidegate_mcp::{McpService, ServerDescription, TaskFolder};
use tidegate_query::{Database, Databases, Executor, UsageTracker};
use tidegate_results::ResultStore;
use tidegate_runtime::{
    Auditor, Registry, SnapshotBuilder,
    event::{ClientLogSubscriber, EventDispatcher, LogSubscriber, Subscriber},
};
use tidegate_tools::{FENCE_INSTRUCTIONS, FunctionSource, INSTRUCTIONS, NodeIdentity, ToolContext};
use tidegate_transport::Metrics;

/// A node, ready to be served over any transport.
pub struct Node {
    registry: Arc<Registry>,
    service: Arc<McpService>,
    metrics: Arc<Metrics>,
    identity: NodeIdentity,
    store: Option<Arc<ResultStore>>,
    /// Kept across configurations.
    usage: Arc<UsageTracker>,
}

/// A state of a node: its databases, its entries and its texts for clients.
#[derive(Clone)]
pub struct NodeState {
    view: Arc<ToolContext>,
    entries: SnapshotBuilder,
    description: ServerDescription,
}

/// Builds a [`Node`].
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
    protection: AnswerProtection,
}

type EntryAdder = Box<dyn FnOnce(SnapshotBuilder) -> SnapshotBuilder>;

impl Node {
    /// A node with the built-in tools, without databases.
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
            protection: AnswerProtection::default(),
        }
    }

    /// The registry of everything that can be called.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The MCP service over the registry, for any transport.
    pub fn service(&self) -> &Arc<McpService> {
        &self.service
    }

    /// The metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The store for results, if there is one.
    pub fn store(&self) -> Option<&Arc<ResultStore>> {
        self.store.as_ref()
    }

    /// A new state over `databases`, with the built-in entries whose names `built_in` allows.
    pub fn new_state(&self, databases: Databases, built_in: &AllowedNames) -> NodeState {
        let description = self.service.description();
        self.new_described_state(databases, built_in, None, description.title, description.instructions)
    }

    /// The same with tables that are offered as functions, another title for people and other instructions for models.
    pub fn new_described_state(
        &self,
        databases: Databases,
        built_in: &AllowedNames,
        functions: Option<Arc<dyn FunctionSource>>,
        title: Option<String>,
        instructions: Option<String>,
    ) -> NodeState {
        let executor = Executor::new(self.registry.events().clone());
        let executor = executor.with_store(self.store.clone()).with_usage(self.usage.clone());
        let builder = empty_entries(&databases);
        let mut identity = self.identity.clone();
        identity.title = title.unwrap_or(identity.title);
        let description = describe(&identity, instructions.unwrap_or_else(|| INSTRUCTIONS.to_owned()));
        let view = ToolContext::with_functions(databases, executor, identity, functions);
        view.attach(&self.registry);
        let entries = tidegate_tools::register_allowed(builder, &view, built_in);
        NodeState { view, entries, description }
    }

    /// Replaces the state at once. Running calls continue with the previous state; clients are notified.
    pub fn enter_state(&self, state: NodeState) {
        self.service.set_description(state.description);
        self.registry.swap(state.entries.build());
    }

    /// Waits until every call has ended; after `within`, calls that still run are cancelled.
    pub async fn drain(&self, within: Duration) {
        self.service.drain(within).await;
    }
}

impl NodeState {
    /// The view of the node that its entries have.
    pub fn view(&self) -> &Arc<ToolContext> {
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

    /// Sets the limits of calls.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets name, title and version.
    #[must_use]
    pub fn identity(mut self, identity: NodeIdentity) -> Self {
        self.identity = identity;
        self
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.identity.title = title.into();
        self
    }

    /// Sets the instructions for models.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Adds a subscriber to events, in addition to the log and the metrics.
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

    /// Stores results in `store`.
    #[must_use]
    pub fn results(mut self, store: Option<Arc<ResultStore>>) -> Self {
        self.store = store;
        self
    }

    /// Records every call with `auditor`.
    #[must_use]
    pub fn auditor(mut self, auditor: Arc<dyn Auditor>) -> Self {
        self.auditor = Some(auditor);
        self
    }

    /// Masks the secrets that `redactor` finds in the answers of the first state.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.protection.redactor = Some(redactor);
        self
    }

    /// Puts a fence around rows that a model reads, in the first state, and adds it to the instructions.
    #[must_use]
    pub fn with_data_fence(mut self) -> Self {
        self.protection.fences_data = true;
        self
    }

    /// Omits the built-in tools, resources and prompts.
    #[must_use]
    pub fn without_built_in_tools(mut self) -> Self {
        self.has_built_in_tools = false;
        self
    }

    /// The finished node.
    pub fn build(self) -> Node {
        let results = self.store.clone().map(|store| store as Arc<dyn StoredResults>);
        let metrics = Arc::new(Metrics::new().with_results(results).with_auditor(self.auditor.clone()));
        let own: [Arc<dyn Subscriber>; 3] = [Arc::new(LogSubscriber), Arc::new(ClientLogSubscriber), metrics.clone()];
        let events = EventDispatcher::new(own.into_iter().chain(self.subscribers));
        let events = self.auditor.into_iter().fold(events, EventDispatcher::with_auditor);
        let executor = Executor::new(events.clone()).with_store(self.store.clone());
        let usage_tracker = executor.usage().clone();
        let databases = Databases::new(self.databases);
        let mut entries = empty_entries(&databases);
        let view = ToolContext::new(databases, executor, self.identity.clone());
        if self.has_built_in_tools {
            entries = tidegate_tools::register(entries, &view);
        }
        let entries = self.entries.into_iter().fold(entries, |entries, add| add(entries));
        let registry = Registry::new(entries.limits(self.limits).protection(self.protection.clone()).build(), events);
        view.attach(&registry);
        let instructions = match self.protection.fences_data {
            true => with_fence_instructions(&self.instructions),
            false => self.instructions,
        };
        let about = describe(&self.identity, instructions);
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

fn describe(identity: &NodeIdentity, instructions: String) -> ServerDescription {
    ServerDescription {
        name: identity.name.clone(),
        title: Some(identity.title.clone()),
        version: identity.version.clone(),
        instructions: Some(instructions),
    }
}

/// `instructions` for models, with an explanation of the fence around rows.
pub(crate) fn with_fence_instructions(instructions: &str) -> String {
    format!("{}\n{FENCE_INSTRUCTIONS}", instructions.trim_end())
}

fn empty_entries(databases: &Databases) -> SnapshotBuilder {
    let bound = databases.clone();
    let row_policies = RowPolicyFingerprints::new(move |principal| bound.row_policy_fingerprint(principal));
    SnapshotBuilder::new().database_tenants(databases.tenancy().clone()).row_policies(row_policies)
}

/// The folder of tasks, beside the stored results. Without it, tasks end with the process.
fn open_task_folder(store: Option<&ResultStore>) -> Option<TaskFolder> {
    let folder = store?.folder().join("tasks");
    TaskFolder::open(&folder)
        .inspect_err(|error| tracing::warn!("tasks will not survive a restart: {}: {error}", folder.display()))
        .ok()
}
