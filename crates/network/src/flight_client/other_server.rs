//! Servers of other programs: the commands of Flight SQL. Statements with values are prepared statements.
//!
//! The parts of an answer are read from the server itself, in order. A part that is only at another location is refused,
//! because the credentials are for this server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    Any, CommandPreparedStatementQuery, CommandStatementQuery, DoPutPreparedStatementResult, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, Location, Ticket};
use bytes::Bytes;
use futures::{StreamExt, stream};
use prost::Message;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::QueryRows;
use tidegate_runtime::Job;
use tidegate_sql::{Parameter, Statement};
use tokio::time::{Instant, timeout};

use super::answer::{BatchReader, FurtherParts, open_answer};
use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::server_kind::{Quotation, is_missing_feature};
use super::status;

/// Parts of one answer.
const PARTS_MAX: usize = 10_000;
/// The location of a part that means the server itself.
const SAME_SERVER: &str = "arrow-flight-reuse-connection:";

/// Where and for whom a request is sent.
#[derive(Clone, Copy)]
pub(super) struct RequestTarget<'a> {
    pub(super) client: &'a Arc<NodeClient>,
    pub(super) connection: &'a Arc<NodeConnection>,
    pub(super) principal: &'a Arc<Principal>,
}

/// Runs `statement` on a server that is not Tidegate.
pub(super) async fn run(
    target: RequestTarget<'_>,
    statement: &Statement,
    quotation: Quotation,
    job: &Arc<Job>,
    (accept_within, deadline): (Duration, Instant),
) -> Result<QueryRows, Error> {
    let RequestTarget { client, connection, principal } = target;
    let begun = Instant::now();
    let starting = async {
        let (info, prepared) = target.start(statement, quotation, accept_within).await?;
        let schema = schema_of(&info);
        let mut tickets = client.tickets_of(connection, info)?;
        let first = match tickets.pop_front() {
            Some(first) => {
                let remaining = job.deadline().saturating_duration_since(Instant::now());
                Some(client.open_part(connection, principal, first, remaining).await?)
            }
            None => None,
        };
        Ok((schema, tickets, first, prepared))
    };
    let started = tokio::select! {
        biased;
        () = job.cancelled() => return Err(Error::cancelled()),
        started = timeout(accept_within, starting) => started,
    };
    let started = started.unwrap_or_else(|_| Err(status::timed_out(&client.name, accept_within.as_secs_f64())));
    let (schema, tickets, first, prepared) = started?;
    client.observe_answer(Some(begun.elapsed()));
    let Some(reader) = first else {
        let schema = schema.ok_or_else(|| status::malformed(&client.name, "it has neither parts nor columns"))?;
        return Ok(QueryRows::from_batch(RecordBatch::new_empty(schema)));
    };
    let further = FurtherParts {
        client: client.clone(),
        connection: connection.clone(),
        principal: principal.clone(),
        tickets,
        _prepared: prepared,
    };
    open_answer(reader, Some(further), job, deadline).await
}

/// The columns of the answer to `statement`.
pub(super) async fn describe(
    target: RequestTarget<'_>,
    statement: &Statement,
    quotation: Quotation,
    within: Duration,
) -> Result<SchemaRef, Error> {
    let (info, _prepared) = target.start(statement, quotation, within).await?;
    if let Some(schema) = schema_of(&info) {
        return Ok(schema);
    }
    let query = statement.text_with_values(quotation.identifiers, quotation.has_standard_texts)?;
    let command = CommandStatementQuery { query, transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    target.client.get_schema(target.connection, target.principal, descriptor, within).await
}

impl RequestTarget<'_> {
    async fn start(
        self,
        statement: &Statement,
        quotation: Quotation,
        within: Duration,
    ) -> Result<(FlightInfo, Option<PreparedHandle>), Error> {
        let Quotation { identifiers, has_standard_texts } = quotation;
        let text = statement.text_for_server(identifiers, has_standard_texts)?;
        let (query, prepared) = match statement.parameters() {
            [] => (text, None),
            parameters => match prepare(self, text, parameters, within).await? {
                None => (statement.text_with_values(identifiers, has_standard_texts)?, None),
                prepared => (String::new(), prepared),
            },
        };
        let command = match &prepared {
            Some(prepared) => prepared.command(),
            None => CommandStatementQuery { query, transaction_id: None }.as_any(),
        };
        let info = self.client.flight_info(self.connection, self.principal, command, within).await?;
        Ok((info, prepared))
    }
}

fn schema_of(info: &FlightInfo) -> Option<SchemaRef> {
    let schema: Schema = (!info.schema.is_empty()).then(|| info.clone().try_decode_schema().ok())??;
    Some(Arc::new(schema))
}

impl NodeClient {
    /// The answer to `GetFlightInfo` for `command`.
    pub(super) async fn flight_info(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        command: Any,
        within: Duration,
    ) -> Result<FlightInfo, Error> {
        let mut lease = connection.lease().await;
        let descriptor = FlightDescriptor::new_cmd(command.encode_to_vec());
        let request = self.request(descriptor, principal, within)?;
        let info = lease.client.get_flight_info(request).await;
        info.map(tonic::Response::into_inner).map_err(|status| status::to_error(&self.name, &status))
    }

    /// The answer to `GetSchema` for `descriptor`.
    pub(super) async fn get_schema(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        descriptor: FlightDescriptor,
        within: Duration,
    ) -> Result<SchemaRef, Error> {
        let mut lease = connection.lease().await;
        let request = self.request(descriptor, principal, within)?;
        let answer = lease.client.get_schema(request).await.map_err(|status| match is_missing_feature(&status) {
            true => status::malformed(&self.name, "it does not report the columns of statements"),
            false => status::to_error(&self.name, &status),
        })?;
        let schema = Schema::try_from(answer.into_inner());
        schema.map(Arc::new).map_err(|error| status::malformed(&self.name, &error.to_string()))
    }

    /// Opens the part of an answer that `ticket` names.
    pub(super) async fn open_part(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        ticket: Ticket,
        within: Duration,
    ) -> Result<BatchReader, Error> {
        let mut lease = connection.lease().await;
        let request = self.request(ticket, principal, within)?;
        let answer = lease.client.do_get(request).await.map_err(|status| status::to_error(&self.name, &status))?;
        Ok(BatchReader::new(&self.name, answer.into_inner(), lease))
    }

    /// The tickets of the parts of an answer, all of which are at the server itself.
    pub(super) fn tickets_of(&self, connection: &NodeConnection, info: FlightInfo) -> Result<VecDeque<Ticket>, Error> {
        if info.endpoint.len() > PARTS_MAX {
            return Err(status::malformed(&self.name, &format!("it has more than {PARTS_MAX} parts")));
        }
        let parts = info.endpoint.into_iter().map(|part| {
            let is_here = part.location.is_empty() || part.location.iter().any(|at| is_at(at, connection));
            if !is_here {
                let at = part.location.first().map(|location| location.uri.as_str()).unwrap_or_default();
                let message = format!("node {:?} refers to another server for its rows: {at:?}", self.name);
                let hint = "Only the configured server is read; configure the other one as a database of its own.";
                return Err(Error::new(ErrorKind::Failed, message).with_hint(hint));
            }
            part.ticket.ok_or_else(|| status::malformed(&self.name, "a part has no ticket"))
        });
        parts.collect()
    }
}

fn is_at(location: &Location, connection: &NodeConnection) -> bool {
    location.uri.starts_with(SAME_SERVER) || connection.address.is_same_server(&location.uri)
}

/// Whether the server does not have the command. Servers report this in different ways.
pub(super) fn is_refused(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Failed | ErrorKind::InvalidArguments | ErrorKind::NotFound)
}

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
async fn prepare(
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
