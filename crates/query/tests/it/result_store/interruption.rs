//! Who goes before the end: writers, readers, and what is read.

use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use tidegate_results::{ResultEnd, StoreLimits};

use super::{
    RunningCall, TestStore, ann, bob, describe_error, describe_error_without_id, numbered_rows, read, small_limits,
    then_failing, then_pending, wait_for_end,
};
use crate::fake::FakeDatabase;
use crate::stored::{StoredAnswers, id_of, limits};

#[tokio::test]
async fn a_cancelled_query_keeps_what_it_had_and_says_so() {
    let spool = TestStore::new(small_limits()).await;
    let rows = numbered_rows(0..9000, 8);
    let running = RunningCall::from_caller(&ann());
    let writer = spool.begin(&running, &rows.schema()).await.unwrap();
    let result = writer.result().clone();
    let job = running.job.clone();
    let cancelling = async {
        result.next_block(1).await.unwrap();
        job.cancel();
    };
    let (written, ()) = tokio::join!(writer.write_all(then_pending([rows]), 0, &running.job), cancelling);
    assert_eq!(describe_error(&written.unwrap_err()), "cancelled: the query was cancelled");
    assert_eq!(wait_for_end(&result).await, ResultEnd::Incomplete("the query was cancelled".to_owned()));
    assert_eq!(read(&result, 0).await.unwrap(), (0..9000).collect::<Vec<i64>>(), "rows that waited are kept, too");
}

#[tokio::test]
async fn what_fails_before_its_first_row_leaves_nothing() {
    let spool = TestStore::new(small_limits()).await;
    let (result, written) = spool.write(&ann(), &numbered_rows(0..1, 8).schema(), then_failing([])).await;
    assert_eq!(describe_error(&written.unwrap_err()), "unavailable: the database went away");
    assert_eq!(wait_for_end(&result).await, ResultEnd::Removed("the database went away".to_owned()));
    assert!(spool.store.is_empty() && spool.on_disk().is_empty());
    let error = describe_error_without_id(&result.block(0).await.unwrap_err(), &result);
    insta::assert_snapshot!(error, @"not_found: the stored result ID is gone: the database went away");
}

#[tokio::test]
async fn a_writer_that_is_dropped_leaves_a_part_or_nothing() {
    let spool = TestStore::new(small_limits()).await;
    let running = RunningCall::from_caller(&ann());
    let schema = numbered_rows(0..1, 8).schema();
    // Before its first row.
    let writer = spool.begin(&running, &schema).await.unwrap();
    let result = writer.result().clone();
    drop(writer);
    assert!(matches!(wait_for_end(&result).await, ResultEnd::Removed(_)));
    assert!(spool.store.is_empty() && spool.on_disk().is_empty());
    // In the middle.
    let writer = spool.begin(&running, &schema).await.unwrap();
    let result = writer.result().clone();
    let writing = writer.write_all(then_pending([numbered_rows(0..9000, 8)]), 0, &running.job);
    tokio::select! {
        _ = writing => panic!("the rows never end"),
        _ = result.next_block(1) => {}
    }
    let reason = "the query was ended before its last row".to_owned();
    assert_eq!(wait_for_end(&result).await, ResultEnd::Incomplete(reason.clone()));
    let rows = read(&result, 0).await.unwrap();
    assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<i64>>());
    let (id, blocks) = (result.header().id, result.progress().blocks);
    let spool = spool.reopen(small_limits()).await;
    let found = spool.store.get(id, &ann()).unwrap();
    assert_eq!((found.progress().blocks, found.end()), (blocks, Some(ResultEnd::Incomplete(reason))));
}

/// At each place where a beginning waits, it is dropped there.
#[tokio::test]
async fn dropped_begin_releases_writer_slot() {
    let spool = TestStore::new(StoreLimits { writers: 1, ..small_limits() }).await;
    let running = RunningCall::from_caller(&ann());
    let schema = numbered_rows(0..1, 8).schema();
    for polls in 0..8 {
        let mut beginning = Box::pin(spool.begin(&running, &schema));
        for _ in 0..polls {
            if futures::poll!(&mut beginning).is_ready() {
                break;
            }
            // Whatever it waits for is done on another thread.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        }
        drop(beginning);
        // Its last words are said on another thread: the place is free when they are.
        let gone = async {
            while !spool.store.is_empty() || !spool.on_disk().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(20), gone).await;
        assert!(in_time.is_ok(), "after {polls} polls");
    }
    spool.keep(&ann(), 1).await;
}

#[tokio::test]
async fn reader_fails_when_result_is_removed() {
    let spool = TestStore::new(StoreLimits { results: 1, ..small_limits() }).await;
    let result = spool.keep(&ann(), 9000).await;
    let mut rows = result.rows_from(0);
    let first = rows.next().await.unwrap().unwrap();
    spool.keep(&bob(), 1).await;
    assert_eq!(
        wait_for_end(&result).await,
        ResultEnd::Removed("it was removed to make room for newer results".to_owned())
    );
    let next = rows.next().await.unwrap().unwrap_err();
    insta::assert_snapshot!(describe_error_without_id(&next, &result), @"not_found: the stored result ID is gone: it was removed to make room for newer results");
    assert!(first.num_rows() > 0 && rows.next().await.is_none());
}

#[tokio::test]
async fn a_client_that_leaves_before_the_end_of_its_answer_leaves_no_running_result() {
    let mut fake = FakeDatabase::counting(400, 50);
    fake.delay = Some(Duration::from_millis(1));
    let stopped = fake.stopped.clone();
    let scene = StoredAnswers::new(fake, limits()).await;
    let mut reply = scene.begin(&ann(), json!({"delivery": "blocks"}));
    reply.next().await.unwrap();
    drop(reply);
    for result in scene.store.list(&ann()) {
        assert!(matches!(wait_for_end(&result).await, ResultEnd::Incomplete(_)));
    }
    assert!(stopped.load(std::sync::atomic::Ordering::Relaxed), "the query was stopped");
}

#[tokio::test]
async fn damaged_page_ends_with_error() {
    let scene =
        StoredAnswers::new(FakeDatabase::counting(40, 500), StoreLimits { block_bytes: 64 * 1024, ..limits() }).await;
    let first = scene.call(&ann(), json!({})).await;
    let id = id_of(&first.links[0]);
    let result = scene.store.get(id, &ann()).unwrap();
    assert_eq!(wait_for_end(&result).await, ResultEnd::Complete);
    let path = scene.folder.path().join("0").join(id.to_string());
    let last = result.progress().blocks.len() - 1;
    std::fs::write(path.join(format!("{last}.arrow")), "not what it was").unwrap();
    let at = scene.store.create_cursor(&result, result.progress().blocks[last].first_row - 3, 0, &ann());
    let other = scene.call(&ann(), json!({"cursor": at})).await;
    assert!(describe_error(&other.failure.unwrap()).contains("other arguments"));
    // Page by page up to it: no page is longer than its budget, so that one ends there.
    let mut cursor = first.cursor().map(str::to_owned);
    let mut rows = first.numbers().len();
    let failed = loop {
        let page = scene.call(&ann(), json!({"cursor": cursor.unwrap()})).await;
        if page.failure.is_some() {
            break page;
        }
        rows += page.numbers().len();
        cursor = page.cursor().map(str::to_owned);
    };
    assert!(describe_error(&failed.failure.clone().unwrap()).contains("is damaged"));
    let before = result.progress().blocks[last].first_row as usize;
    assert!(rows <= before && rows + 60 > before, "{rows} of {before}");
    if !failed.text.is_empty() {
        assert!(failed.numbers().len() + rows == before, "what was sent is closed");
    }
}

#[tokio::test]
async fn last_page_reports_incomplete_result() {
    let mut fake = FakeDatabase::counting(20, 50);
    fake.failure = Some(|| tidegate_core::Error::new(tidegate_core::ErrorKind::Unavailable, "the database went away"));
    let scene = StoredAnswers::new(fake, limits()).await;
    let first = scene.call(&ann(), json!({})).await;
    let result = scene.store.get(id_of(&first.links[0]), &ann()).unwrap();
    wait_for_end(&result).await;
    let mut cursor = first.cursor().map(str::to_owned);
    let mut lines = Vec::new();
    while let Some(at) = cursor {
        // One that shows nothing by the caller's wish is not the last.
        let none = scene.call(&ann(), json!({"cursor": at, "limit": 0})).await;
        assert!(!none.lines.iter().any(|line| line.contains("ends here")), "{none:?}");
        let page = scene.call(&ann(), json!({"cursor": at})).await;
        lines = page.lines.clone();
        assert_eq!(page.metadata.is_truncated, Some(true));
        cursor = page.cursor().map(str::to_owned);
    }
    insta::assert_snapshot!(lines.join("\n"), @"The stored result ends here and is incomplete: the database went away.");
}
