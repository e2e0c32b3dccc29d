//! Decoding one JSON-RPC message.

#![allow(missing_docs, reason = "criterion's macro has no docs")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};
use tidegate_mcp::decode;

fn messages() -> [(&'static str, Value); 3] {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let question = json!({
        "table": "orders", "select": ["customer", {"function": "sum", "column": "total", "as": "spent"}],
        "where": {"column": "placed_at", "op": ">=", "value": "2026-01-01"}, "group_by": ["customer"],
    });
    let call = |arguments: Value| json!({"name": "query", "arguments": arguments, "_meta": meta});
    let request = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    [
        ("tools/list", request("tools/list", json!({"_meta": meta}))),
        ("tools/call", request("tools/call", call(question))),
        ("tools/call of 64 KiB", request("tools/call", call(json!({"where": "x".repeat(64 * 1024)})))),
    ]
}

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for (name, message) in messages() {
        let bytes = message.to_string().into_bytes();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| black_box(decode(black_box(&bytes)))));
    }
    group.finish();
}

criterion_group!(benches, decoding);
criterion_main!(benches);
