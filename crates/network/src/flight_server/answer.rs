//! The answer of a call as a stream of Flight messages. Dropping it cancels the call.
//!
//! The bytes of an Arrow IPC stream are split into its messages, without decoding the values. They stay below the size that
//! gRPC clients accept by default: a batch that is too large is decoded, sliced and encoded again.
//!
//! [Encapsulated message format](https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format)

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_flight::FlightData;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::{MessageHeader, root_as_message};
use bytes::{Buf, Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use tidegate_core::Caller;
use tidegate_runtime::{AnswerMeta, Reply, ReplyPart};
use tonic::Status;

use super::caller::{CallerCheck, FlightCredentials};
use super::{FlightState, internal, to_status};

/// The messages of an Arrow answer.
pub(super) struct FlightAnswer {
    state: Arc<FlightState>,
    reply: Reply,
    check: CallerCheck,
    reader: IpcMessageReader,
    splitter: MessageSplitter,
    /// Parts of a large message.
    ready: VecDeque<FlightData>,
    has_ended: bool,
    /// What the call reported at its end.
    pub(super) metadata: AnswerMeta,
}

impl FlightAnswer {
    pub(super) fn new(state: &Arc<FlightState>, reply: Reply, credentials: FlightCredentials, caller: &Caller) -> Self {
        Self {
            check: CallerCheck::new(state, credentials, caller),
            state: state.clone(),
            reply,
            reader: IpcMessageReader::default(),
            splitter: MessageSplitter::default(),
            ready: VecDeque::new(),
            has_ended: false,
            metadata: AnswerMeta::default(),
        }
    }

    pub(super) fn into_stream(self) -> BoxStream<'static, Result<FlightData, Status>> {
        Box::pin(stream::try_unfold(self, |mut answer| async move {
            let next = answer.next().await?;
            Ok(next.map(|message| (message, answer)))
        }))
    }

    /// The next message; `None` at the regular end.
    pub(super) async fn next(&mut self) -> Result<Option<FlightData>, Status> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let message = self.reader.next_message().map_err(|problem| self.internal(problem))?;
            if let Some(message) = message {
                self.ready = self.splitter.split(message).map_err(|problem| self.internal(problem))?;
                continue;
            }
            if self.has_ended {
                return Ok(None);
            }
            let part = self.check.run_while_admitted(self.reply.next()).await?;
            match part {
                Some(ReplyPart::Bytes(bytes)) => self.reader.push(&bytes),
                Some(ReplyPart::Body(_) | ReplyPart::Notification(_) | ReplyPart::InputRequest(_)) => {}
                Some(ReplyPart::End(Ok(metadata))) => self.end(metadata)?,
                Some(ReplyPart::End(Err(error))) => return Err(to_status(&error)),
                Some(_) => return Err(self.internal("the answer of a tool is no table")),
                None => self.has_ended = true,
            }
        }
    }

    /// A partial answer must not look complete: the client has no other way to see that rows are missing.
    fn end(&mut self, metadata: AnswerMeta) -> Result<(), Status> {
        self.has_ended = true;
        if metadata.is_truncated == Some(true) {
            let message = "the answer is larger than this server allows for one call; narrow the statement";
            return Err(Status::out_of_range(message));
        }
        if !self.reader.is_complete() {
            return Err(self.internal("an Arrow answer ended before its end mark"));
        }
        self.metadata = metadata;
        Ok(())
    }

    fn internal(&self, problem: impl Into<String>) -> Status {
        internal(self.state.registry.events(), problem)
    }
}

/// The mark before the length of each message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of the mark and of the length.
const PREFIX_BYTES: usize = 8;
/// Bytes of one message. Our engines send batches of a few thousand rows.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// Collects bytes until a message is complete.
#[derive(Default)]
struct IpcMessageReader {
    pending: BytesMut,
    /// The length of the next message with its prefix, once it is known.
    needed: usize,
    has_ended: bool,
}

/// One message of an IPC stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct IpcMessage {
    /// The kind.
    pub(super) kind: MessageHeader,
    /// The description as a flatbuffer.
    pub(super) header: Bytes,
    /// The buffers.
    pub(super) body: Bytes,
}

impl From<IpcMessage> for FlightData {
    fn from(message: IpcMessage) -> Self {
        Self { data_header: message.header, data_body: message.body, ..Self::default() }
    }
}

impl IpcMessageReader {
    /// Adds the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &Bytes) {
        if let Some(missing) = self.needed.checked_sub(self.pending.len()) {
            self.pending.reserve(missing.max(bytes.len()));
        }
        self.pending.extend_from_slice(bytes);
    }

    /// Whether the end of the stream was read, with nothing after it.
    fn is_complete(&self) -> bool {
        self.has_ended && self.pending.is_empty()
    }

    /// The next message, if all of its bytes are there.
    ///
    /// # Errors
    /// When the bytes are no IPC stream.
    fn next_message(&mut self) -> Result<Option<IpcMessage>, String> {
        let Some(prefix) = self.pending.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let [mark @ .., a, b, c, d] = *prefix;
        if self.has_ended || mark != CONTINUATION {
            return Err("the bytes of an answer are no Arrow IPC stream".to_owned());
        }
        let header_bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        if header_bytes == 0 {
            self.pending.advance(PREFIX_BYTES);
            self.has_ended = true;
            return Ok(None);
        }
        let body_at = PREFIX_BYTES.saturating_add(header_bytes);
        let Some(header) = self.pending.get(PREFIX_BYTES..body_at) else {
            self.needed = bounded(body_at)?;
            return Ok(None);
        };
        let message = root_as_message(header).map_err(|error| format!("an IPC message is malformed: {error}"))?;
        let kind = message.header_type();
        let body_bytes = usize::try_from(message.bodyLength()).unwrap_or(usize::MAX);
        self.needed = bounded(body_at.saturating_add(body_bytes))?;
        if self.pending.len() < self.needed {
            return Ok(None);
        }
        let mut message = self.pending.split_to(self.needed).freeze();
        self.needed = 0;
        let body = message.split_off(body_at);
        message.advance(PREFIX_BYTES);
        Ok(Some(IpcMessage { kind, header: message, body }))
    }
}

fn bounded(bytes: usize) -> Result<usize, String> {
    if bytes > MESSAGE_BYTES_MAX {
        return Err(format!("an IPC message has {bytes} bytes; the maximum is {MESSAGE_BYTES_MAX}"));
    }
    Ok(bytes)
}

/// Bytes of the body of a message. Clients in Go, Rust and Python accept messages of 4 MiB by default; a row that is larger
/// is sent alone.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

#[derive(Default)]
struct MessageSplitter {
    schema: Option<SchemaRef>,
    /// Batches with dictionaries are sent as they are, because their parts would share the dictionary.
    has_dictionaries: bool,
}

impl MessageSplitter {
    /// The messages to send instead of `message`.
    ///
    /// # Errors
    /// When the message is malformed.
    pub(super) fn split(&mut self, message: IpcMessage) -> Result<VecDeque<FlightData>, String> {
        match message.kind {
            MessageHeader::Schema => {
                let parsed = root_as_message(&message.header).map_err(|error| error.to_string())?;
                let schema = parsed.header_as_schema().ok_or("a schema message has no schema")?;
                self.schema = Some(Arc::new(fb_to_schema(schema)));
            }
            MessageHeader::DictionaryBatch => self.has_dictionaries = true,
            _ => {}
        }
        let is_small = message.body.len() <= BODY_BYTES_MAX || message.kind != MessageHeader::RecordBatch;
        match &self.schema {
            Some(schema) if !is_small && !self.has_dictionaries => split_batch(&message, schema),
            _ => Ok(VecDeque::from([message.into()])),
        }
    }
}

fn split_batch(message: &IpcMessage, schema: &SchemaRef) -> Result<VecDeque<FlightData>, String> {
    let parsed = root_as_message(&message.header).map_err(|error| error.to_string())?;
    let description = parsed.header_as_record_batch().ok_or("a message of a batch has no batch")?;
    let body = Buffer::from(message.body.clone());
    let dictionaries = std::collections::HashMap::new();
    let batch = read_record_batch(&body, description, schema.clone(), &dictionaries, None, &parsed.version())
        .map_err(|error| error.to_string())?;
    let parts = message.body.len().div_ceil(BODY_BYTES_MAX);
    let rows = batch.num_rows().div_ceil(parts).max(1);
    let mut encoded = VecDeque::with_capacity(parts);
    for start in (0..batch.num_rows()).step_by(rows) {
        let part = batch.slice(start, rows.min(batch.num_rows() - start));
        encode(&part, &mut encoded)?;
    }
    Ok(encoded)
}

/// Encodes `batch`, in halves while it is too large.
fn encode(batch: &RecordBatch, encoded: &mut VecDeque<FlightData>) -> Result<(), String> {
    let (generator, options) = (IpcDataGenerator::default(), IpcWriteOptions::default());
    let mut tracker = DictionaryTracker::new(false);
    let (_, data) = generator
        .encode(batch, &mut tracker, &options, &mut IpcWriteContext::default())
        .map_err(|error| error.to_string())?;
    let rows = batch.num_rows();
    if data.arrow_data.len() > BODY_BYTES_MAX && rows > 1 {
        encode(&batch.slice(0, rows / 2), encoded)?;
        return encode(&batch.slice(rows / 2, rows - rows / 2), encoded);
    }
    encoded.push_back(data.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray, Int64Array, StringArray};
    use arrow::ipc::writer::StreamWriter;

    use super::*;

    fn stream() -> Vec<u8> {
        let column = Arc::new(Int64Array::from(vec![1, 2, 3])) as _;
        let text = Arc::new(StringArray::from(vec!["a", "b", "c"])) as _;
        let batch = RecordBatch::try_from_iter([("n", column), ("t", text)]).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch.slice(0, 1)).unwrap();
        writer.into_inner().unwrap()
    }

    #[test]
    fn pieces_of_any_size_give_the_same_messages() {
        let bytes = Bytes::from(stream());
        for piece in [1, 7, 64, 100_000] {
            let (mut reader, mut kinds) = (IpcMessageReader::default(), Vec::new());
            for at in (0..bytes.len()).step_by(piece) {
                reader.push(&bytes.slice(at..bytes.len().min(at + piece)));
                while let Some(message) = reader.next_message().unwrap() {
                    kinds.push(message.kind);
                }
            }
            assert_eq!(kinds, [MessageHeader::Schema, MessageHeader::RecordBatch, MessageHeader::RecordBatch]);
            assert!(reader.is_complete());
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut reader = IpcMessageReader::default();
        reader.push(&Bytes::from_static(b"{\"rows\":[]}"));
        assert!(reader.next_message().is_err());
        let mut reader = IpcMessageReader::default();
        reader.push(&Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]));
        assert!(reader.next_message().is_err());
    }

    /// The messages for one batch, with the values of its only column.
    fn split(values: &[String]) -> (Vec<usize>, Vec<String>) {
        let column = Arc::new(StringArray::from_iter_values(values)) as _;
        let batch = RecordBatch::try_from_iter([("t", column)]).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let (mut reader, mut splitter) = (IpcMessageReader::default(), MessageSplitter::default());
        reader.push(&Bytes::from(writer.into_inner().unwrap()));
        let mut messages = Vec::new();
        while let Some(message) = reader.next_message().unwrap() {
            messages.extend(splitter.split(message).unwrap());
        }
        let sizes = messages.iter().skip(1).map(|message| message.data_body.len()).collect();
        let batches = arrow_flight::utils::flight_data_to_batches(&messages).unwrap();
        let texts = batches.iter().flat_map(|batch| {
            let column = batch.column(0).as_string::<i32>();
            (0..column.len()).map(|row| column.value(row).to_owned()).collect::<Vec<_>>()
        });
        (sizes, texts.collect())
    }

    #[test]
    fn large_batches_are_sent_in_parts() {
        let mut values: Vec<String> = (0..3000).map(|row| format!("{row}{}", "x".repeat(5000))).collect();
        values.push("y".repeat(BODY_BYTES_MAX * 2));
        let (sizes, texts) = split(&values);
        assert_eq!(texts, values);
        assert!(sizes.len() > 4, "{sizes:?}");
        assert_eq!(sizes.iter().filter(|size| **size > BODY_BYTES_MAX).count(), 1, "{sizes:?}");
    }

    #[test]
    fn small_batches_pass_unchanged() {
        let (sizes, texts) = split(&["a".to_owned(), "b".to_owned()]);
        assert_eq!((sizes.len(), texts.len()), (1, 2));
    }
}
