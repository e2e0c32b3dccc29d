//! The requests of Flight: bounds and authenticates each, and passes commands on.
//!
//! Messages with rows may be larger than all others. The end of a body has a meaning: a reset stream is an error, never an
//! end. tonic takes a request that was reset with CANCEL for one that has ended, and hyper does so with NO_ERROR. The rows
//! that were sent before would then count as all rows.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::{Any, Command, DoPutPreparedStatementResult, ProstMessageExt};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http_body::{Frame, SizeHint};
use prost::Message;
use tidegate_core::Caller;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;
use tonic::{Request, Response, Status, Streaming};

use super::caller::FlightCredentials;
use super::{FlightState, to_status};
use crate::node_protocol::{CHECK_ACTION, NamedStatement, STORAGE_ACTION, TABLES_ACTION};

/// The actions of Flight SQL that this server has, and those for other nodes.
const ACTIONS: [(&str, &str); 5] = [
    ("CreatePreparedStatement", "Prepares a statement (ActionCreatePreparedStatementRequest)"),
    ("ClosePreparedStatement", "Forgets a prepared statement (ActionClosePreparedStatementRequest)"),
    (TABLES_ACTION, "Lists the tables of a database with their columns, for other nodes (JSON)"),
    (STORAGE_ACTION, "Reports how a table is stored, for other nodes (JSON)"),
    (CHECK_ACTION, "Reports version and clock, for other nodes (JSON)"),
];

pub(super) const READ_ONLY: &str =
    "updates and transactions are not available over Flight SQL: send queries, or rows to a table that takes rows";

type Stream<T> = BoxStream<'static, Result<T, Status>>;

/// The Flight service over a registry.
pub(super) struct TidegateFlightService(pub(super) Arc<FlightState>);

/// An admitted request: its caller, its credentials and its headers.
pub(super) struct FlightRequest {
    pub(super) state: Arc<FlightState>,
    pub(super) caller: Caller,
    pub(super) credentials: FlightCredentials,
    pub(super) metadata: MetadataMap,
}

impl TidegateFlightService {
    pub(super) fn new(state: Arc<FlightState>) -> Self {
        Self(state)
    }

    /// Authenticates and counts a request.
    async fn admit<T>(&self, request: Request<T>) -> Result<(FlightRequest, T), Status> {
        let credentials = FlightCredentials::from_request(&self.0, &request);
        let caller = credentials.resolve_caller(&self.0).await?;
        self.0.registry.admit_request(&caller).await.map_err(|error| to_status(&error))?;
        let (metadata, _, message) = request.into_parts();
        Ok((FlightRequest { state: self.0.clone(), caller, credentials, metadata }, message))
    }
}

fn parse_command(bytes: &[u8]) -> Result<Command, Status> {
    let malformed = |problem: String| Status::invalid_argument(format!("the command is malformed: {problem}"));
    let command = Any::decode(Bytes::copy_from_slice(bytes)).map_err(|error| malformed(error.to_string()))?;
    Command::try_from(command).map_err(|error| malformed(error.to_string()))
}

/// The statement of a client that is another node; `None` for the commands and tickets of Flight SQL.
fn parse_statement(bytes: &[u8]) -> Option<Result<NamedStatement, Status>> {
    let statement = NamedStatement::from_command(bytes)?;
    Some(statement.map_err(|problem| Status::invalid_argument(format!("the statement is malformed: {problem}"))))
}

fn unsupported(command: &Command) -> Status {
    let name = command.type_url().rsplit('.').next().unwrap_or_default();
    match command {
        Command::CommandStatementUpdate(_) | Command::CommandPreparedStatementUpdate(_) => {
            Status::permission_denied(READ_ONLY)
        }
        _ => Status::unimplemented(format!("this server does not have the Flight SQL command {name}")),
    }
}

impl FlightRequest {
    async fn flight_info(self, descriptor: FlightDescriptor) -> Result<FlightInfo, Status> {
        let command = parse_command(&descriptor.cmd)?;
        let (ticket, schema) = match command {
            Command::CommandStatementQuery(query) => (self.statement_ticket(&query)?, Bytes::new()),
            Command::CommandPreparedStatementQuery(query) => {
                self.prepared_statement(&query.prepared_statement_handle)?;
                // The answer itself has the columns: what is computed may not be null where the statement could be, and
                // clients compare both.
                (query.as_any(), Bytes::new())
            }
            command => match self.catalog_schema(&command) {
                Some(schema) => (command.into_any(), schema?),
                None => return Err(unsupported(&command)),
            },
        };
        let ticket = self.state.tickets.issue(&ticket, &self.caller);
        let endpoint = FlightEndpoint { ticket: Some(ticket), ..FlightEndpoint::default() };
        Ok(FlightInfo {
            schema,
            flight_descriptor: Some(descriptor),
            endpoint: vec![endpoint],
            total_records: -1,
            total_bytes: -1,
            ordered: true,
            ..FlightInfo::default()
        })
    }

    async fn answer(self, ticket: Ticket) -> Result<Stream<FlightData>, Status> {
        if let Some(statement) = parse_statement(&ticket.ticket) {
            return self.answer_named(statement?);
        }
        let command = self.state.tickets.open(&ticket, &self.caller)?;
        let malformed = |error: arrow::error::ArrowError| Status::invalid_argument(error.to_string());
        match Command::try_from(command).map_err(malformed)? {
            Command::TicketStatementQuery(query) => self.answer_statement(&query.statement_handle),
            Command::CommandPreparedStatementQuery(query) => {
                self.answer_prepared_statement(&query.prepared_statement_handle)
            }
            command => self.answer_catalog(command).await,
        }
    }

    async fn schema(self, descriptor: FlightDescriptor) -> Result<SchemaResult, Status> {
        if let Some(statement) = parse_statement(&descriptor.cmd) {
            return Ok(SchemaResult { schema: self.describe(&statement?).await? });
        }
        let schema = match parse_command(&descriptor.cmd)? {
            Command::CommandStatementQuery(query) => {
                let statement = self.named_statement(&query)?;
                self.describe(&statement).await?
            }
            Command::CommandPreparedStatementQuery(query) => {
                self.prepared_statement(&query.prepared_statement_handle)?.schema
            }
            command => self.catalog_schema(&command).unwrap_or_else(|| Err(unsupported(&command)))?,
        };
        Ok(SchemaResult { schema })
    }

    /// Binds parameters, or stores rows; everything else that clients put is refused.
    async fn put(self, mut messages: Streaming<FlightData>) -> Result<Response<PutResult>, Status> {
        let no_descriptor = || Status::invalid_argument("the first message of DoPut has no descriptor");
        let first = messages.next().await.transpose()?.ok_or_else(no_descriptor)?;
        let descriptor = first.flight_descriptor.as_ref().ok_or_else(no_descriptor)?;
        match parse_command(&descriptor.cmd)? {
            Command::CommandPreparedStatementQuery(query) => {
                let messages = stream::iter([Ok(first)]).chain(messages).boxed();
                self.bind_parameters(&query.prepared_statement_handle, messages).await?;
                let handle = Some(query.prepared_statement_handle);
                let result = DoPutPreparedStatementResult { prepared_statement_handle: handle };
                Ok(Response::new(PutResult { app_metadata: result.encode_to_vec().into() }))
            }
            Command::CommandStatementIngest(command) => self.ingest(command, first, messages).await,
            command => Err(unsupported(&command)),
        }
    }

    async fn act(self, action: Action) -> Result<Stream<arrow_flight::Result>, Status> {
        match action.r#type.as_str() {
            "CreatePreparedStatement" => {
                let prepared = self.prepare(&action.body).await?;
                let body = prepared.as_any().encode_to_vec().into();
                Ok(stream::iter([Ok(arrow_flight::Result { body })]).boxed())
            }
            "ClosePreparedStatement" => {
                self.close_prepared_statement(&action.body)?;
                Ok(stream::empty().boxed())
            }
            TABLES_ACTION => {
                let messages = self.list_tables_for_node(&action.body).await?;
                let results = messages.into_iter().map(|body| Ok(arrow_flight::Result { body }));
                Ok(stream::iter(results).boxed())
            }
            STORAGE_ACTION => {
                let body = self.table_storage_for_node(&action.body).await?;
                Ok(stream::iter([Ok(arrow_flight::Result { body })]).boxed())
            }
            CHECK_ACTION => {
                let body = self.check_for_node(&action.body).await?;
                Ok(stream::iter([Ok(arrow_flight::Result { body })]).boxed())
            }
            "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
                Err(Status::permission_denied(READ_ONLY))
            }
            name => {
                let known = ACTIONS.map(|(name, _)| name).join(", ");
                Err(Status::unimplemented(format!("this server does not have the action {name:?}; it has {known}")))
            }
        }
    }
}

#[tonic::async_trait]
impl FlightService for TidegateFlightService {
    type HandshakeStream = Stream<HandshakeResponse>;
    type ListFlightsStream = Stream<FlightInfo>;
    type DoGetStream = Stream<FlightData>;
    type DoPutStream = Stream<PutResult>;
    type DoActionStream = Stream<arrow_flight::Result>;
    type ListActionsStream = Stream<ActionType>;
    type DoExchangeStream = Stream<FlightData>;

    /// Clients with a user name and a password receive the key, which was the password, as a bearer token.
    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let (request, _) = self.admit(request).await?;
        let bearer = request.credentials.bearer().unwrap_or_default();
        let payload = Bytes::copy_from_slice(bearer.as_bytes());
        let answer = HandshakeResponse { protocol_version: 0, payload };
        let mut response = Response::new(stream::iter([Ok(answer)]).boxed());
        if let Ok(value) = format!("Bearer {bearer}").parse() {
            response.metadata_mut().insert("authorization", value);
        }
        Ok(response)
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        self.admit(request).await?;
        Ok(Response::new(stream::empty().boxed()))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let (request, descriptor) = self.admit(request).await?;
        Ok(Response::new(request.flight_info(descriptor).await?))
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        let (request, descriptor) = self.admit(request).await?;
        let info = Some(request.flight_info(descriptor).await?);
        Ok(Response::new(PollInfo { info, ..PollInfo::default() }))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let (request, descriptor) = self.admit(request).await?;
        Ok(Response::new(request.schema(descriptor).await?))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let (request, ticket) = self.admit(request).await?;
        Ok(Response::new(request.answer(ticket).await?))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let (request, messages) = self.admit(request).await?;
        let response = request.put(messages).await?;
        Ok(response.map(|result| stream::iter([Ok(result)]).boxed()))
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let (request, action) = self.admit(request).await?;
        Ok(Response::new(request.act(action).await?))
    }

    async fn list_actions(&self, request: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        self.admit(request).await?;
        let actions = ACTIONS
            .map(|(name, description)| Ok(ActionType { r#type: name.to_owned(), description: description.to_owned() }));
        Ok(Response::new(stream::iter(actions).boxed()))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.admit(request).await?;
        Err(Status::unimplemented("this server does not have DoExchange"))
    }
}

/// Bytes of a request: a statement.
const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a message with rows, or with values of parameters; it has one batch. Its caller is authenticated before.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a message of an answer. Batches are cut at 3 MiB; only a single row can be larger.
const ANSWER_BYTES_MAX: usize = 1 << 30;
const PUT_METHOD: &str = "/DoPut";

type Server = FlightServiceServer<TidegateFlightService>;

/// The service, with a limit for the messages of each method.
#[derive(Clone)]
pub(super) struct BoundedFlightService {
    of_rows: Server,
    others: Server,
}

impl BoundedFlightService {
    pub(super) fn new(service: TidegateFlightService) -> Self {
        let service = Arc::new(service);
        let server = |bytes_max| {
            FlightServiceServer::from_arc(service.clone())
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(ANSWER_BYTES_MAX)
        };
        Self { of_rows: server(MESSAGE_BYTES_MAX), others: server(REQUEST_BYTES_MAX) }
    }
}

impl NamedService for BoundedFlightService {
    const NAME: &'static str = Server::NAME;
}

impl Service<http::Request<Body>> for BoundedFlightService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Both are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match request.uri().path().ends_with(PUT_METHOD) {
            true => self.of_rows.call(request.map(|body| Body::new(WholeBody(body)))),
            false => self.others.call(request),
        }
    }
}

const RESET: &str = "the client has cancelled the request, or its connection broke";

/// A body that ends only if the client has ended it.
struct WholeBody(Body);

impl http_body::Body for WholeBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // Any status but CANCELLED, which tonic takes for an end.
        let reset = || Poll::Ready(Some(Err(Status::aborted(RESET))));
        match ready!(Pin::new(&mut self.0).poll_frame(context)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            Some(Err(_)) => reset(),
            None if self.0.is_end_stream() => Poll::Ready(None),
            None => reset(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
