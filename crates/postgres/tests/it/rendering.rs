//! Answers as callers read them, through the executor: of a database, or of record batches in memory.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::value::RawValue;
use tidegate_core::{
    Budget, CallLimits, CallOrigin, CallTarget, Caller, Content, Error, Format, Principal, TransportKind,
};
use tidegate_query::{
    AnswerMode, Catalog, ColumnEntry, Database, DatabaseKind, Executor, OutputOptions, Plan, QueryRequest, QueryRows,
};
use tidegate_runtime::{Call, Job, Registry, ReplyPart, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};
use tidegate_sql::{SqlDialect, Statement};

/// `batches` in `format`.
pub(crate) async fn render_batches(batches: Vec<RecordBatch>, format: Format) -> String {
    let statement = Statement::parse("SELECT 1", SqlDialect::DataFusion).unwrap();
    render_answer(Arc::new(InMemoryDatabase(batches)), statement, format).await.unwrap()
}

/// What `database` answers to `statement`, in `format`.
pub(crate) async fn render_answer(
    database: Arc<dyn Database>,
    statement: Statement,
    format: Format,
) -> Result<String, Error> {
    let handler = handler_fn(move |_call| {
        let question = QueryRequest {
            database: database.clone(),
            statement: statement.clone(),
            output: OutputOptions { format: Some(format), mode: AnswerMode::Streaming, ..OutputOptions::default() },
        };
        async { Ok(Executor::new(EventDispatcher::default()).answer(question)) }
    });
    let limits = CallLimits { inline: Some(Budget::default()), ..CallLimits::default() };
    let registry = Registry::new(
        SnapshotBuilder::new().tool(Tool::new("ask", "asks", handler).with_limits(limits)).build(),
        EventDispatcher::default(),
    );
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    let call = Call::new(CallTarget::Tool("ask".to_owned()), Caller::new(Principal::process_user(), origin));
    let mut reply = registry.call(call).unwrap();
    let mut out = String::new();
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(text) | ReplyPart::Item(Content::Text { text, .. }) => out.push_str(&text),
            ReplyPart::End(Err(error)) => return Err(error),
            _ => {}
        }
    }
    Ok(out)
}

/// The rows of `batches`, each value as JSON as in an answer.
pub(crate) async fn render_rows(batches: Vec<RecordBatch>) -> Vec<HashMap<String, Box<RawValue>>> {
    let text = render_batches(batches, Format::Ndjson).await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[derive(Clone)]
struct InMemoryDatabase(Vec<RecordBatch>);

#[async_trait]
impl Database for InMemoryDatabase {
    fn name(&self) -> &str {
        "memory"
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("memory")
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::default())
    }

    async fn columns(&self, _table: &str, _principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        Ok(Vec::new())
    }

    async fn plan(&self, _statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Plan for InMemoryDatabase {
    fn schema(&self) -> SchemaRef {
        self.0[0].schema()
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(String::new())
    }

    async fn run(self: Box<Self>, _job: &Arc<Job>) -> Result<QueryRows, Error> {
        Ok(QueryRows::new(self.schema(), futures::stream::iter(self.0.into_iter().map(Ok)).boxed()))
    }
}
