//! Answers as callers read them, through the executor: of a database, or of record batches in memory.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::value::RawValue;
use tidegate_core::event::Events;
use tidegate_core::{
    Budget, Call, CallLimits, Caller, Chunk, Content, Error, Job, Origin, Outcome, Principal, Registry, ReplyEvent,
    SnapshotBuilder, Target, Tool, TransportKind, handler_fn,
};
use tidegate_query::{Catalog, Column, Database, Executor, Format, Mode, Plan, Question, Rows, SqlDialect, Statement};

/// `batches` in `format`.
pub(crate) async fn shown(batches: Vec<RecordBatch>, format: Format) -> String {
    let statement = Statement::parse("SELECT 1", SqlDialect::DataFusion).unwrap();
    answer(Arc::new(InMemory(batches)), statement, format).await.unwrap()
}

/// What `database` answers to `statement`, in `format`.
pub(crate) async fn answer(database: Arc<dyn Database>, statement: Statement, format: Format) -> Result<String, Error> {
    let handler = handler_fn(move |job, reply| {
        let question = Question {
            database: database.clone(),
            statement: statement.clone(),
            max_rows: None,
            format,
            extract: None,
            mode: Mode::Streaming,
            structured: None,
            more: None,
            rest: tidegate_query::Rest::Lost,
        };
        async move { Executor::new(Events::default()).answer(question, &job, &reply).await }
    });
    let limits = CallLimits { inline: Some(Budget::default()), ..CallLimits::default() };
    let registry = Registry::new(
        SnapshotBuilder::new().tool(Tool::new("ask", "asks", handler).with_limits(limits)).build(),
        Events::default(),
    );
    let origin = Origin { transport: TransportKind::CommandLine, peer: None };
    let call = Call::new(Target::Tool("ask".to_owned()), Caller::new(Principal::owner(), origin));
    let mut reply = registry.call(call).unwrap();
    let mut out = String::new();
    while let Some(event) = reply.next().await {
        match event {
            ReplyEvent::Chunk(Chunk::Text(text) | Chunk::Block(Content::Text { text, .. })) => out.push_str(&text),
            ReplyEvent::End(Outcome::Failed(error)) => return Err(error),
            _ => {}
        }
    }
    Ok(out)
}

/// The rows of `batches`, each value as the JSON that stands in an answer.
pub(crate) async fn rows(batches: Vec<RecordBatch>) -> Vec<HashMap<String, Box<RawValue>>> {
    let text = shown(batches, Format::Ndjson).await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[derive(Clone)]
struct InMemory(Vec<RecordBatch>);

#[async_trait]
impl Database for InMemory {
    fn name(&self) -> &str {
        "memory"
    }

    fn kind(&self) -> &'static str {
        "memory"
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::default())
    }

    async fn columns(&self, _table: &str, _principal: &Principal) -> Result<Vec<Column>, Error> {
        Ok(Vec::new())
    }

    async fn plan(&self, _statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Plan for InMemory {
    fn schema(&self) -> SchemaRef {
        self.0[0].schema()
    }

    fn estimated_rows(&self) -> Option<u64> {
        None
    }

    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    fn is_blocking(&self) -> bool {
        false
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(String::new())
    }

    async fn run(self: Box<Self>, _job: &Arc<Job>) -> Result<Rows, Error> {
        Ok(Rows { schema: self.schema(), batches: futures::stream::iter(self.0.into_iter().map(Ok)).boxed() })
    }
}
