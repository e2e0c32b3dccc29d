//! Splits the bytes of an Arrow IPC stream into its messages, without decoding the values.
//!
//! [Encapsulated message format](https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format)

use arrow_flight::FlightData;
use arrow_ipc::{MessageHeader, root_as_message};
use bytes::{Buf, Bytes, BytesMut};

/// The mark before the length of each message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of the mark and of the length.
const PREFIX_BYTES: usize = 8;
/// Bytes of one message. Our engines send batches of a few thousand rows.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// Collects bytes until a message is complete.
#[derive(Default)]
pub(super) struct IpcMessageReader {
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
    pub(super) fn is_complete(&self) -> bool {
        self.has_ended && self.pending.is_empty()
    }

    /// The next message, if all of its bytes are there.
    ///
    /// # Errors
    /// When the bytes are no IPC stream.
    pub(super) fn next_message(&mut self) -> Result<Option<IpcMessage>, String> {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch, StringArray};
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
}
