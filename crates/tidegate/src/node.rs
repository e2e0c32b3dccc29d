//! A node: databases, registry, limits, metrics and the MCP service.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{AllowedNames, RowPolicyFingerprints, StoredResults};
use tidegate_mcp::{McpService, ServerDescription, TaskFolder};
use tidegate_query::{Database, Databases, Executor, ResultTables, UsageTracker};
use tidegate_results::ResultStore;
use tidegate_runtime::{
    Auditor, InstructionNotes, Registry, SnapshotBuilder,
    event::{ClientLogSubscriber, EventDispatcher, LogSubscriber, Subscriber},
};
use tidegate_tools::{INSTRUCTIONS, NodeIdentity, TableFunctions, ToolServices, owner_notes};
use tidegate_transport::Metrics;

/// A node, ready to be served over any transport.
pub struct Node {
    registry: Arc<Registry>,
    service: Arc<McpService>,
    metrics: Arc<Metrics>,
    parts: NodeParts,
}

/// What the states of a node have in common.
struct NodeParts {
    identity: NodeIdentity,
    store: Option<Arc<ResultStore>>,
    result_tables: Option<Arc<dyn ResultTables>>,
    usage: Arc<UsageTracker>,
    events: EventDispatcher,
}

/// A state of a node: its databases, its entries and its texts for clients.
#[derive(Clone)]
pub struct ServedState {
    services: Arc<ToolServices>,
    entries: SnapshotBuilder,
    description: ServerDescription,
}

/// Builds a [`Node`].
pub struct NodeBuilder {
    databases: Vec<Arc<dyn Database>>,
    identity: NodeIdentity,
    instructions: String,
    subscribers: Vec<Arc<dyn Subscriber>>,
    entries: Vec<EntryAdder>,
    built_in: Option<AllowedNames>,
    store: Option<Arc<ResultStore>>,
    result_tables: Option<Arc<dyn ResultTables>>,
    auditor: Option<Arc<dyn Auditor>>,
}

type EntryAdder = Box<dyn FnOnce(SnapshotBuilder) -> SnapshotBuilder>;

impl Node {
    /// A node with the built-in tools, without databases.
    pub fn builder() -> NodeBuilder {
        NodeBuilder {
            databases: Vec::new(),
            identity: NodeIdentity {
                name: "tidegate".to_owned(),
                title: "Tidegate".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            instructions: INSTRUCTIONS.to_owned(),
            subscribers: Vec::new(),
            entries: Vec::new(),
            built_in: Some(AllowedNames::Everything),
            store: None,
            result_tables: None,
            auditor: None,
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
        self.parts.store.as_ref()
    }

    /// A new state over `databases`, with the built-in entries whose names `built_in` allows.
    pub fn new_state(&self, databases: Databases, built_in: &AllowedNames) -> ServedState {
        let description = self.service.description();
        self.new_described_state(databases, built_in, None, description.title, description.instructions)
    }

    /// The same with tables that are offered as functions, another title for people and other instructions for models.
    pub fn new_described_state(
        &self,
        databases: Databases,
        built_in: &AllowedNames,
        functions: Option<Arc<dyn TableFunctions>>,
        title: Option<String>,
        instructions: Option<String>,
    ) -> ServedState {
        let state = self.parts.new_state(databases, Some(built_in), functions, title, instructions);
        state.services.attach(&self.registry);
        state
    }

    /// Replaces the state at once. Running calls continue with the previous state; clients are notified.
    pub fn enter_state(&self, state: ServedState) {
        self.service.set_description(state.description);
        self.registry.swap(state.entries.build());
    }

    /// Waits until every call has ended; after `within`, calls that still run are cancelled.
    pub async fn drain(&self, within: Duration) {
        self.service.drain(within).await;
    }
}

impl NodeParts {
    /// A new state, whose services are not attached to a registry yet. Without `built_in`, it has no entry.
    fn new_state(
        &self,
        databases: Databases,
        built_in: Option<&AllowedNames>,
        functions: Option<Arc<dyn TableFunctions>>,
        title: Option<String>,
        instructions: Option<String>,
    ) -> ServedState {
        let executor = Executor::new(self.events.clone());
        let executor = executor.with_store(self.store.clone()).with_usage(self.usage.clone());
        let executor = executor.with_result_tables(self.result_tables.clone());
        let bound = databases.clone();
        let row_policies = RowPolicyFingerprints::new(move |principal| bound.row_policy_fingerprint(principal));
        let entries = SnapshotBuilder::new().database_tenants(databases.tenancy().clone());
        let described = databases.clone();
        let notes = InstructionNotes::new(move |principal| owner_notes(&described, principal));
        let entries = entries.row_policies(row_policies).instruction_notes(notes);
        let mut identity = self.identity.clone();
        identity.title = title.unwrap_or(identity.title);
        let description = ServerDescription {
            name: identity.name.clone(),
            title: Some(identity.title.clone()),
            version: identity.version.clone(),
            instructions: Some(instructions.unwrap_or_else(|| INSTRUCTIONS.to_owned())),
        };
        let services = ToolServices::with_functions(databases, executor, identity, functions);
        let entries = match built_in {
            Some(built_in) => tidegate_tools::register_allowed(entries, &services, built_in),
            None => entries,
        };
        ServedState { services, entries, description }
    }
}

impl ServedState {
    /// What its tools need of the node.
    pub fn services(&self) -> &Arc<ToolServices> {
        &self.services
    }

    /// Adds tools, resources, prompts and toolsets, which win over built-in ones of the same name; or sets limits.
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

    /// Sets name, title and version.
    #[must_use]
    pub fn identity(mut self, identity: NodeIdentity) -> Self {
        self.identity = identity;
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

    /// As [`ServedState::entries`], for the first state.
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

    /// Makes tables of stored results with `result_tables`: of
    /// [`ResultDatabases`](tidegate_engines::ResultDatabases). No database may then be called `results`.
    #[must_use]
    pub fn result_tables(mut self, result_tables: Option<Arc<dyn ResultTables>>) -> Self {
        self.result_tables = result_tables;
        self
    }

    /// Records every call with `auditor`.
    #[must_use]
    pub fn auditor(mut self, auditor: Option<Arc<dyn Auditor>>) -> Self {
        self.auditor = auditor;
        self
    }

    /// Omits the built-in tools, resources and prompts.
    #[must_use]
    pub fn without_built_in_tools(mut self) -> Self {
        self.built_in = None;
        self
    }

    /// The finished node.
    pub fn build(self) -> Node {
        let results = self.store.clone().map(|store| store as Arc<dyn StoredResults>);
        let metrics = Arc::new(Metrics::new().with_results(results).with_auditor(self.auditor.clone()));
        let own: [Arc<dyn Subscriber>; 3] = [Arc::new(LogSubscriber), Arc::new(ClientLogSubscriber), metrics.clone()];
        let events = EventDispatcher::new(own.into_iter().chain(self.subscribers));
        let events = self.auditor.into_iter().fold(events, EventDispatcher::with_auditor);
        let parts = NodeParts {
            identity: self.identity,
            store: self.store,
            result_tables: self.result_tables,
            usage: Arc::default(),
            events,
        };
        let (databases, built_in) = (Databases::new(self.databases), self.built_in.as_ref());
        let state = parts.new_state(databases, built_in, None, None, Some(self.instructions));
        let ServedState { services, entries, description } = self.entries.into_iter().fold(state, ServedState::entries);
        let registry = Registry::new(entries.build(), parts.events.clone());
        services.attach(&registry);
        let tasks = open_task_folder(parts.store.as_deref());
        let service = McpService::with_task_folder(tasks, registry.clone(), description);
        Node { registry, service, metrics, parts }
    }
}

/// The folder of tasks, beside the stored results. Without it, tasks end with the process.
fn open_task_folder(store: Option<&ResultStore>) -> Option<TaskFolder> {
    let folder = store?.folder().join("tasks");
    TaskFolder::open(&folder)
        .inspect_err(|error| tracing::warn!("tasks will not survive a restart: {}: {error}", folder.display()))
        .ok()
}
