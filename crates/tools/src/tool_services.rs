//! What tools need of their server: databases, the executor, its name, and the registry.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use tidegate_core::{Caller, Error, ErrorKind, Limits};
use tidegate_query::{Databases, Executor};
use tidegate_results::{RequiredAccess, StoredResult};
use tidegate_runtime::{Jobs, Registry};
use tidegate_sql::StatementCache;

use crate::function_tools::TableFunctions;

/// Name and version of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// The version of the software.
    pub version: String,
}

/// What tools need of their server.
///
/// A registry is made from a snapshot whose tools already hold these services, so the registry itself is
/// [attached](ToolServices::attach) afterwards.
pub struct ToolServices {
    /// The databases of the node.
    pub databases: Databases,
    /// Runs queries.
    pub executor: Executor,
    /// Name and version of the node.
    pub identity: NodeIdentity,
    /// The tables that are offered as functions, if there are any.
    pub(crate) functions: Option<Arc<dyn TableFunctions>>,
    pub(crate) statements: StatementCache,
    started_at: Instant,
    // Weak, because the registry owns the tools, which own these services.
    registry: OnceLock<Weak<Registry>>,
}

impl ToolServices {
    /// The services of a server that starts now.
    pub fn new(databases: Databases, executor: Executor, identity: NodeIdentity) -> Arc<Self> {
        Self::with_functions(databases, executor, identity, None)
    }

    /// The same with `functions`, whose tools are then registered.
    pub fn with_functions(
        databases: Databases,
        executor: Executor,
        identity: NodeIdentity,
        functions: Option<Arc<dyn TableFunctions>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            databases,
            executor,
            identity,
            functions,
            statements: StatementCache::default(),
            started_at: Instant::now(),
            registry: OnceLock::new(),
        })
    }

    /// Sets the registry of the node, once; later calls have no effect. Before that, tools that need it return
    /// `Unavailable`.
    pub fn attach(&self, registry: &Arc<Registry>) {
        self.registry.get_or_init(|| Arc::downgrade(registry));
    }

    /// Checks that `caller` may still call the tools and query the databases of `result` under the same row policies, or
    /// read the resource of its file. The error is the same as for a result that never existed.
    pub(crate) fn authorize_read(&self, result: &StoredResult, caller: &Caller) -> Result<(), Error> {
        let head = result.header();
        if head.file.is_some() {
            let is_readable = self.registry()?.snapshot_for(caller).has_resource(&head.tool, caller);
            return if is_readable { Ok(()) } else { Err(head.id.not_found()) };
        }
        self.registry()?;
        let is_accessible = |access: &RequiredAccess| {
            let Some(is_of_caller) = self.reads_caller_databases(&access.tool, caller) else { return false };
            let Some(name) = &access.database else { return true };
            let mut visible = self.databases.visible_to(&caller.principal);
            let database = self.databases.get_unrestricted(name);
            // The visible rows must not have changed since.
            let policies = database.map_or(0, |database| database.row_policy_fingerprint(&caller.principal));
            policies == access.policies && (!is_of_caller || visible.any(|database| database.name() == name))
        };
        if head.required_access().iter().all(is_accessible) { Ok(()) } else { Err(head.id.not_found()) }
    }

    /// Whether `tool` queries with the rights of its caller; `None` if `caller` may not call it.
    pub(crate) fn reads_caller_databases(&self, tool: &str, caller: &Caller) -> Option<bool> {
        let snapshot = self.registry().ok()?.snapshot_for(caller);
        snapshot.tool(tool, caller).ok().map(|tool| tool.access.reads_caller_databases)
    }

    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.started_at.elapsed().as_secs()
    }

    pub(crate) fn jobs(&self) -> Result<Arc<Jobs>, Error> {
        Ok(self.registry()?.jobs().clone())
    }

    pub(crate) fn limits(&self) -> Result<Limits, Error> {
        Ok(self.registry()?.limits())
    }

    pub(crate) fn registry(&self) -> Result<Arc<Registry>, Error> {
        let starting = || Error::new(ErrorKind::Unavailable, "the server is starting or stopping; try again");
        self.registry.get().and_then(Weak::upgrade).ok_or_else(starting)
    }
}
