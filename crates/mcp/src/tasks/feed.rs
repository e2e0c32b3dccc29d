//! The notifications of tasks for one stream.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::Caller;
use tidegate_runtime::Registry;

use super::entry::TaskListener;
use super::record::TaskId;
use super::store::TaskStore;
use crate::jsonrpc::{RequestId, RpcError};
use crate::messages;

pub(crate) struct TaskFeed {
    tasks: Arc<TaskStore>,
    registry: Arc<Registry>,
    listener: Arc<TaskListener>,
    stream: RequestId,
    ready_notification: Option<Bytes>,
}

impl TaskStore {
    /// A feed for those tasks of `texts` that `caller` owns, with their ids. It starts with the state of each task.
    pub(crate) fn listen(
        self: &Arc<Self>,
        texts: Vec<String>,
        registry: &Arc<Registry>,
        caller: &Caller,
        stream: &RequestId,
    ) -> (TaskFeed, Vec<String>) {
        let listener = Arc::new(TaskListener::default());
        let mut accepted = Vec::new();
        for text in texts {
            let Ok(id) = self.find(&text, registry, caller) else { continue };
            self.with_entry(id, |entry| entry.listeners.push(Arc::downgrade(&listener)));
            listener.mark_changed(id);
            accepted.push(text);
        }
        let (tasks, registry, stream) = (self.clone(), registry.clone(), stream.clone());
        (TaskFeed { tasks, registry, listener, stream, ready_notification: None }, accepted)
    }
}

impl TaskFeed {
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

    pub(crate) fn next_message(&mut self) -> Option<Bytes> {
        self.ready_notification.take()
    }

    async fn status_notification(&self, id: TaskId, caller: &Caller) -> Result<Bytes, RpcError> {
        let id = self.tasks.find(&id.to_string(), &self.registry, caller)?;
        Ok(messages::encode_task_status(&self.tasks.encode_detailed(id).await?, &self.stream))
    }
}
