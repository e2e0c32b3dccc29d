//! Pieces, modes, budgets, failures, progress, cancellation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use serde_json::Value;
use tidegate_core::{Budget, Error, ErrorKind, Format};
use tidegate_query::AnswerMode;
use tidegate_runtime::ReplyPart;

use crate::fake::{AnswerOptions, AnswerRecord, FakeDatabase, batch, request_answer, start_call};

fn rows_in(text: &str) -> usize {
    serde_json::from_str::<Vec<Value>>(text).unwrap().len()
}

fn bytes(max: usize) -> Budget {
    Budget { rows: None, bytes: Some(max) }
}

#[tokio::test]
async fn a_long_answer_leaves_in_pieces_and_the_first_is_small() {
    let seen = request_answer(&FakeDatabase::counting(20, 8_192), &AnswerOptions::default()).await;
    assert_eq!(rows_in(&seen.blocks[0]), 20 * 8_192);
    assert!(seen.pieces[0] < 5_000, "{:?}", seen.pieces);
    assert!(seen.pieces.iter().all(|bytes| *bytes <= 64 * 1024), "{:?}", seen.pieces);
    assert!(seen.pieces.len() < 60, "{}", seen.pieces.len());
    assert_eq!(seen.rows, 20 * 8_192);
    assert_eq!(seen.queries, [("demo".to_owned(), 20 * 8_192)]);
    assert_eq!(seen.mode(), "streaming");
    assert_eq!(seen.metadata.rows, Some(20 * 8_192));
    assert_eq!(seen.metadata.bytes, Some(seen.blocks[0].len() as u64));
    assert_eq!(seen.metadata.is_truncated, Some(false));
}

#[tokio::test]
async fn one_row_longer_than_a_piece_is_split_between_characters() {
    let long = "é".repeat(100_001);
    let rows = batch(&[("text", Arc::new(StringArray::from(vec![long.as_str()])))]);
    let seen = request_answer(&FakeDatabase::new(vec![rows]), &AnswerOptions::default()).await;
    assert_eq!(seen.blocks[0], format!("[{{\"text\":\"{long}\"}}]"));
    assert!(seen.pieces.len() > 3);
}

#[tokio::test]
async fn sends_rows_while_source_is_pending() {
    let fake = FakeDatabase { delay: Some(Duration::from_millis(5)), ..FakeDatabase::counting(3, 1) };
    assert_eq!(request_answer(&fake, &AnswerOptions::default()).await.pieces.len(), 3);
}

#[tokio::test]
async fn batch_mode_holds_everything_back_up_to_its_bound() {
    let wishes = AnswerOptions { mode: AnswerMode::Batch, ..AnswerOptions::default() };
    let fake = FakeDatabase { delay: Some(Duration::from_millis(2)), ..FakeDatabase::counting(3, 1) };
    let seen = request_answer(&fake, &wishes).await;
    assert_eq!((seen.pieces.len(), seen.mode()), (1, "batch"));
    // 3 MB: more than is held back.
    let seen = request_answer(&FakeDatabase::counting(25, 8_192), &wishes).await;
    assert_eq!(rows_in(&seen.blocks[0]), 25 * 8_192);
    assert_eq!(seen.mode(), "streaming");
}

#[tokio::test]
async fn auto_chooses_by_plan_and_format() {
    let mode = async |is_pipeline_breaking, estimated_rows, format| {
        let fake = FakeDatabase { is_pipeline_breaking, estimated_rows, ..FakeDatabase::counting(1, 1) };
        request_answer(
            &fake,
            &AnswerOptions { mode: AnswerMode::Auto, format: Some(format), ..AnswerOptions::default() },
        )
        .await
        .mode()
        .to_owned()
    };
    assert_eq!(mode(false, Some(1), Format::Mcp).await, "streaming");
    assert_eq!(mode(true, None, Format::Mcp).await, "streaming");
    assert_eq!(mode(true, Some(1_000_000), Format::Mcp).await, "streaming");
    assert_eq!(mode(true, Some(20), Format::Mcp).await, "batch");
    assert_eq!(mode(false, None, Format::Table).await, "batch");
    assert_eq!(mode(false, None, Format::Toon).await, "batch");
}

#[tokio::test]
async fn reports_row_limit() {
    let limited = async |max_rows| {
        request_answer(
            &FakeDatabase::counting(2, 5),
            &AnswerOptions { max_rows: Some(max_rows), ..AnswerOptions::default() },
        )
        .await
    };
    let cut = limited(7).await;
    assert_eq!(rows_in(&cut.blocks[0]), 7);
    insta::assert_snapshot!(cut.blocks[1], @"Showing the first 7 rows; more exist. Raise the limit.");
    assert_eq!(cut.metadata.is_truncated, Some(true));
    assert_eq!(cut.rows, 7);
    // Exactly as many as there are: nothing is missing, nothing is said.
    for whole in [limited(10).await, limited(11).await] {
        assert_eq!((whole.blocks.len(), rows_in(&whole.blocks[0])), (1, 10));
        assert_eq!(whole.metadata.is_truncated, Some(false));
    }
}

#[tokio::test]
async fn truncates_at_budget_and_stays_parseable() {
    for format in Format::FOR_MODELS {
        for max in [100, 1_000, 5_000, 40_000, 100_000] {
            let fake = FakeDatabase::counting(40, 1_000);
            let seen = request_answer(
                &fake,
                &AnswerOptions { format: Some(format), budget: bytes(max), ..AnswerOptions::default() },
            )
            .await;
            assert!(seen.failure.is_none(), "{:?}", seen.failure);
            assert_eq!(seen.blocks.len(), 2, "{format:?} {max}");
            assert!(seen.blocks[0].len() <= max, "{format:?} {max}: {}", seen.blocks[0].len());
            assert!(max < 3_000 || seen.blocks.concat().len() <= max, "{format:?} {max}");
            assert!(fake.stopped.load(Ordering::Relaxed));
            match format {
                Format::Mcp => assert_eq!(rows_in(&seen.blocks[0]) as u64, seen.rows),
                Format::Json => {
                    let whole: Value = serde_json::from_str(&seen.blocks[0]).unwrap();
                    assert_eq!(whole["rows"], seen.rows);
                    assert_eq!(whole["truncated"], true);
                }
                Format::Ndjson => assert_eq!(seen.blocks[0].lines().count() as u64, seen.rows),
                Format::Csv => assert_eq!(seen.blocks[0].lines().count() as u64, seen.rows + 1),
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn truncation_notice_names_the_rest() {
    let line = async |budget| {
        let seen: AnswerRecord =
            request_answer(&FakeDatabase::counting(40, 1_000), &AnswerOptions { budget, ..AnswerOptions::default() })
                .await;
        seen.blocks[1].clone()
    };
    insta::assert_snapshot!(line(bytes(1_000)).await, @"Showing the first 110 rows, as many as fit into 1000 bytes; more exist. Narrow the query.");
    insta::assert_snapshot!(line(Budget { rows: Some(1), bytes: None }).await, @"Showing the first row, the maximum of an answer; more exist. Narrow the query.");
    insta::assert_snapshot!(line(bytes(5)).await, @"Showing no rows: the first has 7 bytes, and the limit is 5. Select fewer columns, or shorten long ones with left(column, 100).");
}

#[tokio::test]
async fn a_failure_before_the_first_row_is_only_an_error() {
    let failure: fn() -> Error = || Error::new(ErrorKind::Unavailable, "the disk is gone");
    let fake = FakeDatabase {
        failure: Some(failure),
        ..FakeDatabase::new(vec![FakeDatabase::counting(1, 0).batches.remove(0)])
    };
    let seen = request_answer(&fake, &AnswerOptions::default()).await;
    assert!(seen.blocks.is_empty());
    assert_eq!(seen.failure.unwrap().message(), "the disk is gone");
    assert_eq!(seen.queries.len(), 1);
}

#[tokio::test]
async fn a_failure_after_rows_closes_their_block() {
    let failure: fn() -> Error = || Error::new(ErrorKind::Unavailable, "the disk is gone");
    let fake =
        FakeDatabase { failure: Some(failure), delay: Some(Duration::from_millis(2)), ..FakeDatabase::counting(2, 3) };
    for format in [Format::Mcp, Format::Json] {
        let seen = request_answer(&fake, &AnswerOptions { format: Some(format), ..AnswerOptions::default() }).await;
        let whole: Value = serde_json::from_str(&seen.blocks[0]).unwrap();
        assert_eq!(whole.as_array().or(whole["Query"].as_array()).unwrap().len(), 6);
        assert_eq!(seen.failure.unwrap().message(), "the disk is gone");
    }
    // In batch mode nothing has left, so there is only the error.
    let seen = request_answer(&fake, &AnswerOptions { mode: AnswerMode::Batch, ..AnswerOptions::default() }).await;
    assert!(seen.blocks.is_empty() && seen.failure.is_some());
}

#[tokio::test(start_paused = true)]
async fn progress_increases_and_is_throttled() {
    let fake = FakeDatabase { delay: Some(Duration::from_millis(40)), ..FakeDatabase::counting(20, 10) };
    for wishes in [
        AnswerOptions::default(),
        AnswerOptions { mode: AnswerMode::Batch, ..AnswerOptions::default() },
        AnswerOptions { extract: Some("n".to_owned()), ..AnswerOptions::default() },
    ] {
        let seen = request_answer(&fake, &wishes).await;
        assert_eq!(seen.progress[0], 0.0);
        assert!((3..=5).contains(&seen.progress.len()), "{wishes:?}: {:?}", seen.progress);
        assert!(seen.progress.is_sorted_by(|a, b| a < b), "{:?}", seen.progress);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_reports_stage_rows_and_estimate() {
    let slow = |ms| FakeDatabase { delay: Some(Duration::from_millis(ms)), ..FakeDatabase::counting(3, 10) };
    let fake = FakeDatabase { estimated_rows: Some(25), ..slow(2_500) };
    let wishes = AnswerOptions { mode: AnswerMode::Batch, ..AnswerOptions::default() };
    insta::assert_snapshot!(request_answer(&fake, &wishes).await.words.join("\n"), @"
    0 of Some(25.0): the query runs
    0.000001 of Some(25.0): the query runs, 1 s so far
    0.000002 of Some(25.0): the query runs, 2 s so far
    10 of Some(25.0): rows are read: 10 of about 25
    10.0000035 of Some(25.0): rows are read: 10 of about 25
    10.0000045 of Some(25.0): rows are read: 10 of about 25
    20 of Some(25.0): rows are read: 20 of about 25
    20.000006 of Some(25.0): rows are read: 20 of about 25
    20.000007 of Some(25.0): rows are read: 20 of about 25
    30 of None: rows are read: 30
    ");
    let wishes = AnswerOptions { max_rows: Some(25), ..AnswerOptions::default() };
    let fake = FakeDatabase { estimated_rows: Some(40), ..slow(900) };
    insta::assert_snapshot!(request_answer(&fake, &wishes).await.words.join("\n"), @"
    0 of Some(25.0): the query runs
    10 of Some(25.0): rows are read: 10 of about 25
    20 of Some(25.0): rows are sent: 20 of about 25, 80 bytes
    ");
    let wishes = AnswerOptions { extract: Some("n".to_owned()), ..AnswerOptions::default() };
    insta::assert_snapshot!(request_answer(&slow(900), &wishes).await.words.join("\n"), @"
    0 of None: the query runs
    10 of None: rows are read: 10
    20 of None: rows are read: 20
    30 of None: rows are read: 30
    ");
}

#[tokio::test]
async fn cancelling_drops_the_stream_at_once() {
    let fake = FakeDatabase { delay: Some(Duration::from_secs(60)), ..FakeDatabase::counting(2, 1) };
    let (mut reply, queries) = start_call(&fake, &AnswerOptions::default());
    poll_until("the query runs", || fake.runs.load(Ordering::Relaxed) == 1).await;
    reply.job().cancel();
    let error = loop {
        if let ReplyPart::End(end) = reply.next().await.unwrap() {
            break end.unwrap_err();
        }
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(fake.stopped.load(Ordering::Relaxed));
    assert_eq!(queries().len(), 1);
}

#[tokio::test]
async fn dropping_the_reader_stops_the_query() {
    let fake = FakeDatabase::counting(100, 8_192);
    let (mut reply, _) = start_call(&fake, &AnswerOptions::default());
    let _ = reply.next().await;
    drop(reply);
    poll_until("the query is stopped", || fake.stopped.load(Ordering::Relaxed)).await;
}

/// Waits until `condition` holds, within a bound.
async fn poll_until(condition_text: &str, condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not reached: {condition_text}");
}

/// A table may change between planning and running.
#[tokio::test]
async fn uses_column_names_of_the_execution() {
    let numbers = || Arc::new(Int64Array::from(vec![7])) as ArrayRef;
    let (before, now) = (batch(&[("salary", numbers()), ("bonus", numbers())]), batch(&[("bonus", numbers())]));
    let fake = FakeDatabase { planned: Some(before.schema()), ..FakeDatabase::new(vec![now.clone()]) };
    let wishes = AnswerOptions { format: Some(Format::Ndjson), ..AnswerOptions::default() };
    assert_eq!(request_answer(&fake, &wishes).await.blocks, ["{\"bonus\":7}\n"]);
    let extract = |column: &str| AnswerOptions { extract: Some(column.to_owned()), ..wishes.clone() };
    assert_eq!(request_answer(&fake, &extract("bonus")).await.blocks, ["7\n"]);
    assert_eq!(request_answer(&fake, &extract("salary")).await.failure.unwrap().kind(), ErrorKind::InvalidArguments);
    // What an output schema does not describe is refused; that a column has gone it allows.
    let promised = |columns: &RecordBatch| AnswerOptions { structured: Some(columns.schema()), ..wishes.clone() };
    assert!(request_answer(&fake, &promised(&before)).await.failure.is_none());
    let more = FakeDatabase { planned: Some(now.schema()), ..FakeDatabase::new(vec![before]) };
    let refused = request_answer(&more, &promised(&now)).await;
    assert!(refused.blocks.is_empty());
    assert!(refused.failure.unwrap().to_string().contains("\"salary\""));
}
