//! From the arguments of `query` to a statement, and from SQL text to one.

#![allow(clippy::expect_used, missing_docs, reason = "a benchmark may end with a panic; criterion's macro has no docs")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value, json};
use tidegate_bench::Ready;
use tidegate_core::Principal;
use tidegate_query::QuerySpec;
use tidegate_sql::{SqlDialect, Statement, StatementCache};

fn arguments() -> Map<String, Value> {
    let arguments = json!({
        "table": "rows",
        "select": ["label", {"function": "sum", "column": "value", "as": "total"}],
        "where": {"and": [
            {"column": "id", "op": ">", "value": 1_000},
            {"or": [{"column": "label", "op": "=", "value": "station 7"}, {"column": "value", "op": "<", "value": 0.5}]},
        ]},
        "group_by": ["label"],
        "order_by": [{"column": "total", "direction": "desc"}],
        "limit": 20,
    });
    match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    }
}

fn questions(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (database, principal, arguments) = (Ready::new(Vec::new()), Principal::anonymous(), arguments());
    let spec = QuerySpec::from_json(&arguments).expect("a valid question");
    let statement = runtime.block_on(spec.render(&database, &principal)).expect("it fits the table");
    let sql = statement.text().to_owned();
    let cache = StatementCache::default();

    let mut group = criterion.benchmark_group("question");
    group.bench_function("read", |bencher| bencher.iter(|| black_box(QuerySpec::from_json(black_box(&arguments)))));
    group.bench_function("render", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(spec.render(&database, &principal))));
    });
    group.bench_function("parse", |bencher| {
        bencher.iter(|| black_box(Statement::parse(black_box(&sql), SqlDialect::DataFusion)));
    });
    group.bench_function("parse, cached", |bencher| {
        bencher.iter(|| black_box(cache.parse(black_box(&sql), SqlDialect::DataFusion)));
    });
    group.finish();
}

criterion_group!(benches, questions);
criterion_main!(benches);
