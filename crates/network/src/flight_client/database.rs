//! A database that is reached over Flight SQL, and its statements as a node has described them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::datatypes::SchemaRef;
use arrow_flight::{FlightDescriptor, Ticket};
use async_trait::async_trait;
use serde_json::Value;
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, NodeCheck, NodeDatabase, NodeObservation, NodeTables, NodeWrite,
    Plan, QueryRows, RowWriter, StableHasher, TableEntry, TableStatus, TableStorage, field_type_name,
};
use tidegate_runtime::Job;
use tidegate_sql::{Parameter, SqlDialect, Statement};
use tokio::time::{Instant, timeout};

use super::answer::open_answer;
use super::connection::NodeConnection;
use super::node_client::{NodeAction, NodeClient};
use super::options::FlightSqlOptions;
use super::other_server::{self, RequestTarget};
use super::server_kind::{self, ServerKind};
use super::status;
use crate::node_protocol::NamedStatement;

/// Names in an error about an unknown table.
const CHOICES_MAX: usize = 20;

/// A database of a server of Flight SQL. Its name is also the name of the node in its network.
///
/// It must be created in the runtime that its connections use. Nothing is connected before the first request.
pub struct FlightSqlDatabase {
    client: Arc<NodeClient>,
}

impl FlightSqlDatabase {
    /// A database of the name `name`.
    ///
    /// # Errors
    /// `InvalidArguments` when a URL, a certificate or the token cannot be used.
    pub fn new(name: impl Into<String>, options: FlightSqlOptions) -> Result<Self, Error> {
        Ok(Self { client: Arc::new(NodeClient::new(name.into(), options)?) })
    }
}

#[async_trait]
impl Database for FlightSqlDatabase {
    fn name(&self) -> &str {
        &self.client.name
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::FlightSql
    }

    fn dialect(&self) -> SqlDialect {
        self.client.dialect
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let known = self.client.known_tables(principal).await?;
        let tables = known.tables.iter().map(|table| TableEntry {
            name: table.name.clone(),
            rows: table.rows,
            comment: table.comment.clone(),
            facts: None,
            status: table.unreadable.clone().map_or(TableStatus::Readable, TableStatus::Unreadable),
        });
        Ok(Arc::new(Catalog::from_tables(tables.collect())))
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let known = self.client.known_tables(principal).await?;
        let found = known.tables.iter().find(|known| known.name == table).ok_or_else(|| {
            let names = || known.tables.iter().map(|table| table.name.as_str());
            let near = nearest_names(table, names());
            let choices = if near.is_empty() { names().take(CHOICES_MAX).map(str::to_owned).collect() } else { near };
            let message = format!("there is no table {table:?} in database {:?}", self.client.name);
            Error::new(ErrorKind::NotFound, message).with_choices(choices)
        })?;
        if let Some(reason) = &found.unreadable {
            let message = format!("the table {table:?} of {:?} cannot be read: {reason}", self.client.name);
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let fields = found.schema.fields().iter();
        Ok(fields
            .map(|field| ColumnEntry {
                name: field.name().clone(),
                type_name: field_type_name(field),
                nullable: field.is_nullable(),
                ..ColumnEntry::default()
            })
            .collect())
    }

    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        self.client.table_storage(table, principal).await
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let principal = Arc::new(principal.clone());
        let schema = self.client.describe(statement, &principal).await?;
        Ok(Box::new(FlightPlan { client: self.client.clone(), statement: statement.clone(), principal, schema }))
    }

    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        self.client.describe(statement, &Arc::new(principal.clone())).await
    }

    /// Answers differ between callers where the node knows them.
    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        match self.client.identity(principal) {
            identity if identity == [0; 32] => 0,
            identity => {
                let mut hasher = StableHasher::default();
                hasher.add(identity);
                hasher.finish()
            }
        }
    }

    async fn check_reachable(&self) -> Result<(), Error> {
        match self.client.replicas.is_any_reachable().await {
            true => Ok(()),
            false => Err(status::unavailable(&self.client.name, "it accepts no connection")),
        }
    }

    fn no_tables_reason(&self) -> &'static str {
        "the server shows none; catalog may name another one"
    }

    async fn close(&self) {
        self.client.replicas.close();
    }
}

#[async_trait]
impl NodeDatabase for FlightSqlDatabase {
    fn url(&self) -> String {
        self.client.replicas.preferred().address.to_string()
    }

    async fn tables(&self, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        self.client.known_tables(principal).await
    }

    async fn newer_tables(&self, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        self.client.newer_tables(principal).await
    }

    async fn check(&self, principal: &Principal) -> Result<NodeCheck, Error> {
        self.client.check(principal).await
    }

    async fn run(&self, statement: &Statement, principal: &Principal, job: &Arc<Job>) -> Result<QueryRows, Error> {
        self.client.run(statement, &Arc::new(principal.clone()), job).await
    }

    async fn begin_write(&self, write: NodeWrite, principal: &Principal) -> Result<Box<dyn RowWriter>, Error> {
        self.client.begin_write(write, principal).await
    }

    fn observed(&self) -> NodeObservation {
        self.client.observed()
    }
}

impl NodeClient {
    /// The columns of the answer to `statement`.
    async fn describe(self: &Arc<Self>, statement: &Statement, principal: &Arc<Principal>) -> Result<SchemaRef, Error> {
        check_reads(statement)?;
        let mut attempts = self.attempts(Instant::now() + self.timeout);
        while let Some((connection, within)) = attempts.next() {
            let description = async {
                match self.detect(&connection, principal, within).await? {
                    ServerKind::Tidegate => {
                        let descriptor = FlightDescriptor::new_cmd(self.named_statement(statement)?.to_command());
                        self.get_schema(&connection, principal, descriptor, within).await
                    }
                    ServerKind::Other(quotation) => {
                        let target = RequestTarget { client: self, connection: &connection, principal };
                        other_server::describe(target, statement, quotation, within).await
                    }
                }
            };
            let schema = timeout(within, description).await;
            let schema = schema.unwrap_or_else(|_| Err(status::timed_out(&self.name, within.as_secs_f64())));
            if let ControlFlow::Break(result) = attempts.settle(schema) {
                return result.inspect_err(|error| self.suspect_after(error, principal));
            }
        }
        Err(status::unavailable(&self.name, "no replica answered"))
    }

    /// Runs `statement` on the first replica that accepts it.
    pub(super) async fn run(
        self: &Arc<Self>,
        statement: &Statement,
        principal: &Arc<Principal>,
        job: &Arc<Job>,
    ) -> Result<QueryRows, Error> {
        check_reads(statement)?;
        let deadline = job.deadline().min(Instant::now() + self.timeout);
        let mut attempts = self.attempts(deadline);
        while let Some((connection, within)) = attempts.next() {
            let running = self.run_on(&connection, statement, principal, job, (within, deadline));
            let rows = tokio::select! {
                biased;
                () = job.cancelled() => return Err(Error::cancelled()),
                rows = running => rows,
            };
            if let ControlFlow::Break(result) = attempts.settle(rows) {
                return result.inspect_err(|error| self.suspect_after(error, principal));
            }
        }
        Err(status::unavailable(&self.name, "no replica answered"))
    }

    async fn run_on(
        self: &Arc<Self>,
        connection: &Arc<NodeConnection>,
        statement: &Statement,
        principal: &Arc<Principal>,
        job: &Arc<Job>,
        (within, deadline): (Duration, Instant),
    ) -> Result<QueryRows, Error> {
        let begun = Instant::now();
        if let ServerKind::Other(quotation) = self.detect(connection, principal, within).await? {
            let target = RequestTarget { client: self, connection, principal };
            return other_server::run(target, statement, quotation, job, (within, deadline)).await;
        }
        let ticket = Ticket { ticket: self.named_statement(statement)?.to_command() };
        let sent = Instant::now();
        let remaining = job.deadline().saturating_duration_since(sent);
        let accepting = self.open_part(connection, principal, ticket, remaining);
        let accepted = timeout(within.saturating_sub(begun.elapsed()), accepting).await;
        let reader = accepted.unwrap_or_else(|_| Err(status::timed_out(&self.name, within.as_secs_f64())))?;
        self.observe_answer(Some(sent.elapsed()));
        open_answer(reader, None, job, deadline).await
    }

    async fn check(self: &Arc<Self>, principal: &Principal) -> Result<NodeCheck, Error> {
        let mut attempts = self.attempts(Instant::now() + self.timeout);
        while let Some((connection, within)) = attempts.next() {
            let checked = timeout(within, self.check_on(&connection, principal, within)).await;
            let checked = checked.unwrap_or_else(|_| Err(status::timed_out(&self.name, within.as_secs_f64())));
            if let ControlFlow::Break(result) = attempts.settle(checked) {
                return result;
            }
        }
        Err(status::unavailable(&self.name, "no replica answered"))
    }

    async fn check_on(
        self: &Arc<Self>,
        connection: &Arc<NodeConnection>,
        principal: &Principal,
        within: Duration,
    ) -> Result<NodeCheck, Error> {
        let kind = self.detect(connection, principal, within).await?;
        let (begun, url) = (Instant::now(), connection.address.to_string());
        if kind != ServerKind::Tidegate {
            let version = server_kind::server_version(self, connection, principal, within).await?;
            let latency = begun.elapsed();
            self.observe_version(&version);
            self.observe_answer(Some(latency));
            let subject = String::new();
            return Ok(NodeCheck { version, url, latency, clock_offset_ms: 0, running_calls: 0, subject });
        }
        let before = now_ms();
        let answer = NodeAction { client: self, connection, principal, within }.check().await?;
        let latency = begun.elapsed();
        self.check_dialect(answer.dialect.as_deref())?;
        self.observe_answer(Some(latency));
        let middle = before + i64::try_from(latency.as_millis() / 2).unwrap_or_default();
        Ok(NodeCheck {
            version: answer.version,
            url,
            latency,
            clock_offset_ms: answer.time_ms.saturating_sub(middle),
            running_calls: answer.running_calls,
            subject: answer.subject,
        })
    }

    fn named_statement(&self, statement: &Statement) -> Result<NamedStatement, Error> {
        let parameters = statement.parameters().iter().map(to_json).collect::<Result<_, _>>()?;
        Ok(NamedStatement { database: self.database.clone(), sql: statement.text().to_owned(), parameters })
    }

    /// The tables may have changed, if a statement of known tables is refused.
    fn suspect_after(&self, error: &Error, principal: &Principal) {
        if matches!(error.kind(), ErrorKind::InvalidArguments | ErrorKind::NotFound) {
            self.suspect_tables(principal);
        }
    }
}

fn check_reads(statement: &Statement) -> Result<(), Error> {
    if !statement.transaction().writes {
        return Ok(());
    }
    let message = "statements that write cannot be sent to another server over Flight SQL";
    Err(Error::new(ErrorKind::InvalidArguments, message).with_hint("Declare the tool on that server."))
}

fn to_json(parameter: &Parameter) -> Result<Value, Error> {
    Ok(match parameter {
        Parameter::Null => Value::Null,
        Parameter::Boolean(value) => (*value).into(),
        Parameter::Integer(value) => (*value).into(),
        Parameter::Text(text) => text.clone().into(),
        Parameter::Float(value) => serde_json::Number::from_f64(*value).map(Value::Number).ok_or_else(|| {
            let message = format!("{value} cannot be a parameter; pass it as text and cast it in the SQL");
            Error::new(ErrorKind::InvalidArguments, message)
        })?,
    })
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

struct FlightPlan {
    pub(super) client: Arc<NodeClient>,
    pub(super) statement: Statement,
    pub(super) principal: Arc<Principal>,
    pub(super) schema: SchemaRef,
}

#[async_trait]
impl Plan for FlightPlan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    async fn explain(&self) -> Result<String, Error> {
        let url = self.client.replicas.preferred().address.to_string();
        let database = self.client.database.as_ref().map(|database| format!(", database {database}"));
        Ok(format!("Statement of {url}{}:\n{}", database.unwrap_or_default(), self.statement.text()))
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        self.client.run(&self.statement, &self.principal, job).await
    }
}
