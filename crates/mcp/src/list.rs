//! The paged lists of tools, resources, templates and prompts.
//!
//! A cursor contains the key of the last entry sent, so that a changed list continues at the right position. The first pages
//! of `tools/list`, the most frequent request, are cached: as text until the registry changes, once for all callers that see
//! the same tools.
//!
//! [MCP 2026-07-28, Pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination)

use std::collections::VecDeque;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{Caller, Grants, Principal, Toolset, TransportKind};
use tidegate_runtime::{Resource, Snapshot};

use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::revision::Dialect;
use crate::service::{InFlightRequest, McpService};
use crate::wire;

/// The maximum number of listed resources. Further ones can be found by name and by completion only.
const LISTED_RESOURCES_MAX: usize = 10_000;
const PAGE_ENTRIES: usize = 250;

#[derive(Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

impl McpService {
    pub(crate) fn list_tools(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let cursor = request.rpc.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(request.caller());
        let dialect = request.envelope.dialect;
        let key = cursor.is_none().then(|| ToolListKey::for_caller(request.caller(), &snapshot, dialect)).flatten();
        if let Some(members) = key.as_ref().and_then(|key| self.tool_lists.get(key)) {
            return Ok(request.envelope.respond(&members, Some(snapshot.cache_hint())));
        }
        let tools = snapshot.tools(request.caller()).collect();
        let members = encode_page("tools", tools, |tool| &tool.name, |tool| wire::encode_tool(tool, dialect), cursor)?;
        if let Some(key) = key {
            self.tool_lists.put(key, members.as_str().into());
        }
        Ok(request.envelope.respond(&members, Some(snapshot.cache_hint())))
    }

    pub(crate) fn list_prompts(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let (snapshot, dialect) = (self.registry().snapshot_for(request.caller()), request.envelope.dialect);
        let prompts = snapshot.prompts(request.caller()).collect();
        let encode = |prompt: &&Arc<_>| wire::encode_prompt(prompt, dialect);
        respond_with_page(request, &snapshot, "prompts", prompts, |prompt| &prompt.name, encode)
    }

    pub(crate) fn list_templates(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let (snapshot, dialect) = (self.registry().snapshot_for(request.caller()), request.envelope.dialect);
        let templates = snapshot.templates(request.caller()).collect();
        let encode = |template: &&Arc<_>| wire::encode_resource_template(template, dialect);
        respond_with_page(request, &snapshot, "resourceTemplates", templates, |it| it.template.as_str(), encode)
    }

    pub(crate) async fn list_resources(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let (snapshot, dialect) = (self.registry().snapshot_for(request.caller()), request.envelope.dialect);
        let resources = self.collect_resources(request, &snapshot).await?;
        let encode = |resource: &Arc<Resource>| wire::encode_resource(resource, dialect);
        respond_with_page(request, &snapshot, "resources", resources, |resource| &resource.uri, encode)
    }

    async fn collect_resources(
        &self,
        request: &InFlightRequest<'_>,
        snapshot: &Snapshot,
    ) -> Result<Vec<Arc<Resource>>, RpcError> {
        let caller = request.caller();
        let mut resources: Vec<Arc<Resource>> = snapshot.resources(caller).cloned().collect();
        for lister in snapshot.templates(caller).filter_map(|template| template.lister.as_ref()) {
            let listed = self.registry().list_resources(&**lister, caller).await;
            resources.extend(listed.map_err(|error| request.to_rpc_error(&error))?.into_iter().map(Arc::new));
        }
        resources.sort_by(|a, b| a.uri.cmp(&b.uri));
        resources.dedup_by(|a, b| a.uri == b.uri);
        resources.truncate(LISTED_RESOURCES_MAX);
        Ok(resources)
    }
}

fn respond_with_page<T>(
    request: &InFlightRequest<'_>,
    snapshot: &Snapshot,
    list: &str,
    entries: Vec<T>,
    key: impl Fn(&T) -> &str,
    encode: impl Fn(&T) -> Value,
) -> Result<ResponseMessage, RpcError> {
    let cursor = request.rpc.params::<ListParams>()?.cursor;
    let members = encode_page(list, entries, key, encode, cursor)?;
    Ok(request.envelope.respond(&members, Some(snapshot.cache_hint())))
}

/// The members of a result with one page of `entries`, the member `list`. The entries must be in list order.
fn encode_page<T>(
    list: &str,
    mut entries: Vec<T>,
    key: impl Fn(&T) -> &str,
    encode: impl Fn(&T) -> Value,
    cursor: Option<String>,
) -> Result<String, RpcError> {
    if let Some(cursor) = cursor {
        let last = decode_cursor(list, &cursor);
        let position = last.and_then(|last| entries.iter().position(|entry| key(entry) == last)).ok_or_else(|| {
            let message = format!("the cursor {cursor:?} is unknown or no longer valid; begin again without one");
            RpcError::invalid_params(message)
        })?;
        entries.drain(..=position);
    }
    let next = (entries.len() > PAGE_ENTRIES).then(|| encode_cursor(list, key(&entries[PAGE_ENTRIES - 1])));
    entries.truncate(PAGE_ENTRIES);
    let entries: Value = entries.iter().map(encode).collect();
    let next = next.map(|cursor| format!(",\"nextCursor\":{}", Value::from(cursor)));
    Ok(format!("\"{list}\":{entries}{}", next.unwrap_or_default()))
}

fn encode_cursor(list: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}\n{key}"))
}

fn decode_cursor(list: &str, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    Some(text.strip_prefix(list)?.strip_prefix('\n')?.to_owned())
}

/// The maximum number of cached pages; the oldest page is evicted.
const CACHED_PAGES_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct ToolListCache {
    pages: Mutex<VecDeque<(ToolListKey, Arc<str>)>>,
}

/// Grants and toolsets are compared by address: principals with the same roles share one object.
#[derive(Debug)]
pub(crate) struct ToolListKey {
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
    pub(crate) fn get(&self, seen: &ToolListKey) -> Option<Arc<str>> {
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
