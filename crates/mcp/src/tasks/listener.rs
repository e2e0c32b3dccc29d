//! One who listens to tasks: what it has yet to hear of is a set of ids, so that it costs no memory however slowly it reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::{Caller, Registry};
use tokio::sync::Notify;

use super::record::TaskId;
use super::store::TaskStore;
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
pub(crate) struct TaskFeed {
    tasks: Arc<TaskStore>,
    registry: Arc<Registry>,
    listener: Arc<TaskListener>,
    stream: RequestId,
    /// The next notification.
    ready_notification: Option<Bytes>,
}

impl TaskListener {
    pub(super) fn mark_changed(&self, id: TaskId) {
        *self.changed.lock().entry(id).or_default() += 1;
        self.woken.notify_one();
    }

    /// A task to tell of, and how often it has changed.
    fn next_changed(&self) -> Option<(TaskId, u64)> {
        self.changed.lock().first_key_value().map(|(id, times)| (*id, *times))
    }

    /// Forgets the changes of `id` as far as they were told.
    fn clear_delivered(&self, id: TaskId, times: u64) {
        let mut changed = self.changed.lock();
        if changed.get(&id) == Some(&times) {
            changed.remove(&id);
        }
    }
}

impl TaskStore {
    /// News of those of the tasks named in `texts` that `caller` has, and which these are; of each it is told at once where
    /// it stands.
    pub(crate) fn listen(
        self: &Arc<Self>,
        texts: Vec<String>,
        registry: &Arc<Registry>,
        caller: &Caller,
        stream: &RequestId,
    ) -> (TaskFeed, Vec<String>) {
        let listener = Arc::new(TaskListener::default());
        let mut honoured = Vec::new();
        for text in texts {
            let Ok(id) = self.find(&text, registry, caller) else { continue };
            self.with_entry(id, |entry| entry.listeners.push(Arc::downgrade(&listener)));
            listener.mark_changed(id);
            honoured.push(text);
        }
        let (tasks, registry, stream) = (self.clone(), registry.clone(), stream.clone());
        (TaskFeed { tasks, registry, listener, stream, ready_notification: None }, honoured)
    }
}

impl TaskFeed {
    /// Resolves when there is something to tell.
    pub(crate) async fn changed(&self) {
        while self.ready_notification.is_none() && self.listener.next_changed().is_none() {
            self.listener.woken.notified().await;
        }
    }

    /// Gets the next notification ready for `caller`, who is the listener now. Of what is its own no longer it hears no more.
    pub(crate) async fn update_caller(&mut self, caller: &Caller) {
        while self.ready_notification.is_none()
            && let Some((id, times)) = self.listener.next_changed()
        {
            self.ready_notification = self.status_notification(id, caller).await.ok();
            // Not before, so that whoever stops waiting loses nothing.
            self.listener.clear_delivered(id, times);
        }
    }

    /// The next notification, if one is ready.
    pub(crate) fn next_message(&mut self) -> Option<Bytes> {
        self.ready_notification.take()
    }

    async fn status_notification(&self, id: TaskId, caller: &Caller) -> Result<Bytes, RpcError> {
        let id = self.tasks.find(&id.to_string(), &self.registry, caller)?;
        Ok(wire::encode_task_status(&self.tasks.encode_detailed(id).await?, &self.stream))
    }
}

/// Those who listen to one task.
#[derive(Debug, Default)]
pub(super) struct TaskListeners(Vec<Weak<TaskListener>>);

impl TaskListeners {
    pub(super) fn push(&mut self, listener: Weak<TaskListener>) {
        self.0.retain(|listener| listener.strong_count() > 0);
        self.0.push(listener);
    }

    pub(super) fn mark_changed(&self, id: TaskId) {
        for listener in self.0.iter().filter_map(Weak::upgrade) {
            listener.mark_changed(id);
        }
    }
}
