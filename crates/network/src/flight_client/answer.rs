//! The batches of an answer, pulled by their reader.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, Ticket};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tidegate_core::{Error, MissingNode, MissingNodes, Principal};
use tidegate_query::{MISSING_NODES_KEY, QueryRows, ROWS_ON_ALL_NODES_KEY, missing_nodes_of_schema};
use tidegate_runtime::Job;
use tokio::time::Instant;
use tonic::Streaming;

use super::connection::{ConnectionLease, NodeConnection};
use super::node_client::NodeClient;
use super::other_server::PreparedHandle;
use super::status;
use crate::node_protocol::{OTHER_BYTE_ORDER, has_native_byte_order};

/// The messages of one `DoGet`.
pub(super) struct BatchReader {
    node: String,
    decoder: FlightDataDecoder,
    schema: Option<SchemaRef>,
    _lease: ConnectionLease,
}

impl BatchReader {
    pub(super) fn new(node: &str, messages: Streaming<FlightData>, lease: ConnectionLease) -> Self {
        let messages = messages.map_err(|status| FlightError::Tonic(Box::new(status)));
        Self { node: node.to_owned(), decoder: FlightDataDecoder::new(messages), schema: None, _lease: lease }
    }

    /// The columns, once they have arrived.
    pub(super) fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }

    /// The next batch; `None` at the end that the server reported.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            // Messages of another program may be malformed in ways that the decoder does not expect.
            let decoded = AssertUnwindSafe(self.decoder.next()).catch_unwind().await;
            let decoded = decoded.map_err(|_| status::malformed(&self.node, "a message cannot be decoded"))?;
            let Some(decoded) = decoded else {
                return match self.schema {
                    Some(_) => Ok(None),
                    None => Err(status::malformed(&self.node, "it has no schema")),
                };
            };
            let decoded = decoded.map_err(|error| status::decoding_error(&self.node, &error))?;
            match decoded.payload {
                DecodedPayload::None => {}
                DecodedPayload::Schema(_) if self.schema.is_some() => {
                    return Err(status::malformed(&self.node, "it has two schemas"));
                }
                DecodedPayload::Schema(_) if !has_native_byte_order(&decoded.inner) => {
                    return Err(status::malformed(&self.node, OTHER_BYTE_ORDER));
                }
                DecodedPayload::Schema(schema) => self.schema = Some(schema),
                DecodedPayload::RecordBatch(batch) => return Ok(Some(batch)),
            }
        }
    }
}

/// Further parts of an answer, in order.
pub(super) struct FurtherParts {
    pub(super) client: Arc<NodeClient>,
    pub(super) connection: Arc<NodeConnection>,
    pub(super) principal: Arc<Principal>,
    pub(super) tickets: VecDeque<Ticket>,
    /// The statement must not be closed before its answer has ended.
    pub(super) _prepared: Option<PreparedHandle>,
}

/// An answer whose first batch, or whose end, has arrived.
struct OpenAnswer {
    reader: BatchReader,
    further: Option<FurtherParts>,
    first: Option<RecordBatch>,
    /// The columns for the reader of the answer; batches have them with the metadata of the server.
    schema: SchemaRef,
    job: Arc<Job>,
    has_ended: bool,
}

/// Waits for the first batch, or the end, of an answer, and returns the answer.
pub(super) async fn open_answer(
    mut reader: BatchReader,
    further: Option<FurtherParts>,
    job: &Arc<Job>,
    deadline: Instant,
) -> Result<QueryRows, Error> {
    let begun = Instant::now();
    let node = reader.node.clone();
    let first = tokio::select! {
        biased;
        () = job.cancelled() => return Err(Error::cancelled()),
        first = reader.next() => first?,
        () = tokio::time::sleep_until(deadline) => {
            return Err(status::timed_out(&node, (deadline - begun).as_secs_f64()));
        }
    };
    let received = reader.schema.clone().ok_or_else(|| status::malformed(&node, "it has no schema"))?;
    let (schema, missing) = take_missing_nodes(&received);
    let has_ended = first.is_none() && further.as_ref().is_none_or(|further| further.tickets.is_empty());
    let answer = OpenAnswer { reader, further, first, schema: schema.clone(), job: job.clone(), has_ended };
    let batches = stream::try_unfold(answer, |mut answer| async move {
        let batch = answer.next().await?;
        Ok(batch.map(|batch| (batch, answer)))
    });
    Ok(QueryRows { missing, ..QueryRows::new(schema, batches.boxed()) })
}

impl OpenAnswer {
    async fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        if self.job.is_cancelled() {
            return Err(Error::cancelled());
        }
        if let Some(first) = self.first.take() {
            return self.with_schema(first).map(Some);
        }
        if self.has_ended {
            return Ok(None);
        }
        let job = self.job.clone();
        tokio::select! {
            biased;
            () = job.cancelled() => Err(Error::cancelled()),
            next = self.receive() => next,
        }
    }

    async fn receive(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            if let Some(batch) = self.reader.next().await? {
                return self.with_schema(batch).map(Some);
            }
            let Some(further) = &mut self.further else { break };
            let Some(ticket) = further.tickets.pop_front() else { break };
            let remaining = self.job.deadline().saturating_duration_since(Instant::now());
            let next = further.client.open_part(&further.connection, &further.principal, ticket, remaining).await?;
            self.reader = next;
        }
        self.has_ended = true;
        Ok(None)
    }

    fn with_schema(&self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        if Arc::ptr_eq(batch.schema_ref(), &self.schema) {
            return Ok(batch);
        }
        let columns = |schema: &Schema| {
            let fields = schema.fields().iter();
            fields.map(|field| (field.name().clone(), field.data_type().clone())).collect::<Vec<_>>()
        };
        let is_same =
            batch.schema_ref().fields() == self.schema.fields() || columns(batch.schema_ref()) == columns(&self.schema);
        if !is_same {
            return Err(status::malformed(&self.reader.node, "its parts have different columns"));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options)
            .map_err(|error| status::malformed(&self.reader.node, &error.to_string()))
    }
}

/// The schema without the mark of a partial answer, and the nodes that the mark names. Their numbers of rows are about
/// tables that this process does not know.
fn take_missing_nodes(schema: &SchemaRef) -> (SchemaRef, Option<Arc<MissingNodes>>) {
    let Some(missing) = missing_nodes_of_schema(schema) else { return (schema.clone(), None) };
    let mut metadata = schema.metadata().clone();
    metadata.retain(|key, _| key != MISSING_NODES_KEY && key != ROWS_ON_ALL_NODES_KEY);
    let schema = Arc::new(schema.as_ref().clone().with_metadata(metadata));
    let nodes = missing.nodes.into_iter().map(|node| MissingNode { rows: None, ..node }).collect();
    (schema, Some(Arc::new(MissingNodes { nodes, rows_total: None })))
}
