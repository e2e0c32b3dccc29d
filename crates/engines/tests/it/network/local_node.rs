//! A node in this process: a folder of files, or another database, that counts its statements and fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_engines::{Engine, HeldRows, NetworkDatabase, NetworkNode, NetworkOptions, PartialAnswers};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, NodeCheck, NodeDatabase, NodeObservation, NodeTable, NodeTables,
    Plan, QueryRows, TableStorage,
};
use tidegate_runtime::Job;
use tidegate_sql::{SqlDialect, Statement};

use crate::support::{Folder, TestNode, lines, run_plan, two_thread_options};

/// How a node fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It was never reachable.
    NeverReachable,
    /// It is away since its tables are known.
    Away,
    /// It never answers.
    Silent,
    /// It refuses the caller.
    Refusing,
    /// The caller has no tools there.
    WithoutTools,
}

/// What becomes of a batch of an answer.
pub(crate) type AnswerChange = fn(RecordBatch) -> RecordBatch;

pub(crate) struct LocalNode {
    name: String,
    database: Arc<dyn Database>,
    pub(crate) failure: Mutex<Option<Failure>>,
    /// What the node answers instead of the rows of its database.
    pub(crate) answer_change: Mutex<Option<AnswerChange>>,
    pub(crate) statements: Mutex<Vec<String>>,
    /// The rows that it sent.
    rows_sent: Arc<AtomicUsize>,
    /// Whether its catalog lacks the numbers of rows, as with row policies.
    pub(crate) hides_rows: AtomicBool,
    /// The list that it sends until a newer one is requested.
    old_tables: Mutex<Option<Arc<NodeTables>>>,
    /// They are removed with the node.
    files: Option<(TestNode, Folder)>,
}

impl LocalNode {
    /// A node with files of these names and contents.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Arc<Self> {
        Self::on(name, Folder::with(files))
    }

    pub(crate) fn on(name: &str, folder: Folder) -> Arc<Self> {
        let files = folder.database();
        let database = files.database.clone();
        Arc::new(Self { files: Some((files, folder)), ..Self::over(name, database) })
    }

    /// A node with the tables of `database`.
    pub(crate) fn of_database(name: &str, database: Arc<dyn Database>) -> Arc<Self> {
        Arc::new(Self::over(name, database))
    }

    fn over(name: &str, database: Arc<dyn Database>) -> Self {
        Self {
            name: name.to_owned(),
            database,
            failure: Mutex::default(),
            answer_change: Mutex::default(),
            statements: Mutex::default(),
            rows_sent: Arc::default(),
            hides_rows: AtomicBool::default(),
            old_tables: Mutex::default(),
            files: None,
        }
    }

    /// Sends the list of its tables of now until a newer one is requested.
    pub(crate) async fn keep_tables(&self) {
        let tables = self.tables(&Principal::anonymous()).await.unwrap();
        *self.old_tables.lock() = Some(tables);
    }

    /// Adds or replaces a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.files.as_ref().unwrap().1.write(name, text);
    }

    fn unavailable(&self, reason: &str) -> Error {
        Error::new(ErrorKind::Unavailable, reason.to_owned())
    }
}

#[async_trait]
impl Database for LocalNode {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::FlightSql
    }

    fn dialect(&self) -> SqlDialect {
        self.database.dialect()
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        self.database.catalog(principal).await
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        self.database.columns(table, principal).await
    }

    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        if self.failure.lock().is_some() {
            return Err(self.unavailable("connection refused"));
        }
        self.database.table_storage(table, principal).await
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        self.database.plan(statement, principal).await
    }
}

#[async_trait]
impl NodeDatabase for LocalNode {
    fn url(&self) -> String {
        format!("grpc://{}", self.name)
    }

    async fn tables(&self, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        if *self.failure.lock() == Some(Failure::NeverReachable) {
            return Err(self.unavailable("connection refused"));
        }
        if *self.failure.lock() == Some(Failure::WithoutTools) {
            return Err(Error::new(ErrorKind::NotFound, "there is no tool \"list_tables\""));
        }
        let old = self.old_tables.lock().clone();
        if let Some(old) = old {
            return Ok(old);
        }
        let catalog = self.catalog(principal).await?;
        let mut tables = Vec::new();
        for entry in &catalog.tables {
            let statement = Statement::parse(&format!("SELECT * FROM \"{}\"", entry.name), self.dialect())?;
            let described = self.database.describe(&statement, principal).await;
            let unreadable = described.as_ref().err().map(|error| error.message().to_owned());
            let schema: SchemaRef = described.unwrap_or_else(|_| Arc::new(Schema::empty()));
            let rows = entry.rows.filter(|_| !self.hides_rows.load(Ordering::Relaxed));
            tables.push(NodeTable { name: entry.name.clone(), schema, rows, comment: None, unreadable });
        }
        Ok(Arc::new(NodeTables { tables, known_since: SystemTime::now() }))
    }

    async fn newer_tables(&self, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        *self.old_tables.lock() = None;
        self.tables(principal).await
    }

    async fn check(&self, _: &Principal) -> Result<NodeCheck, Error> {
        Err(self.unavailable("a node of tests is not checked"))
    }

    async fn run(&self, statement: &Statement, principal: &Principal, job: &Arc<Job>) -> Result<QueryRows, Error> {
        self.statements.lock().push(statement.text().to_owned());
        let failure = *self.failure.lock();
        match failure {
            Some(Failure::Silent) => std::future::pending().await,
            Some(Failure::Refusing) => Err(Error::new(ErrorKind::Forbidden, "this caller is not trusted")),
            Some(_) => Err(self.unavailable("connection refused")),
            None => {
                let mut rows = self.database.plan(statement, principal).await?.run(job).await?;
                if let Some(change) = *self.answer_change.lock() {
                    rows.schema = change(RecordBatch::new_empty(rows.schema)).schema();
                    rows.batches = rows.batches.map(move |batch| batch.map(change)).boxed();
                }
                let sent = self.rows_sent.clone();
                let counted = rows.batches.inspect(move |batch| {
                    let rows = batch.as_ref().map_or(0, |batch| batch.num_rows());
                    sent.fetch_add(rows, Ordering::Relaxed);
                });
                Ok(QueryRows { batches: counted.boxed(), ..rows })
            }
        }
    }

    fn observed(&self) -> NodeObservation {
        NodeObservation::default()
    }
}

/// A network of local nodes.
pub(crate) struct LocalNetwork {
    pub(crate) nodes: Vec<Arc<LocalNode>>,
    pub(crate) database: NetworkDatabase,
    /// It runs as long as the database.
    _engine: Engine,
}

/// How long a node may take to send its first rows: longer than any machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Names of nodes, in order.
pub(crate) const NODE_NAMES: [&str; 5] = ["bergen", "milan", "oslo", "pisa", "rome"];

impl LocalNetwork {
    /// A network of a node for each of `contents`, which are the files of the nodes.
    pub(crate) fn new(partial: PartialAnswers, contents: &[&[(&str, &str)]]) -> Self {
        Self::with_timeout(TIMEOUT, partial, contents)
    }

    /// The same, where a node that has sent no rows after `timeout` has failed.
    pub(crate) fn with_timeout(timeout: Duration, partial: PartialAnswers, contents: &[&[(&str, &str)]]) -> Self {
        let nodes = contents.iter().zip(NODE_NAMES).map(|(files, name)| (LocalNode::new(name, files), None));
        Self::over(timeout, partial, nodes.collect())
    }

    pub(crate) fn of(partial: PartialAnswers, nodes: Vec<(Arc<LocalNode>, Option<HeldRows>)>) -> Self {
        Self::over(TIMEOUT, partial, nodes)
    }

    fn over(timeout: Duration, partial: PartialAnswers, nodes: Vec<(Arc<LocalNode>, Option<HeldRows>)>) -> Self {
        let engine = Engine::start(two_thread_options()).unwrap();
        let of_network = nodes.iter().map(|(node, holds)| NetworkNode { database: node.clone(), holds: holds.clone() });
        let options = NetworkOptions { partial, timeout, ranges: vec!["time".to_owned(), "site".to_owned()] };
        let database = NetworkDatabase::new("sites", options, of_network.collect(), &engine).unwrap();
        Self { nodes: nodes.into_iter().map(|(node, _)| node).collect(), database, _engine: engine }
    }

    pub(crate) async fn plan(&self, sql: &str) -> Result<Box<dyn Plan>, Error> {
        let statement = Statement::parse(sql, SqlDialect::DataFusion)?;
        self.database.plan(&statement, &Principal::anonymous()).await
    }

    /// The values of an answer, a row a line, separated by bars.
    pub(crate) async fn rows(&self, sql: &str) -> String {
        self.try_rows(sql).await.unwrap_or_else(|error| panic!("{sql}: {error} {:?}", error.detail()))
    }

    pub(crate) async fn try_rows(&self, sql: &str) -> Result<String, Error> {
        Ok(lines(&run_plan(self.plan(sql).await?).await?))
    }

    /// The statements that the nodes received since the last call, each after the name of its node.
    pub(crate) fn take_statements(&self) -> Vec<String> {
        let of_node = |node: &Arc<LocalNode>| {
            let statements = std::mem::take(&mut *node.statements.lock());
            statements.into_iter().map(|sql| format!("{}: {sql}", node.name)).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of_node).collect()
    }

    /// The number of rows that the nodes sent since the last call.
    pub(crate) fn take_rows_sent(&self) -> usize {
        self.nodes.iter().map(|node| node.rows_sent.swap(0, Ordering::Relaxed)).sum()
    }
}
