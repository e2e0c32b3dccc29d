//! Results that are still being written, that ended incomplete, that are empty.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_client::fetch::{FetchError, FetchOptions};

use super::fixture::{DownloadFixture, short_delay_options};
use super::stored_result::{ManifestState, StoredResultFixture};

/// A result that grows by one block with each second look, and then is `complete_style`.
async fn growing_result(blocks: usize, ended: &'static str) -> DownloadFixture {
    let looks = AtomicUsize::new(0);
    DownloadFixture::with(blocks, move |stored, recorded_request| {
        let looks = if recorded_request.is_manifest() {
            looks.fetch_add(1, Ordering::SeqCst)
        } else {
            looks.load(Ordering::SeqCst)
        };
        let known = (looks / 2).min(stored.blocks.len());
        let status = if looks / 2 > stored.blocks.len() { ended } else { "running" };
        stored.respond_at(recorded_request, &ManifestState { status, blocks: known })
    })
    .await
}

#[tokio::test]
async fn follows_a_growing_result() {
    let scene = growing_result(5, "complete").await;
    let fetched = scene.fetch("out.arrow", short_delay_options()).await.unwrap();
    assert_eq!((fetched.rows, fetched.incomplete), (scene.stored.rows(), None));
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
    let mut requested = scene.server.requested_blocks();
    requested.sort_unstable();
    assert_eq!(requested, [0, 1, 2, 3, 4], "each once");
}

#[tokio::test]
async fn fails_when_a_result_stalls() {
    let scene = DownloadFixture::with(2, |stored, recorded_request| {
        stored.respond_at(recorded_request, &ManifestState { status: "running", blocks: 2 })
    })
    .await;
    let options = FetchOptions { stall_timeout: Duration::from_millis(50), ..short_delay_options() };
    let error = scene.fetch("out.csv", options).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::ResultStalled { .. }), "{error}");
}

#[tokio::test]
async fn incomplete_result_needs_partial_flag() {
    let scene = DownloadFixture::with(3, |stored, recorded_request| {
        stored.respond_at(recorded_request, &ManifestState { status: "incomplete", blocks: 3 })
    })
    .await;
    let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
    insta::assert_snapshot!(
        error,
        @"the stored result is incomplete after 300 rows: the query ran longer than 10m; --partial accepts these rows"
    );
    assert!(scene.list_files().is_empty());
    assert!(scene.server.requested_blocks().is_empty());

    let options = FetchOptions { accept_incomplete: true, ..short_delay_options() };
    let fetched = scene.fetch("out.csv", options).await.unwrap();
    assert_eq!((fetched.rows, fetched.incomplete.as_deref()), (300, Some("the query ran longer than 10m")));
}

#[tokio::test]
async fn result_that_ends_incomplete_later_is_resumable() {
    let scene = growing_result(3, "incomplete").await;
    let error = scene.fetch("out.arrow", short_delay_options()).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Incomplete { rows: 300, .. }), "{error}");
    assert_eq!(scene.list_files(), [".out.arrow.partial"]);
    let options = FetchOptions { accept_incomplete: true, ..short_delay_options() };
    scene.fetch("out.arrow", options).await.unwrap();
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
    let mut requested = scene.server.requested_blocks();
    requested.sort_unstable();
    assert_eq!(requested, [0, 1, 2], "each once");
}

#[tokio::test]
async fn empty_result_has_columns() {
    let scene = DownloadFixture::with(0, StoredResultFixture::respond).await;
    let fetched = scene.fetch("out.csv", short_delay_options()).await.unwrap();
    assert_eq!(fetched.rows, 0);
    assert_eq!(std::fs::read_to_string(scene.file("out.csv")).unwrap().trim_end(), "id,name,share");
    assert_eq!(scene.list_files(), ["out.csv"]);
}
