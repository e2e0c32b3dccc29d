//! A server with the tables of the corpus, a role that may only read them, concurrent sessions, and a monitor.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls};

use super::corpus;
use super::state_diff::StateByAspect;
use super::watcher::ServerMonitor;
use crate::cluster::Cluster;

pub(crate) struct ClusterFixture {
    watcher: ServerMonitor,
    /// One of the superuser, one of the role that may only read.
    bystanders: Vec<ConcurrentSession>,
    cluster: Cluster,
}

/// A session that an attempt must not disturb, and whose statements it must not see.
struct ConcurrentSession {
    client: Client,
    query: &'static str,
    /// The server's process for it.
    process: i32,
}

/// The role of a caller may connect, and read what lies in two schemas, but for the vault.
const ROLE: &str = "
    CREATE ROLE reader LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    ALTER ROLE reader SET default_transaction_read_only = on;
    GRANT USAGE ON SCHEMA public, archive TO reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA public, archive TO reader;
    GRANT SELECT ON ALL SEQUENCES IN SCHEMA public, archive TO reader;
    CREATE TABLE vault (secret text);
    INSERT INTO vault VALUES ('what the vault holds');
    CREATE ROLE clerk LOGIN PASSWORD 'kept as a verifier';
    SELECT lo_from_bytea(4711, 'an object')";

/// Extensions that give an attempt something to call, where the server brings them.
const EXTENSIONS: [&str; 6] = ["dblink", "lo", "pageinspect", "pg_prewarm", "pgstattuple", "tablefunc"];

/// Settings that keep the server from changing anything by itself, and let the role in without a password: its check in
/// a debug build takes longer than all of an attempt.
const SETUP_SQL: [&str; 4] = [
    "ALTER SYSTEM SET autovacuum = off",
    "COPY (SELECT 'local all all trust') TO '{data}/pg_hba.conf'",
    "SELECT pg_reload_conf()",
    "CREATE DATABASE scene",
];

impl ClusterFixture {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::start();
        let first = connect(&cluster.superuser_connection_string("postgres")).await.unwrap();
        for sql in SETUP_SQL {
            first.batch_execute(&sql.replace("{data}", &cluster.data_directory())).await.unwrap();
        }
        let superuser = connect(&cluster.superuser_connection_string("scene")).await.unwrap();
        superuser.batch_execute(&corpus::shared_corpus("schema")).await.unwrap();
        superuser.batch_execute(ROLE).await.unwrap();
        for extension in EXTENSIONS {
            // An extension that this server does not have cannot be called.
            let _ = superuser.batch_execute(&format!("CREATE EXTENSION {extension}")).await;
        }
        let reader = reader_connection_string(&cluster);
        // The server reloads its access rules with a delay.
        super::within_timeout("the server's rules", async {
            while connect(&reader).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let watcher = ServerMonitor::new(&cluster.superuser_connection_string("scene")).await;
        let mut scene = Self { watcher, bystanders: Vec::new(), cluster };
        scene.restore().await;
        scene
    }

    /// Renews the sessions that an attempt ended. Returns whether there were any.
    pub(crate) async fn restore(&mut self) -> bool {
        let is_whole = self.bystanders.len() == 2 && !self.watcher.is_disconnected();
        if self.watcher.is_disconnected() {
            self.watcher = self.watcher.reconnect(&self.superuser()).await;
        }
        if self.bystanders.len() < 2 {
            let superuser = ConcurrentSession::new(&self.superuser(), "SELECT 'what the superuser asks'").await;
            let other = ConcurrentSession::new(&self.reader(), "SELECT 'what another caller asks'").await;
            self.bystanders = vec![superuser, other];
        }
        !is_whole
    }

    /// Major version of the server.
    pub(crate) fn version(&self) -> u32 {
        self.watcher.version
    }

    /// The connection string of the role that may only read.
    pub(crate) fn reader(&self) -> String {
        reader_connection_string(&self.cluster)
    }

    /// The texts that `sql` selects.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        let client = connect(&self.superuser()).await.unwrap();
        client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    pub(crate) fn superuser(&self) -> String {
        self.cluster.superuser_connection_string("scene")
    }

    /// `sql` with the server's own folder for files, which is monitored and removed with the server.
    pub(crate) fn localize_paths(&self, sql: &str) -> String {
        sql.replace("/tmp/", &format!("{}/", self.cluster.data_directory()))
    }

    /// The state that an attempt must not change, read after the process that ran it has ended.
    pub(crate) async fn state(&mut self, process: Option<i32>) -> Result<StateByAspect, Error> {
        // A terminated session ends at its next statement at the latest.
        let mut answering = Vec::new();
        for bystander in self.bystanders.drain(..) {
            if bystander.client.batch_execute(bystander.query).await.is_ok() {
                answering.push(bystander);
            }
        }
        self.bystanders = answering;
        let mut sessions: BTreeSet<String> =
            self.bystanders.iter().map(|bystander| format!("process {}", bystander.process)).collect();
        let mut state = self.watcher.state(process).await;
        // A client may receive the end of its session a moment before the end of its connection.
        if state
            .as_ref()
            .is_err_and(|error| self.watcher.is_disconnected() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN))
        {
            self.watcher = self.watcher.reconnect(&self.superuser()).await;
            state = self.watcher.state(process).await;
        }
        sessions.insert(format!("watching process {}", self.watcher.process));
        let mut state = state?;
        state.insert("sessions".to_owned(), sessions);
        Ok(state)
    }
}

impl ConcurrentSession {
    async fn new(server: &str, asks: &'static str) -> Self {
        let client = connect(server).await.unwrap();
        let process = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        client.batch_execute(asks).await.unwrap();
        Self { client, query: asks, process }
    }
}

fn reader_connection_string(cluster: &Cluster) -> String {
    cluster.superuser_connection_string("scene").replace("user=postgres", "user=reader")
}

async fn connect(server: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(server, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
