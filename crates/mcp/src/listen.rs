//! `subscriptions/listen`: a stream of the requested notifications, until the server ends it. Legacy sessions subscribe
//! to resources with `resources/subscribe`.
//!
//! Pending changes are stored as flags and the set of URIs of a [`tidegate_runtime::ChangeListener`], and are encoded when the
//! client is ready to receive. A slow client therefore receives one notification per list and resource, however often
//! they changed, and uses no memory. A client that reads nothing at all is disconnected by the write timeout of its
//! transport, as for any answer.
//!
//! [MCP 2026-07-28, Subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions),
//! [MCP 2025-11-25, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Caller, ErrorKind};
use tidegate_runtime::{ChangeListener, WatchEvent};
use tokio_util::sync::CancellationToken;

use crate::encode::ResponseEnvelope;
use crate::jsonrpc::{RequestId, ResponseMessage, RpcError, RpcRequest};
use crate::messages::{self, ListKind};
use crate::service::{InFlightRequest, McpService, bounded_uri};
use crate::session::{InFlightGuard, McpSession};
use crate::tasks::TaskFeed;

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
struct BoundedUri(#[serde(deserialize_with = "bounded_uri")] String);

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
    #[serde(deserialize_with = "bounded_uri")]
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ListFlags {
    tools: bool,
    resources: bool,
    prompts: bool,
}

/// The position of a client in the sequence of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedPosition {
    /// The version of the registry.
    pub registry_version: u64,
    /// The number of delivered changes of resources.
    pub resource_changes: u64,
}

/// The notifications for one listener.
pub struct NotificationFeed {
    watch: Arc<ChangeListener>,
    tasks: Option<TaskFeed>,
    subscribed: ListFlags,
    changed: ListFlags,
    /// The id of the request whose stream the notifications belong to; `None` for a legacy session.
    stream: Option<RequestId>,
    acknowledgement: Option<Bytes>,
}

impl NotificationFeed {
    fn for_stream(
        watch: Arc<ChangeListener>,
        subscribed: ListFlags,
        tasks: Option<TaskFeed>,
        stream: RequestId,
        acknowledgement: Bytes,
    ) -> Self {
        let acknowledgement = Some(acknowledgement);
        Self { watch, tasks, subscribed, changed: ListFlags::default(), stream: Some(stream), acknowledgement }
    }

    /// The notifications for a legacy session: changes of all lists, and of the resources that it subscribes to.
    pub fn for_session(session: &McpSession) -> Self {
        let (watch, subscribed) = (session.watch.clone(), ListFlags { tools: true, resources: true, prompts: true });
        Self { watch, tasks: None, subscribed, changed: ListFlags::default(), stream: None, acknowledgement: None }
    }

    /// Starts a new connection of the session from the last position that its client received. If that position is of
    /// an earlier registry version, everything is sent; otherwise the later changes of resources. Without a position,
    /// list changes that happened while nobody was connected are not sent.
    pub async fn resume(&mut self, caller: &Caller, last_received: Option<FeedPosition>) {
        self.watch.update_caller(caller).await;
        let version = self.watch.version();
        match last_received {
            Some(feed_position) if feed_position.registry_version != version => self.watch.mark_all_changed(),
            Some(feed_position) => {
                self.watch.skip_registry_change();
                self.watch.redeliver_after(feed_position.resource_changes);
            }
            None => self.watch.skip_registry_change(),
        }
    }

    /// Resolves when something has changed. Then authenticate the listener again and call
    /// [`NotificationFeed::update_caller`].
    pub async fn changed(&self) {
        match &self.tasks {
            Some(tasks) => tokio::select! {
                () = self.watch.changed() => {}
                () = tasks.changed() => {}
            },
            None => self.watch.changed().await,
        }
    }

    /// Continues for `caller`, the listener as authenticated against the current registry.
    pub async fn update_caller(&mut self, caller: &Caller) {
        self.watch.update_caller(caller).await;
        if let Some(tasks) = &mut self.tasks {
            tasks.update_caller(caller).await;
        }
    }

    /// The next notification; `None` if there is none now.
    pub fn next_message(&mut self) -> Option<Bytes> {
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Some(acknowledgement);
        }
        if let Some(message) = self.tasks.as_mut().and_then(TaskFeed::next_message) {
            return Some(message);
        }
        loop {
            if let Some(kind) = self.changed.take_next() {
                return Some(messages::encode_list_changed(kind, self.stream.as_ref()));
            }
            match self.watch.next_change()? {
                WatchEvent::Registry => self.changed = self.subscribed,
                WatchEvent::Resource(uri) => {
                    return Some(messages::encode_resource_updated(&uri, self.stream.as_ref()));
                }
            }
        }
    }

    /// The position up to which notifications were delivered.
    pub fn position(&self) -> FeedPosition {
        FeedPosition { registry_version: self.watch.version(), resource_changes: self.watch.delivered_count() }
    }
}

impl ListFlags {
    fn take_next(&mut self) -> Option<ListKind> {
        let lists = [
            (&mut self.tools, ListKind::Tools),
            (&mut self.resources, ListKind::Resources),
            (&mut self.prompts, ListKind::Prompts),
        ];
        lists.into_iter().find_map(|(is_set, kind)| std::mem::take(is_set).then_some(kind))
    }
}

/// An open `subscriptions/listen` stream. Dropping it ends it.
pub struct ListenStream {
    feed: NotificationFeed,
    envelope: ResponseEnvelope,
    guard: Option<InFlightGuard>,
}

impl ListenStream {
    /// The notifications, starting with the acknowledgement.
    pub fn feed(&mut self) -> &mut NotificationFeed {
        &mut self.feed
    }

    /// Fires when the client cancels the request. Nothing more may be sent then.
    pub fn cancellation(&self) -> CancellationToken {
        // A connection with a single request is cancelled by closing it.
        self.guard.as_ref().map(|guard| guard.token().clone()).unwrap_or_default()
    }

    /// The result, which reports that the server ends the stream.
    pub fn end(self) -> ResponseMessage {
        let (id, server_info) = (self.envelope.id.as_json(), &self.envelope.server_info);
        let opening = self.envelope.open();
        let result = format!(
            "{opening}\"resultType\":\"complete\",\"_meta\":{{\"io.modelcontextprotocol/serverInfo\":{server_info},\
             \"io.modelcontextprotocol/subscriptionId\":{id}}}}}}}"
        );
        ResponseMessage::result(result.into())
    }
}
