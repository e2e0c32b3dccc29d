//! Quotas, counts, and disks that are full.

use std::os::unix::fs::symlink;

use futures::StreamExt;
use tidegate_core::{StoredFigures, StoredResults};
use tidegate_query::{End, ResultId, StoreLimits};

use super::{Batches, Running, Spool, ann, bob, counted, ended, read, ready, said, small};
use crate::stored::limits;

pub(super) const KIB: u64 = 1024;

/// Rows that take some `kib` in blocks.
pub(super) fn of_size(kib: u64) -> Batches {
    let rows = kib as i64;
    // Text of 64 letters takes three quarters of its bytes on the disk.
    ready((0..rows).map(|row| counted(row..row + 1, 1344)))
}

pub(super) fn schema() -> arrow::datatypes::SchemaRef {
    counted(0..1, 8).schema()
}

fn ids(spool: &Spool) -> Vec<ResultId> {
    let mut results = [spool.store.list(&ann()), spool.store.list(&bob())].concat();
    results.sort_by_key(|result| result.head().created_at_ms);
    results.iter().map(|result| result.head().id).collect()
}

fn bytes_of(spool: &Spool, id: ResultId) -> u64 {
    let files = std::fs::read_dir(spool.place().join(id.to_string())).unwrap().map(|entry| entry.unwrap());
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

#[tokio::test]
async fn the_oldest_of_ones_own_go_first() {
    let spool = Spool::new(StoreLimits { bytes_of_one: 400 * KIB, ..small() }).await;
    let (of_bob, _) = spool.write(&bob(), &schema(), of_size(100)).await;
    let mut of_ann = Vec::new();
    for _ in 0..5 {
        tick().await;
        let (result, written) = spool.write(&ann(), &schema(), of_size(100)).await;
        assert_eq!(written.unwrap().end, End::Complete);
        of_ann.push(result);
    }
    let kept: Vec<ResultId> = spool.store.list(&ann()).iter().rev().map(|result| result.head().id).collect();
    let newest: Vec<ResultId> = of_ann[5 - kept.len()..].iter().map(|result| result.head().id).collect();
    assert_eq!(kept, newest, "the newest stay, whole");
    assert!((2..=4).contains(&kept.len()), "{}", kept.len());
    let bytes: u64 = spool.store.list(&ann()).iter().map(|result| result.stage().bytes()).sum();
    assert!(bytes <= 400 * KIB);
    assert!(spool.store.get(of_bob.head().id, &bob()).is_ok(), "others have nothing to do with it");
    assert_eq!(spool.on_disk().len(), kept.len() + 1);
    let gone = of_ann[0].block(0).await.unwrap_err();
    insta::assert_snapshot!(said(&gone).replace(&of_ann[0].head().id.to_string(), "ID"), @"not_found: the stored result ID is gone: it made room for newer ones");
}

#[tokio::test]
async fn one_that_is_larger_than_all_may_be_ends_and_takes_nobody_along() {
    let spool = Spool::new(StoreLimits { bytes_of_one: 300 * KIB, ..small() }).await;
    let (of_bob, _) = spool.write(&bob(), &schema(), of_size(200)).await;
    let (result, written) = spool.write(&ann(), &schema(), of_size(2000)).await;
    insta::assert_snapshot!(said(&written.unwrap_err()), @r#"
    unavailable: your stored results take as much room as they may
    Ask for less, or later: stored results expire.
    "#);
    insta::assert_snapshot!(format!("{:?}", ended(&result).await), @r#"Incomplete("your stored results take as much room as they may")"#);
    let bytes = result.stage().bytes();
    assert!(bytes > 100 * KIB && bytes <= 300 * KIB, "{bytes}");
    let rows = read(&result, 0).await.unwrap();
    assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<i64>>());
    assert_eq!(read(&of_bob, 0).await.unwrap().len(), 200);
}

#[tokio::test]
async fn when_all_of_it_is_taken_the_oldest_go_whosever_they_are_but_none_that_is_being_written() {
    let spool = Spool::new(StoreLimits { total_bytes: 400 * KIB, ..small() }).await;
    let running = Running::by(&bob());
    let writer = spool.begin(&running, &schema()).await.unwrap();
    let oldest = writer.result().clone();
    tick().await;
    let (of_bob, _) = spool.write(&bob(), &schema(), of_size(150)).await;
    tick().await;
    let (of_ann, _) = spool.write(&ann(), &schema(), of_size(150)).await;
    tick().await;
    let (newest, written) = spool.write(&ann(), &schema(), of_size(150)).await;
    assert_eq!(written.unwrap().end, End::Complete);
    assert_eq!(ids(&spool), [&oldest, &of_ann, &newest].map(|result| result.head().id));
    assert!(matches!(ended(&of_bob).await, End::Removed(_)));
    // It goes on as if nothing had been.
    let written = writer.write_all(of_size(20), 0, &running.job).await.unwrap();
    assert_eq!((written.rows, written.end), (20, End::Complete));
    assert_eq!(spool.on_disk().len(), spool.store.len());
}

#[tokio::test]
async fn those_who_write_at_once_do_not_pass_the_quota_together() {
    let spool = Spool::new(StoreLimits { total_bytes: 700 * KIB, ..limits() }).await;
    let (who, schema) = ([ann(), ann(), bob(), bob()], schema());
    let written = futures::future::join_all(who.iter().map(|who| spool.write(who, &schema, of_size(600)))).await;
    let bytes: u64 = ids(&spool).iter().map(|id| bytes_of(&spool, *id)).sum();
    assert!(bytes <= 700 * KIB && bytes > 300 * KIB, "{bytes}");
    for (result, written) in &written {
        let rows = result.stage().rows();
        assert_eq!(written.as_ref().is_ok_and(|written| written.end == End::Complete), rows == 600);
    }
}

#[tokio::test]
async fn many_small_ones_drive_out_ones_own_and_then_the_oldest() {
    let spool = Spool::new(StoreLimits { results: 5, results_of_one: 3, ..small() }).await;
    let of_bob = spool.keep(&bob(), 1).await;
    let mut of_ann = Vec::new();
    for _ in 0..6 {
        tick().await;
        of_ann.push(spool.keep(&ann(), 1).await.head().id);
    }
    assert_eq!(ids(&spool), [&[of_bob.head().id][..], &of_ann[3..]].concat());
    for who in ["carol", "dave"] {
        tick().await;
        spool.keep(&crate::stored::somebody(who), 1).await;
    }
    assert_eq!(ids(&spool), of_ann[3..], "of all, the oldest goes");
    assert_eq!((spool.store.len(), spool.on_disk().len()), (5, 5));
}

#[tokio::test]
async fn no_more_are_written_at_once_than_may_be() {
    let spool = Spool::new(StoreLimits { running: 3, running_of_one: 2, ..small() }).await;
    let (of_ann, of_bob) = (Running::by(&ann()), Running::by(&bob()));
    let begin = async |running| spool.begin(running, &schema()).await;
    let first = begin(&of_ann).await.unwrap();
    let _second = begin(&of_ann).await.unwrap();
    let third = begin(&of_ann).await.map(drop).unwrap_err();
    insta::assert_snapshot!(said(&third), @r#"
    rate_limited: as many of your stored results are being written as may be
    Wait for one of them; list_jobs shows them.
    "#);
    let _of_bob = begin(&of_bob).await.unwrap();
    insta::assert_snapshot!(said(&begin(&of_bob).await.map(drop).unwrap_err()), @r#"
    rate_limited: as many stored results are being written as may be
    Wait until one of them ends.
    "#);
    let result = first.result().clone();
    drop(first);
    ended(&result).await;
    assert_eq!(spool.on_disk().len(), 2);
    assert!(begin(&of_ann).await.is_ok(), "a place that was given back is free");
}

#[tokio::test]
async fn the_floor_of_the_disk_is_kept() {
    let spool = Spool::new(small()).await;
    let before = spool.keep(&ann(), 20).await.head().id;
    let spool = spool.again(StoreLimits { free_bytes: u64::MAX / 2, results: 1, ..small() }).await;
    let running = Running::by(&ann());
    let error = spool.begin(&running, &schema()).await.map(drop).unwrap_err();
    insta::assert_snapshot!(said(&error), @r#"
    unavailable: the server's disk has too little room left
    Ask for less, or later: stored results expire.
    "#);
    assert_eq!(ids(&spool), [before], "nothing goes for what cannot be");
    assert_eq!(spool.on_disk(), [before.to_string()]);
}

/// `/dev/full` is a disk that is full.
#[tokio::test]
async fn a_disk_that_is_full_ends_the_result_before_the_block_that_did_not_fit() {
    for full_at in [0, 1, 3] {
        let spool = Spool::new(small()).await;
        let running = Running::by(&ann());
        let writer = spool.begin(&running, &schema()).await.unwrap();
        let result = writer.result().clone();
        symlink("/dev/full", spool.files_of(&result).join(format!("{full_at}.arrow"))).unwrap();
        // The disk has room again when the next block comes: rows after a gap must not be stored all the same.
        let batches = (0..200_i64).map(|index| Ok(counted(index * 100..(index + 1) * 100, 120)));
        let error = writer.write_all(futures::stream::iter(batches).boxed(), 0, &running.job).await.unwrap_err();
        assert_eq!(said(&error), "unavailable: the server cannot write stored results now");
        assert!(error.detail().unwrap().contains("os error 28"), "{:?}", error.detail());
        assert_eq!(result.stage().blocks.len(), full_at);
        let reason = "the server cannot write stored results now".to_owned();
        if full_at == 0 {
            assert_eq!(ended(&result).await, End::Removed(reason));
            assert!(spool.store.is_empty() && spool.on_disk().is_empty());
            continue;
        }
        assert_eq!(ended(&result).await, End::Incomplete(reason));
        let rows = read(&result, 0).await.unwrap();
        assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<i64>>());
        let (id, stage) = (result.head().id, result.stage());
        let files = std::fs::read_dir(spool.files_of(&result)).unwrap().count();
        assert_eq!(files, full_at + 1, "its blocks and its manifest");
        let spool = spool.again(small()).await;
        let found = spool.store.get(id, &ann()).unwrap();
        assert_eq!((found.stage().blocks, found.end()), (stage.blocks, stage.end));
    }
}

#[tokio::test]
async fn figures_tell_what_there_is_and_what_went() {
    let spool = Spool::new(StoreLimits { bytes_of_one: 250 * KIB, ..small() }).await;
    assert_eq!(spool.store.figures(), StoredFigures::default());
    let running = Running::by(&bob());
    let writer = spool.begin(&running, &schema()).await.unwrap();
    let mut blocks = 0;
    for _ in 0..4 {
        tick().await;
        let (result, written) = spool.write(&ann(), &schema(), of_size(100)).await;
        assert_eq!(written.unwrap().end, End::Complete);
        blocks += result.stage().blocks.len() as u64;
    }
    let (kept, figures) = (spool.store.list(&ann()), spool.store.figures());
    let bytes = kept.iter().map(|result| result.stage().bytes()).sum();
    let evicted = 4 - kept.len() as u64;
    assert!(evicted > 0);
    let wanted = StoredFigures {
        results: kept.len() as u64 + 1,
        bytes,
        running: 1,
        blocks_written: blocks,
        expired: 0,
        evicted,
    };
    assert_eq!(figures, wanted);
    drop(writer);
}
