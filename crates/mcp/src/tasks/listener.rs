//! One who listens to tasks: what it has yet to hear of is a set of ids, so that it costs no memory however slowly it reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::{Caller, Registry};
use tokio::sync::Notify;

use super::record::TaskId;
use super::table::Tasks;
use crate::jsonrpc::{RequestId, RpcError};
use crate::wire;

/// What one listener has yet to hear of.
#[derive(Debug, Default)]
pub(super) struct TaskListener {
    /// How often each task has changed since it was told.
    changed: Mutex<BTreeMap<TaskId, u64>>,
    woken: Notify,
}

/// What a stream of notifications is told of tasks.
pub(crate) struct TaskNews {
    tasks: Arc<Tasks>,
    registry: Arc<Registry>,
    listener: Arc<TaskListener>,
    stream: RequestId,
    /// The next notification.
    ready: Option<Bytes>,
}

impl TaskListener {
    pub(super) fn mark(&self, id: TaskId) {
        *self.changed.lock().entry(id).or_default() += 1;
        self.woken.notify_one();
    }

    /// A task to tell of, and how often it has changed.
    fn first(&self) -> Option<(TaskId, u64)> {
        self.changed.lock().first_key_value().map(|(id, times)| (*id, *times))
    }

    /// Forgets the changes of `id` as far as they were told.
    fn told(&self, id: TaskId, times: u64) {
        let mut changed = self.changed.lock();
        if changed.get(&id) == Some(&times) {
            changed.remove(&id);
        }
    }
}

impl Tasks {
    /// News of those of the tasks named in `texts` that `caller` has, and which these are; of each it is told at once where
    /// it stands.
    pub(crate) fn listen(
        self: &Arc<Self>,
        texts: Vec<String>,
        registry: &Arc<Registry>,
        caller: &Caller,
        stream: &RequestId,
    ) -> (TaskNews, Vec<String>) {
        let listener = Arc::new(TaskListener::default());
        let mut honoured = Vec::new();
        for text in texts {
            let Ok(id) = self.find(&text, registry, caller) else { continue };
            self.with(id, |entry| entry.listeners.push(Arc::downgrade(&listener)));
            listener.mark(id);
            honoured.push(text);
        }
        let (tasks, registry, stream) = (self.clone(), registry.clone(), stream.clone());
        (TaskNews { tasks, registry, listener, stream, ready: None }, honoured)
    }
}

impl TaskNews {
    /// Resolves when there is something to tell.
    pub(crate) async fn changed(&self) {
        while self.ready.is_none() && self.listener.first().is_none() {
            self.listener.woken.notified().await;
        }
    }

    /// Gets the next notification ready for `caller`, who is the listener now. Of what is its own no longer it hears no more.
    pub(crate) async fn renew(&mut self, caller: &Caller) {
        while self.ready.is_none()
            && let Some((id, times)) = self.listener.first()
        {
            self.ready = self.about(id, caller).await.ok();
            // Not before, so that whoever stops waiting loses nothing.
            self.listener.told(id, times);
        }
    }

    /// The next notification, if one is ready.
    pub(crate) fn next_message(&mut self) -> Option<Bytes> {
        self.ready.take()
    }

    async fn about(&self, id: TaskId, caller: &Caller) -> Result<Bytes, RpcError> {
        let id = self.tasks.find(&id.to_string(), &self.registry, caller)?;
        Ok(wire::task_changed(&self.tasks.detailed(id).await?, &self.stream))
    }
}

/// Those who listen to one task.
#[derive(Debug, Default)]
pub(super) struct Listeners(Vec<Weak<TaskListener>>);

impl Listeners {
    pub(super) fn push(&mut self, listener: Weak<TaskListener>) {
        self.0.retain(|listener| listener.strong_count() > 0);
        self.0.push(listener);
    }

    pub(super) fn mark(&self, id: TaskId) {
        for listener in self.0.iter().filter_map(Weak::upgrade) {
            listener.mark(id);
        }
    }
}
