//! The lists: tools, resources, templates, prompts, page by page.
//!
//! `tools/list` is what clients ask most, so its first page is kept as text for as long as the
//! registry stays the same and every caller sees the same.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{CacheHint, Metadata, Registry, Resource, Snapshot};

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

/// The first page of `tools/list` as the members of its result, for one dialect of one registry version.
#[derive(Debug, Default)]
pub(crate) struct ToolListCache {
    pages: Mutex<Vec<CachedPage>>,
}

#[derive(Debug)]
struct CachedPage {
    version: u64,
    dialect: &'static Dialect,
    members: Arc<str>,
}

impl ToolListCache {
    fn get(&self, version: u64, dialect: &'static Dialect) -> Option<Arc<str>> {
        let pages = self.pages.lock();
        pages.iter().find(|page| page.version == version && page.dialect == dialect).map(|page| page.members.clone())
    }

    fn put(&self, version: u64, dialect: &'static Dialect, members: Arc<str>) {
        let mut pages = self.pages.lock();
        // One page per dialect of the newest version: at most five.
        pages.retain(|page| page.version == version && page.dialect != dialect);
        pages.push(CachedPage { version, dialect, members });
    }
}

impl Service {
    pub(crate) fn list_tools(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let cursor = request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot();
        let (cache, dialect) = (snapshot.cache(), envelope.dialect);
        let is_cached = cache.public && cursor.is_none();
        if let Some(members) = is_cached.then(|| self.tool_lists.get(snapshot.version(), dialect)).flatten() {
            return Ok(whole(envelope, &members, cache));
        }
        let tools: Vec<_> = snapshot.tools(&peer.principal, peer.origin).collect();
        let (tools, next) = page("tools", tools, |tool| &tool.name, cursor.as_deref())?;
        let members = members("tools", tools.iter().map(|tool| wire::tool(tool, dialect)), next);
        if is_cached {
            self.tool_lists.put(snapshot.version(), dialect, members.as_str().into());
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
        let snapshot = self.registry().snapshot();
        let prompts: Vec<_> = snapshot.prompts(&peer.principal, peer.origin).collect();
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
        let snapshot = self.registry().snapshot();
        let templates: Vec<_> = snapshot.templates(&peer.principal, peer.origin).collect();
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
        let snapshot = self.registry().snapshot();
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
    let mut resources: Vec<Arc<Resource>> = snapshot.resources(&peer.principal, peer.origin).cloned().collect();
    for template in snapshot.templates(&peer.principal, peer.origin) {
        if let Some(lister) = &template.lister {
            let listed = registry.listed(&**lister, &peer.principal).await;
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
