//! Resources: what can be read by URI, one by one or by template.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::access::Access;
use crate::call::TemplateVariables;
use crate::caller::Caller;
use crate::completion::Completer;
use crate::content::{Annotations, Icon};
use crate::error::Error;
use crate::handler::Handler;
use crate::limits::CallLimits;
use crate::principal::Principal;
use crate::snapshot::CacheHint;
use crate::uri_template::UriTemplate;

/// A resource of the registry.
#[derive(Clone)]
pub struct Resource {
    /// Where.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
    /// Size in bytes, if known.
    pub size_bytes: Option<u64>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Further facts for clients that know them.
    pub meta: Map<String, Value>,
    /// What a caller must hold.
    pub access: Access,
    /// Bounds of its reads.
    pub limits: CallLimits,
    /// How long clients may keep what they read; not at all without it.
    pub cache: Option<CacheHint>,
    /// Tells whether it has changed; without one it does so with the registry alone.
    pub watcher: Option<Arc<dyn ResourceWatcher>>,
    /// The code that reads it.
    pub handler: Arc<dyn Handler>,
}

impl Resource {
    /// A resource open to everybody; set the public fields for more.
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
    /// The template.
    pub template: UriTemplate,
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What such resources are.
    pub description: Option<String>,
    /// Media type, if all have the same.
    pub mime_type: Option<String>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Further facts for clients that know them.
    pub meta: Map<String, Value>,
    /// What a caller must hold.
    pub access: Access,
    /// Bounds of reads.
    pub limits: CallLimits,
    /// How long clients may keep what they read; not at all without it.
    pub cache: Option<CacheHint>,
    /// Tells whether one of them has changed; without one they do so with the registry alone.
    pub watcher: Option<Arc<dyn ResourceWatcher>>,
    /// The code that reads one of them.
    pub handler: Arc<dyn Handler>,
    /// Completes its variables.
    pub completer: Option<Arc<dyn Completer>>,
    /// Lists those that exist now.
    pub lister: Option<Arc<dyn ResourceLister>>,
}

impl ResourceTemplate {
    /// A template open to everybody; set the public fields for more.
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

/// Lists the resources of a template that exist now.
#[async_trait]
pub trait ResourceLister: Send + Sync + 'static {
    /// The resources that `principal` may see, in a stable order.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error>;
}

/// Tells whether what a resource holds has changed, for those who want to hear of it.
#[async_trait]
pub trait ResourceWatcher: Send + Sync + 'static {
    /// A stamp of what the resource holds now for `caller`: as long as it is equal, nothing has changed. None when the
    /// resource is gone, is not yet, or is not the caller's. `variables` are those of its template, percent-decoded.
    /// Must be cheap: it is asked for again and again while somebody listens. A caller and not its principal alone,
    /// because those who showed nothing are told apart by their addresses.
    ///
    /// # Errors
    /// When it cannot be told now; it counts as unchanged then.
    async fn stamp(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error>;
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate").field("template", &self.template).finish_non_exhaustive()
    }
}
