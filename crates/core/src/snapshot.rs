//! One state of the registry: everything a caller can list or reach, immutable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::access::Access;
use crate::call::Variables;
use crate::error::{Error, ErrorKind};
use crate::nearest::nearest;
use crate::principal::{Origin, Principal};
use crate::prompt::Prompt;
use crate::resource::{Resource, ResourceTemplate};
use crate::tool::Tool;

/// How long clients may keep what was listed or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// How long it stays fresh.
    pub time_to_live: Duration,
    /// Whether shared caches may keep it; only when it is the same for every caller.
    pub public: bool,
}

/// One state of the registry, in a deterministic order (by name or URI).
#[derive(Debug)]
pub struct Snapshot {
    version: u64,
    tools: BTreeMap<String, Arc<Tool>>,
    tool_order: Vec<Arc<Tool>>,
    resources: BTreeMap<String, Arc<Resource>>,
    templates: Vec<Arc<ResourceTemplate>>,
    prompts: BTreeMap<String, Arc<Prompt>>,
    cache: CacheHint,
}

/// Collects the entries of a [`Snapshot`].
#[derive(Debug)]
pub struct SnapshotBuilder {
    snapshot: Snapshot,
}

impl Default for SnapshotBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl SnapshotBuilder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            snapshot: Snapshot {
                version: 0,
                tools: BTreeMap::new(),
                tool_order: Vec::new(),
                resources: BTreeMap::new(),
                templates: Vec::new(),
                prompts: BTreeMap::new(),
                cache: CacheHint { time_to_live: Duration::from_secs(60), public: true },
            },
        }
    }

    /// Adds a tool. Tools are listed in the order they were added; the last of a name wins.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        let tool = Arc::new(tool);
        self.snapshot.tool_order.retain(|other| other.name != tool.name);
        self.snapshot.tool_order.push(tool.clone());
        self.snapshot.tools.insert(tool.name.clone(), tool);
        self
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.snapshot.resources.insert(resource.uri.clone(), Arc::new(resource));
        self
    }

    /// Adds a resource template; the last of a text wins. Of several that match a URI the one with
    /// most literal text answers.
    #[must_use]
    pub fn template(mut self, template: ResourceTemplate) -> Self {
        self.snapshot.templates.retain(|other| other.template != template.template);
        self.snapshot.templates.push(Arc::new(template));
        self.snapshot.templates.sort_by(|a, b| {
            b.template
                .literal_bytes()
                .cmp(&a.template.literal_bytes())
                .then_with(|| a.template.as_str().cmp(b.template.as_str()))
        });
        self
    }

    /// Adds a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.snapshot.prompts.insert(prompt.name.clone(), Arc::new(prompt));
        self
    }

    /// Sets how long clients may keep what they listed or read.
    #[must_use]
    pub fn cache(mut self, cache: CacheHint) -> Self {
        self.snapshot.cache = cache;
        self
    }

    /// The finished state.
    pub fn build(self) -> Snapshot {
        self.snapshot
    }
}

impl Snapshot {
    /// The state's version; each swap of the registry counts it up.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn with_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// How long clients may keep what they listed or read.
    pub fn cache(&self) -> CacheHint {
        let all_public = self.tools.values().all(|tool| tool.access == Access::default())
            && self.resources.values().all(|resource| resource.access == Access::default())
            && self.templates.iter().all(|template| template.access == Access::default())
            && self.prompts.values().all(|prompt| prompt.access == Access::default());
        CacheHint { public: self.cache.public && all_public, ..self.cache }
    }

    /// The tools that the caller may reach.
    pub fn tools(&self, principal: &Principal, origin: Origin) -> impl Iterator<Item = &Arc<Tool>> {
        self.tool_order.iter().filter(move |tool| tool.access.authorize(principal, origin).is_ok())
    }

    /// The resources that the caller may reach, without those that templates list.
    pub fn resources(&self, principal: &Principal, origin: Origin) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().filter(move |resource| resource.access.authorize(principal, origin).is_ok())
    }

    /// The resource templates that the caller may reach.
    pub fn templates(&self, principal: &Principal, origin: Origin) -> impl Iterator<Item = &Arc<ResourceTemplate>> {
        self.templates.iter().filter(move |template| template.access.authorize(principal, origin).is_ok())
    }

    /// The prompts that the caller may reach.
    pub fn prompts(&self, principal: &Principal, origin: Origin) -> impl Iterator<Item = &Arc<Prompt>> {
        self.prompts.values().filter(move |prompt| prompt.access.authorize(principal, origin).is_ok())
    }

    /// The tool of that name, if the caller may reach it.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether it is hidden or absent.
    pub fn tool(&self, name: &str, principal: &Principal, origin: Origin) -> Result<&Arc<Tool>, Error> {
        match self.tools.get(name) {
            Some(tool) if tool.access.authorize(principal, origin).is_ok() => Ok(tool),
            _ => {
                let visible = self.tools(principal, origin).map(|tool| tool.name.as_str());
                Err(not_found("tool", name, nearest(name, visible)))
            }
        }
    }

    /// The prompt of that name, if the caller may reach it.
    ///
    /// # Errors
    /// `NotFound`, as for tools.
    pub fn prompt(&self, name: &str, principal: &Principal, origin: Origin) -> Result<&Arc<Prompt>, Error> {
        match self.prompts.get(name) {
            Some(prompt) if prompt.access.authorize(principal, origin).is_ok() => Ok(prompt),
            _ => {
                let visible = self.prompts(principal, origin).map(|prompt| prompt.name.as_str());
                Err(not_found("prompt", name, nearest(name, visible)))
            }
        }
    }

    /// The resource of that URI, if the caller may reach it.
    pub(crate) fn resource(&self, uri: &str, principal: &Principal, origin: Origin) -> Option<&Arc<Resource>> {
        self.resources.get(uri).filter(|resource| resource.access.authorize(principal, origin).is_ok())
    }

    /// Whether there is a resource of that URI that the caller may reach.
    pub fn has_resource(&self, uri: &str, principal: &Principal, origin: Origin) -> bool {
        self.resource(uri, principal, origin).is_some() || self.template_of(uri, principal, origin).is_some()
    }

    /// The media type of the resource of that URI, if it is known before it is read.
    pub fn media_type(&self, uri: &str, principal: &Principal, origin: Origin) -> Option<String> {
        match self.resource(uri, principal, origin) {
            Some(resource) => resource.mime_type.clone(),
            None => self.template_of(uri, principal, origin)?.0.mime_type.clone(),
        }
    }

    /// The template that answers for `uri`, with the values of its variables.
    pub(crate) fn template_of(
        &self,
        uri: &str,
        principal: &Principal,
        origin: Origin,
    ) -> Option<(&Arc<ResourceTemplate>, Variables)> {
        self.templates(principal, origin).find_map(|template| Some((template, template.template.matches(uri)?)))
    }

    /// The template of exactly that text.
    pub(crate) fn template(&self, text: &str, principal: &Principal, origin: Origin) -> Option<&Arc<ResourceTemplate>> {
        self.templates(principal, origin).find(|template| template.template.as_str() == text)
    }
}

pub(crate) fn not_found(kind: &str, name: &str, choices: Vec<String>) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no {kind} {name:?}")).with_choices(choices)
}
