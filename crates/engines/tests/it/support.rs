//! A folder of files, a database on it, and queries.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::StreamExt;
use tidegate_core::{Error, Principal};
use tidegate_engines::{EmbeddedDatabase, Engine, EngineOptions, FileLimits};
use tidegate_query::{Catalog, Database, Freshness, Plan, QueryRows, TableStatus};
use tidegate_sql::{Parameter, SqlDialect, Statement};
pub(crate) use tidegate_testkit::test_job::TestJob;

/// Longer than any wait in these tests may take, on any machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for `future`, and fails when it takes forever.
pub(crate) async fn with_timeout<T>(subject: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.unwrap_or_else(|_| panic!("{subject} takes forever"))
}

/// A folder that is removed with the test.
pub(crate) struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::Builder::new().prefix("files").tempdir().unwrap() }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self::new();
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.path().to_path_buf()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn remove(&self, name: &str) {
        let path = self.join(name);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// A database on the folder with bounds that suit tests.
    pub(crate) fn database(&self) -> TestNode {
        TestNode::open(vec![self.path()], two_thread_options())
    }

    pub(crate) fn database_with(&self, options: EngineOptions) -> TestNode {
        TestNode::open(vec![self.path()], options)
    }
}

/// Two threads, so that plans have parallel parts on every machine.
pub(crate) fn two_thread_options() -> EngineOptions {
    EngineOptions { threads: 2, ..EngineOptions::with_memory(256 << 20) }
}

/// Limits with which each query scans the folders again, and the types of small files come from a sample.
pub(crate) fn no_delay_limits() -> FileLimits {
    FileLimits { rescan_after: Duration::ZERO, fully_inferred_bytes: 0, ..FileLimits::default() }
}

/// Limits with which folders are not scanned again because of their age.
pub(crate) fn no_rescan_limits() -> FileLimits {
    FileLimits { rescan_after: Duration::from_secs(3_600), ..FileLimits::default() }
}

/// Makes the file look as if it was written some hours ago.
pub(crate) fn make_old(path: &Path, hours: u64) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3_600 * hours)).unwrap();
}

/// As [`make_old`]. Then waits until a further change gives the file another version. Before that, nothing is kept.
pub(crate) async fn settle(path: &Path, hours: u64) {
    make_old(path, hours);
    wait_until_settled(path).await;
}

/// Waits until a further change gives the file or folder another version.
pub(crate) async fn wait_until_settled(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let changed = || {
        let metadata = fs::metadata(path).unwrap();
        Duration::new(metadata.ctime().try_into().unwrap(), metadata.ctime_nsec().try_into().unwrap())
    };
    let age = || (SystemTime::UNIX_EPOCH + changed()).elapsed().unwrap_or_default();
    wait_until("a later time", || age() > Duration::from_millis(60)).await;
}

/// As [`wait_until_settled`], for the folder and everything in it.
pub(crate) async fn wait_until_all_settled(folder: &Path) {
    let mut paths = vec![folder.to_path_buf()];
    while let Some(path) = paths.pop() {
        if path.symlink_metadata().unwrap().is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        // A link may be broken.
        if path.exists() {
            wait_until_settled(&path).await;
        }
    }
}

/// A database and the engine that it runs on.
pub(crate) struct TestNode {
    pub(crate) engine: Engine,
    pub(crate) database: Arc<EmbeddedDatabase>,
}

impl TestNode {
    pub(crate) fn open(paths: Vec<PathBuf>, options: EngineOptions) -> Self {
        Self::open_with(paths, options, no_delay_limits())
    }

    pub(crate) fn open_with(paths: Vec<PathBuf>, options: EngineOptions, limits: FileLimits) -> Self {
        let engine = Engine::start(options).unwrap();
        let database = Arc::new(EmbeddedDatabase::open_with("db", paths, &engine, limits, BTreeMap::new()).unwrap());
        Self { engine, database }
    }

    pub(crate) async fn catalog(&self) -> Arc<Catalog> {
        self.database.catalog(&Principal::anonymous()).await.unwrap()
    }

    /// The tables, a line each: name, rows, and why they cannot be read.
    pub(crate) async fn tables(&self) -> String {
        let describe = |table: &tidegate_query::TableEntry| match (&table.status, table.rows) {
            (TableStatus::Unreadable(reason), _) => format!("{}: unreadable, {reason}", table.name),
            (TableStatus::Readable, Some(rows)) => format!("{}: {rows} rows", table.name),
            (TableStatus::Readable, None) => format!("{}: readable", table.name),
        };
        self.catalog().await.tables.iter().map(describe).collect::<Vec<_>>().join("\n")
    }

    /// The columns of a table, as `name type`.
    pub(crate) async fn columns(&self, table: &str) -> Result<String, Error> {
        let columns = self.database.columns(table, &Principal::anonymous()).await?;
        Ok(columns.iter().map(|column| format!("{} {}", column.name, column.type_name)).collect::<Vec<_>>().join(", "))
    }

    pub(crate) async fn plan(&self, sql: &str) -> Result<Box<dyn Plan>, Error> {
        self.plan_with(sql, Vec::new()).await
    }

    pub(crate) async fn plan_with(&self, sql: &str, parameters: Vec<Parameter>) -> Result<Box<dyn Plan>, Error> {
        let statement = Statement::parse(sql, SqlDialect::DataFusion)?.with_parameters(parameters)?;
        self.database.plan(&statement, &Principal::anonymous()).await
    }

    /// How long the result of `sql` stays valid.
    pub(crate) async fn freshness(&self, sql: &str) -> Freshness {
        let statement = Statement::parse(sql, SqlDialect::DataFusion).unwrap();
        self.database.freshness(&statement, &Principal::anonymous()).await
    }

    /// Starts `sql` as a job.
    pub(crate) async fn start(&self, sql: &str) -> (TestJob, QueryRows) {
        let job = TestJob::start().await;
        let rows = self.plan(sql).await.unwrap().run(&job.job).await.unwrap();
        (job, rows)
    }

    pub(crate) async fn batches(&self, sql: &str, parameters: Vec<Parameter>) -> Result<Vec<RecordBatch>, Error> {
        run_plan(self.plan_with(sql, parameters).await?).await
    }

    /// The values of an answer, a row a line, separated by bars.
    pub(crate) async fn rows(&self, sql: &str) -> String {
        let batches = self.batches(sql, Vec::new()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        lines(&batches)
    }

    /// As [`TestNode::rows`], with the error.
    pub(crate) async fn try_rows(&self, sql: &str) -> Result<String, Error> {
        self.batches(sql, Vec::new()).await.map(|batches| lines(&batches))
    }

    /// The error that the caller receives for `sql`.
    pub(crate) async fn refusal(&self, sql: &str) -> String {
        match self.batches(sql, Vec::new()).await {
            Ok(batches) => panic!("{sql} answered: {}", lines(&batches)),
            Err(error) => format!("{}: {error}", error.kind().name()),
        }
    }

    /// Waits until the engine runs no tasks and holds no memory or disk.
    pub(crate) async fn wait_until_idle(&self) {
        let engine = &self.engine;
        wait_until("the end of the engine's tasks", || {
            engine.running_tasks() == 0 && engine.memory_used_bytes() == 0 && engine.spilled_bytes() == 0
        })
        .await;
    }

    /// Waits until the engine runs a task.
    pub(crate) async fn wait_until_busy(&self) {
        wait_until("a task of the engine", || self.engine.running_tasks() > 0).await;
    }

    /// Waits until the engine holds the same memory for a hundred looks in a row, and returns its bytes.
    pub(crate) async fn steady_memory_bytes(&self) -> usize {
        let (mut held, mut looks) = (self.engine.memory_used_bytes(), 0);
        wait_until("steady memory", || {
            let now = self.engine.memory_used_bytes();
            looks = if now == held { looks + 1 } else { 0 };
            held = now;
            looks == 100
        })
        .await;
        held
    }
}

/// Looks every few milliseconds until `condition` holds.
pub(crate) async fn wait_until(subject: &str, mut condition: impl FnMut() -> bool) {
    with_timeout(subject, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// The batches of the answer of `plan`, after an empty one.
pub(crate) async fn run_plan(plan: Box<dyn Plan>) -> Result<Vec<RecordBatch>, Error> {
    let job = TestJob::start().await;
    let rows = plan.run(&job.job).await?;
    let mut batches = vec![RecordBatch::new_empty(rows.schema.clone())];
    let mut stream = rows.batches;
    while let Some(batch) = with_timeout("a batch", stream.next()).await {
        batches.push(batch?);
    }
    Ok(batches)
}

/// The values of `batches`, a row a line, separated by bars.
pub(crate) fn lines(batches: &[RecordBatch]) -> String {
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    let options = FormatOptions::default().with_null("null");
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let values: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            lines.push(values.join("|"));
        }
    }
    lines.join("\n")
}

/// Rows `0..count` of an id and a text.
pub(crate) fn numbers(count: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(|id| format!("name {id}"))));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

/// Rows `0..count` of an id and a text, as CSV.
pub(crate) fn numbers_csv(count: i64) -> String {
    let mut text = String::from("id,name\n");
    for id in 0..count {
        text.push_str(&format!("{id},name {id}\n"));
    }
    text
}

/// Writes `batch` as a Parquet file with row groups of `group_rows`.
pub(crate) fn write_parquet(path: &Path, batch: &RecordBatch, group_rows: usize) {
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Writes `batch` as an Arrow IPC file, or stream.
pub(crate) fn write_arrow(path: &Path, batch: &RecordBatch, as_stream: bool) {
    use arrow::ipc::writer::{FileWriter, StreamWriter};
    let file = fs::File::create(path).unwrap();
    if as_stream {
        let mut writer = StreamWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    }
}
