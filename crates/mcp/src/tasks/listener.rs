//! Listeners of tasks. Pending changes are a set of ids, so that a slow client uses no memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::Caller;
use tidegate_runtime::Registry;
use tokio::sync::Notify;

use super::record::TaskId;
use super::store::TaskStore;
use crate::jsonrpc::{RequestId, RpcError};
use crate::wire;

/// The pending changes of one listener.
#[derive(Debug, Default)]
pub(super) struct TaskListener {
    /// The number of changes of each task since its last notification.
    changed: Mutex<BTreeMap<TaskId, u64>>,
    woken: Notify,
}

/// The notifications of tasks for one stream.
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

    /// The next task to report, with its number of changes.
    fn next_changed(&self) -> Option<(TaskId, u64)> {
        self.changed.lock().first_key_value().map(|(id, times)| (*id, *times))
    }

    /// Removes the changes of `id` if none was added since the notification.
    fn clear_delivered(&self, id: TaskId, times: u64) {
        let mut changed = self.changed.lock();
        if changed.get(&id) == Some(&times) {
            changed.remove(&id);
        }
    }
}

impl TaskStore {
    /// A feed for those tasks of `texts` that `caller` owns, and the ids of these tasks. The feed starts with the
    /// current state of each task.
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
    /// Resolves when there is a notification.
    pub(crate) async fn changed(&self) {
        while self.ready_notification.is_none() && self.listener.next_changed().is_none() {
            self.listener.woken.notified().await;
        }
    }

    /// Prepares the next notification for `caller`, the current listener. Tasks that it no longer owns are skipped.
    pub(crate) async fn update_caller(&mut self, caller: &Caller) {
        while self.ready_notification.is_none()
            && let Some((id, times)) = self.listener.next_changed()
        {
            self.ready_notification = self.status_notification(id, caller).await.ok();
            // Only now, so that dropping the future loses nothing.
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

/// The listeners of one task.
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
