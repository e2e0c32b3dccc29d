//! The paged lists of tools, resources, templates and prompts.
//!
//! A cursor contains the key of the last entry sent, so that a changed list continues at the right position.
//!
//! [MCP 2026-07-28, Pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination)

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use tidegate_runtime::{Registry, Resource, Snapshot};

use crate::answer::OpenRequest;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::revision::Dialect;
use crate::service::{McpService, Peer};
use crate::tool_list_cache::ToolListKey;
use crate::wire;

/// The maximum number of listed resources. Further ones can be found by name and by completion only.
const LISTED_RESOURCES_MAX: usize = 10_000;
/// The number of entries per page.
const PAGE_ENTRIES: usize = 250;

#[derive(Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

impl McpService {
    pub(crate) fn list_tools(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let cursor = open.request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let dialect = open.envelope.dialect;
        let seen = cursor.is_none().then(|| ToolListKey::for_caller(&peer.caller, &snapshot, dialect)).flatten();
        if let Some(members) = seen.as_ref().and_then(|seen| self.tool_lists.get(seen)) {
            return Ok(open.envelope.respond(&members, Some(snapshot.cache_hint())));
        }
        let tools = snapshot.tools(&peer.caller).collect();
        let members = encode_page("tools", tools, |tool| &tool.name, |tool| wire::encode_tool(tool, dialect), cursor)?;
        if let Some(seen) = seen {
            self.tool_lists.put(seen, members.as_str().into());
        }
        Ok(open.envelope.respond(&members, Some(snapshot.cache_hint())))
    }

    pub(crate) fn list_prompts(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let cursor = open.request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let prompts = snapshot.prompts(&peer.caller).collect();
        let members = encode_page(
            "prompts",
            prompts,
            |prompt| &prompt.name,
            |prompt| wire::encode_prompt(prompt, open.envelope.dialect),
            cursor,
        )?;
        Ok(open.envelope.respond(&members, Some(snapshot.cache_hint())))
    }

    pub(crate) fn list_templates(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let cursor = open.request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let templates = snapshot.templates(&peer.caller).collect();
        let members = encode_page(
            "resourceTemplates",
            templates,
            |template| template.template.as_str(),
            |template| wire::encode_resource_template(template, open.envelope.dialect),
            cursor,
        )?;
        Ok(open.envelope.respond(&members, Some(snapshot.cache_hint())))
    }

    pub(crate) async fn list_resources(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let cursor = open.request.params::<ListParams>()?.cursor;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let resources = collect_resources(self.registry(), &snapshot, open.envelope.dialect, peer).await?;
        let encode = |resource: &Arc<Resource>| wire::encode_resource(resource, open.envelope.dialect);
        let members = encode_page("resources", resources, |resource| &resource.uri, encode, cursor)?;
        Ok(open.envelope.respond(&members, Some(snapshot.cache_hint())))
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

/// The members of a result with one page of `entries`, the member `list`.
///
/// # Errors
/// As [`paginate`].
fn encode_page<T>(
    list: &str,
    entries: Vec<T>,
    key: impl Fn(&T) -> &str,
    encode: impl Fn(&T) -> Value,
    cursor: Option<String>,
) -> Result<String, RpcError> {
    let (entries, next) = paginate(list, entries, key, cursor.as_deref())?;
    let entries: Value = entries.iter().map(encode).collect();
    let next = next.map(|cursor| format!(",\"nextCursor\":{}", Value::from(cursor)));
    Ok(format!("\"{list}\":{entries}{}", next.unwrap_or_default()))
}

/// One page of `entries`, which must be in list order, and the cursor of the next page.
///
/// # Errors
/// `-32602` if `cursor` is invalid, belongs to another list, or its entry no longer exists.
fn paginate<T>(
    list: &str,
    mut entries: Vec<T>,
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
) -> Result<(Vec<T>, Option<String>), RpcError> {
    if let Some(cursor) = cursor {
        let last = decode_cursor(list, cursor).ok_or_else(|| invalid_cursor_error(cursor))?;
        let position =
            entries.iter().position(|entry| key(entry) == last).ok_or_else(|| invalid_cursor_error(cursor))?;
        entries.drain(..=position);
    }
    let next = (entries.len() > PAGE_ENTRIES).then(|| encode_cursor(list, key(&entries[PAGE_ENTRIES - 1])));
    entries.truncate(PAGE_ENTRIES);
    Ok((entries, next))
}

fn encode_cursor(list: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}\n{key}"))
}

fn decode_cursor(list: &str, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    Some(text.strip_prefix(list)?.strip_prefix('\n')?.to_owned())
}

fn invalid_cursor_error(cursor: &str) -> RpcError {
    RpcError::invalid_params(format!("the cursor {cursor:?} is unknown or no longer valid; begin again without one"))
}
