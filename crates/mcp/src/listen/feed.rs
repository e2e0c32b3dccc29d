//! What one listener has yet to hear, modern or legacy: flags and a set, which become messages one by one.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{Caller, Change, Watch};

use crate::jsonrpc::RequestId;
use crate::session::Session;
use crate::tasks::TaskNews;
use crate::wire::{self, ListKind};

/// The lists of the registry, one flag each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lists {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
}

/// How far somebody has heard of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The version of the registry.
    pub version: u64,
    /// How many changes of resources were told.
    pub resources: u64,
}

/// What one listener is told.
pub struct Feed {
    watch: Arc<Watch>,
    tasks: Option<TaskNews>,
    wanted: Lists,
    /// Of the wanted ones those that changed.
    changed: Lists,
    /// The request of the stream that notifications belong to; none for those of a legacy session.
    stream: Option<RequestId>,
    /// What is said before anything else.
    acknowledgement: Option<Bytes>,
}

impl Feed {
    /// What the stream of that request is told.
    pub(super) fn of_stream(
        watch: Arc<Watch>,
        wanted: Lists,
        tasks: Option<TaskNews>,
        stream: RequestId,
        acknowledgement: Bytes,
    ) -> Self {
        let acknowledgement = Some(acknowledgement);
        Self { watch, tasks, wanted, changed: Lists::default(), stream: Some(stream), acknowledgement }
    }

    /// What a legacy session is told: changes of all lists, and of the resources that it subscribes to.
    pub fn of_session(session: &Session) -> Self {
        let (watch, wanted) = (session.watch().clone(), Lists { tools: true, resources: true, prompts: true });
        Self { watch, tasks: None, wanted, changed: Lists::default(), stream: None, acknowledgement: None }
    }

    /// Begins a new connection of the session: with everything when its client knows the registry of an earlier
    /// version, with what was told after the last that it has heard, and without lists that changed while nobody
    /// listened when it says nothing of that.
    pub async fn resume(&mut self, caller: &Caller, last_heard: Option<Heard>) {
        self.watch.renew(caller).await;
        let version = self.watch.version();
        match last_heard {
            Some(heard) if heard.version != version => self.watch.mark_all(),
            Some(heard) => {
                self.watch.forget_swap();
                self.watch.tell_again_after(heard.resources);
            }
            None => self.watch.forget_swap(),
        }
    }

    /// Resolves when something has changed. Then it is to be asked who listens, and [`Feed::renew`] to be told.
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
    pub async fn renew(&mut self, caller: &Caller) {
        self.watch.renew(caller).await;
        if let Some(tasks) = &mut self.tasks {
            tasks.renew(caller).await;
        }
    }

    /// The next notification; none when there is nothing to say now.
    pub fn next_message(&mut self) -> Option<Bytes> {
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Some(acknowledgement);
        }
        if let Some(message) = self.tasks.as_mut().and_then(TaskNews::next_message) {
            return Some(message);
        }
        loop {
            if let Some(kind) = self.changed.take() {
                return Some(wire::list_changed(kind, self.stream.as_ref()));
            }
            match self.watch.next_change()? {
                Change::Registry => self.changed = self.wanted,
                Change::Resource(uri) => return Some(wire::resource_updated(&uri, self.stream.as_ref())),
            }
        }
    }

    /// How far the listener has been told.
    pub fn told(&self) -> Heard {
        Heard { version: self.watch.version(), resources: self.watch.told_count() }
    }
}

impl Lists {
    /// The first that is set, which is so no longer.
    fn take(&mut self) -> Option<ListKind> {
        let lists = [
            (&mut self.tools, ListKind::Tools),
            (&mut self.resources, ListKind::Resources),
            (&mut self.prompts, ListKind::Prompts),
        ];
        lists.into_iter().find_map(|(is_set, kind)| std::mem::take(is_set).then_some(kind))
    }
}
