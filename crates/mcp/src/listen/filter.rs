//! Which notifications a client wants (`SubscriptionFilter`). Members that we do not know are left out.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::feed::ListFlags;
use crate::bounded;
use crate::jsonrpc::{RpcError, RpcRequest};

/// Resources that one stream may tell of.
const RESOURCES_MAX: usize = 1_000;
/// And how long their URIs may be together: the acknowledgement repeats them, and stock clients take no longer events
/// than 1 MiB. Escaping at most doubles them but for control characters.
const RESOURCES_BYTES_MAX: usize = 400 * 1024;
/// Tasks that one stream may tell of.
const TASKS_MAX: usize = 100;

/// The notifications that a client asks for, or that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SubscriptionFilter {
    /// Lists whose changes are told.
    pub(super) lists: ListFlags,
    /// Resources whose changes are told; none when the member was absent.
    pub(super) resources: Option<Vec<String>>,
    /// Tasks whose changes are told (extension `io.modelcontextprotocol/tasks`); none when the member was absent.
    pub(super) tasks: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ListenParams {
    /// Not yet its members, since an array would pass for them, too.
    notifications: Map<String, Value>,
}

#[derive(Deserialize)]
struct FilterMembers {
    #[serde(rename = "toolsListChanged", default)]
    tools: bool,
    #[serde(rename = "resourcesListChanged", default)]
    resources: bool,
    #[serde(rename = "promptsListChanged", default)]
    prompts: bool,
    #[serde(rename = "resourceSubscriptions", default, deserialize_with = "present")]
    subscriptions: Option<Vec<BoundedUri>>,
    #[serde(rename = "taskIds", default, deserialize_with = "present")]
    tasks: Option<Vec<BoundedUri>>,
}

#[derive(Deserialize)]
struct BoundedUri(#[serde(deserialize_with = "bounded::uri")] String);

/// Null is no list.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<BoundedUri>>, D::Error> {
    Vec::deserialize(deserializer).map(Some)
}

fn sort_and_dedup(named: Vec<BoundedUri>) -> Vec<String> {
    let mut named: Vec<String> = named.into_iter().map(|BoundedUri(text)| text).collect();
    named.sort_unstable();
    named.dedup();
    named
}

impl SubscriptionFilter {
    /// The filter of a request.
    ///
    /// # Errors
    /// `-32602` when a member has the wrong type, or names too many resources.
    pub(super) fn read(request: &RpcRequest) -> Result<Self, RpcError> {
        let notifications = request.params::<ListenParams>()?.notifications;
        let wrong = |subject: &str| RpcError::invalid_params(format!("params.notifications is wrong: {subject}"));
        let members: FilterMembers =
            serde_json::from_value(Value::Object(notifications)).map_err(|error| wrong(&error.to_string()))?;
        let (resources, tasks) = (members.subscriptions.map(sort_and_dedup), members.tasks.map(sort_and_dedup));
        let tasks_named = tasks.as_ref().map_or(0, Vec::len);
        if tasks_named > TASKS_MAX {
            return Err(wrong(&format!("taskIds names {tasks_named} tasks; at most {TASKS_MAX}")));
        }
        let named = resources.as_ref().map_or(0, Vec::len);
        if named > RESOURCES_MAX {
            return Err(wrong(&format!("resourceSubscriptions names {named} resources; at most {RESOURCES_MAX}")));
        }
        let bytes: usize = resources.iter().flatten().map(String::len).sum();
        if bytes > RESOURCES_BYTES_MAX {
            let message = format!("resourceSubscriptions is {bytes} bytes long; at most {RESOURCES_BYTES_MAX}");
            return Err(wrong(&message));
        }
        let lists = ListFlags { tools: members.tools, resources: members.resources, prompts: members.prompts };
        Ok(Self { lists, resources, tasks })
    }

    /// As it stands on the wire; what was not asked for is absent.
    pub(super) fn to_json(&self) -> Value {
        let ListFlags { tools, resources, prompts } = self.lists;
        let lists = [("toolsListChanged", tools), ("resourcesListChanged", resources), ("promptsListChanged", prompts)];
        let expected = lists.into_iter().filter(|(_, is_wanted)| *is_wanted);
        let mut object: Map<String, Value> = expected.map(|(name, _)| (name.to_owned(), true.into())).collect();
        if let Some(uris) = &self.resources {
            object.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        if let Some(ids) = &self.tasks {
            object.insert("taskIds".to_owned(), json!(ids));
        }
        Value::Object(object)
    }
}
