//! The engine on a test database, and queries to it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::StreamExt;
use tidegate_core::{Error, Principal};
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};
use tidegate_query::{Database, Plan, QueryRows};
use tidegate_sql::{Parameter, SqlDialect, Statement, Transaction};
pub(crate) use tidegate_testkit::test_database::{TestDatabase, connect, variable, wait_until, within_timeout};
pub(crate) use tidegate_testkit::test_job::TestJob;

/// Tidegate's engine on a database of a test.
pub(crate) trait OpenDatabase {
    fn open(&self, options: PostgresOptions) -> OpenedDatabase;
    /// Through the pooler, where the tests run beside one.
    fn open_as(&self, login: &str, options: PostgresOptions) -> OpenedDatabase;
    /// On the server or the pooler at `host`.
    fn open_at(&self, host: &str, login: &str, options: PostgresOptions) -> OpenedDatabase;
}

impl OpenDatabase for TestDatabase {
    fn open(&self, options: PostgresOptions) -> OpenedDatabase {
        self.open_as(&self.login(), options)
    }

    fn open_as(&self, login: &str, options: PostgresOptions) -> OpenedDatabase {
        self.open_at(&self.host, login, PostgresOptions { is_behind_pooler: self.pooler, ..options })
    }

    fn open_at(&self, host: &str, login: &str, options: PostgresOptions) -> OpenedDatabase {
        let text = format!("{host} dbname={} user={login} password=right sslmode=disable", self.name);
        let target = ConnectTarget::parse(&text, &ConnectEnvironment::from_process()).unwrap();
        OpenedDatabase { database: Arc::new(PostgresDatabase::open("shop", target, options).unwrap()) }
    }
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
