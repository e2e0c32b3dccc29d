//! Rows a second from Arrow batches to the text of an answer, with the registry, the executor and the reply around
//! them.

#![allow(clippy::expect_used, missing_docs, reason = "a benchmark may end with a panic; criterion's macro has no docs")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tidegate_bench::{Ready, batch};
use tidegate_core::{Budget, CallOrigin, CallTarget, Caller, Format, Limits, Principal, TransportKind};
use tidegate_query::{AnswerMode, Database, Executor, OutputOptions, QueryRequest};
use tidegate_runtime::{Call, Registry, ReplyPart, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};
use tidegate_sql::{SqlDialect, Statement};

const BATCHES: i64 = 13;
const BATCH_ROWS: i64 = 8_192;

fn formats(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let batches = (0..BATCHES).map(|number| batch(number * BATCH_ROWS, BATCH_ROWS).expect("the columns fit"));
    let database: Arc<dyn Database> = Arc::new(Ready::new(batches.collect()));
    let mut group = criterion.benchmark_group("format");
    group.throughput(Throughput::Elements((BATCHES * BATCH_ROWS).unsigned_abs())).sample_size(20);
    for format in [Format::Mcp, Format::Json, Format::Csv, Format::Ndjson] {
        let registry = registry(database.clone(), format);
        group.bench_function(BenchmarkId::from_parameter(format.name()), |bencher| {
            bencher.iter(|| black_box(runtime.block_on(answer_bytes(&registry))));
        });
    }
    group.finish();
}

/// A registry whose one tool answers with all rows.
fn registry(database: Arc<dyn Database>, format: Format) -> Arc<Registry> {
    let executor = Executor::new(EventDispatcher::default());
    let statement = Statement::parse("SELECT * FROM rows", SqlDialect::DataFusion).expect("a plain statement");
    let handler = handler_fn(move |_call| {
        let answer = executor.answer(QueryRequest {
            database: database.clone(),
            statement: statement.clone(),
            output: OutputOptions { format: Some(format), mode: AnswerMode::Streaming, ..OutputOptions::default() },
        });
        async { Ok(answer) }
    });
    let snapshot = SnapshotBuilder::new().tool(Tool::new("rows", "Gives all rows.", handler));
    let limits = Limits { inline: Budget::default(), ..Limits::default() };
    Registry::new(snapshot.limits(limits).build(), EventDispatcher::default())
}

async fn answer_bytes(registry: &Registry) -> usize {
    let origin = CallOrigin { transport: TransportKind::StreamableHttp, peer: None };
    let call = Call::new(CallTarget::Tool("rows".to_owned()), Caller::new(Principal::anonymous(), origin));
    let mut reply = registry.call(call).expect("the tool exists");
    let mut bytes = 0;
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(text) => bytes += text.len(),
            ReplyPart::End(end) => assert!(end.is_ok(), "{end:?}"),
            _ => {}
        }
    }
    bytes
}

criterion_group!(benches, formats);
criterion_main!(benches);
