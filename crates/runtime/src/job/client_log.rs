//! Log messages of a call that wait for its reader.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_core::LogLevel;
use tokio::sync::Notify;

use crate::reply::ReplyNotification;

/// The maximum number of messages that wait; further ones are left out and counted.
const WAITING_MESSAGES_MAX: usize = 64;
/// The maximum number of messages of a call.
const MESSAGES_MAX: usize = 1_000;

/// A bounded queue. Events must not wait for a slow client.
#[derive(Debug, Default)]
pub(crate) struct ClientLog {
    /// The least severe level that the client requests.
    level: Option<LogLevel>,
    queue: Mutex<MessageQueue>,
    added: Notify,
}

#[derive(Debug, Default)]
struct MessageQueue {
    waiting: VecDeque<ReplyNotification>,
    count: usize,
    left_out: usize,
}

impl ClientLog {
    pub(super) fn new(level: Option<LogLevel>) -> Self {
        Self { level, ..Self::default() }
    }

    /// Logs the message `data`, if the client requests messages of `level`.
    pub(crate) fn log(&self, level: LogLevel, logger: &str, data: impl FnOnce() -> Value) {
        if self.level.is_some_and(|least| level >= least) {
            let logger = Some(logger.to_owned());
            self.push(ReplyNotification::Log { level, logger, data: data() });
        }
    }

    fn push(&self, message: ReplyNotification) {
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= WAITING_MESSAGES_MAX || queue.count >= MESSAGES_MAX {
            queue.left_out += 1;
        } else {
            queue.count += 1;
            queue.waiting.push_back(message);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// The next message that waits, or else the number of those that were left out.
    pub(crate) fn pop(&self) -> Option<ReplyNotification> {
        let mut queue = self.queue.lock();
        if let Some(message) = queue.waiting.pop_front() {
            return Some(message);
        }
        let left_out = std::mem::take(&mut queue.left_out);
        (left_out > 0).then(|| {
            let data = json!({"message": "log messages were left out", "count": left_out});
            ReplyNotification::Log { level: LogLevel::Warning, logger: Some("call".to_owned()), data }
        })
    }

    /// Resolves when a message was added. Cancel-safe.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_counts_what_it_leaves_out() {
        let log = ClientLog::default();
        let message =
            |number: usize| ReplyNotification::Log { level: LogLevel::Info, logger: None, data: json!(number) };
        (0..WAITING_MESSAGES_MAX + 3).for_each(|number| log.push(message(number)));
        for number in 0..WAITING_MESSAGES_MAX {
            assert_eq!(log.pop(), Some(message(number)));
        }
        let Some(ReplyNotification::Log { data, .. }) = log.pop() else { panic!("the count is missing") };
        assert_eq!(data["count"], 3);
        assert_eq!(log.pop(), None);
    }
}
