//! Rows that are sent to a node: one request, whose messages are encoded as they are sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    CommandStatementIngest, DoPutUpdateResult, ProstMessageExt, TableDefinitionOptions, TableExistsOption,
    TableNotExistOption,
};
use arrow_flight::{FlightData, FlightDescriptor};
use async_trait::async_trait;
use futures::{Stream, StreamExt, future, stream};
use prost::Message;
use sha2::{Digest, Sha256};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{NodeWrite, RowWriter, WriteReceipt, is_node_failure};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Status};

use super::connection::NodeConnection;
use super::node_client::{NodeAction, NodeClient};
use super::server_kind::ServerKind;
use super::status;
use crate::node_protocol::{KEY_HEADER, REPEATED_HEADER, SEQUENCE_HEADER};

/// A node ends a request whose messages stop. While there are no rows for it, it receives empty ones.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);

enum Part {
    Rows(RecordBatch),
    End,
}

/// A request that sends rows. Dropping it resets the request, so that the node does not take what was sent for all rows.
#[derive(Debug)]
struct NodeWriter {
    node: String,
    parts: mpsc::Sender<Part>,
    /// The number of rows that were sent.
    sent: u64,
    /// Whether the end of the rows was sent, so that the node may store them.
    ended: Arc<AtomicBool>,
    /// `None` after its end.
    request: Option<AbortOnDropHandle<Result<Stored, Error>>>,
}

/// The answer of a node.
#[derive(Debug)]
struct Stored {
    receipt: WriteReceipt,
    /// The number of rows of the first write with the key, if this one stored nothing.
    repeated: Option<u64>,
}

impl NodeClient {
    /// See [`NodeDatabase::begin_write`](tidegate_query::NodeDatabase::begin_write).
    pub(super) async fn begin_write(
        self: &Arc<Self>,
        write: NodeWrite,
        principal: &Principal,
    ) -> Result<Box<dyn RowWriter>, Error> {
        let connection = self.replicas.first().clone();
        let checked = timeout(self.timeout, self.check_takes_rows(&connection, principal)).await;
        let checked = checked.unwrap_or_else(|_| Err(status::timed_out(&self.name, self.timeout.as_secs_f64())));
        checked.inspect_err(|error| self.observe_failure(error))?;
        let (parts, received) = mpsc::channel(1);
        let (broken, ended) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let messages = messages_of(self.descriptor(&write), write.clone(), received, broken.clone());
        let mut request = self.unlimited_request(messages, principal)?;
        if let Some(key) = &write.key {
            request.metadata_mut().insert(KEY_HEADER, key_of(key)?);
        }
        let (client, sent_all) = (self.clone(), ended.clone());
        let sending = async move {
            tokio::select! {
                biased;
                () = broken.cancelled() => Err(Error::internal("rows for a node cannot be encoded")),
                receipt = client.send_rows(&connection, request, &sent_all) => receipt,
            }
        };
        let request = Some(AbortOnDropHandle::new(tokio::spawn(sending)));
        Ok(Box::new(NodeWriter { node: self.name.clone(), parts, sent: 0, ended, request }))
    }

    /// Checks that the node answers. The connection may have broken unnoticed while it was idle, and rows cannot be sent a
    /// second time.
    async fn check_takes_rows(
        self: &Arc<Self>,
        connection: &Arc<NodeConnection>,
        principal: &Principal,
    ) -> Result<(), Error> {
        if self.detect(connection, principal, self.timeout).await? != ServerKind::Tidegate {
            let message = format!("the server {:?} is not Tidegate, and rows cannot be sent to it", self.name);
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let action = NodeAction { client: self, connection, principal, within: self.timeout };
        match action.check().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => action.check().await.map(drop),
            checked => checked.map(drop),
        }
    }

    /// The table must exist at the node: its columns are known.
    fn descriptor(&self, write: &NodeWrite) -> FlightDescriptor {
        let options = TableDefinitionOptions {
            if_not_exist: TableNotExistOption::Fail.into(),
            if_exists: TableExistsOption::Append.into(),
        };
        let command = CommandStatementIngest {
            table_definition_options: Some(options),
            table: write.table.clone(),
            catalog: self.database.clone(),
            ..CommandStatementIngest::default()
        };
        FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
    }

    async fn send_rows(
        &self,
        connection: &NodeConnection,
        request: Request<impl Stream<Item = FlightData> + Send + 'static>,
        ended: &AtomicBool,
    ) -> Result<Stored, Error> {
        let failed = |status: Status| {
            let error = status::to_error(&self.name, &status);
            match is_node_failure(&error) {
                true => self.observe_failure(&error),
                false => self.observe_answer(None),
            }
            match ended.load(Ordering::Relaxed) && (status::is_connection_failure(&status) || !is_refusal(&error)) {
                true => uncertain(&error),
                false => error,
            }
        };
        // The node has stored rows; their number is unknown.
        let malformed = |problem: &str| uncertain(&status::malformed(&self.name, problem));
        let mut lease = connection.lease().await;
        let mut answer = lease.client.do_put(request).await.map_err(failed)?;
        let number = |header: &str| answer.metadata().get(header).and_then(|value| value.to_str().ok()?.parse().ok());
        let (sequence, repeated) = (number(SEQUENCE_HEADER), number(REPEATED_HEADER));
        let result = answer.get_mut().message().await.map_err(failed)?;
        let result = result.ok_or_else(|| malformed("it has no number of rows"))?;
        let result = DoPutUpdateResult::decode(result.app_metadata).map_err(|error| malformed(&error.to_string()))?;
        self.observe_answer(None);
        let rows = u64::try_from(result.record_count).unwrap_or_default();
        let receipt = WriteReceipt { sequence: sequence.unwrap_or_default(), rows: vec![rows] };
        Ok(Stored { receipt, repeated })
    }
}

/// Whether a node that answers with `error` has certainly stored nothing. It may end a call in other ways while the rows are
/// being stored.
fn is_refusal(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::InvalidArguments
        | ErrorKind::NotFound
        | ErrorKind::Forbidden
        | ErrorKind::Conflict
        | ErrorKind::TooLarge => true,
        // These may also end a call, or the connection of a proxy to the node, while the rows are stored.
        ErrorKind::RateLimited | ErrorKind::Unavailable => error.message().contains("nothing was stored"),
        _ => false,
    }
}

/// The node has stored other rows under the same key before.
fn other_rows(node: &str, sent: u64, stored: u64) -> Error {
    let message =
        format!("{sent} rows were sent to the node {node}, which has stored {stored} rows under this key before");
    Error::new(ErrorKind::Conflict, message).with_hint("Send other rows with another key.")
}

/// The error of a node that may have stored all rows.
fn uncertain(error: &Error) -> Error {
    let message = format!("{}; it is unknown whether the node has stored the rows", error.message());
    Error::new(error.kind(), message)
        .with_hint("A repeat with the same key is safe; without a key, look for the rows first.")
}

/// A key of any length as one that a header may have.
fn key_of(key: &str) -> Result<AsciiMetadataValue, Error> {
    hex::encode(Sha256::digest(key)).parse().map_err(|_| Error::internal("the digest of a key is not ASCII"))
}

/// The messages of a request. They end only after [`Part::End`]: the end of the messages stores the rows.
fn messages_of(
    descriptor: FlightDescriptor,
    write: NodeWrite,
    parts: mpsc::Receiver<Part>,
    broken: CancellationToken,
) -> impl Stream<Item = FlightData> + Send + 'static {
    let batches = stream::unfold(parts, |mut parts| async move {
        match parts.recv().await {
            Some(Part::Rows(batch)) => Some((Ok::<_, FlightError>(batch), parts)),
            Some(Part::End) => None,
            // The writer was dropped, which resets the request.
            None => future::pending().await,
        }
    });
    let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor)).with_schema(write.schema);
    stream::unfold((encoder.build(batches.boxed()), broken), |(mut encoder, broken)| async move {
        match timeout(KEEP_ALIVE_EVERY, encoder.next()).await {
            Ok(Some(Ok(message))) => Some((message, (encoder, broken))),
            Ok(Some(Err(_))) => {
                broken.cancel();
                future::pending().await
            }
            Ok(None) => None,
            Err(_) => Some((FlightData::default(), (encoder, broken))),
        }
    })
}

impl NodeWriter {
    /// The end of a request that has ended, or will end without further rows.
    async fn end(&mut self) -> Result<Stored, Error> {
        let Some(request) = self.request.take() else {
            return Err(status::unavailable(&self.node, "its request has ended"));
        };
        request.await.unwrap_or_else(|error| Err(Error::internal(format!("sending rows to a node failed: {error}"))))
    }
}

#[async_trait]
impl RowWriter for NodeWriter {
    async fn write(&mut self, _table: usize, rows: RecordBatch) -> Result<(), Error> {
        self.sent += rows.num_rows() as u64;
        if self.parts.send(Part::Rows(rows)).await.is_ok() {
            return Ok(());
        }
        // The node has refused the rows before it received all of them.
        match self.end().await {
            Ok(_) => Err(status::unavailable(&self.node, "it ended the request before its end")),
            Err(error) => Err(error),
        }
    }

    async fn commit(mut self: Box<Self>) -> Result<WriteReceipt, Error> {
        self.ended.store(true, Ordering::Relaxed);
        // If it cannot be sent, the request has ended, and says why.
        let _ = self.parts.send(Part::End).await;
        let Stored { receipt, repeated } = self.end().await?;
        match repeated.filter(|stored| *stored != self.sent) {
            Some(stored) => Err(other_rows(&self.node, self.sent, stored)),
            None => Ok(receipt),
        }
    }
}
