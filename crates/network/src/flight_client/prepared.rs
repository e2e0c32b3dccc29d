//! Statements with values on servers of other programs, as prepared statements.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    Any, CommandPreparedStatementQuery, DoPutPreparedStatementResult, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor};
use bytes::Bytes;
use futures::{StreamExt, stream};
use prost::Message;
use tidegate_core::{Error, Principal};
use tidegate_sql::Parameter;

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::other_server::RequestTarget;
use super::server_kind::is_missing_feature;
use super::status;

/// The time for closing a statement.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// A prepared statement with its values. Dropping it closes it at the server.
pub(super) struct PreparedHandle {
    client: Arc<NodeClient>,
    connection: Arc<NodeConnection>,
    principal: Arc<Principal>,
    handle: Bytes,
}

/// Prepares `sql` and binds `parameters` to it. `None` if the server has no prepared statements, or binds no values to them.
///
/// # Errors
/// Those of the server.
pub(super) async fn prepare(
    target: RequestTarget<'_>,
    sql: String,
    parameters: &[Parameter],
    within: Duration,
) -> Result<Option<PreparedHandle>, Error> {
    let RequestTarget { client, connection, principal } = target;
    let name = &client.name;
    let values = values_of(parameters)?;
    let request = ActionCreatePreparedStatementRequest { query: sql, transaction_id: None };
    let body = request.as_any().encode_to_vec().into();
    let action = Action { r#type: "CreatePreparedStatement".to_owned(), body };
    let mut lease = connection.lease().await;
    let request = client.request(action, principal, within)?;
    let answer = async { lease.client.do_action(request).await?.into_inner().message().await };
    let answer = match answer.await {
        Ok(answer) => answer,
        Err(status) if is_missing_feature(&status) => return Ok(None),
        Err(status) => return Err(status::to_error(name, &status)),
    };
    let malformed = |problem: String| status::malformed(name, &problem);
    let answer = answer.ok_or_else(|| malformed("a prepared statement has no handle".to_owned()))?;
    let prepared = Any::decode(answer.body).map_err(|error| malformed(error.to_string()))?;
    let prepared: Option<ActionCreatePreparedStatementResult> =
        prepared.unpack().map_err(|error| malformed(error.to_string()))?;
    let prepared = prepared.ok_or_else(|| malformed("a prepared statement has no handle".to_owned()))?;
    let mut handle = PreparedHandle {
        client: client.clone(),
        connection: connection.clone(),
        principal: principal.clone(),
        handle: prepared.prepared_statement_handle,
    };
    let is_bound = handle.bind(values, within).await?;
    Ok(is_bound.then_some(handle))
}

impl PreparedHandle {
    /// The command that runs the statement.
    pub(super) fn command(&self) -> Any {
        CommandPreparedStatementQuery { prepared_statement_handle: self.handle.clone() }.as_any()
    }

    /// Binds a row of values. `false` if the server cannot.
    async fn bind(&mut self, values: RecordBatch, within: Duration) -> Result<bool, Error> {
        let name = &self.client.name;
        let descriptor = FlightDescriptor::new_cmd(self.command().encode_to_vec());
        let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
        let messages: Vec<Result<FlightData, FlightError>> = encoder.build(stream::iter([Ok(values)])).collect().await;
        let messages: Result<Vec<FlightData>, FlightError> = messages.into_iter().collect();
        let messages =
            messages.map_err(|error| Error::internal(format!("values cannot be written as Arrow: {error}")))?;
        let mut lease = self.connection.lease().await;
        let request = self.client.request(stream::iter(messages), &self.principal, within)?;
        let results = async {
            let mut results = lease.client.do_put(request).await?.into_inner();
            let first = results.message().await?;
            while results.message().await?.is_some() {}
            Ok(first)
        };
        let result = match results.await {
            Ok(result) => result,
            Err(status) if is_missing_feature(&status) => return Ok(false),
            Err(status) => return Err(status::to_error(name, &status)),
        };
        let result = result.filter(|result| !result.app_metadata.is_empty());
        let result = result.and_then(|result| DoPutPreparedStatementResult::decode(result.app_metadata).ok());
        if let Some(handle) = result.and_then(|result| result.prepared_statement_handle) {
            self.handle = handle;
        }
        Ok(true)
    }
}

impl Drop for PreparedHandle {
    fn drop(&mut self) {
        let (client, connection) = (self.client.clone(), self.connection.clone());
        let request = ActionClosePreparedStatementRequest { prepared_statement_handle: self.handle.clone() };
        let action =
            Action { r#type: "ClosePreparedStatement".to_owned(), body: request.as_any().encode_to_vec().into() };
        let principal = self.principal.clone();
        self.client.spawn(async move {
            let mut lease = connection.lease().await;
            let Ok(request) = client.request(action, &principal, CLOSE_WITHIN) else { return };
            // The server forgets the statement by itself at some time.
            let _ = tokio::time::timeout(CLOSE_WITHIN, lease.client.do_action(request)).await;
        });
    }
}

/// One row of `parameters`.
fn values_of(parameters: &[Parameter]) -> Result<RecordBatch, Error> {
    let columns = parameters.iter().enumerate().map(|(index, parameter)| {
        let column: ArrayRef = match parameter {
            Parameter::Null => Arc::new(NullArray::new(1)),
            Parameter::Boolean(value) => Arc::new(BooleanArray::from(vec![*value])),
            Parameter::Integer(value) => Arc::new(Int64Array::from(vec![*value])),
            Parameter::Float(value) => Arc::new(Float64Array::from(vec![*value])),
            Parameter::Text(text) => Arc::new(StringArray::from(vec![text.as_str()])),
        };
        (format!("${}", index + 1), column, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| Error::internal(format!("values cannot be written as Arrow: {error}")))
}
