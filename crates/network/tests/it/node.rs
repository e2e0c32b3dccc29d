//! A Flight SQL server over a registry, and calls to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use tidegate_core::{AllowAll, Authenticator, Error, Principal};
use tidegate_network::{FlightOptions, FlightSqlDatabase, FlightSqlOptions, RunningFlightServer, serve_flight};
use tidegate_query::{Database, Databases, Executor, NodeDatabase, QueryRows};
use tidegate_runtime::Registry;
use tidegate_runtime::event::EventDispatcher;
use tidegate_sql::{Parameter, Statement};
pub(crate) use tidegate_testkit::test_job::TestJob;
use tidegate_testkit::wait::within_timeout;
use tidegate_tools::{NodeIdentity, ToolServices, snapshot};
use tidegate_transport::tls::Tls;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::tables::TestTables;

/// A running server.
pub(crate) struct TestNode {
    pub(crate) address: SocketAddr,
    server: RunningFlightServer,
    shutdown: CancellationToken,
}

impl TestNode {
    /// A server without authentication.
    pub(crate) async fn start(tables: &Arc<TestTables>) -> Self {
        Self::start_at("127.0.0.1:0", tables).await
    }

    pub(crate) async fn start_at(address: &str, tables: &Arc<TestTables>) -> Self {
        Self::start_with(address, tables, Arc::new(AllowAll), None).await
    }

    pub(crate) async fn start_with(
        address: &str,
        tables: &Arc<TestTables>,
        authenticator: Arc<dyn Authenticator>,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let databases = Databases::new([tables.clone() as Arc<dyn Database>]);
        let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
        let services = ToolServices::new(databases, Executor::new(EventDispatcher::default()), identity);
        let registry = Registry::new(snapshot(&services), EventDispatcher::default());
        services.attach(&registry);
        let shutdown = CancellationToken::new();
        let options = FlightOptions {
            authenticator,
            tls,
            connections_max: 16,
            drain_within: Duration::from_millis(50),
            version: "1.2.3".to_owned(),
        };
        let listener = within_timeout("a listener", async {
            loop {
                // The port of a server that was stopped is free after a moment.
                match TcpListener::bind(address).await {
                    Ok(listener) => break listener,
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        })
        .await;
        let server = serve_flight(listener, registry, options, shutdown.clone()).unwrap();
        Self { address: server.address(), server, shutdown }
    }

    pub(crate) fn url(&self) -> String {
        format!("grpc://{}", self.address)
    }

    /// Stops the server; open answers are cut.
    pub(crate) async fn stop(self) -> SocketAddr {
        self.shutdown.cancel();
        within_timeout("the end of a server", self.server.wait()).await;
        self.address
    }
}

/// A client of `urls` with the name `oslo`.
pub(crate) fn client(urls: &[String]) -> FlightSqlDatabase {
    client_with(FlightSqlOptions::new(urls.to_vec()))
}

pub(crate) fn client_with(options: FlightSqlOptions) -> FlightSqlDatabase {
    FlightSqlDatabase::new("oslo", FlightSqlOptions { database: Some("plant".to_owned()), ..options }).unwrap()
}

/// Starts `sql`, for the user of the process.
pub(crate) async fn run(client: &FlightSqlDatabase, sql: &str) -> Result<QueryRows, Error> {
    run_with(client, sql, Vec::new()).await
}

pub(crate) async fn run_with(
    client: &FlightSqlDatabase,
    sql: &str,
    parameters: Vec<Parameter>,
) -> Result<QueryRows, Error> {
    let statement = statement(client, sql).with_parameters(parameters).unwrap();
    let running = TestJob::start().await;
    // The job ends with the test.
    let job = running.job.clone();
    std::mem::forget(running);
    within_timeout("an answer", client.run(&statement, &Principal::process_user(), &job)).await
}

pub(crate) fn statement(client: &FlightSqlDatabase, sql: &str) -> Statement {
    Statement::parse(sql, client.dialect()).unwrap()
}

/// All rows as one batch.
pub(crate) async fn collect(rows: QueryRows) -> Result<RecordBatch, Error> {
    let batches: Vec<RecordBatch> = within_timeout("the rows", rows.batches.try_collect()).await?;
    Ok(concat_batches(&rows.schema, &batches).unwrap())
}

/// The numbers in the first column of the answer to `sql`.
pub(crate) async fn numbers(client: &FlightSqlDatabase, sql: &str) -> Result<Vec<i64>, Error> {
    let batch = collect(run(client, sql).await?).await?;
    Ok(batch.column(0).as_primitive::<Int64Type>().values().to_vec())
}

/// The texts in the first row of the answer to `sql`, for `principal`.
pub(crate) async fn first_row(
    client: &FlightSqlDatabase,
    sql: &str,
    principal: &Principal,
) -> Result<Vec<String>, Error> {
    let running = TestJob::start().await;
    let rows = client.run(&statement(client, sql), principal, &running.job).await?;
    let batch = collect(rows).await?;
    let texts = batch.columns().iter().map(|column| {
        let column = column.as_string::<i32>();
        if column.is_valid(0) { column.value(0).to_owned() } else { String::new() }
    });
    Ok(texts.collect())
}
