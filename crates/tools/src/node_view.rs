//! What the built-in tools know of the node they run in.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use tidegate_core::{Caller, Error, ErrorKind, Jobs, Limits, Registry};
use tidegate_query::{Databases, Executor, StatementCache, StoredResult};

/// Tools whose callers ask databases by their own right; a declared tool carries the right to its own.
const CALLER_QUERY_TOOLS: [&str; 2] = ["query", "sql"];

/// Who the node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: String,
    /// The version of the software.
    pub version: String,
}

/// What the built-in tools know of the node they run in.
///
/// A registry is made from a snapshot whose tools already hold this view, so the registry itself
/// is [attached](NodeView::attach) afterwards.
pub struct NodeView {
    /// What can be asked.
    pub databases: Databases,
    /// What runs the questions.
    pub executor: Executor,
    /// Who the node is.
    pub identity: NodeIdentity,
    /// Statements that were parsed before.
    pub(crate) statements: StatementCache,
    started_at: Instant,
    // Weak, because the registry owns the tools that own this view.
    registry: OnceLock<Weak<Registry>>,
}

impl NodeView {
    /// A view of a node that starts now.
    pub fn new(databases: Databases, executor: Executor, identity: NodeIdentity) -> Arc<Self> {
        Arc::new(Self {
            databases,
            executor,
            identity,
            statements: StatementCache::default(),
            started_at: Instant::now(),
            registry: OnceLock::new(),
        })
    }

    /// Tells the tools which registry they are in; the first one told stays. Until then the tools
    /// that look at jobs answer that they are not available.
    pub fn attach(&self, registry: &Arc<Registry>) {
        self.registry.get_or_init(|| Arc::downgrade(registry));
    }

    /// That `caller` could still ask what `result` answers: it reaches the tool that was asked, and the database where
    /// that is a right of its own, and is bound by the same row policies; or the resource, of a file.
    ///
    /// # Errors
    /// `NotFound`, in the words of a result that there never was.
    pub(crate) fn authorize_read(&self, result: &StoredResult, caller: &Caller) -> Result<(), Error> {
        let head = result.header();
        if head.file.is_some() {
            let is_readable = self.registry()?.snapshot_for(caller).has_resource(&head.tool, caller);
            return if is_readable { Ok(()) } else { Err(head.id.not_found()) };
        }
        let reaches_tool = self.registry()?.snapshot_for(caller).tool(&head.tool, caller).is_ok();
        let reaches_database = !CALLER_QUERY_TOOLS.contains(&&*head.tool)
            || self.databases.visible_to(&caller.principal).any(|database| database.name() == head.database);
        // What may be seen of the tables has not changed since.
        let policies = self
            .databases
            .configured(&head.database)
            .map_or(0, |database| database.row_policy_stamp(&caller.principal));
        let is_bound_alike = policies == head.policies;
        if reaches_tool && reaches_database && is_bound_alike { Ok(()) } else { Err(head.id.not_found()) }
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
        let starting = || Error::new(ErrorKind::Unavailable, "the node is starting or stopping; try again");
        self.registry.get().and_then(Weak::upgrade).ok_or_else(starting)
    }
}
