//! The paged lists of tools, resources, templates and prompts.
//!
//! `tools/list` is the most frequent request. Its first page is cached as text until the registry changes, once for all
//! callers that see the same tools.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{Caller, Grants, Principal, Toolset, TransportKind};
use tidegate_runtime::{CacheHint, Metadata, Registry, Resource, Snapshot};

use crate::answer::ResponseMessage;
use crate::cursor::paginate;
use crate::encode::ResponseEnvelope;
use crate::jsonrpc::{RpcError, RpcRequest};
use crate::revision::Dialect;
use crate::service::{McpService, Peer};
use crate::wire;

/// The maximum number of listed resources. Further ones can be found by name and by completion only.
const LISTED_RESOURCES_MAX: usize = 10_000;

#[derive(Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

/// The maximum number of cached pages; the oldest page is evicted.
const CACHED_PAGES_MAX: usize = 64;

/// The cached first pages of `tools/list`, as the members of their results.
#[derive(Debug, Default)]
pub(crate) struct ToolListCache {
    pages: Mutex<VecDeque<(ToolListKey, Arc<str>)>>,
}

/// Everything that determines which tools a caller sees and how they are encoded. Grants and toolsets are compared by
/// address: principals with the same roles share one object.
#[derive(Debug)]
struct ToolListKey {
    version: u64,
    dialect: &'static Dialect,
    transport: TransportKind,
    grants: Arc<Grants>,
    toolset: Option<Arc<Toolset>>,
    /// The principal, if more than its grants determines the tools.
    principal: Option<Arc<Principal>>,
}

impl ToolListKey {
    /// `None` if the tools depend on the peer's address.
    fn for_caller(caller: &Caller, snapshot: &Snapshot, dialect: &'static Dialect) -> Option<Self> {
        (!snapshot.depends_on_networks()).then(|| Self {
            version: snapshot.version(),
            dialect,
            transport: caller.origin.transport,
            grants: caller.principal.grants.clone(),
            toolset: caller.toolset.clone(),
            principal: snapshot.depends_on_principals().then(|| caller.principal.clone()),
        })
    }
}

impl PartialEq for ToolListKey {
    fn eq(&self, other: &Self) -> bool {
        let same_toolset = match (&self.toolset, &other.toolset) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.version == other.version
            && self.dialect == other.dialect
            && self.transport == other.transport
            && Arc::ptr_eq(&self.grants, &other.grants)
            && same_toolset
            && self.principal == other.principal
    }
}

impl ToolListCache {
    fn get(&self, seen: &ToolListKey) -> Option<Arc<str>> {
        self.pages.lock().iter().find(|(other, _)| other == seen).map(|(_, members)| members.clone())
    }

    fn put(&self, seen: ToolListKey, members: Arc<str>) {
        let mut pages = self.pages.lock();
        pages.retain(|(other, _)| other.version == seen.version && *other != seen);
        if pages.len() >= CACHED_PAGES_MAX {
            pages.pop_front();
        }
        pages.push_back((seen, members));
    }
}

impl McpService {
    pub(crate) fn list_tools(
        &self,
        request: &RpcRequest,
        envelope: &ResponseEnvelope,
        peer: &Peer,
    ) -> Result<ResponseMessage, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let (cache, dialect) = (snapshot.cache_hint(), envelope.dialect);
        let seen = cursor.is_none().then(|| ToolListKey::for_caller(&peer.caller, &snapshot, dialect)).flatten();
        if let Some(members) = seen.as_ref().and_then(|seen| self.tool_lists.get(seen)) {
            return Ok(list_response(envelope, &members, cache));
        }
        let tools: Vec<_> = snapshot.tools(&peer.caller).collect();
        let (tools, next) = paginate("tools", tools, |tool| &tool.name, cursor.as_deref())?;
        let members = encode_members("tools", tools.iter().map(|tool| wire::encode_tool(tool, dialect)), next);
        if let Some(seen) = seen {
            self.tool_lists.put(seen, members.as_str().into());
        }
        Ok(list_response(envelope, &members, cache))
    }

    pub(crate) fn list_prompts(
        &self,
        request: &RpcRequest,
        envelope: &ResponseEnvelope,
        peer: &Peer,
    ) -> Result<ResponseMessage, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let prompts: Vec<_> = snapshot.prompts(&peer.caller).collect();
        let (prompts, next) = paginate("prompts", prompts, |prompt| &prompt.name, cursor.as_deref())?;
        let members =
            encode_members("prompts", prompts.iter().map(|prompt| wire::encode_prompt(prompt, envelope.dialect)), next);
        Ok(list_response(envelope, &members, snapshot.cache_hint()))
    }

    pub(crate) fn list_templates(
        &self,
        request: &RpcRequest,
        envelope: &ResponseEnvelope,
        peer: &Peer,
    ) -> Result<ResponseMessage, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let templates: Vec<_> = snapshot.templates(&peer.caller).collect();
        let (templates, next) =
            paginate("templates", templates, |template| template.template.as_str(), cursor.as_deref())?;
        let templates = templates.iter().map(|template| wire::encode_resource_template(template, envelope.dialect));
        Ok(list_response(envelope, &encode_members("resourceTemplates", templates, next), snapshot.cache_hint()))
    }

    pub(crate) async fn list_resources(
        &self,
        request: &RpcRequest,
        envelope: &ResponseEnvelope,
        peer: &Peer,
    ) -> Result<ResponseMessage, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let resources = collect_resources(self.registry(), &snapshot, envelope.dialect, peer).await?;
        let (resources, next) = paginate("resources", resources, |resource| &resource.uri, cursor.as_deref())?;
        let resources = resources.iter().map(|resource| wire::encode_resource(resource, envelope.dialect));
        Ok(list_response(envelope, &encode_members("resources", resources, next), snapshot.cache_hint()))
    }
}

/// The registered resources and those that templates list now, by URI.
async fn collect_resources(
    registry: &Registry,
    snapshot: &Snapshot,
    dialect: &'static Dialect,
    peer: &Peer,
) -> Result<Vec<Arc<Resource>>, RpcError> {
    let mut resources: Vec<Arc<Resource>> = snapshot.resources(&peer.caller).cloned().collect();
    for template in snapshot.templates(&peer.caller) {
        if let Some(lister) = &template.lister {
            let listed = registry.list_resources(&**lister, &peer.caller).await;
            let listed = listed.map_err(|error| RpcError::from_error(&error, None, dialect))?;
            resources.extend(listed.into_iter().map(Arc::new));
        }
    }
    resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    resources.dedup_by(|a, b| a.uri == b.uri);
    resources.truncate(LISTED_RESOURCES_MAX);
    Ok(resources)
}

fn encode_members(name: &str, entries: impl Iterator<Item = Value>, next: Option<String>) -> String {
    let entries = Value::Array(entries.collect());
    let next = next.map(|cursor| format!(",\"nextCursor\":{}", Value::from(cursor)));
    format!("\"{name}\":{entries}{}", next.unwrap_or_default())
}

fn list_response(envelope: &ResponseEnvelope, members: &str, cache: CacheHint) -> ResponseMessage {
    ResponseMessage::result(envelope.encode_response(members, &Metadata::new(), Some(cache)))
}
