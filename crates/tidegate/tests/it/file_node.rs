//! Files in this process as a node, which can be away and keeps the statements that it received.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use arrow::datatypes::Schema;
use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate::engines::EmbeddedDatabase;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, NodeCheck, NodeDatabase, NodeObservation, NodeTable, NodeTables,
    Plan, QueryRows,
};
use tidegate_runtime::Job;
use tidegate_sql::{SqlDialect, Statement};

pub(crate) struct FileNode {
    database: EmbeddedDatabase,
    is_away: AtomicBool,
    statements: Mutex<Vec<String>>,
}

impl FileNode {
    pub(crate) fn new(database: EmbeddedDatabase) -> Self {
        Self { database, is_away: AtomicBool::default(), statements: Mutex::default() }
    }

    /// From now on it answers no statement. Its tables stay known.
    pub(crate) fn set_away(&self) {
        self.is_away.store(true, Ordering::Relaxed);
    }

    /// The statements that it received, in order.
    pub(crate) fn statements(&self) -> Vec<String> {
        self.statements.lock().clone()
    }
}

#[async_trait]
impl Database for FileNode {
    fn name(&self) -> &str {
        self.database.name()
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

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        self.database.plan(statement, principal).await
    }
}

#[async_trait]
impl NodeDatabase for FileNode {
    fn url(&self) -> String {
        format!("grpc://{}", self.name())
    }

    async fn tables(&self, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        let mut tables = Vec::new();
        for entry in &self.catalog(principal).await?.tables {
            let statement = Statement::parse(&format!("SELECT * FROM \"{}\"", entry.name), self.dialect())?;
            // A table that cannot be read has no columns.
            let schema = self.database.describe(&statement, principal).await;
            let schema = schema.unwrap_or_else(|_| Arc::new(Schema::empty()));
            let (name, rows) = (entry.name.clone(), entry.rows);
            tables.push(NodeTable { name, schema, rows, comment: None, unreadable: None });
        }
        Ok(Arc::new(NodeTables { tables, known_since: SystemTime::now() }))
    }

    async fn check(&self, _: &Principal) -> Result<NodeCheck, Error> {
        Err(Error::new(ErrorKind::Unavailable, "a node of tests is not checked"))
    }

    async fn run(&self, statement: &Statement, principal: &Principal, job: &Arc<Job>) -> Result<QueryRows, Error> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Unavailable, "connection refused"));
        }
        self.statements.lock().push(statement.text().to_owned());
        self.database.plan(statement, principal).await?.run(job).await
    }

    fn observed(&self) -> NodeObservation {
        NodeObservation::default()
    }
}
