//! The lists: tools, resources, templates, prompts, page by page.
//!
//! `tools/list` is what clients ask most, so its first page is kept as text for as long as the
//! registry stays the same, once for all callers who see the same.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{
    CacheHint, Caller, Grants, Metadata, Principal, Registry, Resource, Snapshot, Toolset, TransportKind,
};

use crate::answer::Message;
use crate::cursor::page;
use crate::encode::Envelope;
use crate::jsonrpc::{Request, RpcError};
use crate::revision::Dialect;
use crate::service::{Peer, Service};
use crate::wire;

/// Resources that templates list; further ones are reached by name and by completion only.
const LISTED_RESOURCES_MAX: usize = 10_000;

#[derive(Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

/// Pages kept; of more kinds of callers than these the oldest is forgotten.
const CACHED_PAGES_MAX: usize = 64;

/// The first pages of `tools/list` as the members of their results.
#[derive(Debug, Default)]
pub(crate) struct ToolListCache {
    pages: Mutex<VecDeque<(Seen, Arc<str>)>>,
}

/// What decides which tools a caller sees and how they are written. Grants and toolsets are the same only if
/// they are the same object: principals of the same roles share one.
#[derive(Debug)]
struct Seen {
    version: u64,
    dialect: &'static Dialect,
    transport: TransportKind,
    grants: Arc<Grants>,
    toolset: Option<Arc<Toolset>>,
    /// Who asks, where more than its grants decides.
    principal: Option<Arc<Principal>>,
}

impl Seen {
    /// `None` where the peer's address decides too.
    fn by(caller: &Caller, snapshot: &Snapshot, dialect: &'static Dialect) -> Option<Self> {
        (!snapshot.asks_for_networks()).then(|| Self {
            version: snapshot.version(),
            dialect,
            transport: caller.origin.transport,
            grants: caller.principal.grants.clone(),
            toolset: caller.toolset.clone(),
            principal: snapshot.asks_for_principals().then(|| caller.principal.clone()),
        })
    }
}

impl PartialEq for Seen {
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
    fn get(&self, seen: &Seen) -> Option<Arc<str>> {
        self.pages.lock().iter().find(|(other, _)| other == seen).map(|(_, members)| members.clone())
    }

    fn put(&self, seen: Seen, members: Arc<str>) {
        let mut pages = self.pages.lock();
        pages.retain(|(other, _)| other.version == seen.version && *other != seen);
        if pages.len() >= CACHED_PAGES_MAX {
            pages.pop_front();
        }
        pages.push_back((seen, members));
    }
}

impl Service {
    pub(crate) fn list_tools(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().state_for(&peer.caller);
        let (cache, dialect) = (snapshot.cache(), envelope.dialect);
        let seen = cursor.is_none().then(|| Seen::by(&peer.caller, &snapshot, dialect)).flatten();
        if let Some(members) = seen.as_ref().and_then(|seen| self.tool_lists.get(seen)) {
            return Ok(whole(envelope, &members, cache));
        }
        let tools: Vec<_> = snapshot.tools(&peer.caller).collect();
        let (tools, next) = page("tools", tools, |tool| &tool.name, cursor.as_deref())?;
        let members = members("tools", tools.iter().map(|tool| wire::tool(tool, dialect)), next);
        if let Some(seen) = seen {
            self.tool_lists.put(seen, members.as_str().into());
        }
        Ok(whole(envelope, &members, cache))
    }

    pub(crate) fn list_prompts(
        &self,
        request: &Request,
        envelope: &Envelope,
        peer: &Peer,
    ) -> Result<Message, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().state_for(&peer.caller);
        let prompts: Vec<_> = snapshot.prompts(&peer.caller).collect();
        let (prompts, next) = page("prompts", prompts, |prompt| &prompt.name, cursor.as_deref())?;
        let members = members("prompts", prompts.iter().map(|prompt| wire::prompt(prompt, envelope.dialect)), next);
        Ok(whole(envelope, &members, snapshot.cache()))
    }

    pub(crate) fn list_templates(
        &self,
        request: &Request,
        envelope: &Envelope,
        peer: &Peer,
    ) -> Result<Message, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().state_for(&peer.caller);
        let templates: Vec<_> = snapshot.templates(&peer.caller).collect();
        let (templates, next) = page("templates", templates, |template| template.template.as_str(), cursor.as_deref())?;
        let templates = templates.iter().map(|template| wire::resource_template(template, envelope.dialect));
        Ok(whole(envelope, &members("resourceTemplates", templates, next), snapshot.cache()))
    }

    pub(crate) async fn list_resources(
        &self,
        request: &Request,
        envelope: &Envelope,
        peer: &Peer,
    ) -> Result<Message, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().state_for(&peer.caller);
        let resources = resources(self.registry(), &snapshot, envelope.dialect, peer).await?;
        let (resources, next) = page("resources", resources, |resource| &resource.uri, cursor.as_deref())?;
        let resources = resources.iter().map(|resource| wire::resource(resource, envelope.dialect));
        Ok(whole(envelope, &members("resources", resources, next), snapshot.cache()))
    }
}

/// The registered resources and those that templates list now, by URI.
async fn resources(
    registry: &Registry,
    snapshot: &Snapshot,
    dialect: &'static Dialect,
    peer: &Peer,
) -> Result<Vec<Arc<Resource>>, RpcError> {
    let mut resources: Vec<Arc<Resource>> = snapshot.resources(&peer.caller).cloned().collect();
    for template in snapshot.templates(&peer.caller) {
        if let Some(lister) = &template.lister {
            let listed = registry.listed(&**lister, &peer.caller).await;
            let listed = listed.map_err(|error| RpcError::from_error(&error, None, dialect))?;
            resources.extend(listed.into_iter().map(Arc::new));
        }
    }
    resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    resources.dedup_by(|a, b| a.uri == b.uri);
    resources.truncate(LISTED_RESOURCES_MAX);
    Ok(resources)
}

fn members(name: &str, entries: impl Iterator<Item = Value>, next: Option<String>) -> String {
    let entries = Value::Array(entries.collect());
    let next = next.map(|cursor| format!(",\"nextCursor\":{}", Value::from(cursor)));
    format!("\"{name}\":{entries}{}", next.unwrap_or_default())
}

fn whole(envelope: &Envelope, members: &str, cache: CacheHint) -> Message {
    Message::result(envelope.whole(members, &Metadata::new(), Some(cache)))
}
