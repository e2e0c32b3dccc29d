//! Stores messages, however often a write of them fails.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tidegate_core::{Backoff, Error, ErrorKind};
use tidegate_ingest_formats::{BodyFormat, RowPosition};
use tidegate_query::{
    NodeMemory, REJECTS_SUFFIX, TableWrite, WriteMode, WriteRequest, WriteStart, WriteTarget, rejected_rows_schema,
};

use crate::mqtt::decode::{DecodedMessages, RejectedMessage, decode};
use crate::mqtt::options::MqttOptions;
use crate::mqtt::packet::Message;
use crate::mqtt::receiver::MqttCounters;

const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Messages of at most so many bytes together are decoded at once, without another thread.
const INLINE_BYTES: usize = 32 << 10;

/// The table of the messages.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) target: Arc<dyn WriteTarget>,
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

const TIME_ZONE: &str = "UTC";

/// Stores the rows and the rejected rows in one write. When it returns, they are on disk.
async fn write(target: &dyn WriteTarget, table: &str, subject: &str, decoded: DecodedMessages) -> Result<(), Error> {
    let mut batches = Vec::new();
    batches.extend(decoded.rows.map(|rows| (table.to_owned(), rows)));
    if !decoded.rejected.is_empty() {
        batches.push((format!("{table}{REJECTS_SUFFIX}"), rejected_batch(subject, &decoded.rejected)?));
    }
    if batches.is_empty() {
        return Ok(());
    }
    let tables = batches.iter().map(|(table, rows)| TableWrite { table: table.clone(), schema: rows.schema() });
    let request = WriteRequest { tables: tables.collect(), mode: WriteMode::Append, key: None };
    let mut writer = match target.begin(request).await? {
        WriteStart::Writer(writer) => writer,
        WriteStart::Repeated(_) => return Err(Error::internal("a write without a key was repeated")),
    };
    for (index, (_, rows)) in batches.into_iter().enumerate() {
        writer.write(index, rows).await?;
    }
    writer.commit().await.map(drop)
}

/// Whether the same rows would be refused again.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidArguments | ErrorKind::TooLarge)
}

fn rejected_batch(subject: &str, rows: &[RejectedMessage]) -> Result<RecordBatch, Error> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let microseconds = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    let times = TimestampMicrosecondArray::from(vec![microseconds; rows.len()]).with_timezone(TIME_ZONE);
    let line = |row: &RejectedMessage| match row.position {
        Some(RowPosition::Line(line)) => i64::try_from(line).ok(),
        _ => None,
    };
    let index = |row: &RejectedMessage| match row.position {
        Some(RowPosition::Index(index)) => i64::try_from(index).ok(),
        _ => None,
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|_| subject))),
        Arc::new(rows.iter().map(line).collect::<Int64Array>()),
        Arc::new(rows.iter().map(index).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.column.as_deref()).collect::<StringArray>()),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.reason.as_str()))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.text.as_str()))),
    ];
    RecordBatch::try_new(rejected_rows_schema([]), columns)
        .map_err(|error| Error::internal(format!("a batch of rejected messages is invalid: {error}")))
}
