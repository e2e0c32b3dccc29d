//! The stream of Arrow IPC, also in a file: that has the stream between its first bytes and an index.
//!
//! The decoder of the Arrow library trusts lengths that are in messages. They are checked here before it sees a message.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{CompressionType, Message, root_as_message};
use lz4_flex::frame::FrameDecoder;

use crate::convert::BatchConverter;
use crate::error::BodyError;
use crate::options::{BodyLimits, BodyOptions};
use crate::rows::RowCollector;

const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The first bytes of a file of Arrow. Zeros follow, then the stream.
const FILE_MAGIC: &[u8] = b"ARROW1";
/// The largest description of a message. That of 2,000 columns has some 200 kB.
const MESSAGE_HEADER_BYTES_MAX: usize = 8 << 20;
/// Rows without any bytes are possible, so their number has a bound of its own.
const MESSAGE_ROWS_MAX: i64 = 1 << 24;
/// The length before a compressed buffer that is stored as it is.
const NOT_COMPRESSED: i64 = -1;
const LENGTH_BYTES: usize = 8;
const OTHER_BYTE_ORDER: &str = "has numbers with the byte order of other machines; send Parquet, CSV or JSON";
const NO_SCHEMA: &str = "the body ends before the schema of its Arrow stream";

/// Reads the batches of a body.
#[derive(Debug)]
pub(crate) struct ArrowStream {
    table: Schema,
    options: Arc<BodyOptions>,
    messages: MessageSplitter,
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
    dictionary_bytes: usize,
    converter: Option<BatchConverter>,
    /// What the last batch takes: its message, and what that was decompressed to.
    batch_bytes: usize,
}

#[derive(Debug)]
struct MessageSplitter {
    buffer: Vec<u8>,
    bytes_max: usize,
    position: StreamPosition,
    is_file: bool,
}

/// How far a body was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamPosition {
    Start,
    /// Before the first message of a file.
    Padding,
    Messages,
    End,
}

/// The lengths of the parts of a message.
struct MessageLayout {
    /// The bytes before the description.
    prefix: usize,
    header: usize,
    body: usize,
}

/// A complete message whose lengths were checked.
struct CheckedMessage {
    bytes: Vec<u8>,
    layout: MessageLayout,
    /// The bytes of its buffers after decompression. None if they are not compressed.
    decompressed_bytes: usize,
}

impl ArrowStream {
    pub(crate) fn new(table: &Schema, options: Arc<BodyOptions>) -> Self {
        Self {
            table: table.clone(),
            messages: MessageSplitter::new(&options.limits),
            options,
            schema: None,
            dictionaries: HashMap::new(),
            dictionary_bytes: 0,
            converter: None,
            batch_bytes: 0,
        }
    }

    /// The memory of what was received and is not rows yet.
    pub(crate) fn memory_bytes(&self) -> usize {
        let has_batch = self.converter.as_ref().is_some_and(BatchConverter::has_batch);
        let batch = if has_batch { self.batch_bytes } else { 0 };
        self.messages.buffer.capacity() + self.dictionary_bytes + batch
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        self.messages.push(bytes)
    }

    /// Reads the next rows of the bytes so far. Returns false if there are none. `body_bytes` is how many bytes of the body
    /// were received so far.
    pub(crate) fn read_next(&mut self, body_bytes: u64, rows: &mut RowCollector) -> Result<bool, BodyError> {
        if let Some(converter) = &mut self.converter
            && converter.convert_next(body_bytes, rows)?
        {
            return Ok(true);
        }
        let Some(message) = self.messages.next_message()? else { return Ok(false) };
        let Some(schema) = self.schema.clone() else {
            let schema = message.schema()?;
            self.converter = Some(BatchConverter::new(&schema, &self.table, &self.options)?);
            self.schema = Some(schema);
            return Ok(true);
        };
        rows.reserve(message.decompressed_bytes)?;
        self.batch_bytes = message.bytes.capacity() + message.decompressed_bytes;
        let batch = message.decode(schema, &mut self.dictionaries)?;
        self.check_dictionaries()?;
        if let (Some(batch), Some(converter)) = (batch, &mut self.converter) {
            converter.start(batch);
        }
        Ok(true)
    }

    /// Dictionaries may grow with each message.
    fn check_dictionaries(&mut self) -> Result<(), BodyError> {
        let max = self.options.limits.message_bytes_max;
        self.dictionary_bytes = self.dictionaries.values().map(Array::get_array_memory_size).sum();
        if self.dictionary_bytes > max {
            return Err(BodyError::TooLarge(format!("the dictionaries of the body have more than {max} bytes")));
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<(), BodyError> {
        self.messages.finish()?;
        if self.schema.is_none() {
            return Err(BodyError::Incomplete(NO_SCHEMA.to_owned()));
        }
        Ok(())
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.converter.as_ref().map_or_else(|| Arc::new(self.table.clone()), BatchConverter::schema)
    }

    pub(crate) fn added_columns(&self) -> Vec<FieldRef> {
        self.converter.as_ref().map(BatchConverter::added).unwrap_or_default()
    }
}

/// The schema at the beginning of a stream.
pub(crate) fn schema_of_head(bytes: &[u8], limits: &BodyLimits) -> Result<SchemaRef, BodyError> {
    let mut messages = MessageSplitter::new(limits);
    messages.push(bytes)?;
    match messages.next_message()? {
        Some(message) => message.schema(),
        None => Err(BodyError::Incomplete(NO_SCHEMA.to_owned())),
    }
}

impl MessageLayout {
    fn message<'a>(&self, bytes: &'a [u8]) -> Result<Message<'a>, BodyError> {
        let header = bytes.get(self.prefix..self.prefix + self.header);
        root_as_message(header.unwrap_or_default()).map_err(|error| malformed(&error.to_string()))
    }

    fn bytes(&self) -> usize {
        self.prefix + self.header + self.body
    }
}

impl CheckedMessage {
    fn message(&self) -> Result<Message<'_>, BodyError> {
        self.layout.message(&self.bytes)
    }

    fn schema(&self) -> Result<SchemaRef, BodyError> {
        let message = self.message()?;
        let Some(schema) = message.header_as_schema() else { return Err(malformed("it does not begin with a schema")) };
        // The library would read the bytes of each number in the wrong order.
        if !schema.endianness().equals_to_target_endianness() {
            return Err(BodyError::Malformed(format!("the Arrow stream of the body {OTHER_BYTE_ORDER}")));
        }
        guarded(|| Ok(Arc::new(fb_to_schema(schema))))
    }

    /// The batch that the message has, unless it is one of dictionary values, which are stored.
    fn decode(
        self,
        schema: SchemaRef,
        dictionaries: &mut HashMap<i64, ArrayRef>,
    ) -> Result<Option<RecordBatch>, BodyError> {
        let Self { bytes, layout, .. } = self;
        // The columns are slices of the message, without a copy.
        let bytes = Buffer::from_vec(bytes);
        let body = bytes.slice(layout.prefix + layout.header);
        let message = layout.message(&bytes)?;
        let version = message.version();
        if let Some(batch) = message.header_as_record_batch() {
            return guarded(|| read_record_batch(&body, batch, schema, dictionaries, None, &version).map(Some));
        }
        if let Some(values) = message.header_as_dictionary_batch() {
            guarded(|| read_dictionary(&body, values, &schema, dictionaries, &version))?;
            return Ok(None);
        }
        Err(malformed("a message is neither a batch nor a dictionary"))
    }
}

/// Decodes with the library. A message that passes all checks may still be one that the library does not expect; it
/// reports some of these as panics.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, BodyError> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| malformed(&error.to_string())),
        Err(_) => Err(malformed("a message contradicts itself")),
    }
}

fn malformed(reason: &str) -> BodyError {
    BodyError::Malformed(format!("the body is no valid Arrow stream: {reason}"))
}

impl MessageSplitter {
    fn new(limits: &BodyLimits) -> Self {
        let bytes_max = limits.message_bytes_max;
        Self { buffer: Vec::new(), bytes_max, position: StreamPosition::Start, is_file: false }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        self.buffer.extend_from_slice(bytes);
        if self.position == StreamPosition::End { self.check_end() } else { Ok(()) }
    }

    /// After a stream there is nothing. The index of a file is not needed, because its batches are in order.
    fn check_end(&mut self) -> Result<(), BodyError> {
        if self.is_file {
            self.buffer.clear();
        }
        if self.buffer.is_empty() { Ok(()) } else { Err(malformed("there are more bytes after its end")) }
    }

    /// Removes what a file has before its first message. Returns false until the first message has begun.
    fn skip_file_head(&mut self) -> bool {
        if self.position == StreamPosition::Start {
            if self.buffer.len() < FILE_MAGIC.len() && FILE_MAGIC.starts_with(&self.buffer) {
                return false;
            }
            self.is_file = self.buffer.starts_with(FILE_MAGIC);
            self.position = StreamPosition::Messages;
            if self.is_file {
                self.buffer.drain(..FILE_MAGIC.len());
                self.position = StreamPosition::Padding;
            }
        }
        if self.position == StreamPosition::Padding {
            let zeros = self.buffer.iter().take_while(|byte| **byte == 0).count();
            self.buffer.drain(..zeros);
            if self.buffer.is_empty() {
                return false;
            }
            self.position = StreamPosition::Messages;
        }
        true
    }

    /// The next complete message, checked.
    fn next_message(&mut self) -> Result<Option<CheckedMessage>, BodyError> {
        if !self.skip_file_head() {
            return Ok(None);
        }
        let Some(layout) = self.layout()? else { return Ok(None) };
        let length = layout.bytes();
        if let Some(missing) = length.checked_sub(self.buffer.len()).filter(|missing| *missing > 0) {
            // Twice what has arrived, so that a length alone takes no memory.
            self.buffer.reserve_exact(missing.min(self.buffer.len()));
            return Ok(None);
        }
        let rest = self.buffer.split_off(length);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        if layout.header == 0 {
            self.position = StreamPosition::End;
            return self.check_end().map(|()| None);
        }
        let mut message = CheckedMessage { bytes, layout, decompressed_bytes: 0 };
        message.decompressed_bytes = check_message(&message, self.bytes_max)?;
        Ok(Some(message))
    }

    /// The lengths of the message at the beginning of the buffer, once they are known.
    fn layout(&self) -> Result<Option<MessageLayout>, BodyError> {
        let word = |index: usize| self.buffer.get(index..)?.first_chunk::<4>().copied();
        let Some(first) = word(0) else { return Ok(None) };
        let (prefix, header) = match first {
            CONTINUATION => (8, word(4)),
            // Streams of older versions have no mark before the length.
            _ => (4, Some(first)),
        };
        let Some(header) = header else { return Ok(None) };
        let header = usize::try_from(u32::from_le_bytes(header)).unwrap_or(usize::MAX);
        if header > MESSAGE_HEADER_BYTES_MAX {
            return Err(malformed("it does not begin with a message, or the description of a message is too long"));
        }
        if header == 0 {
            return Ok(Some(MessageLayout { prefix, header, body: 0 }));
        }
        let Some(bytes) = self.buffer.get(prefix..prefix + header) else { return Ok(None) };
        let message = root_as_message(bytes).map_err(|error| malformed(&error.to_string()))?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| malformed("a message has a negative length"))?;
        if body > self.bytes_max {
            let max = self.bytes_max;
            return Err(BodyError::TooLarge(format!(
                "a batch has {body} bytes; at most {max} are allowed; send smaller batches"
            )));
        }
        Ok(Some(MessageLayout { prefix, header, body }))
    }

    fn finish(&self) -> Result<(), BodyError> {
        if !self.buffer.is_empty() {
            return Err(BodyError::Incomplete("the body ends within a message of its Arrow stream".to_owned()));
        }
        // A stream may end after any message. A file has the mark of its end, without which it is cut.
        if self.is_file && self.position == StreamPosition::Messages {
            return Err(BodyError::Incomplete("the body ends between the batches of its Arrow file".to_owned()));
        }
        Ok(())
    }
}

/// Checks that all buffers are within the message. Returns how large they become, or zero if they are not compressed.
fn check_message(message: &CheckedMessage, bytes_max: usize) -> Result<usize, BodyError> {
    let body = message.bytes.get(message.layout.prefix + message.layout.header..).unwrap_or_default();
    let header = message.message()?;
    let Some(batch) = batch_of(&header) else { return Ok(0) };
    if !(0..=MESSAGE_ROWS_MAX).contains(&batch.length()) {
        return Err(BodyError::TooLarge(format!(
            "a batch has {} rows; at most {MESSAGE_ROWS_MAX} are allowed",
            batch.length()
        )));
    }
    let has_lengths = batch.nodes().iter().flatten().all(|node| (0..=MESSAGE_ROWS_MAX).contains(&node.length()));
    if !has_lengths {
        return Err(BodyError::TooLarge(format!("a column of a batch has more than {MESSAGE_ROWS_MAX} values")));
    }
    let codec = batch.compression().map(|compression| compression.codec());
    let mut total = 0usize;
    for buffer in batch.buffers().iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let Some(bytes) = bytes else { return Err(malformed("a buffer is outside of its message")) };
        let length = match bytes.first_chunk::<8>().map(|length| i64::from_le_bytes(*length)) {
            Some(length) if codec.is_some() && length != NOT_COMPRESSED => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if codec == Some(CompressionType::LZ4_FRAME) && length <= bytes_max {
                    check_frame(bytes.get(LENGTH_BYTES..).unwrap_or_default(), length)?;
                }
                length
            }
            _ => bytes.len(),
        };
        total = total.saturating_add(length);
        if total > bytes_max {
            return Err(BodyError::TooLarge(format!(
                "a batch has more than {bytes_max} bytes after decompression; send smaller batches"
            )));
        }
    }
    Ok(if codec.is_some() { total } else { 0 })
}

/// Counts what a frame of LZ4 becomes: the library makes as many bytes as there are, whatever the message says.
fn check_frame(bytes: &[u8], length: usize) -> Result<(), BodyError> {
    let mut decoder = FrameDecoder::new(bytes).take(length as u64 + 1);
    match io::copy(&mut decoder, &mut io::sink()) {
        Ok(counted) if counted == length as u64 => Ok(()),
        Ok(_) => Err(malformed("a buffer has not as many bytes as it declares")),
        Err(error) => Err(malformed(&error.to_string())),
    }
}

/// The batch of rows or of dictionary values that a message has.
fn batch_of<'a>(message: &Message<'a>) -> Option<arrow_ipc::RecordBatch<'a>> {
    message.header_as_record_batch().or_else(|| message.header_as_dictionary_batch()?.data())
}
