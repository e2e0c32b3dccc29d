//! Folders, files, queries, and how answers are collected.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::StreamExt;
use rusqlite::Connection;
use tidegate_core::{CallOrigin, CallTarget, Caller, Content, Error, Format, Principal, TransportKind};
use tidegate_query::{
    AnswerMode, ColumnEntry, Database, Executor, OutputOptions, Plan, QueryRequest, QueryRows, TableStatus,
};
use tidegate_runtime::{
    Call, Registry, Reply, ReplyPart, Snapshot, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn,
};
use tidegate_sql::{Parameter, SqlDialect, Statement};
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};
pub(crate) use tidegate_testkit::test_job::TestJob;
pub(crate) use tidegate_testkit::wait::{wait_until, within_timeout};

/// A folder that is removed with the test.
pub(crate) struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::Builder::new().prefix("sqlite").tempdir().unwrap() }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Creates or opens the file `name`, runs `sql` on it, and leaves it open.
    pub(crate) fn write(&self, name: &str, sql: &str) -> Connection {
        let connection = Connection::open(self.join(name)).unwrap();
        connection.execute_batch(sql).unwrap();
        connection
    }

    /// A database of the files `names`.
    pub(crate) fn open(&self, names: &[&str], options: SqliteOptions) -> SqliteFixture {
        let files = names.iter().map(|name| self.join(name)).collect();
        let database = Arc::new(SqliteDatabase::open("shop", files, options).unwrap());
        SqliteFixture { database, principal: Principal::anonymous() }
    }
}

/// A folder with the file `data.db`, created by `sql`, and a database of it.
pub(crate) fn open_database(sql: &str) -> (Folder, SqliteFixture) {
    open_database_with(sql, SqliteOptions::default())
}

pub(crate) fn open_database_with(sql: &str, options: SqliteOptions) -> (Folder, SqliteFixture) {
    let folder = Folder::new();
    drop(folder.write("data.db", sql));
    let node = folder.open(&["data.db"], options);
    (folder, node)
}

/// A database, and queries to it.
#[derive(Clone)]
pub(crate) struct SqliteFixture {
    pub(crate) database: Arc<SqliteDatabase>,
    pub(crate) principal: Arc<Principal>,
}

impl SqliteFixture {
    pub(crate) async fn plan(&self, sql: &str, parameters: Vec<Parameter>) -> Result<Box<dyn Plan>, Error> {
        let statement = Statement::parse(sql, SqlDialect::Sqlite)?.with_parameters(parameters)?;
        self.database.plan(&statement, &self.principal).await
    }

    /// Starts `sql` as a job that waits for the rows.
    pub(crate) async fn start(&self, sql: &str) -> (TestJob, QueryRows) {
        let job = TestJob::start().await;
        let rows = self.plan(sql, Vec::new()).await.unwrap().run(&job.job).await.unwrap();
        (job, rows)
    }

    pub(crate) async fn batches(&self, sql: &str, parameters: Vec<Parameter>) -> Result<Vec<RecordBatch>, Error> {
        let plan = self.plan(sql, parameters).await?;
        let job = TestJob::start().await;
        let rows = plan.run(&job.job).await?;
        let mut batches = vec![RecordBatch::new_empty(rows.schema.clone())];
        let mut stream = rows.batches;
        while let Some(batch) = within_timeout("a batch", stream.next()).await {
            batches.push(batch?);
        }
        Ok(batches)
    }

    /// The values of an answer, a row a line, as CSV.
    pub(crate) async fn rows(&self, sql: &str) -> String {
        let text = self.answer(sql, Format::Csv).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (_, rows) = text.split_once("\r\n").unwrap();
        rows.trim_end().replace("\r\n", "\n")
    }

    /// The whole answer in `format`, as a caller gets it.
    pub(crate) async fn answer(&self, sql: &str, format: Format) -> Result<String, Error> {
        self.run_query(Statement::parse(sql, SqlDialect::Sqlite)?, format, None).await
    }

    /// As [`SqliteFixture::answer`], as JSON rows, with values for the placeholders.
    pub(crate) async fn answer_with(&self, sql: &str, parameters: Vec<Parameter>) -> Result<String, Error> {
        let statement = Statement::parse(sql, SqlDialect::Sqlite)?.with_parameters(parameters)?;
        self.run_query(statement, Format::Mcp, None).await
    }

    pub(crate) async fn extract(&self, sql: &str, column: &str) -> Result<String, Error> {
        self.run_query(Statement::parse(sql, SqlDialect::Sqlite)?, Format::Mcp, Some(column.to_owned())).await
    }

    async fn run_query(&self, statement: Statement, format: Format, extract: Option<String>) -> Result<String, Error> {
        let executor = Executor::new(EventDispatcher::default());
        let database: Arc<dyn Database> = self.database.clone();
        let handler = handler_fn(move |_call| {
            let question = QueryRequest {
                database: database.clone(),
                statement: statement.clone(),
                output: OutputOptions {
                    format: Some(format),
                    extract: extract.clone(),
                    mode: AnswerMode::Streaming,
                    ..OutputOptions::default()
                },
            };
            let answer = executor.answer(question);
            async { Ok(answer) }
        });
        let mut reply = call(Tool::new("ask", "asks", handler));
        let mut text = String::new();
        while let Some(part) = within_timeout("the answer", reply.next()).await {
            match part {
                ReplyPart::Text(piece) => text.push_str(&piece),
                ReplyPart::Item(Content::Text { text: block, .. }) => text.push_str(&block),
                ReplyPart::End(Err(error)) => return Err(error),
                _ => {}
            }
        }
        Ok(text)
    }

    /// The message for the caller when `sql` fails.
    pub(crate) async fn refusal(&self, sql: &str) -> String {
        match self.batches(sql, Vec::new()).await {
            Ok(batches) => panic!("{sql} answered {} rows", batches.iter().map(RecordBatch::num_rows).sum::<usize>()),
            Err(error) => format!("{}: {error}", error.kind().name()),
        }
    }

    /// The tables, a line each: name, rows, and why they cannot be read.
    pub(crate) async fn tables(&self) -> Result<String, Error> {
        let catalog = self.database.catalog(&self.principal).await?;
        let describe = |table: &tidegate_query::TableEntry| match (&table.status, table.rows) {
            (TableStatus::Unreadable(reason), _) => format!("{}: unreadable, {reason}", table.name),
            (TableStatus::Readable, Some(rows)) => format!("{}: {rows} rows", table.name),
            (TableStatus::Readable, None) => format!("{}: readable", table.name),
        };
        Ok(catalog.tables.iter().map(describe).collect::<Vec<_>>().join("\n"))
    }

    /// The columns of a table, a line each.
    pub(crate) async fn columns(&self, table: &str) -> Result<String, Error> {
        let columns = self.database.columns(table, &self.principal).await?;
        let describe = |column: &ColumnEntry| {
            let null = if column.nullable { "" } else { " not null" };
            let comment = column.comment.as_ref().map(|comment| format!(" -- {comment}")).unwrap_or_default();
            format!("{} {}{null}{comment}", column.name, column.type_name)
        };
        Ok(columns.iter().map(describe).collect::<Vec<_>>().join("\n"))
    }

    /// Waits until all connections are free.
    pub(crate) async fn wait_for_free_connections(&self, connections: usize) {
        wait_until("the end of the queries", || async { self.database.free_connections() >= connections }).await;
    }
}

fn call(tool: Tool) -> Reply {
    let name = tool.name.clone();
    let snapshot: Snapshot = SnapshotBuilder::new().tool(tool).build();
    let registry = Registry::new(snapshot, EventDispatcher::default());
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    registry.call(Call::new(CallTarget::Tool(name), Caller::new(Principal::process_user(), origin))).unwrap()
}
