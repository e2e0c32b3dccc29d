//! A small server of Flight SQL that is not Tidegate.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    Any, CommandGetSqlInfo, CommandGetTables, CommandPreparedStatementQuery, CommandStatementQuery,
    DoPutPreparedStatementResult, ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{Action, ActionType, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, Ticket};
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use prost::Message;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::tables::schema_of;

/// What becomes of a message, by its position; `None` if it is not sent.
pub(crate) type Damage = fn(usize, FlightData) -> Option<FlightData>;

/// How the server differs from others.
#[derive(Clone)]
pub(crate) struct OtherProgram {
    pub(crate) identifier_quote: &'static str,
    /// Whether the server reports the quotation mark.
    pub(crate) reports_quote: bool,
    /// What the server reads as `'a''b\c'`.
    pub(crate) odd_text: &'static str,
    /// The locations of the parts of an answer; each part has one row with its number.
    pub(crate) locations: Vec<Option<&'static str>>,
    pub(crate) has_prepared_statements: bool,
    /// Whether the server has the command that lists tables; otherwise only `SHOW TABLES`, with these columns.
    pub(crate) shows_tables: Option<[&'static str; 2]>,
    /// The metadata of the columns of answers.
    pub(crate) metadata: Vec<(&'static str, &'static str)>,
    /// What becomes of the messages of an answer.
    pub(crate) damage: Damage,
    /// The answer to `tidegate.check`, if the server is another version of Tidegate.
    pub(crate) node_check: Option<&'static str>,
    /// What clients sent: statements, bound values, closed handles.
    pub(crate) received: Arc<Mutex<Vec<String>>>,
}

impl Default for OtherProgram {
    fn default() -> Self {
        Self {
            identifier_quote: "\"",
            reports_quote: true,
            odd_text: r"a'b\c",
            locations: vec![None],
            has_prepared_statements: true,
            shows_tables: None,
            metadata: Vec::new(),
            damage: |_, message| Some(message),
            node_check: None,
            received: Arc::default(),
        }
    }
}

impl OtherProgram {
    /// Serves until the test ends, and returns the URL.
    pub(crate) async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("grpc://{}", listener.local_addr().unwrap());
        let service = FlightServiceServer::new(self.clone());
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)));
        url
    }

    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().clone()
    }

    fn record(&self, text: impl Into<String>) {
        self.received.lock().push(text.into());
    }

    fn info_of_parts(&self) -> FlightInfo {
        let endpoints = self.locations.iter().enumerate().map(|(part, location)| {
            let handle = part.to_string().into_bytes().into();
            let ticket = TicketStatementQuery { statement_handle: handle }.as_any().encode_to_vec();
            let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket));
            location.map_or(endpoint.clone(), |location| endpoint.with_location(location))
        });
        let info = FlightInfo::new().try_with_schema(&schema_of("numbers")).unwrap();
        endpoints.fold(info, FlightInfo::with_endpoint)
    }

    /// The answer to a statement that selects a text through the quoted name `x y`.
    fn read_probe(&self, query: &str) -> Result<Response<FlightInfo>, Status> {
        let quote = self.identifier_quote;
        let name = format!("{quote}x y{quote}");
        let text = match () {
            // Another quotation mark is that of a text, as in Spark.
            () if query.starts_with("SELECT \"x y\"") && quote == "`" => "x y",
            () if !query.starts_with(&format!("SELECT {name} ")) => {
                return Err(Status::invalid_argument("unexpected quotation mark"));
            }
            () if query.contains("''") => self.odd_text,
            () => "a",
        };
        let ticket = TicketStatementQuery { statement_handle: text.to_owned().into() };
        Ok(info_of(&ticket.as_any()))
    }

    fn sql_info(&self) -> SqlInfoData {
        let mut info = SqlInfoDataBuilder::new();
        info.append(SqlInfo::FlightSqlServerName, "Other");
        info.append(SqlInfo::FlightSqlServerVersion, "9");
        if self.reports_quote {
            info.append(SqlInfo::SqlIdentifierQuoteChar, self.identifier_quote);
        }
        info.build().unwrap()
    }
}

fn part(number: i64) -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from(vec![number]));
    let t = arrow::array::new_null_array(schema_of("numbers").field(1).data_type(), 1);
    RecordBatch::try_new(schema_of("numbers"), vec![n, t]).unwrap()
}

type Answer = Response<<OtherProgram as FlightService>::DoGetStream>;

fn answer(batch: RecordBatch) -> Answer {
    let encoder = FlightDataEncoderBuilder::new().with_schema(batch.schema());
    Response::new(encoder.build(stream::iter([Ok(batch)])).map_err(Status::from).boxed())
}

fn info_of(command: &Any) -> Response<FlightInfo> {
    let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(command.encode_to_vec()));
    Response::new(FlightInfo::new().with_endpoint(endpoint))
}

#[tonic::async_trait]
impl FlightSqlService for OtherProgram {
    type FlightService = Self;

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        if query.query.contains("x y") {
            return self.read_probe(&query.query);
        }
        self.record(&query.query);
        if let Some(columns) = self.shows_tables.filter(|_| query.query == "SHOW TABLES") {
            let ticket = TicketStatementQuery { statement_handle: columns.join("|").into() };
            return Ok(info_of(&ticket.as_any()));
        }
        if query.query.contains("wrong") {
            return Err(Status::invalid_argument("no such column: wrong"));
        }
        Ok(Response::new(self.info_of_parts()))
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, _: Request<Ticket>) -> Result<Answer, Status> {
        let handle = std::str::from_utf8(&ticket.statement_handle).unwrap();
        if let Some((schemas, names)) = handle.split_once('|') {
            let listed: [(&str, ArrayRef); 2] = [
                (schemas, Arc::new(StringViewArray::from(vec!["public", "public", "information_schema", "a", "b"]))),
                (names, Arc::new(StringViewArray::from(vec!["numbers", "the \"wrong\"", "views", "twice", "twice"]))),
            ];
            return Ok(answer(RecordBatch::try_from_iter(listed).unwrap()));
        }
        let Ok(number) = handle.parse() else {
            let text: ArrayRef = Arc::new(StringViewArray::from(vec![handle]));
            return Ok(answer(RecordBatch::try_from_iter([("x y", text)]).unwrap()));
        };
        let metadata = self.metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let batch = part(number);
        let schema = batch.schema().as_ref().clone().with_metadata(metadata.collect());
        let batch = batch.with_schema(Arc::new(schema)).unwrap();
        let damage = self.damage;
        let messages = answer(batch)
            .into_inner()
            .enumerate()
            .filter_map(move |(index, message)| async move { damage(index, message.unwrap()).map(Ok) });
        Ok(Response::new(messages.boxed()))
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        match self.shows_tables {
            Some(_) => Err(Status::unimplemented("no list of tables here")),
            None => Ok(info_of(&query.as_any())),
        }
    }

    async fn do_get_tables(&self, query: CommandGetTables, _: Request<Ticket>) -> Result<Answer, Status> {
        let mut tables = query.into_builder();
        let numbers = schema_of("numbers");
        for (schema, name) in [
            ("public", "numbers"),
            ("archive", "typed"),
            ("public", "twice"),
            ("archive", "twice"),
            ("information_schema", "x"),
        ] {
            let columns = if name == "typed" { schema_of(name) } else { numbers.clone() };
            tables.append("plant", schema, name, "TABLE", &columns).unwrap();
        }
        Ok(answer(tables.build().unwrap()))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        Ok(info_of(&query.as_any()))
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _: Request<Ticket>) -> Result<Answer, Status> {
        Ok(answer(query.into_builder(&self.sql_info()).build().unwrap()))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        let action = ActionType { r#type: "tidegate.tables".to_owned(), description: String::new() };
        self.node_check.map(|_| vec![Ok(action)])
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let Some(body) = self.node_check.filter(|_| request.get_ref().r#type == "tidegate.check") else {
            return Err(Status::unimplemented("no such action"));
        };
        let answer = arrow_flight::Result { body: body.into() };
        Ok(Response::new(stream::iter([Ok(answer)]).boxed()))
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        if !self.has_prepared_statements {
            return Err(Status::unimplemented("no prepared statements here"));
        }
        self.record(&query.query);
        let prepared_statement_handle = "handle".into();
        Ok(ActionCreatePreparedStatementResult { prepared_statement_handle, ..Default::default() })
    }

    async fn do_put_prepared_statement_query(
        &self,
        _: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let messages = request.into_inner().map_err(|status| FlightError::Tonic(Box::new(status)));
        let batches: Vec<RecordBatch> =
            FlightRecordBatchStream::new_from_flight_data(messages).try_collect().await.map_err(Status::from)?;
        let values = batches.iter().flat_map(|batch| {
            batch.columns().iter().map(|column| arrow::util::display::array_value_to_string(column, 0).unwrap())
        });
        self.record(values.collect::<Vec<_>>().join("|"));
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some("bound".into()) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        assert_eq!(query.prepared_statement_handle, "bound".as_bytes());
        Ok(Response::new(self.info_of_parts()))
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<(), Status> {
        self.record(format!("closed {}", String::from_utf8_lossy(&query.prepared_statement_handle)));
        Ok(())
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
