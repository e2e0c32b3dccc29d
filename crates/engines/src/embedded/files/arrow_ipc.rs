//! Arrow IPC files and streams, message by message.
//!
//! The Arrow library allocates as much memory as a file declares. So each length is compared with the size of the file
//! before it is used. The library also panics on some damaged files: callers run this reader in
//! [`catch_reader_panic`](super::catch_reader_panic).
//!
//! [The format](https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc)

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::buffer::{Buffer, MutableBuffer};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::convert::fb_to_schema;
use datafusion::arrow::ipc::reader::{read_dictionary, read_record_batch};
use datafusion::arrow::ipc::{self, Block, Message, root_as_footer, root_as_message};
use lz4_flex::frame::FrameDecoder;

use super::path_sandbox::{CHANGED_WHILE_READ, io_error_reason};
use super::probe::{ContentFormat, strip_error_kind};

/// The first and last bytes of a file with a footer.
const FILE_MAGIC: &[u8] = b"ARROW1";
/// The length of the footer, and the last bytes.
const TAIL_BYTES: u64 = 10;
/// The bytes before the length of a message. Messages of older versions do not have them.
const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The maximum size of a footer, and of the description of a message. That of 2,000 columns has some 200 kB.
const DESCRIPTION_BYTES_MAX: u64 = 64 << 20;
/// The maximum number of rows of a batch that has less than a bit for each row: columns with nulls only have no bytes.
const ROWS_WITHOUT_BYTES_MAX: u64 = 1 << 24;
/// The length before a compressed buffer that is stored as it is.
const NOT_COMPRESSED: i64 = -1;

const OUTSIDE_OF_FILE: &str = "the file is damaged: a length exceeds its size";

/// Reads the batches of one file.
pub(crate) struct IpcReader {
    file: IpcFile,
    format: ContentFormat,
    schema: SchemaRef,
    messages: Messages,
    dictionaries: HashMap<i64, ArrayRef>,
    projection: Option<Vec<usize>>,
    decompressed_bytes_max: u64,
}

/// The messages that were not read yet.
enum Messages {
    /// Those that the footer of a file lists, dictionaries first.
    Listed(std::vec::IntoIter<MessagePosition>),
    /// Those of a stream from this position on.
    StreamFrom(u64),
}

/// Where a message is: its description, with the length before it, and then its body.
#[derive(Debug, Clone, Copy)]
struct MessagePosition {
    start: u64,
    body_start: u64,
    end: u64,
}

struct IpcFile {
    file: File,
    bytes: u64,
}

impl IpcReader {
    /// Opens `file`, or the record batches that begin in `part` of it. Reads the schema and the positions of messages.
    pub(crate) fn open(file: File, part: Option<&Range<u64>>) -> Result<Self, String> {
        let bytes = file.metadata().map_err(|error| io_error_reason(&error))?.len();
        let mut file = IpcFile { file, bytes };
        let start = file.read(0..8).map_err(|_| malformed("it is too short"))?;
        let (format, schema, messages) = if start.starts_with(FILE_MAGIC) {
            let (schema, positions) = file.read_footer(part)?;
            (ContentFormat::ArrowFile, schema, Messages::Listed(positions.into_iter()))
        } else if start.starts_with(&CONTINUATION) {
            let first = file.message_at(0)?.ok_or_else(|| malformed("it has no schema"))?;
            let description = file.read(first.start..first.body_start)?;
            let schema = parse_message(&description)?.header_as_schema();
            let schema = to_schema(schema.ok_or_else(|| malformed("it does not begin with a schema"))?)?;
            (ContentFormat::ArrowStream, schema, Messages::StreamFrom(first.end))
        } else {
            return Err(malformed("it has the format of neither a file nor a stream"));
        };
        let (dictionaries, projection) = (HashMap::new(), None);
        Ok(Self { file, format, schema, messages, dictionaries, projection, decompressed_bytes_max: u64::MAX })
    }

    /// The same reader for the columns at `projection`. Compressed batches may have at most `decompressed_bytes_max`.
    pub(crate) fn select(self, projection: Vec<usize>, decompressed_bytes_max: u64) -> Self {
        Self { projection: Some(projection), decompressed_bytes_max, ..self }
    }

    pub(crate) fn format(&self) -> ContentFormat {
        self.format.clone()
    }

    /// All columns of the file.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_position(&mut self) -> Result<Option<MessagePosition>, String> {
        match &mut self.messages {
            Messages::Listed(positions) => Ok(positions.next()),
            Messages::StreamFrom(next) => {
                let position = self.file.message_at(*next)?;
                *next = position.map_or(*next, |position| position.end);
                Ok(position)
            }
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, String> {
        while let Some(position) = self.next_position()? {
            if let Some(batch) = self.decode(position)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// The batch of a message; `None` if it has values of a dictionary, which are kept.
    fn decode(&mut self, position: MessagePosition) -> Result<Option<RecordBatch>, String> {
        let bytes = self.file.read(position.start..position.end)?;
        let description = usize::try_from(position.body_start - position.start).map_err(|_| OUTSIDE_OF_FILE)?;
        // The columns are slices of the message, without a copy.
        let body = bytes.slice(description);
        let message = parse_message(&bytes[..description])?;
        check_batch(&message, &body, self.decompressed_bytes_max)?;
        let version = message.version();
        let failed = |error: ArrowError| malformed(strip_error_kind(&error.to_string()));
        if let Some(batch) = message.header_as_record_batch() {
            let (schema, projection) = (self.schema.clone(), self.projection.as_deref());
            let batch = read_record_batch(&body, batch, schema, &self.dictionaries, projection, &version);
            return batch.map(Some).map_err(failed);
        }
        if let Some(values) = message.header_as_dictionary_batch() {
            read_dictionary(&body, values, &self.schema, &mut self.dictionaries, &version).map_err(failed)?;
            return Ok(None);
        }
        Err(malformed("a message is neither a batch nor a dictionary"))
    }
}

impl Iterator for IpcReader {
    type Item = Result<RecordBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl MessagePosition {
    /// The position of a message with these lengths; `None` if they are negative or too large.
    fn new(start: u64, description: u64, body: i64) -> Option<Self> {
        let body_start = start.checked_add(description).filter(|_| description <= DESCRIPTION_BYTES_MAX)?;
        let end = body_start.checked_add(u64::try_from(body).ok()?)?;
        Some(Self { start, body_start, end })
    }

    fn of_block(block: &Block) -> Option<Self> {
        let (start, description) = (u64::try_from(block.offset()).ok()?, u64::try_from(block.metaDataLength()).ok()?);
        Self::new(start, description, block.bodyLength())
    }
}

impl IpcFile {
    /// Reads a part of the file.
    fn read(&mut self, part: Range<u64>) -> Result<Buffer, String> {
        let length = part.end.checked_sub(part.start).filter(|_| part.end <= self.bytes);
        let length = length.and_then(|length| usize::try_from(length).ok()).ok_or(OUTSIDE_OF_FILE)?;
        let mut bytes = MutableBuffer::from_len_zeroed(length);
        let read = self.file.seek(SeekFrom::Start(part.start)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => CHANGED_WHILE_READ.to_owned(),
            _ => io_error_reason(&error),
        })?;
        Ok(bytes.into())
    }

    /// The schema of a file with a footer, and its messages: all dictionaries, and the batches that begin in `part`.
    fn read_footer(&mut self, part: Option<&Range<u64>>) -> Result<(SchemaRef, Vec<MessagePosition>), String> {
        const NO_FOOTER: &str = "the file is cut off: it has no footer";
        let tail_start = self.bytes.checked_sub(TAIL_BYTES).ok_or(NO_FOOTER)?;
        let tail = self.read(tail_start..self.bytes)?;
        let (length, magic) = tail.split_first_chunk::<4>().ok_or(NO_FOOTER)?;
        if magic != FILE_MAGIC {
            return Err(NO_FOOTER.to_owned());
        }
        let length = u64::from(u32::from_le_bytes(*length));
        let start = tail_start.checked_sub(length).filter(|_| length <= DESCRIPTION_BYTES_MAX);
        let footer = self.read(start.ok_or(OUTSIDE_OF_FILE)?..tail_start)?;
        let footer = root_as_footer(&footer).map_err(|_| malformed("its footer is damaged"))?;
        let schema = to_schema(footer.schema().ok_or_else(|| malformed("its footer has no schema"))?)?;
        let batches = footer.recordBatches().ok_or_else(|| malformed("its footer lists no batches"))?;
        let is_in_part = |block: &&Block| {
            part.is_none_or(|part| u64::try_from(block.offset()).is_ok_and(|offset| part.contains(&offset)))
        };
        let dictionaries = footer.dictionaries();
        let blocks = dictionaries.iter().flatten().chain(batches.iter().filter(is_in_part));
        let bytes = self.bytes;
        let position = |block| MessagePosition::of_block(block).filter(|position| position.end <= bytes);
        let positions = blocks.map(position).collect::<Option<Vec<_>>>();
        Ok((schema, positions.ok_or(OUTSIDE_OF_FILE)?))
    }

    /// The message of a stream at `start`; `None` at the end of the stream.
    fn message_at(&mut self, start: u64) -> Result<Option<MessagePosition>, String> {
        // The mark of the end may be missing.
        if self.bytes.saturating_sub(start) < CONTINUATION.len() as u64 {
            return Ok(None);
        }
        let first = self.read_word(start)?;
        let (prefix, length) = match first {
            CONTINUATION => (8, self.read_word(start + 4)?),
            length => (4, length),
        };
        let length = u64::from(u32::from_le_bytes(length));
        if length == 0 {
            return Ok(None);
        }
        let description = MessagePosition::new(start, prefix + length, 0).ok_or(OUTSIDE_OF_FILE)?;
        let description = self.read(description.start..description.body_start)?;
        let position = MessagePosition::new(start, prefix + length, parse_message(&description)?.bodyLength());
        let position = position.filter(|position| position.end <= self.bytes);
        position.map(Some).ok_or_else(|| OUTSIDE_OF_FILE.to_owned())
    }

    fn read_word(&mut self, start: u64) -> Result<[u8; 4], String> {
        let bytes = self.read(start..start + 4)?;
        Ok(bytes.first_chunk::<4>().copied().unwrap_or_default())
    }
}

/// The description of a message, from the bytes before its body.
fn parse_message(bytes: &[u8]) -> Result<Message<'_>, String> {
    let description = match bytes.split_first_chunk::<4>() {
        Some((&CONTINUATION, rest)) => rest.get(4..),
        Some((_, rest)) => Some(rest),
        None => None,
    };
    root_as_message(description.unwrap_or_default()).map_err(|_| malformed("a message is damaged"))
}

fn to_schema(schema: ipc::Schema<'_>) -> Result<SchemaRef, String> {
    if !schema.endianness().equals_to_target_endianness() {
        return Err(malformed("its numbers have the byte order of other machines"));
    }
    Ok(Arc::new(fb_to_schema(schema)))
}

/// Checks that the buffers of a batch are in its message, how large they become, and the number of rows.
fn check_batch(message: &Message<'_>, body: &[u8], decompressed_bytes_max: u64) -> Result<(), String> {
    let of_dictionary = || message.header_as_dictionary_batch()?.data();
    let Some(batch) = message.header_as_record_batch().or_else(of_dictionary) else { return Ok(()) };
    let codec = batch.compression().map(|compression| compression.codec());
    let is_compressed = codec.is_some();
    let mut bytes = 0_u64;
    for buffer in batch.buffers().iter().flatten() {
        let part = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let content = part.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let content = content.ok_or_else(|| malformed("a buffer is outside of its message"))?;
        let length = match content.first_chunk::<8>().map(|length| i64::from_le_bytes(*length)) {
            Some(length) if is_compressed && length != NOT_COMPRESSED => {
                let length = u64::try_from(length).unwrap_or(u64::MAX);
                // The library makes as many bytes as there are, whatever the message says.
                if codec == Some(ipc::CompressionType::LZ4_FRAME) && length <= decompressed_bytes_max {
                    let frame = FrameDecoder::new(content.get(size_of::<i64>()..).unwrap_or_default());
                    let counted = io::copy(&mut frame.take(length.saturating_add(1)), &mut io::sink());
                    if !counted.is_ok_and(|counted| counted == length) {
                        return Err(malformed("a buffer has not as many bytes as it declares"));
                    }
                }
                length
            }
            _ => content.len() as u64,
        };
        bytes = bytes.saturating_add(length);
    }
    if is_compressed && bytes > decompressed_bytes_max {
        return Err(format!(
            "a batch has {bytes} bytes after decompression, and a query may have {decompressed_bytes_max} bytes of \
             memory; write smaller batches"
        ));
    }
    let rows_of_first_column = batch.nodes().iter().flatten().next().map(|node| node.length());
    let rows_max = bytes.saturating_mul(8).max(ROWS_WITHOUT_BYTES_MAX);
    let has_plausible_rows = u64::try_from(batch.length()).is_ok_and(|rows| rows <= rows_max);
    if !has_plausible_rows || rows_of_first_column.is_some_and(|rows| rows != batch.length()) {
        return Err(malformed("the number of rows of a batch is not that of its columns"));
    }
    Ok(())
}

fn malformed(reason: impl fmt::Display) -> String {
    format!("it is not a readable Arrow IPC file: {reason}")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use datafusion::arrow::array::{DictionaryArray, Int64Array, StringArray};
    use datafusion::arrow::datatypes::Int32Type;
    use datafusion::arrow::ipc::CompressionType;
    use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

    use super::super::catch_reader_panic;
    use super::*;

    const BATCH_ROWS: usize = 5;
    const ZSTD: Option<CompressionType> = Some(CompressionType::ZSTD);

    /// A file or a stream with two batches.
    fn written(is_stream: bool, compression: Option<CompressionType>) -> Vec<u8> {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4), Some(5)]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d", "a longer name"]));
        let kinds: DictionaryArray<Int32Type> = ["x", "y", "x", "x", "y"].into_iter().collect();
        let kinds: ArrayRef = Arc::new(kinds);
        let batch = RecordBatch::try_from_iter([("id", ids), ("name", names), ("kind", kinds)]).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let (mut bytes, schema) = (Vec::new(), batch.schema());
        if is_stream {
            let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
            (0..2).for_each(|_| writer.write(&batch).unwrap());
            writer.finish().unwrap();
        } else {
            let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
            (0..2).for_each(|_| writer.write(&batch).unwrap());
            writer.finish().unwrap();
        }
        bytes
    }

    /// The number of rows in `part` of a file, or the reason why it cannot be read.
    fn count_rows(bytes: &[u8], part: Option<Range<u64>>, decompressed_bytes_max: u64) -> Result<usize, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let count = || {
            let reader = IpcReader::open(file, part.as_ref())?.select(vec![0, 1, 2], decompressed_bytes_max);
            reader.map(|batch| batch.map(|batch| batch.num_rows())).sum::<Result<usize, String>>()
        };
        catch_reader_panic(count).unwrap_or_else(|reason| Err(reason.to_owned()))
    }

    fn read(bytes: &[u8]) -> Result<usize, String> {
        count_rows(bytes, None, 1 << 20)
    }

    #[test]
    fn whole_files_are_read() {
        for (is_stream, compression) in [(false, None), (true, None), (false, ZSTD), (true, ZSTD)] {
            assert_eq!(read(&written(is_stream, compression)), Ok(2 * BATCH_ROWS), "{is_stream} {compression:?}");
        }
        let bytes = written(false, None);
        let end = bytes.len() as u64;
        for middle in (0..=end).step_by(16) {
            let rows = |part: Range<u64>| count_rows(&bytes, Some(part), 0).unwrap();
            assert_eq!(rows(0..middle) + rows(middle..end), 2 * BATCH_ROWS, "{middle}");
        }
    }

    /// Lengths of terabytes would end the process if they were allocated.
    #[test]
    fn damaged_files_are_errors_or_have_other_values() {
        for (is_stream, compression) in [(false, None), (true, ZSTD)] {
            let whole = written(is_stream, compression);
            let mut refused = 0;
            for position in 0..whole.len() {
                for value in [0x00, 0xFF] {
                    let mut bytes = whole.clone();
                    bytes[position] = value;
                    refused += usize::from(read(&bytes).is_err());
                }
            }
            for position in (0..whole.len() - 8).step_by(4) {
                for length in [i64::MAX, 1 << 45, -2] {
                    let mut bytes = whole.clone();
                    bytes[position..position + 8].copy_from_slice(&length.to_le_bytes());
                    refused += usize::from(read(&bytes).is_err());
                }
            }
            assert!(refused > 100, "{refused} of {} bytes", whole.len());
        }
    }

    #[test]
    fn declared_lengths_are_compared_with_the_file() {
        let outside = Err(OUTSIDE_OF_FILE.to_owned());
        let mut file = written(false, None);
        let tail = file.len() - 10;
        file[tail..tail + 4].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(read(&file), outside);
        let mut stream = written(true, None);
        stream[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(read(&stream), outside);
        let stream = written(true, None);
        assert_eq!(read(&stream[..stream.len() / 2]), outside);
        let reason = count_rows(&written(true, ZSTD), None, 8).unwrap_err();
        assert!(reason.contains("bytes after decompression"), "{reason}");
    }
}
