//! What all requests of a Flight SQL server share.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Authenticator, CallTarget, Caller, Format};
use tidegate_runtime::{Call, Registry, Reply};
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::node_actions::DescribedTables;
use super::prepared_statements::PreparedStatements;
use super::status::to_status;
use super::ticket::TicketSigner;

/// Bytes of a `traceparent` header.
const TRACE_PARENT_BYTES_MAX: usize = 128;

pub(super) struct FlightState {
    pub(super) registry: Arc<Registry>,
    pub(super) authenticator: Arc<dyn Authenticator>,
    pub(super) tickets: TicketSigner,
    pub(super) prepared: PreparedStatements,
    pub(super) described: DescribedTables,
    /// The version of the server, for `GetSqlInfo`.
    pub(super) version: String,
}

impl FlightState {
    /// Calls a tool whose answer is an Arrow stream.
    ///
    /// # Errors
    /// When the call is refused before it starts.
    pub(super) fn call_tool(
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
pub(super) fn new_call(
    target: CallTarget,
    arguments: Map<String, Value>,
    caller: Caller,
    metadata: &MetadataMap,
) -> Call {
    let trace_parent = metadata.get("traceparent").and_then(|value| value.to_str().ok());
    let trace_parent = trace_parent.filter(|text| text.len() <= TRACE_PARENT_BYTES_MAX).map(str::to_owned);
    Call { arguments, trace_parent, ..Call::new(target, caller) }
}
