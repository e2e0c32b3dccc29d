//! Resources and resource templates: entries that are read by URI.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{Access, Annotations, CallLimits, Caller, Error, Icon, Principal, TemplateVariables, UriTemplate};

use crate::handler::Completer;
use crate::handler::Handler;

/// How long clients may cache a list or the contents of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// The time that it stays fresh.
    pub time_to_live: Duration,
    /// Whether shared caches may store it; only if it is the same for every caller.
    pub public: bool,
}

impl CacheHint {
    /// The hint for lists, unless another one is set.
    pub const LISTS: Self = Self { time_to_live: Duration::from_secs(60), public: true };
}

/// A resource of the registry.
#[derive(Clone)]
pub struct Resource {
    /// The URI.
    pub uri: String,
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The size in bytes, if known.
    pub size_bytes: Option<u64>,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of its reads.
    pub limits: CallLimits,
    /// How long clients may cache its contents; not at all without it.
    pub cache: Option<CacheHint>,
    /// Detects changes. Without one, the resource changes only with the registry.
    pub watcher: Option<Arc<dyn ResourceWatcher>>,
    /// The handler that reads it.
    pub handler: Arc<dyn Handler>,
}

impl Resource {
    /// A resource open to all callers. Set the public fields for more.
    pub fn new(uri: impl Into<String>, name: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size_bytes: None,
            annotations: None,
            icons: Vec::new(),
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            cache: None,
            watcher: None,
            handler,
        }
    }
}

/// Resources whose URIs follow a template.
#[derive(Clone)]
pub struct ResourceTemplate {
    /// The URI template.
    pub template: UriTemplate,
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description of its resources.
    pub description: Option<String>,
    /// The media type, if all resources have the same.
    pub mime_type: Option<String>,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of reads.
    pub limits: CallLimits,
    /// How long clients may cache the contents; not at all without it.
    pub cache: Option<CacheHint>,
    /// Detects changes of its resources. Without one, they change only with the registry.
    pub watcher: Option<Arc<dyn ResourceWatcher>>,
    /// The handler that reads its resources.
    pub handler: Arc<dyn Handler>,
    /// Completes its variables.
    pub completer: Option<Arc<dyn Completer>>,
    /// Lists its current resources.
    pub lister: Option<Arc<dyn ResourceLister>>,
}

impl ResourceTemplate {
    /// A template open to all callers. Set the public fields for more.
    pub fn new(template: UriTemplate, name: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            template,
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            icons: Vec::new(),
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            cache: None,
            watcher: None,
            handler,
            completer: None,
            lister: None,
        }
    }
}

/// Lists the current resources of a template.
#[async_trait]
pub trait ResourceLister: Send + Sync + 'static {
    /// The resources that `principal` can see, in a stable order.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error>;
}

/// Detects whether the contents of a resource have changed, for listeners.
#[async_trait]
pub trait ResourceWatcher: Send + Sync + 'static {
    /// A version tag of the contents that `caller` sees; equal version tags mean equal contents. `None` if the resource
    /// does not exist or is hidden from the caller. `variables` are those of its template, percent-decoded. Must be
    /// cheap: it is polled while there are listeners. Takes the caller, not only the principal, because anonymous
    /// callers are distinguished by their addresses.
    ///
    /// # Errors
    /// If the state cannot be determined now; it counts as unchanged then.
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error>;
}

tidegate_core::impl_debug!(Resource { uri });

tidegate_core::impl_debug!(ResourceTemplate { template });
