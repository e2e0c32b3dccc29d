//! The builder of registry snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{AnswerProtection, DatabaseTenants, Limits, RowPolicyFingerprints, Toolset};

use super::{ServerName, Snapshot};
use crate::prompt::Prompt;
use crate::resource::CacheHint;
use crate::resource::{Resource, ResourceTemplate};
use crate::tool::Tool;

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
                server_name: ServerName::default(),
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

    /// Sets the protection of answers.
    #[must_use]
    pub fn protection(mut self, guard: AnswerProtection) -> Self {
        self.snapshot.protection = guard;
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
