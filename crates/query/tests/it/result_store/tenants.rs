//! What the principals of one tenant have together, and that it is never what another tenant has.

use tidegate_core::Caller;
use tidegate_results::{ResultEnd, StoreLimits};

use super::quota::{KIB, of_size, schema, tick};
use super::{RunningCall, TestStore, describe_error, small_limits, wait_for_end};
use crate::stored::{caller_named, caller_of_tenant};

const NAMES: [&str; 4] = ["ann", "bob", "carol", "dave"];

/// The four of north.
fn north() -> [Caller; 4] {
    NAMES.map(|name| caller_of_tenant("north", name))
}

/// How many results each of `who` has.
fn counts<const N: usize>(spool: &TestStore, caller: &[Caller; N]) -> [usize; N] {
    caller.each_ref().map(|caller| spool.store.list(caller).len())
}

#[tokio::test]
async fn tenant_does_not_evict_other_tenants() {
    let spool = TestStore::new(StoreLimits { results: 8, results_per_principal: 4, ..small_limits() }).await;
    let (north, south) = (north(), [caller_of_tenant("south", "ann")]);
    for _ in 0..2 {
        spool.keep(&south[0], 1).await;
        tick().await;
    }
    for caller in &north {
        for _ in 0..4 {
            spool.keep(caller, 1).await;
            tick().await;
        }
    }
    assert_eq!((counts(&spool, &north), counts(&spool, &south)), ([1, 1, 1, 1], [2]));
    for _ in 0..2 {
        spool.keep(&south[0], 1).await;
        tick().await;
    }
    assert_eq!((counts(&spool, &north), counts(&spool, &south)), ([1, 1, 1, 1], [4]));
}

#[tokio::test]
async fn the_bytes_of_one_tenant_are_bounded_too() {
    let spool = TestStore::new(StoreLimits { total_bytes: 800 * KIB, ..small_limits() }).await;
    let (north, south) = (north(), [caller_of_tenant("south", "ann")]);
    let (of_south, _) = spool.write(&south[0], &schema(), of_size(300)).await;
    for caller in &north {
        tick().await;
        let (_, written) = spool.write(caller, &schema(), of_size(150)).await;
        assert_eq!(written.unwrap(), ResultEnd::Complete);
    }
    let kept = north.iter().flat_map(|caller| spool.store.list(caller));
    let bytes: u64 = kept.map(|result| result.progress().bytes()).sum();
    assert!(bytes > 200 * KIB && bytes <= 400 * KIB, "{bytes}");
    let (too_long, written) = spool.write(&north[0], &schema(), of_size(1000)).await;
    insta::assert_snapshot!(describe_error(&written.unwrap_err()), @r#"
    unavailable: your tenant's stored results have reached their storage limit
    Request less data, or retry later: stored results expire.
    "#);
    assert!(matches!(wait_for_end(&too_long).await, ResultEnd::Incomplete(_)));
    assert_eq!(of_south.end(), Some(ResultEnd::Complete));
}

#[tokio::test]
async fn evicts_largest_tenant_when_full() {
    let spool = TestStore::new(StoreLimits { results: 8, results_per_principal: 4, ..small_limits() }).await;
    let of = |tenant: &str, name: &str| caller_of_tenant(tenant, name);
    let caller = [of("south", "ann"), of("north", "ann"), of("west", "ann"), of("west", "bob"), of("east", "ann")];
    for (caller, count) in caller.iter().zip([3, 4, 1]) {
        for _ in 0..count {
            spool.keep(caller, 1).await;
            tick().await;
        }
    }
    // North has most; then west has as much as the others, and takes from itself.
    for (asking, then) in [(2, [3, 3, 2, 0, 0]), (3, [3, 3, 1, 1, 0]), (4, [2, 3, 1, 1, 1])] {
        spool.keep(&caller[asking], 1).await;
        tick().await;
        assert_eq!(counts(&spool, &caller), then);
    }
    // Those without a tenant count as one: of them the oldest goes, and only when they have most.
    let alone = ["carol", "dave", "eve"].map(caller_named);
    for (asking, then) in [(0, [1, 0, 0]), (1, [1, 1, 0]), (2, [0, 1, 1])] {
        spool.keep(&alone[asking], 1).await;
        tick().await;
        assert_eq!(counts(&spool, &alone), then);
    }
    assert_eq!(spool.store.len(), 8);
    assert_eq!(counts(&spool, &caller), [1, 2, 1, 1, 1]);
    spool.keep(&alone[2], 1).await;
    assert_eq!(counts(&spool, &alone), [0, 0, 2]);
}

#[tokio::test]
async fn tenant_does_not_use_all_writer_slots() {
    let spool = TestStore::new(StoreLimits { writers: 8, writers_per_principal: 2, ..small_limits() }).await;
    let of_north = north().map(|caller| RunningCall::from_caller(&caller));
    let mut writers = Vec::new();
    for running in of_north.iter().take(2).flat_map(|running| [running; 2]) {
        writers.push(spool.begin(running, &schema()).await.unwrap());
    }
    let refused = spool.begin(&of_north[2], &schema()).await.map(drop).unwrap_err();
    insta::assert_snapshot!(describe_error(&refused), @r#"
    rate_limited: your tenant has reached its limit of concurrent stored results
    Wait until one of them ends.
    "#);
    let (of_south, alone) =
        (RunningCall::from_caller(&caller_of_tenant("south", "ann")), RunningCall::from_caller(&caller_named("eve")));
    for running in [&of_south, &of_south, &alone, &alone] {
        writers.push(spool.begin(running, &schema()).await.unwrap());
    }
    assert_eq!(writers.len(), 8);
}
