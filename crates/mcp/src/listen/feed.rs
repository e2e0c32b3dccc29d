//! What one listener has yet to hear, modern or legacy: flags and a set, which become messages one by one.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{Caller, Watch, WatchEvent};

use crate::jsonrpc::RequestId;
use crate::session::McpSession;
use crate::tasks::TaskFeed;
use crate::wire::{self, ListKind};

/// The lists of the registry, one flag each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ListFlags {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
}

/// How far somebody has heard of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedPosition {
    /// The version of the registry.
    pub registry_version: u64,
    /// How many changes of resources were told.
    pub resource_changes: u64,
}

/// What one listener is told.
pub struct NotificationFeed {
    watch: Arc<Watch>,
    tasks: Option<TaskFeed>,
    subscribed: ListFlags,
    /// Of the wanted ones those that changed.
    changed: ListFlags,
    /// The request of the stream that notifications belong to; none for those of a legacy session.
    stream: Option<RequestId>,
    /// What is said before anything else.
    acknowledgement: Option<Bytes>,
}

impl NotificationFeed {
    /// What the stream of that request is told.
    pub(super) fn for_stream(
        watch: Arc<Watch>,
        subscribed: ListFlags,
        tasks: Option<TaskFeed>,
        stream: RequestId,
        acknowledgement: Bytes,
    ) -> Self {
        let acknowledgement = Some(acknowledgement);
        Self { watch, tasks, subscribed, changed: ListFlags::default(), stream: Some(stream), acknowledgement }
    }

    /// What a legacy session is told: changes of all lists, and of the resources that it subscribes to.
    pub fn for_session(session: &McpSession) -> Self {
        let (watch, subscribed) = (session.watch().clone(), ListFlags { tools: true, resources: true, prompts: true });
        Self { watch, tasks: None, subscribed, changed: ListFlags::default(), stream: None, acknowledgement: None }
    }

    /// Begins a new connection of the session: with everything when its client knows the registry of an earlier
    /// version, with what was told after the last that it has heard, and without lists that changed while nobody
    /// listened when it says nothing of that.
    pub async fn resume(&mut self, caller: &Caller, last_heard: Option<FeedPosition>) {
        self.watch.update_caller(caller).await;
        let version = self.watch.version();
        match last_heard {
            Some(feed_position) if feed_position.registry_version != version => self.watch.mark_all_changed(),
            Some(feed_position) => {
                self.watch.skip_registry_change();
                self.watch.redeliver_after(feed_position.resource_changes);
            }
            None => self.watch.skip_registry_change(),
        }
    }

    /// Resolves when something has changed. Then it is to be asked who listens, and [`NotificationFeed::update_caller`] to be told.
    pub async fn changed(&self) {
        match &self.tasks {
            Some(tasks) => tokio::select! {
                () = self.watch.changed() => {}
                () = tasks.changed() => {}
            },
            None => self.watch.changed().await,
        }
    }

    /// Goes on for `caller`, who is the listener by the gate and the registry of this moment.
    pub async fn update_caller(&mut self, caller: &Caller) {
        self.watch.update_caller(caller).await;
        if let Some(tasks) = &mut self.tasks {
            tasks.update_caller(caller).await;
        }
    }

    /// The next notification; none when there is nothing to say now.
    pub fn next_message(&mut self) -> Option<Bytes> {
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Some(acknowledgement);
        }
        if let Some(message) = self.tasks.as_mut().and_then(TaskFeed::next_message) {
            return Some(message);
        }
        loop {
            if let Some(kind) = self.changed.take_next() {
                return Some(wire::encode_list_changed(kind, self.stream.as_ref()));
            }
            match self.watch.next_change()? {
                WatchEvent::Registry => self.changed = self.subscribed,
                WatchEvent::Resource(uri) => return Some(wire::encode_resource_updated(&uri, self.stream.as_ref())),
            }
        }
    }

    /// How far the listener has been told.
    pub fn position(&self) -> FeedPosition {
        FeedPosition { registry_version: self.watch.version(), resource_changes: self.watch.delivered_count() }
    }
}

impl ListFlags {
    /// The first that is set, which is so no longer.
    fn take_next(&mut self) -> Option<ListKind> {
        let lists = [
            (&mut self.tools, ListKind::Tools),
            (&mut self.resources, ListKind::Resources),
            (&mut self.prompts, ListKind::Prompts),
        ];
        lists.into_iter().find_map(|(is_set, kind)| std::mem::take(is_set).then_some(kind))
    }
}
