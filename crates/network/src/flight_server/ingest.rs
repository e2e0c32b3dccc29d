//! Rows that a client puts (`CommandStatementIngest`): a call of the entry that takes rows, whose body is the client's
//! Arrow stream. Batches are passed on as they arrive, and are decoded by the entry, as for every other transport.

use std::time::Duration;

use arrow_flight::sql::{CommandStatementIngest, DoPutUpdateResult, TableExistsOption, TableNotExistOption};
use arrow_flight::{FlightData, PutResult};
use arrow_ipc::root_as_message;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use prost::Message;
use serde_json::Map;
use tidegate_core::{Caller, Error, ErrorKind, Format, HOPS_CLAIM, WriteRows};
use tidegate_runtime::{AnswerMeta, Call, RequestBody};
use tokio::time::timeout;
use tonic::{Code, Response, Status, Streaming};

use super::caller::CallerCheck;
use super::service::{FlightRequest, MESSAGE_BYTES_MAX};
use super::{new_call, to_status};
use crate::node_protocol::{KEY_HEADER, REPEATED_HEADER, SEQUENCE_HEADER};

/// Bytes of all rows of one call, as over HTTP.
const ROWS_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// The time for the next message, while the table takes rows.
const MESSAGE_WITHIN: Duration = Duration::from_secs(60);
const KEY_BYTES_MAX: usize = 255;
/// The start of each message of an Arrow stream, and its end.
/// [IPC streaming format](https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format)
const CONTINUATION: [u8; 4] = [0xff; 4];
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
const ALIGNMENT: usize = 8;

impl FlightRequest {
    /// Stores the rows of `messages` in the table of `command`: all, or none.
    ///
    /// # Errors
    /// `InvalidArgument` for options that this server does not have, and those of the entry.
    pub(super) async fn ingest(
        self,
        command: CommandStatementIngest,
        first: FlightData,
        messages: Streaming<FlightData>,
    ) -> Result<Response<PutResult>, Status> {
        let entry = entry_of(&command)?;
        let database = command.catalog.clone().filter(|catalog| !catalog.is_empty());
        let database = match database {
            Some(database) => database,
            None => self.database()?.ok_or_else(|| {
                Status::invalid_argument("the catalog is missing; it is the database with the table that takes rows")
            })?,
        };
        let table = match command.schema.as_deref().filter(|schema| !schema.is_empty()) {
            Some(schema) => format!("{schema}.{}", command.table),
            None => command.table.clone(),
        };
        let options = command.table_definition_options.unwrap_or_default();
        let creates = options.if_not_exist() == TableNotExistOption::Create;
        let build = |target, caller: Caller, _| -> Result<Call, Status> {
            let mut arguments = Map::from_iter([
                ("database".to_owned(), database.as_str().into()),
                ("table".to_owned(), table.as_str().into()),
                ("create".to_owned(), creates.into()),
            ]);
            arguments.extend(self.key()?.map(|key| ("key".to_owned(), key.into())));
            let messages = stream::iter([Ok(first)]).chain(messages);
            let mut body = RequestBody::new(Format::Arrow.media_type(), None, ROWS_BYTES_MAX, arrow_stream(messages));
            if caller.principal.claims.contains_key(HOPS_CLAIM) {
                // Its rows are a part of those of a call, which the other server bounds.
                body = body.with_time_for_next(MESSAGE_WITHIN);
            }
            let call = new_call(target, arguments, caller, &self.metadata);
            Ok(Call { format: Some(Format::Json), request_body: Some(body), ..call })
        };
        let (caller, to) = (self.caller.clone(), Some((database.as_str(), table.as_str())));
        let mut reply = self.state.registry.write_rows(entry, to, caller, |error| to_status(&error), build)?;
        let mut check = CallerCheck::new(&self.state, self.credentials.clone(), &self.caller);
        let stored = check.run_while_admitted(reply.collect_body(usize::MAX)).await?;
        // The text of the answer is that of other transports.
        let (_, metadata) = stored.map_err(|error| to_status(&error))?;
        Ok(answer(&metadata))
    }

    fn key(&self) -> Result<Option<String>, Status> {
        let Some(value) = self.metadata.get(KEY_HEADER) else { return Ok(None) };
        let key = value.to_str().ok().filter(|key| (1..=KEY_BYTES_MAX).contains(&key.len()));
        let invalid =
            || Status::invalid_argument(format!("{KEY_HEADER} must be 1 to {KEY_BYTES_MAX} visible ASCII characters"));
        key.map(|key| Some(key.to_owned())).ok_or_else(invalid)
    }
}

/// The entry that stores the rows of `command`.
fn entry_of(command: &CommandStatementIngest) -> Result<WriteRows, Status> {
    let unsupported = |message: &str| Err(Status::invalid_argument(message));
    if command.temporary {
        return unsupported("there are no temporary tables; name a table that takes rows");
    }
    if command.transaction_id.as_ref().is_some_and(|id| !id.is_empty()) {
        return unsupported("there are no transactions over Flight SQL; the rows of one request are stored as a whole");
    }
    match command.table_definition_options.unwrap_or_default().if_exists() {
        TableExistsOption::Unspecified | TableExistsOption::Append => Ok(WriteRows::AppendRows),
        TableExistsOption::Replace => Ok(WriteRows::ReplaceRows),
        TableExistsOption::Fail => {
            unsupported("that a table must be new is not supported; append, or create and append")
        }
    }
}

/// The messages of a client as the bytes of an Arrow stream. It has its mark of the end only if the client ended it.
fn arrow_stream(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + Unpin + 'static,
) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
    stream::unfold(Some(messages), |messages| async move {
        let mut messages = messages?;
        let piece = match timeout(MESSAGE_WITHIN, messages.next()).await {
            // An empty piece, which keeps the call open if it may.
            Ok(Some(Ok(message))) if message.data_header.is_empty() && message.data_body.is_empty() => Ok(Bytes::new()),
            Ok(Some(Ok(message))) => to_stream_message(&message).map_err(|problem| broken_off(&problem)),
            Ok(Some(Err(status))) if status.code() == Code::OutOfRange => Err(message_too_large()),
            Ok(Some(Err(status))) => {
                Err(broken_off(&format!("the rows broke off before their end: {}", status.message())))
            }
            Ok(None) => return Some((Ok(Bytes::from_static(&END_OF_STREAM)), None)),
            Err(_) => Err(broken_off(&format!("no message arrived for {} s", MESSAGE_WITHIN.as_secs()))),
        };
        let rest = piece.is_ok().then_some(messages);
        Some((piece, rest))
    })
}

fn broken_off(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("{problem}; nothing was stored"))
}

fn message_too_large() -> Error {
    let message = format!("a message has more than {} MiB; nothing was stored", MESSAGE_BYTES_MAX >> 20);
    Error::new(ErrorKind::TooLarge, message).with_hint("Send smaller batches.")
}

/// A message of Flight as one of an Arrow stream.
///
/// # Errors
/// When the length that the header declares is not that of the body, so that the messages after it would be misread.
fn to_stream_message(message: &FlightData) -> Result<Bytes, String> {
    let (header, body) = (&message.data_header, &message.data_body);
    let declared = root_as_message(header).map_err(|error| format!("a message is malformed: {error}"))?.bodyLength();
    if i64::try_from(body.len()) != Ok(declared) {
        return Err(format!("a message declares a body of {declared} bytes and has {}", body.len()));
    }
    let padded = header.len().next_multiple_of(ALIGNMENT);
    let length = u32::try_from(padded).map_err(|_| "the header of a message is too long".to_owned())?;
    let mut bytes = BytesMut::with_capacity(CONTINUATION.len() + 4 + padded + body.len());
    bytes.put_slice(&CONTINUATION);
    bytes.put_u32_le(length);
    bytes.put_slice(header);
    bytes.put_bytes(0, padded - header.len());
    bytes.put_slice(body);
    Ok(bytes.freeze())
}

fn answer(stored: &AnswerMeta) -> Response<PutResult> {
    let record_count = i64::try_from(stored.rows.unwrap_or_default()).unwrap_or(i64::MAX);
    let app_metadata = DoPutUpdateResult { record_count }.encode_to_vec().into();
    let mut response = Response::new(PutResult { app_metadata });
    if let Some(write) = &stored.write {
        response.metadata_mut().insert(SEQUENCE_HEADER, write.sequence.into());
        if let Some(rows) = write.repeated_rows {
            response.metadata_mut().insert(REPEATED_HEADER, rows.into());
        }
    }
    response
}
