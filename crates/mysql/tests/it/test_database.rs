//! A database of its own on the server that `scripts/mariadb` starts, and queries to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::RecordBatch;
use futures::StreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tidegate_core::{Error, Principal};
use tidegate_mysql::{MySqlDatabase, MySqlOptions, MySqlTarget};
use tidegate_query::{Connections, Database, QueryRows};
use tidegate_sql::{Parameter, SqlDialect, Statement};
pub(crate) use tidegate_testkit::test_job::TestJob;
pub(crate) use tidegate_testkit::wait::{wait_until, within_timeout};

/// A variable that `scripts/mariadb` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set; run the tests as scripts/mariadb run -- cargo nextest run -p tidegate-mysql")
    })
}

/// A database with an account that may read it. Both have the same name.
pub(crate) struct TestDatabase {
    pub(crate) name: String,
    pub(crate) database: Arc<MySqlDatabase>,
}

impl TestDatabase {
    /// A database in which the statements `sql` were run.
    pub(crate) async fn new(sql: &[&str]) -> Self {
        Self::with_options(sql, "ssl-mode=DISABLED", MySqlOptions::default()).await
    }

    /// The same with parameters of the connection string and options.
    pub(crate) async fn with_options(sql: &[&str], parameters: &str, options: MySqlOptions) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut root = connect_root().await;
        for statement in [
            format!("CREATE DATABASE {name}"),
            format!("CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'right'"),
            format!("GRANT SELECT ON {name}.* TO {name}@'127.0.0.1'"),
            format!("USE {name}"),
        ] {
            root.query_drop(statement).await.unwrap();
        }
        for statement in sql {
            let statement = statement.replace("{name}", &name);
            root.query_drop(&statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let host = variable("TIDEGATE_TEST_MARIADB_TCP");
        let text = format!("mysql://{name}:right@{host}/{name}?{parameters}");
        let target = MySqlTarget::parse(&text).unwrap();
        Self { database: Arc::new(MySqlDatabase::open("shop", &target, options).unwrap()), name }
    }

    /// Runs `sql` as root, in the database.
    pub(crate) async fn run_as_root(&self, sql: &str) {
        let mut root = connect_root().await;
        root.query_drop(format!("USE {}", self.name)).await.unwrap();
        root.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// One value of the server, as text.
    pub(crate) async fn value(&self, sql: &str) -> String {
        let mut root = connect_root().await;
        root.query_drop(format!("USE {}", self.name)).await.unwrap();
        root.query_first::<String, _>(sql).await.unwrap().unwrap_or_default()
    }

    /// The number of statements that the account runs.
    pub(crate) async fn running(&self) -> String {
        let sql = format!(
            "SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist WHERE user = '{}' AND command <> 'Sleep'",
            self.name
        );
        self.value(&sql).await
    }

    /// The rows of `statement`, a line each, or the failure.
    pub(crate) async fn lines(&self, statement: &Statement) -> Result<String, Error> {
        let job = TestJob::start().await;
        let rows = self.database.plan(statement, &Principal::process_user()).await?.run(&job.job).await?;
        Ok(format_rows(&collect_batches(rows).await?))
    }

    /// What a caller reads for `sql`: rows, or the kind of the failure and its words.
    pub(crate) async fn run_to_text(&self, sql: &str) -> String {
        let answer = match Statement::parse(sql, SqlDialect::MySql) {
            Ok(statement) => self.lines(&statement).await,
            Err(error) => Err(error),
        };
        answer.unwrap_or_else(|error| format!("{}: {error}", error.kind().name()))
    }

    /// Waits until every connection is back.
    pub(crate) async fn wait_until_idle(&self) {
        let is_idle = || async { self.database.connections() == Some(Connections::InUse(0)) };
        wait_until("the return of all connections", is_idle).await;
    }
}

/// A connection as root, without Tidegate.
pub(crate) async fn connect_root() -> Conn {
    Conn::new(Opts::from_url(&variable("TIDEGATE_TEST_MARIADB")).unwrap()).await.unwrap()
}

/// A statement as the configuration has it.
pub(crate) fn owner_statement(sql: &str, parameters: Vec<Parameter>) -> Statement {
    Statement::from_owner(sql, parameters, SqlDialect::MySql)
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
