//! A database that records its statements, and declared tools on it.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_core::{CallLimits, Error, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Databases, Executor, Plan, QueryRows, changed_rows_batch,
};
use tidegate_runtime::{Job, Registry, SnapshotBuilder, Tool, event::EventDispatcher};
use tidegate_sql::{CommitRule, SqlDialect, Statement, Transaction};
use tidegate_tools::declared::{
    DeclarationProblem, DeclaredInput, DeclaredSql, DeclaredTool, InputKind, ScalarType, TextTemplate,
};
use tidegate_tools::{NodeIdentity, ToolServices, register};

/// Statements that were run, with their values.
pub(super) type ExecutedStatements = Arc<Mutex<Vec<String>>>;

/// Answers every query with one row.
#[derive(Default)]
pub(super) struct RecordingDatabase {
    ran: ExecutedStatements,
}

#[async_trait]
impl Database for RecordingDatabase {
    fn name(&self) -> &str {
        "ledger"
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("memory")
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::new(Catalog::from_tables(Vec::new())))
    }

    async fn columns(&self, _table: &str, _principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        Ok(Vec::new())
    }

    async fn plan(&self, statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let commit = statement.transaction().commit;
        let rule = if commit == CommitRule::Always { String::new() } else { format!(" {commit:?}") };
        let text = format!("{} {:?}{rule}", statement.text(), statement.parameters());
        Ok(Box::new(RecordingPlan { ran: self.ran.clone(), text, commit }))
    }
}

struct RecordingPlan {
    ran: ExecutedStatements,
    text: String,
    commit: CommitRule,
}

fn row() -> RecordBatch {
    RecordBatch::try_from_iter([("done", Arc::new(Int64Array::from(vec![1])) as _)]).unwrap()
}

#[async_trait]
impl Plan for RecordingPlan {
    fn schema(&self) -> SchemaRef {
        row().schema()
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(String::new())
    }

    async fn run(self: Box<Self>, _job: &Arc<Job>) -> Result<QueryRows, Error> {
        let mut ran = self.ran.lock();
        ran.push(self.text);
        // Each count finds one more row than the statements before.
        Ok(QueryRows::from_batch(if self.commit == CommitRule::Never {
            changed_rows_batch(ran.len() as u64)
        } else {
            row()
        }))
    }
}

/// A node over a recording database, and its statements.
pub(super) fn node() -> (Arc<ToolServices>, ExecutedStatements) {
    let recording_database = RecordingDatabase::default();
    let ran = recording_database.ran.clone();
    let databases = Databases::new([Arc::new(recording_database) as Arc<dyn Database>]);
    let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
    (ToolServices::new(databases, Executor::new(EventDispatcher::default()), identity), ran)
}

/// A registry with `tool` and the built-in ones.
pub(super) fn registry(services: &Arc<ToolServices>, tool: Tool) -> Arc<Registry> {
    let registry =
        Registry::new(register(SnapshotBuilder::new(), services).tool(tool).build(), EventDispatcher::default());
    services.attach(&registry);
    registry
}

/// A parameter called `name`.
pub(super) fn input(name: &str, scalar: ScalarType, constraints: Value) -> DeclaredInput {
    let Value::Object(constraints) = constraints else { panic!("constraints are an object") };
    DeclaredInput { constraints, ..DeclaredInput::new(name, InputKind::Scalar(scalar)) }
}

/// The same with `question` as `ask`.
pub(super) fn elicited_input(name: &str, scalar: ScalarType, constraints: Value, question: &str) -> DeclaredInput {
    DeclaredInput { ask: Some(question.to_owned()), ..input(name, scalar, constraints) }
}

/// A tool that writes `sql`.
pub(super) fn writing_tool(sql: &str, inputs: Vec<DeclaredInput>, confirm: Option<&str>) -> DeclaredTool<DeclaredSql> {
    DeclaredTool {
        name: "refund".to_owned(),
        description: "Pays money back.".to_owned(),
        action: DeclaredSql {
            database: None,
            sql: sql.to_owned(),
            transaction: Arc::new(Transaction { writes: true, ..Transaction::default() }),
        },
        inputs,
        confirm: confirm.map(|question| TextTemplate::parse(question).unwrap()),
        ..DeclaredTool::default()
    }
}

/// A registry with `tool`, and what its database ran.
pub(super) async fn registry_offering(tool: DeclaredTool<DeclaredSql>) -> (Arc<Registry>, ExecutedStatements) {
    let (services, ran) = node();
    let (tool, _) = tool.prepare(&services, CallLimits::default()).await.unwrap();
    (registry(&services, tool), ran)
}

/// Refunds an amount to an order after confirmation.
pub(super) fn refund() -> DeclaredTool<DeclaredSql> {
    let inputs =
        vec![input("amount", ScalarType::Number, json!({"minimum": 0})), input("order", ScalarType::String, json!({}))];
    writing_tool("SELECT refund(:amount, :order)", inputs, Some("Refund {{amount}} to order {{order}}?"))
}

/// The errors of `tool`.
pub(super) async fn declaration_problems(tool: DeclaredTool<DeclaredSql>) -> String {
    let (services, _) = node();
    let Err(problems) = tool.prepare(&services, CallLimits::default()).await else { panic!("nothing is wrong") };
    let message = problems.into_iter().map(|DeclarationProblem { path: at, error }| format!("{at}: {error}"));
    message.collect::<Vec<_>>().join("\n")
}
