//! Quotas, counts, the order of results, and disks that are full.

use std::os::unix::fs::symlink;

use futures::StreamExt;
use tidegate_core::{StoredResultStats, StoredResults};
use tidegate_query::stored_columns;
use tidegate_results::{NewResult, ResultEnd, ResultId, StoreLimits};

use super::{
    Batches, RunningCall, TestStore, ann, bob, describe_error, numbered_rows, read, ready, small_limits, wait_for_end,
};
use crate::stored::limits;

pub(super) const KIB: u64 = 1024;

/// Rows that take some `kib` in blocks.
pub(super) fn of_size(kib: u64) -> Batches {
    let rows = kib as i64;
    // Text of 64 letters takes three quarters of its bytes on the disk.
    ready((0..rows).map(|row| numbered_rows(row..row + 1, 1344)))
}

pub(super) fn schema() -> arrow::datatypes::SchemaRef {
    numbered_rows(0..1, 8).schema()
}

fn ids(spool: &TestStore) -> Vec<ResultId> {
    let mut results = [spool.store.list(&ann()), spool.store.list(&bob())].concat();
    results.sort_by_key(|result| result.header().created_at_ms);
    results.iter().map(|result| result.header().id).collect()
}

fn bytes_of(spool: &TestStore, id: ResultId) -> u64 {
    let files = std::fs::read_dir(spool.process_folder().join(id.to_string())).unwrap().map(|entry| entry.unwrap());
    files.filter(|file| file.path().extension().unwrap() == "arrow").map(|file| file.metadata().unwrap().len()).sum()
}

/// Each result is made in a millisecond of its own, so that one is older than the other.
pub(super) async fn tick() {
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let began = now();
    while now() == began {
        tokio::task::yield_now().await;
    }
}

/// Several results begin in one millisecond, and the next process goes on with their order.
#[tokio::test]
async fn a_name_belongs_to_the_newest_result() {
    let (running, rows) = (RunningCall::from_caller(&ann()), numbered_rows(0..1, 8));
    let mut spool = TestStore::new(limits()).await;
    for _ in 0..2 {
        for _ in 0..20 {
            let new_result = NewResult { is_table: true, alias: Some("top"), ..NewResult::new(&running.job, "demo") };
            let writer = spool.store.begin(new_result, stored_columns(&rows.schema())).await.unwrap();
            let id = writer.result().header().id;
            writer.write_all(ready([rows.clone()]), 0, &running.job).await.unwrap();
            assert_eq!(spool.store.find_table("top", &ann()).unwrap().header().id, id);
        }
        spool = spool.reopen(limits()).await;
    }
}

#[tokio::test]
async fn evicts_own_oldest_first() {
    let spool = TestStore::new(StoreLimits { bytes_per_principal: 400 * KIB, ..small_limits() }).await;
    let (of_bob, _) = spool.write(&bob(), &schema(), of_size(100)).await;
    let mut of_ann = Vec::new();
    for _ in 0..5 {
        tick().await;
        let (result, written) = spool.write(&ann(), &schema(), of_size(100)).await;
        assert_eq!(written.unwrap(), ResultEnd::Complete);
        of_ann.push(result);
    }
    let kept: Vec<ResultId> = spool.store.list(&ann()).iter().rev().map(|result| result.header().id).collect();
    let newest: Vec<ResultId> = of_ann[5 - kept.len()..].iter().map(|result| result.header().id).collect();
    assert_eq!(kept, newest, "the newest stay, whole");
    assert!((2..=4).contains(&kept.len()), "{}", kept.len());
    let bytes: u64 = spool.store.list(&ann()).iter().map(|result| result.progress().bytes()).sum();
    assert!(bytes <= 400 * KIB);
    assert!(spool.store.get(of_bob.header().id, &bob()).is_ok(), "others have nothing to do with it");
    assert_eq!(spool.on_disk().len(), kept.len() + 1);
    let gone = of_ann[0].block(0).await.unwrap_err();
    insta::assert_snapshot!(describe_error(&gone).replace(&of_ann[0].header().id.to_string(), "ID"), @"not_found: the stored result ID is gone: it was removed to make room for newer results");
}

#[tokio::test]
async fn oversized_result_ends_without_evicting() {
    let spool = TestStore::new(StoreLimits { bytes_per_principal: 300 * KIB, ..small_limits() }).await;
    let (of_bob, _) = spool.write(&bob(), &schema(), of_size(200)).await;
    let (result, written) = spool.write(&ann(), &schema(), of_size(2000)).await;
    insta::assert_snapshot!(describe_error(&written.unwrap_err()), @r#"
    unavailable: your stored results have reached their storage limit
    Request less data, or retry later: stored results expire.
    "#);
    insta::assert_snapshot!(format!("{:?}", wait_for_end(&result).await), @r#"Incomplete("your stored results have reached their storage limit")"#);
    let bytes = result.progress().bytes();
    assert!(bytes > 100 * KIB && bytes <= 300 * KIB, "{bytes}");
    let rows = read(&result, 0).await.unwrap();
    assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<i64>>());
    assert_eq!(read(&of_bob, 0).await.unwrap().len(), 200);
}

#[tokio::test]
async fn full_store_evicts_oldest_finished() {
    let spool = TestStore::new(StoreLimits { total_bytes: 400 * KIB, ..small_limits() }).await;
    let running = RunningCall::from_caller(&bob());
    let writer = spool.begin(&running, &schema()).await.unwrap();
    let oldest = writer.result().clone();
    tick().await;
    let (of_bob, _) = spool.write(&bob(), &schema(), of_size(150)).await;
    tick().await;
    let (of_ann, _) = spool.write(&ann(), &schema(), of_size(150)).await;
    tick().await;
    let (newest, written) = spool.write(&ann(), &schema(), of_size(150)).await;
    assert_eq!(written.unwrap(), ResultEnd::Complete);
    assert_eq!(ids(&spool), [&oldest, &of_ann, &newest].map(|result| result.header().id));
    assert!(matches!(wait_for_end(&of_bob).await, ResultEnd::Removed(_)));
    // It goes on as if nothing had been.
    let end = writer.write_all(of_size(20), 0, &running.job).await.unwrap();
    assert_eq!((oldest.progress().rows(), end), (20, ResultEnd::Complete));
    assert_eq!(spool.on_disk().len(), spool.store.len());
}

#[tokio::test]
async fn concurrent_writers_respect_quota() {
    let spool = TestStore::new(StoreLimits { total_bytes: 700 * KIB, ..limits() }).await;
    let (caller, schema) = ([ann(), ann(), bob(), bob()], schema());
    let written =
        futures::future::join_all(caller.iter().map(|caller| spool.write(caller, &schema, of_size(600)))).await;
    let bytes: u64 = ids(&spool).iter().map(|id| bytes_of(&spool, *id)).sum();
    assert!(bytes <= 700 * KIB && bytes > 300 * KIB, "{bytes}");
    for (result, written) in &written {
        let rows = result.progress().rows();
        assert_eq!(written.as_ref().is_ok_and(|end| *end == ResultEnd::Complete), rows == 600);
    }
}

#[tokio::test]
async fn result_count_evicts_own_then_oldest() {
    let spool = TestStore::new(StoreLimits { results: 5, results_per_principal: 3, ..small_limits() }).await;
    let of_bob = spool.keep(&bob(), 1).await;
    let mut of_ann = Vec::new();
    for _ in 0..6 {
        tick().await;
        of_ann.push(spool.keep(&ann(), 1).await.header().id);
    }
    assert_eq!(ids(&spool), [&[of_bob.header().id][..], &of_ann[3..]].concat());
    for caller in ["carol", "dave"] {
        tick().await;
        spool.keep(&crate::stored::caller_named(caller), 1).await;
    }
    assert_eq!(ids(&spool), of_ann[3..], "of all, the oldest goes");
    assert_eq!((spool.store.len(), spool.on_disk().len()), (5, 5));
}

#[tokio::test]
async fn limits_concurrent_writers() {
    let spool = TestStore::new(StoreLimits { writers: 3, writers_per_principal: 2, ..small_limits() }).await;
    let (of_ann, of_bob) = (RunningCall::from_caller(&ann()), RunningCall::from_caller(&bob()));
    let begin = async |running| spool.begin(running, &schema()).await;
    let first = begin(&of_ann).await.unwrap();
    let _second = begin(&of_ann).await.unwrap();
    let third = begin(&of_ann).await.map(drop).unwrap_err();
    insta::assert_snapshot!(describe_error(&third), @r#"
    rate_limited: you have reached your limit of concurrent stored results
    Wait until one of them ends; list_jobs lists them.
    "#);
    let _of_bob = begin(&of_bob).await.unwrap();
    insta::assert_snapshot!(describe_error(&begin(&of_bob).await.map(drop).unwrap_err()), @r#"
    rate_limited: the server has reached its limit of concurrent stored results
    Wait until one of them ends.
    "#);
    let result = first.result().clone();
    drop(first);
    wait_for_end(&result).await;
    assert_eq!(spool.on_disk().len(), 2);
    assert!(begin(&of_ann).await.is_ok(), "a place that was given back is free");
}

#[tokio::test]
async fn keeps_minimum_free_disk_space() {
    let spool = TestStore::new(small_limits()).await;
    let before = spool.keep(&ann(), 20).await.header().id;
    let spool = spool.reopen(StoreLimits { free_bytes: u64::MAX / 2, results: 1, ..small_limits() }).await;
    let running = RunningCall::from_caller(&ann());
    let error = spool.begin(&running, &schema()).await.map(drop).unwrap_err();
    insta::assert_snapshot!(describe_error(&error), @r#"
    unavailable: the server's disk has too little free space
    Request less data, or retry later: stored results expire.
    "#);
    assert_eq!(ids(&spool), [before], "nothing goes for what cannot be");
    assert_eq!(spool.on_disk(), [before.to_string()]);
}

/// `/dev/full` is a disk that is full.
#[tokio::test]
async fn a_disk_that_is_full_ends_the_result_before_the_block_that_did_not_fit() {
    for full_at in [0, 1, 3] {
        let spool = TestStore::new(small_limits()).await;
        let running = RunningCall::from_caller(&ann());
        let writer = spool.begin(&running, &schema()).await.unwrap();
        let result = writer.result().clone();
        symlink("/dev/full", spool.files_of(&result).join(format!("{full_at}.arrow"))).unwrap();
        // The disk has room again when the next block comes: rows after a gap must not be stored all the same.
        let batches = (0..200_i64).map(|index| Ok(numbered_rows(index * 100..(index + 1) * 100, 120)));
        let error = writer.write_all(futures::stream::iter(batches).boxed(), 0, &running.job).await.unwrap_err();
        assert_eq!(describe_error(&error), "unavailable: the server cannot write stored results now");
        assert!(error.detail().unwrap().contains("os error 28"), "{:?}", error.detail());
        assert_eq!(result.progress().blocks.len(), full_at);
        let reason = "the server cannot write stored results now".to_owned();
        if full_at == 0 {
            assert_eq!(wait_for_end(&result).await, ResultEnd::Removed(reason));
            assert!(spool.store.is_empty() && spool.on_disk().is_empty());
            continue;
        }
        assert_eq!(wait_for_end(&result).await, ResultEnd::Incomplete(reason));
        let rows = read(&result, 0).await.unwrap();
        assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<i64>>());
        let (id, stage) = (result.header().id, result.progress());
        let files = std::fs::read_dir(spool.files_of(&result)).unwrap().count();
        assert_eq!(files, full_at + 1, "its blocks and its manifest");
        let spool = spool.reopen(small_limits()).await;
        let found = spool.store.get(id, &ann()).unwrap();
        assert_eq!((found.progress().blocks, found.end()), (stage.blocks, stage.end));
    }
}

#[tokio::test]
async fn counts_stored_and_evicted_results() {
    let spool = TestStore::new(StoreLimits { bytes_per_principal: 250 * KIB, ..small_limits() }).await;
    assert_eq!(spool.store.stats(), StoredResultStats::default());
    let running = RunningCall::from_caller(&bob());
    let writer = spool.begin(&running, &schema()).await.unwrap();
    let mut blocks = 0;
    for _ in 0..4 {
        tick().await;
        let (result, written) = spool.write(&ann(), &schema(), of_size(100)).await;
        assert_eq!(written.unwrap(), ResultEnd::Complete);
        blocks += result.progress().blocks.len() as u64;
    }
    let (kept, figures) = (spool.store.list(&ann()), spool.store.stats());
    let bytes = kept.iter().map(|result| result.progress().bytes()).sum();
    let evicted = 4 - kept.len() as u64;
    assert!(evicted > 0);
    let stored_result_stats = StoredResultStats {
        results: kept.len() as u64 + 1,
        bytes,
        running: 1,
        blocks_written: blocks,
        blocks_read: 0,
        block_bytes_read: 0,
        expired: 0,
        evicted,
    };
    assert_eq!(figures, stored_result_stats);
    drop(writer);
}
