//! Arrow Flight SQL as a transport: statements and catalog requests become calls of the registry.
//!
//! All requests share one state, and errors of calls are gRPC statuses with the texts that all transports send.
//!
//! [Arrow Flight SQL](https://arrow.apache.org/docs/format/FlightSql.html)

mod answer;
mod caller;
mod catalog;
mod ingest;
mod node_actions;
mod server;
mod service;
mod statement;
mod ticket;

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Authenticator, CallTarget, Caller, Error, ErrorKind, Format};
use tidegate_runtime::{Call, Registry, Reply};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use self::node_actions::DescribedTables;
use self::ticket::{PreparedStatements, TicketSigner};
use crate::node_protocol::{ERROR_TRAILER, ErrorParts};

pub use self::server::{FlightOptions, RunningFlightServer, serve_flight};

/// Bytes of a `traceparent` header.
const TRACE_PARENT_BYTES_MAX: usize = 128;

struct FlightState {
    registry: Arc<Registry>,
    authenticator: Arc<dyn Authenticator>,
    tickets: TicketSigner,
    prepared: PreparedStatements,
    described: DescribedTables,
    /// The version of the server, for `GetSqlInfo`.
    version: String,
}

impl FlightState {
    /// Calls a tool whose answer is an Arrow stream.
    ///
    /// # Errors
    /// When the call is refused before it starts.
    fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        metadata: &MetadataMap,
    ) -> Result<Reply, Status> {
        let target = CallTarget::Tool(tool.to_owned());
        let call = Call { format: Some(Format::Arrow), ..new_call(target, arguments, caller, metadata) };
        self.registry.call(call).map_err(|error| to_status(&error))
    }
}

/// A call by a request with these headers.
fn new_call(target: CallTarget, arguments: Map<String, Value>, caller: Caller, metadata: &MetadataMap) -> Call {
    let trace_parent = metadata.get("traceparent").and_then(|value| value.to_str().ok());
    let trace_parent = trace_parent.filter(|text| text.len() <= TRACE_PARENT_BYTES_MAX).map(str::to_owned);
    Call { arguments, trace_parent, ..Call::new(target, caller) }
}

/// Bytes of a message. It is sent in a trailer, percent-encoded, and clients bound the size of trailers.
const MESSAGE_BYTES_MAX: usize = 2048;

/// The status for `error`: its kind as a code, and its complete text for the caller.
fn to_status(error: &Error) -> Status {
    let mut message = error.to_string();
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push('…');
    }
    let mut status = Status::new(code_of(error.kind()), message);
    // Other nodes show the parts as those of an error of their own.
    if let Some(parts) = ErrorParts::encode(error) {
        status.metadata_mut().insert_bin(ERROR_TRAILER, MetadataValue::from_bytes(&parts));
    }
    status
}

fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidArguments => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Forbidden => Code::PermissionDenied,
        ErrorKind::Unauthenticated => Code::Unauthenticated,
        ErrorKind::RateLimited => Code::ResourceExhausted,
        ErrorKind::TimedOut => Code::DeadlineExceeded,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::TooLarge => Code::OutOfRange,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::InputRequired | ErrorKind::MissingClientCapability => Code::FailedPrecondition,
        ErrorKind::Failed => Code::Unknown,
        ErrorKind::Internal => Code::Internal,
    }
}

/// The status for a fault of the server. The log gets `detail` under the id that the client receives.
fn internal(events: &tidegate_runtime::event::EventDispatcher, detail: impl Into<String>) -> Status {
    let error = Error::internal(detail);
    if let Some(id) = error.id() {
        events.emit_error_detail(&error, id);
    }
    to_status(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let status = to_status(&Error::new(ErrorKind::NotFound, "é".repeat(MESSAGE_BYTES_MAX)));
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message().len(), MESSAGE_BYTES_MAX + '…'.len_utf8());
    }
}
