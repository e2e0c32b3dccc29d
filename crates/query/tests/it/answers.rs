//! Pieces, modes, budgets, failures, progress, cancellation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use serde_json::Value;
use tidegate_core::{Budget, Error, ErrorKind, Outcome, ReplyEvent};
use tidegate_query::{Format, Mode};

use crate::fake::{Fake, Seen, Wishes, ask, batch, start};

fn rows_in(text: &str) -> usize {
    serde_json::from_str::<Vec<Value>>(text).unwrap().len()
}

fn bytes(max: usize) -> Budget {
    Budget { rows: None, bytes: Some(max) }
}

#[tokio::test]
async fn a_long_answer_leaves_in_pieces_and_the_first_is_small() {
    let seen = ask(&Fake::counting(20, 8_192), &Wishes::default()).await;
    assert_eq!(rows_in(&seen.blocks[0]), 20 * 8_192);
    assert!(seen.pieces[0] < 5_000, "{:?}", seen.pieces);
    assert!(seen.pieces.iter().all(|bytes| *bytes <= 64 * 1024), "{:?}", seen.pieces);
    assert!(seen.pieces.len() < 60, "{}", seen.pieces.len());
    assert_eq!(seen.rows, 20 * 8_192);
    assert_eq!(seen.queries, [("demo".to_owned(), 20 * 8_192)]);
    assert_eq!(seen.mode(), "streaming");
    assert_eq!(seen.metadata["dev.tidegate/rows"], 20 * 8_192);
    assert_eq!(seen.metadata["dev.tidegate/bytes"], seen.blocks[0].len());
    assert_eq!(seen.metadata["dev.tidegate/truncated"], false);
}

#[tokio::test]
async fn one_row_longer_than_a_piece_is_split_between_characters() {
    let long = "é".repeat(100_001);
    let rows = batch(&[("text", Arc::new(StringArray::from(vec![long.as_str()])))]);
    let seen = ask(&Fake::of(vec![rows]), &Wishes::default()).await;
    assert_eq!(seen.blocks[0], format!("[{{\"text\":\"{long}\"}}]"));
    assert!(seen.pieces.len() > 3);
}

#[tokio::test]
async fn rows_leave_while_the_next_are_not_there() {
    let fake = Fake { delay: Some(Duration::from_millis(5)), ..Fake::counting(3, 1) };
    assert_eq!(ask(&fake, &Wishes::default()).await.pieces.len(), 3);
}

#[tokio::test]
async fn batch_mode_holds_everything_back_up_to_its_bound() {
    let wishes = Wishes { mode: Mode::Batch, ..Wishes::default() };
    let fake = Fake { delay: Some(Duration::from_millis(2)), ..Fake::counting(3, 1) };
    let seen = ask(&fake, &wishes).await;
    assert_eq!((seen.pieces.len(), seen.mode()), (1, "batch"));
    // 3 MB: more than is held back.
    let seen = ask(&Fake::counting(25, 8_192), &wishes).await;
    assert_eq!(rows_in(&seen.blocks[0]), 25 * 8_192);
    assert_eq!(seen.mode(), "streaming");
}

#[tokio::test]
async fn auto_chooses_by_plan_and_format() {
    let mode = async |is_blocking, estimated_rows, format| {
        let fake = Fake { is_blocking, estimated_rows, ..Fake::counting(1, 1) };
        ask(&fake, &Wishes { mode: Mode::Auto, format, ..Wishes::default() }).await.mode().to_owned()
    };
    assert_eq!(mode(false, Some(1), Format::Mcp).await, "streaming");
    assert_eq!(mode(true, None, Format::Mcp).await, "streaming");
    assert_eq!(mode(true, Some(1_000_000), Format::Mcp).await, "streaming");
    assert_eq!(mode(true, Some(20), Format::Mcp).await, "batch");
    assert_eq!(mode(false, None, Format::Table).await, "batch");
    assert_eq!(mode(false, None, Format::Toon).await, "batch");
}

#[tokio::test]
async fn the_row_limit_is_told_truthfully() {
    let limited =
        async |max_rows| ask(&Fake::counting(2, 5), &Wishes { max_rows: Some(max_rows), ..Wishes::default() }).await;
    let cut = limited(7).await;
    assert_eq!(rows_in(&cut.blocks[0]), 7);
    insta::assert_snapshot!(cut.blocks[1], @"Shown: the first 7 rows; more exist. Ask for less (where, group_by, select) or a larger limit.");
    assert_eq!(cut.metadata["dev.tidegate/truncated"], true);
    assert_eq!(cut.rows, 7);
    // Exactly as many as there are: nothing is missing, nothing is said.
    for whole in [limited(10).await, limited(11).await] {
        assert_eq!((whole.blocks.len(), rows_in(&whole.blocks[0])), (1, 10));
        assert_eq!(whole.metadata["dev.tidegate/truncated"], false);
    }
}

#[tokio::test]
async fn at_the_budget_the_answer_ends_and_still_parses() {
    for format in Format::ALL {
        for max in [100, 1_000, 5_000, 40_000, 100_000] {
            let fake = Fake::counting(40, 1_000);
            let seen = ask(&fake, &Wishes { format, budget: bytes(max), ..Wishes::default() }).await;
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
                Format::Table | Format::Markdown | Format::Toon => {}
            }
        }
    }
}

#[tokio::test]
async fn the_line_says_what_is_missing() {
    let line = async |budget| {
        let seen: Seen = ask(&Fake::counting(40, 1_000), &Wishes { budget, ..Wishes::default() }).await;
        seen.blocks[1].clone()
    };
    insta::assert_snapshot!(line(bytes(1_000)).await, @"Shown: the first 110 rows, as many as fit into 1000 characters; more exist. Ask for less (where, group_by, select), or for the rows after the last one (order_by, where).");
    insta::assert_snapshot!(line(Budget { rows: Some(1), bytes: None }).await, @"Shown: the first row, as many as are allowed; more exist. Ask for less (where, group_by, select), or for the rows after the last one (order_by, where).");
    insta::assert_snapshot!(line(bytes(5)).await, @"Shown: no rows; the first alone takes 7 characters, and the answer may take 5. Select fewer columns, or shorten long ones with left(column, 100).");
}

#[tokio::test]
async fn a_failure_before_the_first_row_is_only_an_error() {
    let failure: fn() -> Error = || Error::new(ErrorKind::Unavailable, "the disk is gone");
    let fake = Fake { failure: Some(failure), ..Fake::of(vec![Fake::counting(1, 0).batches.remove(0)]) };
    let seen = ask(&fake, &Wishes::default()).await;
    assert!(seen.blocks.is_empty());
    assert_eq!(seen.failure.unwrap().message(), "the disk is gone");
    assert_eq!(seen.queries.len(), 1);
}

#[tokio::test]
async fn a_failure_after_rows_closes_their_block() {
    let failure: fn() -> Error = || Error::new(ErrorKind::Unavailable, "the disk is gone");
    let fake = Fake { failure: Some(failure), delay: Some(Duration::from_millis(2)), ..Fake::counting(2, 3) };
    for format in [Format::Mcp, Format::Json] {
        let seen = ask(&fake, &Wishes { format, ..Wishes::default() }).await;
        let whole: Value = serde_json::from_str(&seen.blocks[0]).unwrap();
        assert_eq!(whole.as_array().or(whole["Query"].as_array()).unwrap().len(), 6);
        assert_eq!(seen.failure.unwrap().message(), "the disk is gone");
    }
    // In batch mode nothing has left, so there is only the error.
    let seen = ask(&fake, &Wishes { mode: Mode::Batch, ..Wishes::default() }).await;
    assert!(seen.blocks.is_empty() && seen.failure.is_some());
}

#[tokio::test]
async fn progress_counts_up_and_is_not_told_often() {
    let fake = Fake { delay: Some(Duration::from_millis(40)), ..Fake::counting(20, 10) };
    for wishes in [
        Wishes::default(),
        Wishes { mode: Mode::Batch, ..Wishes::default() },
        Wishes { extract: Some("n".to_owned()), ..Wishes::default() },
    ] {
        let seen = ask(&fake, &wishes).await;
        assert_eq!(seen.progress[0], 0.0);
        assert!((3..=5).contains(&seen.progress.len()), "{wishes:?}: {:?}", seen.progress);
        assert!(seen.progress.is_sorted_by(|a, b| a < b), "{:?}", seen.progress);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_tells_the_stage_the_rows_and_what_is_expected() {
    let slow = |ms| Fake { delay: Some(Duration::from_millis(ms)), ..Fake::counting(3, 10) };
    let fake = Fake { estimated_rows: Some(25), ..slow(2_500) };
    let wishes = Wishes { mode: Mode::Batch, ..Wishes::default() };
    insta::assert_snapshot!(ask(&fake, &wishes).await.words.join("\n"), @"
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
    let wishes = Wishes { max_rows: Some(25), ..Wishes::default() };
    let fake = Fake { estimated_rows: Some(40), ..slow(900) };
    insta::assert_snapshot!(ask(&fake, &wishes).await.words.join("\n"), @"
    0 of Some(25.0): the query runs
    10 of Some(25.0): rows are read: 10 of about 25
    20 of Some(25.0): rows are sent: 20 of about 25, 80 bytes
    ");
    let wishes = Wishes { extract: Some("n".to_owned()), ..Wishes::default() };
    insta::assert_snapshot!(ask(&slow(900), &wishes).await.words.join("\n"), @"
    0 of None: the query runs
    10 of None: rows are read: 10
    20 of None: rows are read: 20
    30 of None: rows are read: 30
    ");
}

#[tokio::test]
async fn cancelling_drops_the_stream_at_once() {
    let fake = Fake { delay: Some(Duration::from_secs(60)), ..Fake::counting(2, 1) };
    let (mut reply, queries) = start(&fake, &Wishes::default());
    tokio::time::sleep(Duration::from_millis(20)).await;
    reply.job().cancel();
    let error = loop {
        match reply.next().await.unwrap() {
            ReplyEvent::End(Outcome::Failed(error)) => break error,
            ReplyEvent::End(Outcome::Done(_)) => panic!("done"),
            ReplyEvent::Chunk(_) => {}
        }
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(fake.stopped.load(Ordering::Relaxed));
    assert_eq!(queries().len(), 1);
}

#[tokio::test]
async fn a_reader_that_goes_away_stops_the_query() {
    let fake = Fake::counting(100, 8_192);
    let (mut reply, _) = start(&fake, &Wishes::default());
    let _ = reply.next().await;
    drop(reply);
    for _ in 0..100 {
        if fake.stopped.load(Ordering::Relaxed) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the query still runs");
}

/// A table may change between planning and running.
#[tokio::test]
async fn names_are_those_of_the_execution() {
    let numbers = || Arc::new(Int64Array::from(vec![7])) as ArrayRef;
    let (before, now) = (batch(&[("salary", numbers()), ("bonus", numbers())]), batch(&[("bonus", numbers())]));
    let fake = Fake { planned: Some(before.schema()), ..Fake::of(vec![now.clone()]) };
    let wishes = Wishes { format: Format::Ndjson, ..Wishes::default() };
    assert_eq!(ask(&fake, &wishes).await.blocks, ["{\"bonus\":7}\n"]);
    let extract = |column: &str| Wishes { extract: Some(column.to_owned()), ..wishes.clone() };
    assert_eq!(ask(&fake, &extract("bonus")).await.blocks, ["7\n"]);
    assert_eq!(ask(&fake, &extract("salary")).await.failure.unwrap().kind(), ErrorKind::InvalidArguments);
    // What an output schema does not describe is refused; that a column has gone it allows.
    let promised = |columns: &RecordBatch| Wishes { structured: Some(columns.schema()), ..wishes.clone() };
    assert!(ask(&fake, &promised(&before)).await.failure.is_none());
    let more = Fake { planned: Some(now.schema()), ..Fake::of(vec![before]) };
    let refused = ask(&more, &promised(&now)).await;
    assert!(refused.blocks.is_empty());
    assert!(refused.failure.unwrap().to_string().contains("\"salary\""));
}
