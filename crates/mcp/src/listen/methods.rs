//! The methods `subscriptions/listen`, `resources/subscribe` and `resources/unsubscribe`.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::ErrorKind;

use super::feed::{ListFlags, ListenStream, NotificationFeed};
use crate::bounded;
use crate::jsonrpc::{ResponseMessage, RpcError, RpcRequest};
use crate::messages;
use crate::request::InFlightRequest;
use crate::service::McpService;

const RESOURCES_MAX: usize = 1_000;
/// The maximum length of their URIs together: the acknowledgement repeats them, and common clients accept events of at
/// most 1 MiB. Except for control characters, escaping at most doubles them.
const RESOURCES_BYTES_MAX: usize = 400 * 1024;
const TASKS_MAX: usize = 100;

/// The notifications that a client requests or receives (`SubscriptionFilter`). Unknown members are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SubscriptionFilter {
    lists: ListFlags,
    /// Resources whose changes are sent; `None` if the member is missing.
    resources: Option<Vec<String>>,
    /// Tasks whose changes are sent (extension `io.modelcontextprotocol/tasks`); `None` if the member is missing.
    tasks: Option<Vec<String>>,
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

fn sort_and_dedup(uris: Vec<BoundedUri>) -> Vec<String> {
    let mut uris: Vec<String> = uris.into_iter().map(|BoundedUri(uri)| uri).collect();
    uris.sort_unstable();
    uris.dedup();
    uris
}

impl SubscriptionFilter {
    fn read(request: &RpcRequest) -> Result<Self, RpcError> {
        let notifications = request.params::<ListenParams>()?.notifications;
        let invalid = |subject: &str| RpcError::invalid_params(format!("params.notifications is wrong: {subject}"));
        let members: FilterMembers =
            serde_json::from_value(Value::Object(notifications)).map_err(|error| invalid(&error.to_string()))?;
        let (resources, tasks) = (members.subscriptions.map(sort_and_dedup), members.tasks.map(sort_and_dedup));
        let task_count = tasks.as_ref().map_or(0, Vec::len);
        if task_count > TASKS_MAX {
            return Err(invalid(&format!("taskIds names {task_count} tasks; at most {TASKS_MAX}")));
        }
        let resource_count = resources.as_ref().map_or(0, Vec::len);
        if resource_count > RESOURCES_MAX {
            return Err(invalid(&format!(
                "resourceSubscriptions names {resource_count} resources; at most {RESOURCES_MAX}"
            )));
        }
        let bytes: usize = resources.iter().flatten().map(String::len).sum();
        if bytes > RESOURCES_BYTES_MAX {
            let message = format!("resourceSubscriptions is {bytes} bytes long; at most {RESOURCES_BYTES_MAX}");
            return Err(invalid(&message));
        }
        let lists = ListFlags { tools: members.tools, resources: members.resources, prompts: members.prompts };
        Ok(Self { lists, resources, tasks })
    }

    /// The filter as JSON, without members that were not requested.
    fn to_json(&self) -> Value {
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

#[derive(Deserialize)]
struct SubscribeParams {
    #[serde(deserialize_with = "bounded::uri")]
    uri: String,
}

impl McpService {
    pub(crate) async fn listen(&self, request: InFlightRequest<'_>) -> Result<ListenStream, RpcError> {
        let filter = SubscriptionFilter::read(&request.rpc)?;
        let mut tasks = None;
        if let Some(ids) = filter.tasks {
            self.require_tasks_extension(&request)?;
            tasks = Some(self.tasks.listen(ids, self.registry(), request.caller(), &request.envelope.id));
        }
        let (task_feed, task_ids) = tasks.unzip();
        let watch = self.registry().watch();
        let mut accepted = SubscriptionFilter {
            lists: filter.lists,
            resources: filter.resources.as_ref().map(|_| Vec::new()),
            tasks: task_ids,
        };
        for uri in filter.resources.into_iter().flatten() {
            match watch.subscribe(&uri, request.caller()) {
                Ok(()) => accepted.resources.get_or_insert_default().push(uri),
                // Resources that are hidden and resources that do not exist are treated alike.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(request.to_rpc_error(&error)),
            }
        }
        watch.wait_for_baseline().await;
        let InFlightRequest { envelope, guard, .. } = request;
        let acknowledgement = messages::encode_acknowledgement(&accepted.to_json(), &envelope.id);
        let stream = envelope.id.clone();
        let feed = NotificationFeed::for_stream(watch.into(), accepted.lists, task_feed, stream, acknowledgement);
        Ok(ListenStream { feed, envelope, guard })
    }

    /// `resources/subscribe` of a legacy session.
    pub(crate) async fn subscribe(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let uri = request.rpc.params::<SubscribeParams>()?.uri;
        if let Some(session) = &request.context.session {
            let subscribed = session.watch.subscribe(&uri, request.caller());
            subscribed.map_err(|error| RpcError::from_error(&error, Some(&uri), request.envelope.dialect))?;
            session.watch.wait_for_baseline().await;
        }
        Ok(request.envelope.respond("", None))
    }

    /// `resources/unsubscribe` of a legacy session.
    pub(crate) fn unsubscribe(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let uri = request.rpc.params::<SubscribeParams>()?.uri;
        if let Some(session) = &request.context.session {
            session.watch.unsubscribe(&uri);
        }
        Ok(request.envelope.respond("", None))
    }
}
