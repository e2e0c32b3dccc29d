//! The notifications that a client requests (`SubscriptionFilter`). Unknown members are ignored.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::feed::ListFlags;
use crate::bounded;
use crate::jsonrpc::{RpcError, RpcRequest};

const RESOURCES_MAX: usize = 1_000;
/// The maximum length of their URIs together: the acknowledgement repeats them, and common clients accept events of at
/// most 1 MiB. Except for control characters, escaping at most doubles them.
const RESOURCES_BYTES_MAX: usize = 400 * 1024;
const TASKS_MAX: usize = 100;

/// The notifications that a client requests or receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SubscriptionFilter {
    /// Lists whose changes are sent.
    pub(super) lists: ListFlags,
    /// Resources whose changes are sent; `None` if the member is missing.
    pub(super) resources: Option<Vec<String>>,
    /// Tasks whose changes are sent (extension `io.modelcontextprotocol/tasks`); `None` if the member is missing.
    pub(super) tasks: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ListenParams {
    /// A map first, because serde would also decode the members from an array.
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

/// Rejects `null`.
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
    /// Decodes the filter of a request.
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

    /// The filter as JSON, without members that were not requested.
    pub(super) fn to_json(&self) -> Value {
        let ListFlags { tools, resources, prompts } = self.lists;
        let lists = [("toolsListChanged", tools), ("resourcesListChanged", resources), ("promptsListChanged", prompts)];
        let expected = lists.into_iter().filter(|(_, is_requested)| *is_requested);
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
