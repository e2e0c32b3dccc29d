//! A database of its own on the test server, Tidegate's engine on it, and questions to both.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::StreamExt;
use tidegate_core::{CallOrigin, CallTarget, Caller, Error, Principal, TransportKind};
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};
use tidegate_query::{Database, Plan, QueryRows};
use tidegate_runtime::{
    Call, Job, Metadata, Registry, Reply, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn,
};
use tidegate_sql::{Parameter, SqlDialect, Statement, Transaction};
use tokio_postgres::{Client, NoTls};

/// Longer than anything that is waited for here may take, on any machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for `future`, and fails when it takes forever.
pub(crate) async fn within_timeout<T>(subject: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.unwrap_or_else(|_| panic!("{subject} takes forever"))
}

/// Waits until `condition` holds.
pub(crate) async fn wait_until<F: Future<Output = bool>>(subject: &str, mut condition: impl FnMut() -> F) {
    within_timeout(subject, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A variable that `scripts/postgres` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set; run the tests as scripts/postgres run -- cargo nextest run -p tidegate-postgres")
    })
}

/// A database of its own, with a role that may log in. Both are named after the process and a number.
pub(crate) struct TestDatabase {
    pub(crate) name: String,
    /// The superuser, in that database.
    pub(crate) admin: Client,
    /// The superuser's connection string, and host and port for everybody else.
    superuser: String,
    host: String,
    /// Whether a pooler is what listens there.
    pooler: bool,
}

impl TestDatabase {
    /// A database in which `sql` was run. `{login}` in it stands for the role that Tidegate logs in as.
    pub(crate) async fn new(sql: &str) -> Self {
        let superuser = variable("TIDEGATE_TEST_POSTGRES");
        match std::env::var("TIDEGATE_TEST_PGBOUNCER") {
            Ok(pooler) => Self::create_on(&superuser, &pooler, true, sql).await,
            Err(_) => Self::create_on(&superuser, &variable("TIDEGATE_TEST_POSTGRES_TCP"), false, sql).await,
        }
    }

    /// The same on the server of `superuser`, which is reached by everybody else at `host`.
    pub(crate) async fn create_on(superuser: &str, host: &str, pooler: bool, sql: &str) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("t{}_{count}", std::process::id());
        let server = connect(superuser).await;
        server.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let login = format!("CREATE ROLE {name}_login LOGIN NOINHERIT PASSWORD 'right'");
        server.batch_execute(&login).await.unwrap();
        let admin = connect(&format!("{superuser} dbname={name}")).await;
        let scene = Self { name, admin, superuser: superuser.to_owned(), host: host.to_owned(), pooler };
        scene.run("REVOKE CREATE, TEMPORARY ON DATABASE {db} FROM PUBLIC").await;
        scene.run(sql).await;
        scene
    }

    /// Connects the superuser again.
    pub(crate) async fn reconnect_admin(&mut self) {
        self.admin = connect(&format!("{} dbname={}", self.superuser, self.name)).await;
    }

    /// Runs `sql` as the superuser. `{login}` and `{db}` in it stand for the names.
    pub(crate) async fn run(&self, sql: &str) {
        let sql = sql.replace("{login}", &self.login()).replace("{db}", &self.name);
        self.admin.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The role that Tidegate logs in as.
    pub(crate) fn login(&self) -> String {
        format!("{}_login", self.name)
    }

    pub(crate) fn open(&self, options: PostgresOptions) -> OpenedDatabase {
        self.open_as(&self.login(), options)
    }

    /// Through the pooler, where the tests run beside one.
    pub(crate) fn open_as(&self, login: &str, options: PostgresOptions) -> OpenedDatabase {
        self.open_at(&self.host, login, PostgresOptions { is_behind_pooler: self.pooler, ..options })
    }

    /// On the server or the pooler at `host`.
    pub(crate) fn open_at(&self, host: &str, login: &str, options: PostgresOptions) -> OpenedDatabase {
        let text = format!("{host} dbname={} user={login} password=right sslmode=disable", self.name);
        let target = ConnectTarget::parse(&text, &ConnectEnvironment::from_process()).unwrap();
        OpenedDatabase { database: Arc::new(PostgresDatabase::open("shop", target, options).unwrap()) }
    }

    /// One value of the server, as text.
    pub(crate) async fn value(&self, sql: &str) -> String {
        let row = self.admin.query_one(&format!("SELECT ({sql})::text"), &[]).await.unwrap();
        row.get::<_, Option<String>>(0).unwrap_or_else(|| "null".to_owned())
    }

    /// Backends that run a statement of Tidegate's now.
    pub(crate) async fn active(&self) -> String {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                      AND application_name LIKE 'tidegate%' AND state <> 'idle'";
        self.value(active).await
    }
}

/// A connection without Tidegate.
pub(crate) async fn connect(text: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(text, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Tidegate's engine on a scene.
#[derive(Clone)]
pub(crate) struct OpenedDatabase {
    pub(crate) database: Arc<PostgresDatabase>,
}

/// A statement as a caller writes it.
pub(crate) fn caller_statement(sql: &str) -> Result<Statement, Error> {
    Statement::parse(sql, SqlDialect::Postgres)
}

/// A statement as the configuration has it.
pub(crate) fn owner_statement(sql: &str, parameters: Vec<Parameter>) -> Statement {
    Statement::from_owner(sql, parameters, SqlDialect::Postgres)
}

/// A statement of the configuration that may write.
pub(crate) fn writing_statement(sql: &str, parameters: Vec<Parameter>) -> Statement {
    owner_statement(sql, parameters).in_transaction(Arc::new(Transaction { writes: true, ..Transaction::default() }))
}

impl OpenedDatabase {
    pub(crate) async fn plan(&self, statement: &Statement) -> Result<Box<dyn Plan>, Error> {
        self.database.plan(statement, &Principal::process_user()).await
    }

    /// The rows of `statement` as `principal`, a line each, or the failure.
    pub(crate) async fn lines_as(&self, statement: &Statement, principal: &Principal) -> Result<String, Error> {
        let job = TestJob::start().await;
        let rows = self.database.plan(statement, principal).await?.run(&job.job).await?;
        Ok(format_rows(&collect_batches(rows).await?))
    }

    pub(crate) async fn lines(&self, statement: &Statement) -> Result<String, Error> {
        self.lines_as(statement, &Principal::process_user()).await
    }

    /// What a caller reads for `sql`: rows, or the kind of the failure and its words.
    pub(crate) async fn run_to_text(&self, sql: &str) -> String {
        let answer = match caller_statement(sql) {
            Ok(statement) => self.lines(&statement).await,
            Err(error) => Err(error),
        };
        answer.unwrap_or_else(|error| format!("{}: {error}", error.kind().name()))
    }

    /// The tables that may be read.
    pub(crate) async fn tables(&self) -> String {
        let catalog = self.database.catalog(&Principal::process_user()).await.unwrap();
        catalog.tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Waits until every connection is back.
    pub(crate) async fn wait_until_idle(&self) {
        wait_until("the return of all connections", || async { self.database.connections_in_use() == 0 }).await;
    }
}

/// All batches of an answer.
pub(crate) async fn collect_batches(mut rows: QueryRows) -> Result<Vec<RecordBatch>, Error> {
    let mut batches = Vec::new();
    while let Some(batch) = within_timeout("a batch", rows.batches.next()).await {
        batches.push(batch?);
    }
    Ok(batches)
}

/// The values of `batches`, a row a line, separated by bars.
pub(crate) fn format_rows(batches: &[RecordBatch]) -> String {
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    let options = FormatOptions::default().with_null("null");
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let values: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            lines.push(values.join("|"));
        }
    }
    lines.join("\n")
}

/// A job that runs until it is cancelled or dropped.
pub(crate) struct TestJob {
    pub(crate) job: Arc<Job>,
    #[expect(dead_code, reason = "the job is cancelled when its reply is dropped")]
    reply: Reply,
}

impl TestJob {
    pub(crate) async fn start() -> Self {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
        let handler = handler_fn(move |job: Arc<Job>, _| {
            let sender = sender.lock().unwrap().take();
            async move {
                let _ = sender.unwrap().send(job.clone());
                job.cancelled().await;
                Ok(Metadata::new())
            }
        });
        let snapshot = SnapshotBuilder::new().tool(Tool::new("wait", "Waits.", handler)).build();
        let registry = Registry::new(snapshot, EventDispatcher::default());
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let call = Call::new(CallTarget::Tool("wait".to_owned()), Caller::new(Principal::anonymous(), origin));
        let reply = registry.call(call).unwrap();
        let job = receiver.await.unwrap();
        Self { job, reply }
    }
}
