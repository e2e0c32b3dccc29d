//! A server with Flight SQL in a folder of its own, and a client that reads a database over Flight SQL.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt as _;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_core::{CallLimits, CallOrigin, CallTarget, Caller, Error, Principal, TransportKind};
use tidegate_network::{FlightSqlDatabase, FlightSqlOptions, NodeCredential};
use tidegate_query::{Database as _, NodeDatabase as _};
use tidegate_runtime::event::EventDispatcher;
use tidegate_runtime::{Call, Job, Registry, Reply, SnapshotBuilder, Tool, handler_fn};
use tidegate_sql::{SqlDialect, Statement};

use super::super::server::Server;
use super::super::tidegate;
use super::site_network::{Answer, add_key, call, take_flight_address};

/// Longer than the time limits of the servers, so that a client never ends a statement before its server does.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(120);

/// A server whose configuration has `server.flight`.
pub(super) struct FlightServer {
    server: Server,
    folder: TempDir,
    keys: Vec<(&'static str, String)>,
    /// Its address for Flight SQL.
    pub(super) flight: String,
}

impl FlightServer {
    /// A server with `files` below its folder: name and content. `callers` have a key: name and role.
    pub(super) fn start(configuration: &str, files: &[(&str, &str)], callers: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        std::fs::write(folder.path().join("tidegate.yaml"), configuration).unwrap();
        let keys = callers.iter().map(|(name, role)| (*name, add_key(folder.path(), name, role, None))).collect();
        let mut server = Server::start(tidegate().current_dir(folder.path()).args(["serve", "--log", "info"]));
        let flight = take_flight_address(&mut server);
        Self { server, folder, keys, flight }
    }

    pub(super) fn key(&self, caller: &str) -> &str {
        let (_, key) = self.keys.iter().find(|(name, _)| *name == caller).unwrap();
        key
    }

    /// The address of its MCP endpoint.
    pub(super) fn url(&self) -> &str {
        &self.server.url
    }

    pub(super) async fn call(&self, caller: &str, tool: &str, arguments: Value) -> Answer {
        call(&self.server.url, self.key(caller), tool, arguments).await
    }

    /// Reads its log up to a line with `words`, and returns that line.
    pub(super) fn wait_for_log(&mut self, words: &str) -> String {
        self.server.wait_for_log(words)
    }

    /// Ends it in order. Returns its folder, and the part of its log that was not read yet.
    pub(super) fn stop(self) -> (TempDir, String) {
        self.server.signal("TERM");
        let (status, log) = self.server.wait_for_exit();
        assert_eq!(status.code(), Some(0), "{log}");
        (self.folder, log)
    }
}

/// A program that reads one database of a server.
pub(super) struct FlightReader(FlightSqlDatabase);

impl FlightReader {
    pub(super) fn open(url: &str, token: &str, database: &str) -> Self {
        let options = FlightSqlOptions {
            database: Some(database.to_owned()),
            credential: NodeCredential::Token(token.to_owned()),
            timeout: CLIENT_TIMEOUT,
            ..FlightSqlOptions::new(vec![url.to_owned()])
        };
        Self(FlightSqlDatabase::new("server", options).unwrap())
    }

    /// The rows of `sql`, each as its values with commas between them.
    pub(super) async fn rows(&self, sql: &str) -> Result<Vec<String>, Error> {
        self.rows_of(&Statement::parse(sql, SqlDialect::DataFusion).unwrap()).await
    }

    pub(super) async fn rows_of(&self, statement: &Statement) -> Result<Vec<String>, Error> {
        let (job, _reply) = start_job().await;
        let rows = self.0.run(statement, &Principal::process_user(), &job).await?;
        let batches: Vec<RecordBatch> = rows.batches.try_collect().await?;
        Ok(batches.iter().flat_map(lines_of).collect())
    }

    /// The tables, each with its number of rows if the server reports it.
    pub(super) async fn row_counts(&self) -> Vec<(String, Option<u64>)> {
        let known = self.0.tables(&Principal::process_user()).await.unwrap();
        known.tables.iter().map(|table| (table.name.clone(), table.rows)).collect()
    }

    pub(super) async fn close(self) {
        self.0.close().await;
    }
}

fn lines_of(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap());
    let columns: Vec<ArrayFormatter<'_>> = columns.collect();
    let line = |row: usize| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(",");
    (0..batch.num_rows()).map(line).collect()
}

/// A job for a statement of a client. It runs until its reply is dropped.
async fn start_job() -> (Arc<Job>, Reply) {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let handler = handler_fn(move |call| {
        let sender = sender.lock().unwrap().take();
        async move {
            // The receiver waits for it.
            let _ = sender.unwrap().send(call.job().clone());
            call.cancelled().await;
            Ok(tidegate_runtime::Answer::content(Vec::new()))
        }
    });
    let limits = CallLimits { timeout: Some(Duration::from_secs(300)), ..CallLimits::default() };
    let tool = Tool::new("wait", "Waits.", handler).with_limits(limits);
    let registry = Registry::new(SnapshotBuilder::new().tool(tool).build(), EventDispatcher::default());
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    let caller = Caller::new(Principal::process_user(), origin);
    let reply = registry.call(Call::new(CallTarget::Tool("wait".to_owned()), caller)).unwrap();
    (receiver.await.unwrap(), reply)
}
