//! Stores messages, however often a write fails.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_core::{Backoff, Error, ErrorKind};
use tidegate_ingest_formats::BodyFormat;
use tidegate_query::{IngestTarget, NodeMemory};

use crate::decode::{DecodedMessages, RejectedMessage, decode};
use crate::options::MqttOptions;
use crate::packet::Message;
use crate::receiver::MqttCounters;
use crate::writes::{is_refusal, write};

const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Messages of at most so many bytes together are decoded at once, without another thread.
const INLINE_BYTES: usize = 32 << 10;

/// The table of the messages.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) target: Arc<dyn IngestTarget>,
    pub(crate) options: Arc<MqttOptions>,
    pub(crate) counters: Arc<MqttCounters>,
    pub(crate) memory: Arc<NodeMemory>,
}

/// Messages of one write.
#[derive(Debug)]
struct Group {
    messages: Range<usize>,
    /// Why the table refuses the rows of the only message, which is then rejected.
    refusal: Option<String>,
}

impl Store {
    /// Returns when every message is on disk, as rows or as a rejected row. Fails never, but may take any time.
    pub(crate) async fn store(self: Arc<Self>, messages: Arc<Vec<Message>>) {
        let mut groups = VecDeque::from([Group { messages: 0..messages.len(), refusal: None }]);
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
        let mut is_failing = false;
        while let Some(group) = groups.pop_front() {
            let error = match self.try_store(&messages, &group).await {
                Ok(()) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!(table = self.options.table, "messages are stored again");
                    }
                    backoff.reset();
                    continue;
                }
                Err(error) => error,
            };
            if is_refusal(&error) && group.refusal.is_none() {
                for part in split(group.messages, &error).into_iter().rev() {
                    groups.push_front(part);
                }
                continue;
            }
            self.counters.write_failures.fetch_add(1, Ordering::Relaxed);
            if !std::mem::replace(&mut is_failing, true) {
                let detail = error.detail().unwrap_or_default();
                tracing::warn!(
                    table = self.options.table,
                    detail,
                    "messages cannot be stored and stay at the broker: {error}"
                );
            }
            groups.push_front(group);
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn try_store(&self, messages: &Arc<Vec<Message>>, group: &Group) -> Result<(), Error> {
        let decoded = match &group.refusal {
            Some(reason) => {
                let of_group = messages.get(group.messages.clone()).unwrap_or_default();
                let rejected = of_group.iter().map(|message| RejectedMessage::whole(message, reason)).collect();
                DecodedMessages { rows: None, rejected, _memory: None }
            }
            None => self.decode(messages, group.messages.clone()).await?,
        };
        let rows = decoded.rows.as_ref().map_or(0, |rows| rows.num_rows() as u64);
        let rejected = decoded.rejected.len() as u64;
        let subject = format!("mqtt:{}", self.options.client_id);
        write(self.target.as_ref(), &self.options.table, &subject, decoded).await?;
        self.counters.stored.fetch_add(rows, Ordering::Relaxed);
        self.counters.rejected.fetch_add(rejected, Ordering::Relaxed);
        Ok(())
    }

    async fn decode(&self, messages: &Arc<Vec<Message>>, range: Range<usize>) -> Result<DecodedMessages, Error> {
        let table = self.target.table(&self.options.table).await?;
        if let Some(problem) = self.options.table_problems(&table).first() {
            // The owner can change the table; the messages wait.
            return Err(Error::new(ErrorKind::Unavailable, format!("{}: {}", problem.field, problem.message)));
        }
        let of_range = messages.get(range.clone()).unwrap_or_default();
        // Only of text is the work in proportion to the bytes.
        let is_text = self.options.format != BodyFormat::Arrow;
        if is_text && of_range.iter().map(|message| message.payload.len()).sum::<usize>() <= INLINE_BYTES {
            return decode(of_range, &table, &self.options, &self.memory);
        }
        let (messages, options, memory) = (messages.clone(), self.options.clone(), self.memory.clone());
        let decoding = tokio::task::spawn_blocking(move || {
            decode(messages.get(range).unwrap_or_default(), &table, &options, &memory)
        });
        decoding.await.map_err(|error| Error::internal(format!("decoding messages failed: {error}")))?
    }
}

/// The halves of messages that the table refuses together, to find the one that it refuses.
fn split(messages: Range<usize>, error: &Error) -> Vec<Group> {
    if messages.len() <= 1 {
        let violations =
            error.violations().iter().map(|violation| format!("; {}: {}", violation.path, violation.message));
        let reason = format!("{error}{}", violations.collect::<String>());
        return vec![Group { messages, refusal: Some(reason) }];
    }
    let middle = messages.start + messages.len() / 2;
    [messages.start..middle, middle..messages.end].map(|messages| Group { messages, refusal: None }).into()
}
