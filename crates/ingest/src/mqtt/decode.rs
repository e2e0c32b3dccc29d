//! Messages as one batch of a table, and those that do not fit.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use tidegate_core::{Error, ErrorKind, MemoryReservation};
use tidegate_ingest_formats::{
    BodyDecoder, BodyError, BodyFormat, BodyOptions, REJECTED_TEXT_BYTES_MAX, RejectMode, RejectedRow, RowPosition,
    UnknownColumns, infer_schema,
};
use tidegate_query::{IngestTable, NodeMemory, NodeReservation, batch_bytes};

use crate::mqtt::options::MqttOptions;
use crate::mqtt::packet::{Message, PACKET_BYTES_MAX};
use crate::mqtt::topic;

/// The rows of messages that are written together.
const GROUP_BYTES_MAX: usize = 64 << 20;

/// What messages are in a table.
#[derive(Debug)]
pub(crate) struct DecodedMessages {
    /// The rows, if there are any.
    pub(crate) rows: Option<RecordBatch>,
    pub(crate) rejected: Vec<RejectedMessage>,
    /// The memory of the rows.
    pub(crate) _memory: Option<NodeReservation>,
}

/// A message, or a row of one, that does not fit.
#[derive(Debug, Clone)]
pub(crate) struct RejectedMessage {
    /// `None` for a whole message.
    pub(crate) position: Option<RowPosition>,
    pub(crate) column: Option<String>,
    pub(crate) reason: String,
    pub(crate) text: String,
}

impl RejectedMessage {
    pub(crate) fn whole(message: &Message, reason: &str) -> Self {
        Self { position: None, column: None, reason: of_topic(message, reason), text: text_of(&message.payload) }
    }

    fn row(message: &Message, row: RejectedRow) -> Self {
        let reason = of_topic(message, &row.reason);
        Self { position: Some(row.position), column: row.column, reason, text: row.text }
    }
}

fn of_topic(message: &Message, reason: &str) -> String {
    format!("topic {}: {reason}", message.topic)
}

/// The beginning of a message that is text.
fn text_of(payload: &Bytes) -> String {
    let head = payload.get(..REJECTED_TEXT_BYTES_MAX).unwrap_or(payload);
    String::from_utf8_lossy(head).replace('\0', "\u{fffd}")
}

/// Decodes `messages` for `table`. Their rows draw on `memory`.
///
/// # Errors
/// The table cannot have messages of this format, whatever their content, or there is no memory for their rows.
pub(crate) fn decode(
    messages: &[Message],
    table: &IngestTable,
    options: &MqttOptions,
    memory: &NodeMemory,
) -> Result<DecodedMessages, Error> {
    let mut decoding = Decoding {
        options,
        body: body_options(table, options),
        table,
        schema: body_schema(messages, table, options),
        rows: Vec::new(),
        bytes: 0,
        rejected: Vec::new(),
        memory,
        held: memory.reserve(None),
    };
    for message in messages {
        if let Err(reason) = decoding.add(message)? {
            decoding.rejected.push(RejectedMessage::whole(message, &reason));
        }
    }
    let rows = decoding.batch().map_err(|error| Error::internal(format!("a batch of messages is invalid: {error}")))?;
    Ok(DecodedMessages { rows, rejected: decoding.rejected, _memory: Some(decoding.held) })
}

struct Decoding<'a> {
    options: &'a MqttOptions,
    body: BodyOptions,
    table: &'a IngestTable,
    /// The columns of a body, with those that messages have added. `None` if no message has columns.
    schema: Option<SchemaRef>,
    rows: Vec<(&'a str, RecordBatch)>,
    bytes: usize,
    rejected: Vec<RejectedMessage>,
    memory: &'a NodeMemory,
    /// The memory of the rows.
    held: NodeReservation,
}

impl<'a> Decoding<'a> {
    /// Adds the rows of a message. The inner error is the reason why it is rejected as a whole.
    fn add(&mut self, message: &'a Message) -> Result<Result<(), String>, Error> {
        if let Err(reason) = self.check(message) {
            return Ok(Err(reason));
        }
        let Some(schema) = &self.schema else {
            let inferred = infer_schema(&message.payload, &self.body);
            return Ok(Err(inferred
                .err()
                .map_or_else(|| "there are no columns".to_owned(), |error| error.to_string())));
        };
        let mut decoder = match BodyDecoder::new(schema, self.body.clone()) {
            Ok(decoder) => decoder.with_memory(Box::new(self.memory.reserve(None))),
            Err(error) => return Err(Error::new(ErrorKind::Unavailable, error.to_string())),
        };
        decoder.push(&message.payload);
        decoder.finish();
        let (batches, rejected) = match collect(&mut decoder, &mut self.bytes, &mut self.held) {
            Ok(collected) => collected,
            Err(BodyError::Memory(refusal)) => return Err(refusal.into()),
            // Fewer messages may fit.
            Err(error) if self.bytes > GROUP_BYTES_MAX => {
                return Err(Error::new(ErrorKind::TooLarge, error.to_string()));
            }
            Err(error) => return Ok(Err(error.to_string())),
        };
        let added = decoder.added_columns();
        if let Some(field) = added.iter().find(|field| self.is_topic_column(field.name())) {
            return Ok(Err(format!("column {:?} gets the topic, and the message has a value for it", field.name())));
        }
        if !added.is_empty() {
            self.schema = Some(decoder.schema());
        }
        self.rows.extend(batches.into_iter().map(|batch| (message.topic.as_str(), batch)));
        self.rejected.extend(rejected.into_iter().map(|row| RejectedMessage::row(message, row)));
        Ok(Ok(()))
    }

    fn check(&self, message: &Message) -> Result<(), String> {
        if let Some(bytes) = message.excess {
            return Err(format!("the message has {bytes} bytes; at most {PACKET_BYTES_MAX} are read"));
        }
        if !self.options.topics.iter().any(|filter| topic::matches(filter, &message.topic)) {
            return Err(
                "no filter of the configuration has this topic; the session is older than the filters".to_owned()
            );
        }
        for column in &self.options.topic_columns {
            let field = self.table.schema.as_ref().and_then(|schema| schema.field_with_name(&column.column).ok());
            let is_required = field.is_some_and(|field| !field.is_nullable());
            if let Some(level) = column.level.filter(|_| is_required)
                && topic::level(&message.topic, level).is_none()
            {
                return Err(format!(
                    "column {:?} needs level {level} of the topic, which it does not have",
                    column.column
                ));
            }
        }
        Ok(())
    }

    fn is_topic_column(&self, name: &str) -> bool {
        self.options.topic_columns.iter().any(|column| column.column.eq_ignore_ascii_case(name))
    }

    /// The columns of the batch: those of the table in their order, then the topic columns, then added columns.
    fn fields(&self, schema: &Schema) -> Vec<FieldRef> {
        let of_table = self.table.schema.as_ref();
        let mut fields: Vec<FieldRef> = match of_table {
            Some(of_table) => of_table.fields().iter().cloned().collect(),
            None => schema.fields().iter().cloned().collect(),
        };
        for column in &self.options.topic_columns {
            if !fields.iter().any(|field| *field.name() == column.column) {
                fields.push(Arc::new(Field::new(&column.column, DataType::Utf8, true)));
            }
        }
        for field in schema.fields() {
            if !fields.iter().any(|known| known.name() == field.name()) {
                fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
            }
        }
        fields
    }

    fn batch(&self) -> Result<Option<RecordBatch>, arrow::error::ArrowError> {
        let count = self.rows.iter().map(|(_, batch)| batch.num_rows()).sum::<usize>();
        let Some(schema) = self.schema.as_ref().filter(|_| count > 0) else { return Ok(None) };
        let fields = self.fields(schema);
        let columns: Result<Vec<ArrayRef>, _> = fields.iter().map(|field| self.column(field)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns?, &options).map(Some)
    }

    fn column(&self, field: &Field) -> Result<ArrayRef, arrow::error::ArrowError> {
        if let Some(column) = self.options.topic_columns.iter().find(|column| column.column == *field.name()) {
            let values = self.rows.iter().flat_map(|(topic, batch)| {
                let value = match column.level {
                    Some(level) => topic::level(topic, level),
                    None => Some(*topic),
                };
                std::iter::repeat_n(value, batch.num_rows())
            });
            return cast(&values.collect::<StringArray>(), field.data_type());
        }
        let parts = self.rows.iter().map(|(_, batch)| match batch.column_by_name(field.name()) {
            Some(array) => array.clone(),
            None => new_null_array(field.data_type(), batch.num_rows()),
        });
        let parts: Vec<ArrayRef> = parts.collect();
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        concat(&parts)
    }
}

/// Adds the bytes of the rows to `bytes`, and to the memory that is `held`.
fn collect(
    decoder: &mut BodyDecoder,
    bytes: &mut usize,
    held: &mut NodeReservation,
) -> Result<(Vec<RecordBatch>, Vec<RejectedRow>), BodyError> {
    let (mut batches, mut rejected) = (Vec::new(), Vec::new());
    while let Some(rows) = decoder.next_rows()? {
        *bytes += batch_bytes(&rows.batch);
        if *bytes > GROUP_BYTES_MAX {
            return Err(BodyError::TooLarge(format!("the rows have more than {GROUP_BYTES_MAX} bytes")));
        }
        // They are joined to one batch.
        held.resize(2 * *bytes).map_err(BodyError::Memory)?;
        if rows.batch.num_rows() > 0 {
            batches.push(rows.batch);
        }
        rejected.extend(rows.rejected);
    }
    Ok((batches, rejected))
}

fn body_options(table: &IngestTable, options: &MqttOptions) -> BodyOptions {
    let mut body = BodyOptions::new(options.format);
    body.reject_mode = RejectMode::Row;
    body.unknown_columns = if table.adds_columns { UnknownColumns::Add } else { UnknownColumns::Refuse };
    body
}

/// The columns of a body: those of the table, or those that the messages have together, without those of the topic.
fn body_schema(messages: &[Message], table: &IngestTable, options: &MqttOptions) -> Option<SchemaRef> {
    let schema = match &table.schema {
        Some(schema) => schema.clone(),
        None => infer_together(messages, &body_options(table, options))?,
    };
    let is_of_topic = |name: &str| options.topic_columns.iter().any(|column| column.column.eq_ignore_ascii_case(name));
    let fields: Vec<FieldRef> = schema.fields().iter().filter(|field| !is_of_topic(field.name())).cloned().collect();
    Some(Arc::new(Schema::new(fields)))
}

/// The columns that all of the messages have together, so that the first value of one does not decide alone.
fn infer_together(messages: &[Message], body: &BodyOptions) -> Option<SchemaRef> {
    let readable = || messages.iter().filter(|message| message.excess.is_none());
    let mut inferred = readable().filter_map(|message| Some((message, infer_schema(&message.payload, body).ok()?)));
    let (separator, is_document): (&[u8], bool) = match body.format {
        BodyFormat::Json => (b",", true),
        BodyFormat::Ndjson => (b"\n", false),
        // Each message has its own head, so that they are not one body.
        BodyFormat::Csv | BodyFormat::Arrow | BodyFormat::Parquet => return Some(inferred.next()?.1.schema),
    };
    let mut sample: Vec<u8> = if is_document { b"[".to_vec() } else { Vec::new() };
    let mut first = None;
    for (message, own) in inferred {
        let mut bytes = message.payload.trim_ascii();
        if let Some(rows) = bytes.strip_prefix(b"[").and_then(|rows| rows.strip_suffix(b"]")).filter(|_| is_document) {
            bytes = rows;
        }
        if first.is_some() {
            sample.extend_from_slice(separator);
        }
        sample.extend_from_slice(bytes);
        first.get_or_insert(own.schema);
    }
    if is_document {
        sample.push(b']');
    }
    let together = infer_schema(&sample, body).ok().map(|inferred| inferred.schema);
    together.or(first)
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn all_messages_together_decide_the_types() {
        for (format, texts) in [
            (BodyFormat::Json, ["{\"t\": 1}", " [{\"t\": 1.5}, {\"u\": \"x\"}] ", "{"]),
            (BodyFormat::Ndjson, ["{\"t\": 1}", "{\"t\": 1.5}\n{\"u\": \"x\"}", "{"]),
        ] {
            let messages = texts.map(|text| Message {
                topic: "a".to_owned(),
                payload: Bytes::from_static(text.as_bytes()),
                packet_id: None,
                excess: None,
            });
            let schema = infer_together(&messages, &BodyOptions::new(format)).expect("two messages have columns");
            let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
            assert_eq!(types, [DataType::Float64, DataType::Utf8], "{format:?}");
        }
    }
}
