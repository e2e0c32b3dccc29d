//! Bodies draw on the memory of the node: each is stored or refused, and the memory returns.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use futures::{StreamExt, stream};
use tidegate_core::{MemoryReservation, Principal};
use tidegate_query::NodeMemory;
use tidegate_runtime::Registry;
use tidegate_tools::IngestToolOptions;

use super::memory_target::MemoryTarget;
use super::{NDJSON, answer, counts, device, no_arguments, registry_with, rest_call_of};

const LIMIT: usize = 32 << 20;
const ROWS: u64 = 60;
const BUSY: &str = "unavailable: other work holds the memory that the rows need; nothing was stored\nRetry later, or send \
                    smaller requests. The server's limit is limits.memory.";

fn node(plant: &Arc<MemoryTarget>, limit: usize) -> (Arc<Registry>, Arc<NodeMemory>) {
    let memory = Arc::new(NodeMemory::new(limit));
    let options = IngestToolOptions { memory: memory.clone(), ..IngestToolOptions::default() };
    (registry_with(&[plant], options), memory)
}

fn row(device_bytes: usize) -> String {
    format!("{{\"time\":\"2024-02-29T12:00:00Z\",\"device\":\"{}\"}}\n", "x".repeat(device_bytes))
}

/// Rows of 100 kB.
fn body() -> Bytes {
    row(100_000).repeat(ROWS as usize).into()
}

/// The numbers of the rows that were stored, or the error.
async fn send(registry: &Arc<Registry>, principal: &Principal, body: Bytes) -> Result<(u64, u64, bool, bool), String> {
    let pieces: Vec<Bytes> = body.chunks(50_000).map(|piece| body.slice_ref(piece)).collect();
    let pieces = stream::iter(pieces.into_iter().map(Ok));
    let call = rest_call_of(principal, "append_rows", no_arguments(), NDJSON, None, pieces);
    answer(registry, call).await.map(|answer| counts(&answer))
}

#[tokio::test]
async fn a_body_is_refused_while_other_work_holds_the_memory() {
    let plant = MemoryTarget::plant();
    let (registry, memory) = node(&plant, LIMIT);
    let mut query = memory.reserve(None);
    query.resize(LIMIT).unwrap();
    assert_eq!(send(&registry, &device(&["*"]), body()).await, Err(BUSY.to_owned()));
    assert_eq!(memory.used_bytes(), LIMIT);
    // A small one is never refused.
    assert_eq!(send(&registry, &device(&["*"]), row(1).into()).await, Ok((1, 0, false, false)));
    drop(query);
    assert_eq!(send(&registry, &device(&["*"]), body()).await, Ok((ROWS, 0, false, false)));
    assert_eq!((plant.row_count("sensors"), memory.used_bytes()), (ROWS as usize + 1, 0));
}

#[tokio::test]
async fn a_row_that_needs_more_than_all_memory_is_too_large() {
    let plant = MemoryTarget::plant();
    let (registry, memory) = node(&plant, 4 << 20);
    let error = send(&registry, &device(&["*"]), row(8 << 20).into()).await.unwrap_err();
    assert!(error.starts_with("too_large: the rows need ") && error.contains("limits.memory"), "{error}");
    assert_eq!((plant.row_count("sensors"), memory.used_bytes()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_bodies_stay_within_the_memory() {
    let plant = MemoryTarget::plant();
    let (registry, memory) = node(&plant, LIMIT);
    let principals: Vec<Principal> = (0..16)
        .map(|number| Principal { tenant: (number % 2 == 0).then(|| "north".to_owned()), ..device(&["*"]) })
        .collect();
    let outcomes = join_all(principals.iter().map(|principal| send(&registry, principal, body()))).await;
    for outcome in &outcomes {
        assert!(matches!(outcome, Ok((ROWS, 0, false, false))) || outcome == &Err(BUSY.to_owned()), "{outcome:?}");
    }
    let stored = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!((plant.row_count("sensors"), memory.used_bytes()), (stored * ROWS as usize, 0));
}

#[tokio::test]
async fn the_memory_of_a_caller_that_leaves_returns() {
    let plant = MemoryTarget::plant();
    let (registry, memory) = node(&plant, LIMIT);
    let body = body();
    let pieces = stream::iter([Ok(body.slice(..3 << 20))]).chain(stream::pending());
    let call = rest_call_of(&device(&["*"]), "append_rows", no_arguments(), NDJSON, None, pieces);
    let reply = registry.call(call).unwrap();
    while memory.used_bytes() < 1 << 20 {
        tokio::task::yield_now().await;
    }
    reply.job().clone().cancel();
    drop(reply);
    while memory.used_bytes() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(plant.row_count("sensors"), 0);
}
