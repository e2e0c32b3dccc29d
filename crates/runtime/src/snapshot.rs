//! An immutable state of the registry: everything that callers can list and call; and its builder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    Access, AnswerProtection, ArgumentRedaction, CallOrigin, Caller, DatabaseTenants, Error, ErrorKind, Limits,
    Principal, RowPolicyFingerprints, TemplateVariables, Toolset, nearest_names,
};

use crate::entry::{CacheHint, Prompt, Resource, ResourceTemplate, ResourceWatcher, Tool};

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
    cache_hint: CacheHint,
    allows_shared_caches: bool,
    limits: Limits,
    database_tenants: DatabaseTenants,
    row_policies: RowPolicyFingerprints,
    protection: AnswerProtection,
    argument_redaction: ArgumentRedaction,
    server_name: ServerName,
    absent_entry_code: Option<i64>,
    instruction_notes: InstructionNotes,
}

/// What follows the instructions for models, for each principal. The default is nothing.
#[derive(Clone, Default)]
pub struct InstructionNotes(Option<Arc<NotesFn>>);

type NotesFn = dyn Fn(&Principal) -> String + Send + Sync;

impl InstructionNotes {
    /// Uses `notes`. It must be cheap, because it runs for each session.
    pub fn new(notes: impl Fn(&Principal) -> String + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(notes)))
    }
}

tidegate_core::impl_debug!(InstructionNotes, "InstructionNotes(..)");

/// The identity of the server as its entries state it; it replaces that of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerName {
    /// The name for programs.
    pub name: Option<String>,
    /// The version.
    pub version: Option<String>,
}

pub(crate) enum ResourceMatch<'a> {
    Exact(&'a Arc<Resource>),
    Template(&'a Arc<ResourceTemplate>, TemplateVariables),
}

/// An entry as operators see it.
#[derive(Debug, Clone, Copy)]
pub struct RegistryEntry<'a> {
    /// The kind of entry: `tool`, `resource` or `prompt`.
    pub kind: &'static str,
    /// The name.
    pub name: &'a str,
    /// What it requires of a caller.
    pub access: &'a Access,
}

impl Snapshot {
    /// A caller of this snapshot. `None` if the snapshot belongs to another configuration than the principal, which can
    /// happen for a moment while a new configuration is applied.
    pub fn create_caller(self: Arc<Self>, principal: Arc<Principal>, origin: CallOrigin) -> Option<Caller> {
        let is_current = self.matches_generation(&principal);
        is_current.then(|| Caller { pinned_snapshot: Some(self), ..Caller::new(principal, origin) })
    }

    /// The snapshot that `caller` calls; `None` for the current one.
    pub fn for_caller(caller: &Caller) -> Option<Arc<Self>> {
        caller.pinned_snapshot.clone()?.downcast().ok()
    }

    /// The version of the snapshot; each swap of the registry increments it.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn with_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// How long clients may cache lists.
    pub fn cache_hint(&self) -> CacheHint {
        let all_public = self.tools.values().all(|tool| tool.access.is_unrestricted())
            && self.resources.values().all(|resource| resource.access.is_unrestricted())
            && self.templates.iter().all(|template| template.access.is_unrestricted())
            && self.prompts.values().all(|prompt| prompt.access.is_unrestricted());
        CacheHint { public: self.cache_hint.public && self.allows_shared_caches && all_public, ..self.cache_hint }
    }

    /// Whether the tools that a caller can call depend on the peer's address.
    pub fn depends_on_networks(&self) -> bool {
        self.tool_order.iter().any(|tool| tool.access.depends_on_networks())
    }

    /// Whether the tools that a caller sees depend on more of the principal than its grants.
    pub fn depends_on_principals(&self) -> bool {
        self.tool_order.iter().any(|tool| tool.access.depends_on_principals())
    }

    /// The limits of calls.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether `principal` may query the database with that name with its own rights.
    pub fn can_query_database(&self, database: &str, principal: &Principal) -> bool {
        let is_granted = principal.grants.databases.includes(database);
        is_granted && self.matches_generation(principal) && self.database_tenants.admits(database, principal)
    }

    /// The fingerprints of the row policies of all databases, by principal.
    pub fn row_policies(&self) -> &RowPolicyFingerprints {
        &self.row_policies
    }

    /// What follows the instructions for `caller`; nothing without a tool that reads databases.
    pub fn instruction_notes(&self, caller: &Caller) -> String {
        let notes = self.instruction_notes.0.as_ref();
        let notes = notes.filter(|_| self.tools(caller).any(|tool| tool.access.reads_caller_databases));
        notes.map(|notes| notes(&caller.principal)).unwrap_or_default()
    }

    /// The name and version that replace those of the node.
    pub fn server_name(&self) -> &ServerName {
        &self.server_name
    }

    /// The protection of answers.
    pub fn protection(&self) -> &AnswerProtection {
        &self.protection
    }

    /// Which arguments others than the handler of a call do not see.
    pub fn argument_redaction(&self) -> &ArgumentRedaction {
        &self.argument_redaction
    }

    /// The toolset with that name, if the caller may use its endpoint; `None` whether it is hidden or does not exist.
    pub fn toolset(&self, name: &str, caller: &Caller) -> Option<&Arc<Toolset>> {
        self.toolsets.get(name).filter(|toolset| caller.principal.grants.toolsets.includes(&toolset.name))
    }

    /// All toolsets, sorted by name.
    pub fn toolsets(&self) -> impl Iterator<Item = &Arc<Toolset>> {
        self.toolsets.values()
    }

    /// Every entry, including hidden ones, for operators.
    pub fn entries(&self) -> impl Iterator<Item = RegistryEntry<'_>> {
        let tools =
            self.tool_order.iter().map(|tool| RegistryEntry { kind: "tool", name: &tool.name, access: &tool.access });
        let resources = self.resources.values();
        let resources =
            resources.map(|entry| RegistryEntry { kind: "resource", name: &entry.name, access: &entry.access });
        let templates = self.templates.iter();
        let templates =
            templates.map(|entry| RegistryEntry { kind: "resource", name: &entry.name, access: &entry.access });
        let prompts = self.prompts.values();
        let prompts = prompts.map(|entry| RegistryEntry { kind: "prompt", name: &entry.name, access: &entry.access });
        tools.chain(resources).chain(templates).chain(prompts)
    }

    fn is_listed_for(&self, access: &Access, name: &str, caller: &Caller) -> bool {
        self.matches_generation(&caller.principal) && access.is_listed_for(name, caller)
    }

    /// If the caller may not discover the entry, the error is that of `absent`, as if the entry did not exist.
    fn authorize_entry(
        &self,
        access: &Access,
        name: &str,
        caller: &Caller,
        absent: impl FnOnce() -> Error,
    ) -> Result<(), Error> {
        if !self.matches_generation(&caller.principal) || !access.is_discoverable_by(name, caller) {
            return Err(absent());
        }
        access.authorize(name, caller)
    }

    /// Whether the grants of `principal` come from the configuration of this snapshot.
    pub fn matches_generation(&self, principal: &Principal) -> bool {
        self.generation == principal.generation
    }

    /// The tools that the caller may see.
    pub fn tools(&self, caller: &Caller) -> impl Iterator<Item = &Arc<Tool>> {
        self.tool_order.iter().filter(move |tool| self.is_listed_for(&tool.access, &tool.name, caller))
    }

    /// The resources that the caller may see, without those that templates list.
    pub fn resources(&self, caller: &Caller) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().filter(move |resource| self.is_listed_for(&resource.access, &resource.name, caller))
    }

    /// The resource templates that the caller may see.
    pub fn templates(&self, caller: &Caller) -> impl Iterator<Item = &Arc<ResourceTemplate>> {
        self.templates.iter().filter(move |template| self.is_listed_for(&template.access, &template.name, caller))
    }

    /// The prompts that the caller may see.
    pub fn prompts(&self, caller: &Caller) -> impl Iterator<Item = &Arc<Prompt>> {
        self.prompts.values().filter(move |prompt| self.is_listed_for(&prompt.access, &prompt.name, caller))
    }

    /// The tool with that name, if the caller may call it.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, whether it is hidden or does not exist; `Unauthenticated` if it requires
    /// authentication; `Forbidden` if the caller's token lacks scopes.
    pub fn tool(&self, name: &str, caller: &Caller) -> Result<&Arc<Tool>, Error> {
        let absent = || {
            let visible = self.tools(caller).map(|tool| tool.name.as_str());
            self.absent_entry("tool", name, nearest_names(name, visible))
        };
        let tool = self.tools.get(name).ok_or_else(absent)?;
        self.authorize_entry(&tool.access, &tool.name, caller, absent)?;
        Ok(tool)
    }

    /// The prompt with that name, if the caller may call it.
    ///
    /// # Errors
    /// As for tools.
    pub fn prompt(&self, name: &str, caller: &Caller) -> Result<&Arc<Prompt>, Error> {
        let absent = || {
            let visible = self.prompts(caller).map(|prompt| prompt.name.as_str());
            self.absent_entry("prompt", name, nearest_names(name, visible))
        };
        let prompt = self.prompts.get(name).ok_or_else(absent)?;
        self.authorize_entry(&prompt.access, &prompt.name, caller, absent)?;
        Ok(prompt)
    }

    /// The entry that serves `uri`, if the caller may read it: the resource with that URI, else the most specific
    /// template. If that entry is hidden, the URI does not exist for the caller; no broader template serves it instead.
    pub(crate) fn resource(&self, uri: &str, caller: &Caller) -> Result<ResourceMatch<'_>, Error> {
        let absent = || self.absent_entry("resource", uri, Vec::new());
        let (access, name, readable) = match self.resources.get(uri) {
            Some(resource) => (&resource.access, &resource.name, ResourceMatch::Exact(resource)),
            None => {
                let mut matching =
                    self.templates.iter().filter_map(|entry| Some((entry, entry.template.matches(uri)?)));
                let (template, variables) = matching.next().ok_or_else(absent)?;
                (&template.access, &template.name, ResourceMatch::Template(template, variables))
            }
        };
        self.authorize_entry(access, name, caller, absent)?;
        Ok(readable)
    }

    fn absent_entry(&self, kind: &str, name: &str, choices: Vec<String>) -> Error {
        let error = not_found(kind, name, choices);
        match self.absent_entry_code {
            Some(code) => error.with_protocol_error(code, None),
            None => error,
        }
    }

    /// The name of the entry that serves `uri`, to callers with the right to it or not.
    pub(crate) fn resource_name(&self, uri: &str) -> Option<&str> {
        let exact = self.resources.get(uri).map(|resource| &resource.name);
        let of_template = || self.templates.iter().find(|entry| entry.template.matches(uri).is_some());
        exact.or_else(|| of_template().map(|entry| &entry.name)).map(String::as_str)
    }

    fn reachable_resource(&self, uri: &str, caller: &Caller) -> Option<ResourceMatch<'_>> {
        self.resource(uri, caller).ok()
    }

    /// Whether there is a resource with that URI that the caller may read.
    pub fn has_resource(&self, uri: &str, caller: &Caller) -> bool {
        self.reachable_resource(uri, caller).is_some()
    }

    /// The watcher of the resource with that URI, and the values of its template's variables. `None` if the resource
    /// changes only with the registry.
    pub fn watcher(&self, uri: &str, caller: &Caller) -> Option<(Arc<dyn ResourceWatcher>, TemplateVariables)> {
        match self.reachable_resource(uri, caller)? {
            ResourceMatch::Exact(resource) => Some((resource.watcher.clone()?, TemplateVariables::new())),
            ResourceMatch::Template(template, variables) => Some((template.watcher.clone()?, variables)),
        }
    }

    /// The media type of the resource with that URI, if known before it is read.
    pub fn media_type(&self, uri: &str, caller: &Caller) -> Option<String> {
        match self.reachable_resource(uri, caller)? {
            ResourceMatch::Exact(resource) => resource.mime_type.clone(),
            ResourceMatch::Template(template, _) => template.mime_type.clone(),
        }
    }

    /// How long clients may cache the resource with that URI; not at all by default. Shared caches may not store it
    /// unless it is the same for every caller.
    pub fn resource_cache_hint(&self, uri: &str, caller: &Caller) -> CacheHint {
        let (cache_hint, access) = match self.reachable_resource(uri, caller) {
            Some(ResourceMatch::Exact(resource)) => (resource.cache, Some(&resource.access)),
            Some(ResourceMatch::Template(template, _)) => (template.cache, Some(&template.access)),
            None => (None, None),
        };
        let cache_hint = cache_hint.unwrap_or(CacheHint { time_to_live: Duration::ZERO, public: false });
        let is_open = self.allows_shared_caches && access.is_some_and(Access::is_unrestricted);
        CacheHint { public: cache_hint.public && is_open, ..cache_hint }
    }

    /// How long clients may cache an answer of the tool with that name; `None` if that is not stated, or if the tool
    /// may change something. Shared caches as for resources.
    pub fn tool_cache_hint(&self, name: &str) -> Option<CacheHint> {
        let tool = self.tools.get(name)?;
        let may_change = tool.annotations.as_ref().is_some_and(|annotations| annotations.read_only == Some(false));
        let cache_hint = tool.cache.filter(|_| !may_change)?;
        let is_open = self.allows_shared_caches && tool.access.is_unrestricted();
        Some(CacheHint { public: cache_hint.public && is_open, ..cache_hint })
    }

    /// The name of the tool that the tool `name` calls, if it [calls another one](crate::ToolPreset).
    pub(crate) fn called_tool(&self, name: &str) -> Option<&str> {
        Some(self.tools.get(name)?.preset.as_ref()?.tool.as_str())
    }

    pub(crate) fn template(&self, text: &str, caller: &Caller) -> Option<&Arc<ResourceTemplate>> {
        self.templates(caller).find(|template| template.template.as_str() == text)
    }
}

pub(crate) fn not_found(kind: &str, name: &str, choices: Vec<String>) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no {kind} {name:?}")).with_choices(choices)
}

/// Collects the entries of a [`Snapshot`]. A clone starts with the same entries.
#[derive(Debug, Clone)]
pub struct SnapshotBuilder {
    snapshot: Snapshot,
    lists_all_arguments: bool,
}

impl Default for SnapshotBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl SnapshotBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self {
            snapshot: Snapshot {
                version: 0,
                generation: 0,
                tools: BTreeMap::new(),
                tool_order: Vec::new(),
                resources: BTreeMap::new(),
                templates: Vec::new(),
                prompts: BTreeMap::new(),
                toolsets: BTreeMap::new(),
                allows_shared_caches: true,
                cache_hint: CacheHint::LISTS,
                limits: Limits::default(),
                database_tenants: DatabaseTenants::default(),
                row_policies: RowPolicyFingerprints::default(),
                protection: AnswerProtection::default(),
                argument_redaction: ArgumentRedaction::default(),
                server_name: ServerName::default(),
                absent_entry_code: None,
                instruction_notes: InstructionNotes::default(),
            },
            lists_all_arguments: false,
        }
    }

    /// Adds a tool. Tools are listed in the order of their addition; a later tool replaces one with the same name.
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

    /// Adds a resource template; a later one replaces one with the same text. If several match a URI, the template with
    /// the most literal text serves it, then the longer one.
    #[must_use]
    pub fn template(mut self, template: ResourceTemplate) -> Self {
        self.snapshot.templates.retain(|other| other.template != template.template);
        self.snapshot.templates.push(Arc::new(template));
        self.snapshot.templates.sort_by(|a, b| {
            b.template
                .literal_bytes()
                .cmp(&a.template.literal_bytes())
                .then_with(|| b.template.as_str().len().cmp(&a.template.as_str().len()))
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

    /// Adds a toolset, with an endpoint of its own.
    #[must_use]
    pub fn toolset(mut self, toolset: Toolset) -> Self {
        self.snapshot.toolsets.insert(toolset.name.clone(), Arc::new(toolset));
        self
    }

    /// Sets the limits of calls.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.snapshot.limits = limits;
        self
    }

    /// Sets the tenants of databases.
    #[must_use]
    pub fn database_tenants(mut self, tenancy: DatabaseTenants) -> Self {
        self.snapshot.database_tenants = tenancy;
        self
    }

    /// Sets the fingerprints of row policies.
    #[must_use]
    pub fn row_policies(mut self, row_policies: RowPolicyFingerprints) -> Self {
        self.snapshot.row_policies = row_policies;
        self
    }

    /// Sets what follows the instructions for models.
    #[must_use]
    pub fn instruction_notes(mut self, notes: InstructionNotes) -> Self {
        self.snapshot.instruction_notes = notes;
        self
    }

    /// Sets the protection of answers.
    #[must_use]
    pub fn protection(mut self, guard: AnswerProtection) -> Self {
        self.snapshot.protection = guard;
        self
    }

    /// Sets which arguments others than the handler of a call do not see.
    #[must_use]
    pub fn argument_redaction(mut self, redaction: ArgumentRedaction) -> Self {
        self.snapshot.argument_redaction = redaction;
        self
    }

    /// Sets the generation of the configuration. Principals of another generation can call nothing.
    #[must_use]
    pub fn generation(mut self, generation: u64) -> Self {
        self.snapshot.generation = generation;
        self
    }

    /// Sets the name and version that replace those of the node, as far as they are not set yet.
    #[must_use]
    pub fn server_name(mut self, server_name: ServerName) -> Self {
        let own = &mut self.snapshot.server_name;
        own.name = own.name.take().or(server_name.name);
        own.version = own.version.take().or(server_name.version);
        self
    }

    /// Sets the code of JSON-RPC for names and URIs without an entry, which replaces that of the revision.
    #[must_use]
    pub fn absent_entry_code(mut self, code: i64) -> Self {
        self.snapshot.absent_entry_code = Some(code);
        self
    }

    /// Sets how long clients may cache lists.
    #[must_use]
    pub fn cache_hint(mut self, cache: CacheHint) -> Self {
        self.snapshot.cache_hint = cache;
        self
    }

    /// Sets whether shared caches may store what is the same for all callers; not where callers authenticate.
    #[must_use]
    pub fn allow_shared_caches(mut self, is_allowed: bool) -> Self {
        self.snapshot.allows_shared_caches = is_allowed;
        self
    }

    /// Sets whether lists have all arguments of tools, also those that they otherwise leave out
    /// ([`Tool::with_unlisted_arguments`]).
    #[must_use]
    pub fn list_all_arguments(mut self, all: bool) -> Self {
        self.lists_all_arguments = all;
        self
    }

    /// Whether there is a tool with that name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.snapshot.tools.contains_key(name)
    }

    /// The tools so far, in the order of their addition.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.snapshot.tool_order.iter().map(|tool| &**tool)
    }

    /// Whether there is a prompt with that name.
    pub fn has_prompt(&self, name: &str) -> bool {
        self.snapshot.prompts.contains_key(name)
    }

    /// Whether there is a resource with that URI, or a template with that text.
    pub fn has_resource(&self, uri: &str) -> bool {
        let is_template = |entry: &Arc<ResourceTemplate>| entry.template.as_str() == uri;
        self.snapshot.resources.contains_key(uri) || self.snapshot.templates.iter().any(is_template)
    }

    /// The finished snapshot.
    pub fn build(mut self) -> Snapshot {
        if self.lists_all_arguments {
            for tool in &mut self.snapshot.tool_order {
                if let Some(full) = tool.full_schema.clone() {
                    Arc::make_mut(tool).input_schema = full;
                    self.snapshot.tools.insert(tool.name.clone(), tool.clone());
                }
            }
        }
        self.snapshot
    }
}
