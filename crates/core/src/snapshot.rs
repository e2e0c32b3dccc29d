//! One state of the registry: everything a caller can list or reach, immutable.

mod builder;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::access::Access;
use crate::call::Variables;
use crate::caller::{Caller, Toolset};
use crate::error::{Error, ErrorKind};
use crate::guard::Guard;
use crate::limits::Limits;
use crate::nearest::nearest;
use crate::principal::Principal;
use crate::prompt::Prompt;
use crate::resource::{Resource, ResourceTemplate, Watcher};
use crate::row_policy_stamp::RowPolicyStamp;
use crate::tenancy::Tenancy;
use crate::tool::Tool;

pub use builder::SnapshotBuilder;

/// How long clients may keep what was listed or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// How long it stays fresh.
    pub time_to_live: Duration,
    /// Whether shared caches may keep it; only when it is the same for every caller.
    pub public: bool,
}

/// One state of the registry, in a deterministic order (by name or URI).
#[derive(Debug, Clone)]
pub struct Snapshot {
    version: u64,
    generation: u64,
    tools: BTreeMap<String, Arc<Tool>>,
    tool_order: Vec<Arc<Tool>>,
    resources: BTreeMap<String, Arc<Resource>>,
    templates: Vec<Arc<ResourceTemplate>>,
    prompts: BTreeMap<String, Arc<Prompt>>,
    toolsets: BTreeMap<String, Arc<Toolset>>,
    cache: CacheHint,
    limits: Limits,
    tenancy: Tenancy,
    row_policies: RowPolicyStamp,
    guard: Guard,
}

/// What answers for a URI.
pub(crate) enum Readable<'a> {
    /// The resource of exactly that URI.
    Resource(&'a Arc<Resource>),
    /// A template, with the values of its variables.
    Template(&'a Arc<ResourceTemplate>, Variables),
}

/// An entry as those who run the node see it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The sort of entry: `tool`, `resource` or `prompt`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// What it demands.
    pub access: &'a Access,
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
        let all_public = self.tools.values().all(|tool| tool.access.is_open())
            && self.resources.values().all(|resource| resource.access.is_open())
            && self.templates.iter().all(|template| template.access.is_open())
            && self.prompts.values().all(|prompt| prompt.access.is_open());
        CacheHint { public: self.cache.public && all_public, ..self.cache }
    }

    /// Whether it depends on the peer's address which tools a caller reaches.
    pub fn asks_for_networks(&self) -> bool {
        self.tool_order.iter().any(|tool| tool.access.acl.networks.is_some())
    }

    /// Whether it depends on more of the principal than its grants which tools a caller sees.
    pub fn asks_for_principals(&self) -> bool {
        self.tool_order.iter().any(|tool| tool.access.asks_who || tool.access.only_for.is_some())
    }

    /// The bounds of calls.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether `principal` may ask the database of that name by its own right.
    pub fn may_ask(&self, database: &str, principal: &Principal) -> bool {
        let is_granted = principal.grants.databases.includes(database);
        is_granted && self.is_of(principal) && self.tenancy.admits(database, principal)
    }

    /// What the row policies of all databases make of a principal.
    pub fn row_policies(&self) -> &RowPolicyStamp {
        &self.row_policies
    }

    /// What stands between answers and their readers.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The toolset of that name, if the caller may enter its door; the same answer whether it is hidden or absent.
    pub fn toolset(&self, name: &str, caller: &Caller) -> Option<&Arc<Toolset>> {
        self.toolsets.get(name).filter(|toolset| caller.principal.grants.toolsets.includes(&toolset.name))
    }

    /// All toolsets, in the order of their names.
    pub fn toolsets(&self) -> impl Iterator<Item = &Arc<Toolset>> {
        self.toolsets.values()
    }

    /// Every entry, whoever may reach it: for those who run the node.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let tools = self.tool_order.iter().map(|tool| Entry { kind: "tool", name: &tool.name, access: &tool.access });
        let resources = self.resources.values();
        let resources = resources.map(|entry| Entry { kind: "resource", name: &entry.name, access: &entry.access });
        let templates = self.templates.iter();
        let templates = templates.map(|entry| Entry { kind: "resource", name: &entry.name, access: &entry.access });
        let prompts = self.prompts.values();
        let prompts = prompts.map(|entry| Entry { kind: "prompt", name: &entry.name, access: &entry.access });
        tools.chain(resources).chain(templates).chain(prompts)
    }

    /// The one question that lists ask of every entry.
    fn shows(&self, access: &Access, name: &str, caller: &Caller) -> bool {
        self.is_of(&caller.principal) && access.shows(name, caller)
    }

    /// The one question that calls ask of every entry. Of what the caller may not know of it learns nothing, the same
    /// as of what is `absent`.
    fn must_reach(
        &self,
        access: &Access,
        name: &str,
        caller: &Caller,
        absent: impl FnOnce() -> Error,
    ) -> Result<(), Error> {
        if !self.is_of(&caller.principal) || !access.is_known_to(name, caller) {
            return Err(absent());
        }
        access.authorize(name, caller)
    }

    /// Whether the grants of `principal` come from the configuration that this is a state of.
    pub fn is_of(&self, principal: &Principal) -> bool {
        self.generation == principal.generation
    }

    /// The tools that the caller may reach.
    pub fn tools(&self, caller: &Caller) -> impl Iterator<Item = &Arc<Tool>> {
        self.tool_order.iter().filter(move |tool| self.shows(&tool.access, &tool.name, caller))
    }

    /// The resources that the caller may reach, without those that templates list.
    pub fn resources(&self, caller: &Caller) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().filter(move |resource| self.shows(&resource.access, &resource.name, caller))
    }

    /// The resource templates that the caller may reach.
    pub fn templates(&self, caller: &Caller) -> impl Iterator<Item = &Arc<ResourceTemplate>> {
        self.templates.iter().filter(move |template| self.shows(&template.access, &template.name, caller))
    }

    /// The prompts that the caller may reach.
    pub fn prompts(&self, caller: &Caller) -> impl Iterator<Item = &Arc<Prompt>> {
        self.prompts.values().filter(move |prompt| self.shows(&prompt.access, &prompt.name, caller))
    }

    /// The tool of that name, if the caller may reach it.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether it is hidden or absent; `Unauthenticated` when it is for
    /// whoever shows who it is, `Forbidden` when the caller's token lacks scopes.
    pub fn tool(&self, name: &str, caller: &Caller) -> Result<&Arc<Tool>, Error> {
        let absent = || {
            let visible = self.tools(caller).map(|tool| tool.name.as_str());
            not_found("tool", name, nearest(name, visible))
        };
        let tool = self.tools.get(name).ok_or_else(absent)?;
        self.must_reach(&tool.access, &tool.name, caller, absent)?;
        Ok(tool)
    }

    /// The prompt of that name, if the caller may reach it.
    ///
    /// # Errors
    /// As for tools.
    pub fn prompt(&self, name: &str, caller: &Caller) -> Result<&Arc<Prompt>, Error> {
        let absent = || {
            let visible = self.prompts(caller).map(|prompt| prompt.name.as_str());
            not_found("prompt", name, nearest(name, visible))
        };
        let prompt = self.prompts.get(name).ok_or_else(absent)?;
        self.must_reach(&prompt.access, &prompt.name, caller, absent)?;
        Ok(prompt)
    }

    /// What answers for `uri`, if the caller may reach it: the resource of that URI, else the template that says most of
    /// it. One that is hidden answers as if it were absent; a broader one never answers in its stead.
    ///
    /// # Errors
    /// As for tools.
    pub(crate) fn resource(&self, uri: &str, caller: &Caller) -> Result<Readable<'_>, Error> {
        let absent = || not_found("resource", uri, Vec::new());
        let (access, name, readable) = match self.resources.get(uri) {
            Some(resource) => (&resource.access, &resource.name, Readable::Resource(resource)),
            None => {
                let mut matching =
                    self.templates.iter().filter_map(|entry| Some((entry, entry.template.matches(uri)?)));
                let (template, variables) = matching.next().ok_or_else(absent)?;
                (&template.access, &template.name, Readable::Template(template, variables))
            }
        };
        self.must_reach(access, name, caller, absent)?;
        Ok(readable)
    }

    fn readable(&self, uri: &str, caller: &Caller) -> Option<Readable<'_>> {
        self.resource(uri, caller).ok()
    }

    /// Whether there is a resource of that URI that the caller may reach.
    pub fn has_resource(&self, uri: &str, caller: &Caller) -> bool {
        self.readable(uri, caller).is_some()
    }

    /// What tells whether the resource of that URI has changed, and the values of its template's variables; none where
    /// it does so with the registry alone.
    pub fn watcher(&self, uri: &str, caller: &Caller) -> Option<(Arc<dyn Watcher>, Variables)> {
        match self.readable(uri, caller)? {
            Readable::Resource(resource) => Some((resource.watcher.clone()?, Variables::new())),
            Readable::Template(template, variables) => Some((template.watcher.clone()?, variables)),
        }
    }

    /// The media type of the resource of that URI, if it is known before it is read.
    pub fn media_type(&self, uri: &str, caller: &Caller) -> Option<String> {
        match self.readable(uri, caller)? {
            Readable::Resource(resource) => resource.mime_type.clone(),
            Readable::Template(template, _) => template.mime_type.clone(),
        }
    }

    /// How long clients may keep what the resource of that URI holds; not at all when nothing is said. Shared caches
    /// may not, whatever is said, where it is not the same for every caller.
    pub fn read_cache(&self, uri: &str, caller: &Caller) -> CacheHint {
        let (said, access) = match self.readable(uri, caller) {
            Some(Readable::Resource(resource)) => (resource.cache, Some(&resource.access)),
            Some(Readable::Template(template, _)) => (template.cache, Some(&template.access)),
            None => (None, None),
        };
        let said = said.unwrap_or(CacheHint { time_to_live: Duration::ZERO, public: false });
        let is_open = self.cache.public && access.is_some_and(Access::is_open);
        CacheHint { public: said.public && is_open, ..said }
    }

    /// The template of exactly that text.
    pub(crate) fn template(&self, text: &str, caller: &Caller) -> Option<&Arc<ResourceTemplate>> {
        self.templates(caller).find(|template| template.template.as_str() == text)
    }
}

pub(crate) fn not_found(kind: &str, name: &str, choices: Vec<String>) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no {kind} {name:?}")).with_choices(choices)
}
