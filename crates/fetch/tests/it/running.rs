//! Results that are still being written, that ended incomplete, that are empty.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_fetch::{FetchError, FetchOptions};

use super::scene::{Scene, hasty};
use super::stored::{Standing, Stored};

/// A result that grows by one block with each second look, and then is `ended`.
async fn growing(blocks: usize, ended: &'static str) -> Scene {
    let looks = AtomicUsize::new(0);
    Scene::with(blocks, move |stored, asked| {
        let looks =
            if asked.is_manifest() { looks.fetch_add(1, Ordering::SeqCst) } else { looks.load(Ordering::SeqCst) };
        let known = (looks / 2).min(stored.blocks.len());
        let status = if looks / 2 > stored.blocks.len() { ended } else { "running" };
        stored.answer_at(asked, &Standing { status, blocks: known })
    })
    .await
}

#[tokio::test]
async fn a_result_is_followed_while_it_grows() {
    let scene = growing(5, "complete").await;
    let fetched = scene.fetch("out.arrow", hasty()).await.unwrap();
    assert_eq!((fetched.rows, fetched.incomplete), (scene.stored.rows(), None));
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
    let mut asked = scene.server.blocks_asked();
    asked.sort_unstable();
    assert_eq!(asked, [0, 1, 2, 3, 4], "each once");
}

#[tokio::test]
async fn a_result_that_does_not_grow_is_given_up() {
    let scene =
        Scene::with(2, |stored, asked| stored.answer_at(asked, &Standing { status: "running", blocks: 2 })).await;
    let options = FetchOptions { standstill_max: Duration::from_millis(50), ..hasty() };
    let error = scene.fetch("out.csv", options).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Standstill { .. }), "{error}");
}

#[tokio::test]
async fn what_ended_incomplete_is_taken_only_by_who_wants_it() {
    let scene =
        Scene::with(3, |stored, asked| stored.answer_at(asked, &Standing { status: "incomplete", blocks: 3 })).await;
    let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
    insta::assert_snapshot!(
        error,
        @"the result ended incomplete after 300 rows: the query ran longer than 10m; --partial takes what is there"
    );
    assert!(scene.names().is_empty());
    assert!(scene.server.blocks_asked().is_empty());

    let options = FetchOptions { takes_incomplete: true, ..hasty() };
    let fetched = scene.fetch("out.csv", options).await.unwrap();
    assert_eq!((fetched.rows, fetched.incomplete.as_deref()), (300, Some("the query ran longer than 10m")));
}

#[tokio::test]
async fn what_ends_incomplete_later_is_kept_for_who_wants_it() {
    let scene = growing(3, "incomplete").await;
    let error = scene.fetch("out.arrow", hasty()).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Incomplete { rows: 300, .. }), "{error}");
    assert_eq!(scene.names(), [".out.arrow.partial"]);
    let options = FetchOptions { takes_incomplete: true, ..hasty() };
    scene.fetch("out.arrow", options).await.unwrap();
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
    let mut asked = scene.server.blocks_asked();
    asked.sort_unstable();
    assert_eq!(asked, [0, 1, 2], "each once");
}

#[tokio::test]
async fn a_result_without_rows_has_its_columns() {
    let scene = Scene::with(0, Stored::answer).await;
    let fetched = scene.fetch("out.csv", hasty()).await.unwrap();
    assert_eq!(fetched.rows, 0);
    assert_eq!(std::fs::read_to_string(scene.file("out.csv")).unwrap().trim_end(), "id,name,share");
    assert_eq!(scene.names(), ["out.csv"]);
}
