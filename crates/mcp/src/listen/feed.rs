//! The notifications of one listener, modern or legacy: pending ones are flags and a set of URIs, encoded one by one.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::Caller;
use tidegate_runtime::{ChangeListener, WatchEvent};
use tokio_util::sync::CancellationToken;

use crate::encode::ResponseEnvelope;
use crate::in_flight::InFlightGuard;
use crate::jsonrpc::{RequestId, ResponseMessage};
use crate::messages::{self, ListKind};
use crate::session::McpSession;
use crate::tasks::TaskFeed;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ListFlags {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
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
    pub(super) fn for_stream(
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
    pub(super) feed: NotificationFeed,
    pub(super) envelope: ResponseEnvelope,
    pub(super) guard: Option<InFlightGuard>,
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
