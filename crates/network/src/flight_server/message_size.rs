//! Keeps messages below the size that gRPC clients accept by default.
//!
//! Most messages pass unchanged. A batch that is too large is decoded, sliced and encoded again.

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

use super::ipc_messages::IpcMessage;

/// Bytes of the body of a message. Clients in Go, Rust and Python accept messages of 4 MiB by default; a row that is larger
/// is sent alone.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

#[derive(Default)]
pub(super) struct MessageSplitter {
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
    use arrow::array::{Array as _, AsArray, StringArray};
    use arrow::ipc::writer::StreamWriter;
    use bytes::Bytes;

    use super::super::ipc_messages::IpcMessageReader;
    use super::*;

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
