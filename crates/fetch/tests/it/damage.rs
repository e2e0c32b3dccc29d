//! Blocks without their hash, results that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_fetch::{FetchError, FetchOptions, Notice};

use super::scene::{Scene, hasty};
use super::server::Answer;
use super::stored::{Standing, Stored, schema, sha256};

/// A server that flips a bit in the middle of block 1, that many times.
async fn flipping(times: usize) -> Scene {
    let left = AtomicUsize::new(times);
    Scene::with(3, move |stored, asked| {
        let mut answer = stored.answer(asked);
        let is_flipped = asked.block() == Some(1)
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if is_flipped {
            let middle = answer.bytes.len() - stored.blocks[1].len() / 2;
            answer.bytes[middle] ^= 1;
        }
        answer
    })
    .await
}

#[tokio::test]
async fn a_block_without_its_hash_is_fetched_once_more() {
    let scene = flipping(1).await;
    let damaged: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noted = damaged.clone();
    let heard_by = Arc::new(move |notice: &Notice| {
        if let Notice::Damaged { block } = notice {
            noted.lock().push(*block);
        }
    });
    scene.fetch("out.arrow", FetchOptions { heard_by, ..hasty() }).await.unwrap();
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
    assert_eq!(*damaged.lock(), [1]);
}

#[tokio::test]
async fn a_block_that_never_has_its_hash_is_an_error_and_no_file() {
    let scene = flipping(usize::MAX).await;
    let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
    insta::assert_snapshot!(
        error.cause(),
        @"the server's block 1 is damaged: 2 times its bytes did not have the hash that the manifest names"
    );
    assert_eq!(scene.server.blocks_asked().iter().filter(|block| **block == 1).count(), 2);
    assert_eq!(scene.names(), [".out.csv.partial"], "what was whole is kept");
}

#[tokio::test]
async fn bytes_too_many_or_too_few_are_damage() {
    for (change, name) in [(false, "shorter"), (true, "longer")] {
        let scene = Scene::with(1, move |stored, asked| {
            let Some(index) = asked.block() else { return stored.answer(asked) };
            let mut body = stored.blocks[index].clone();
            if change {
                body.extend_from_slice(&[0; 1_000_000]);
            } else {
                body.truncate(10);
            }
            Answer::new("200 OK", &[("ETag", "\"x\"")], &body)
        })
        .await;
        let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
        assert!(matches!(error, FetchError::Damaged { block: 0, .. }), "{name}: {error}");
        assert!(scene.names().is_empty(), "{name}: nothing is worth keeping");
    }
}

/// What is told of a result of two blocks, the second of which is `second`, with its right hash.
async fn with_second_block(second: Vec<u8>) -> String {
    let mut stored = Stored::new(2);
    stored.blocks[1] = second;
    let scene = Scene::of(Arc::new(stored), Stored::answer).await;
    let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
    assert!(!scene.file("out.csv").exists());
    error.cause().to_string()
}

#[tokio::test]
async fn a_hash_does_not_make_a_block() {
    let told = with_second_block(b"this is no Arrow".to_vec()).await;
    assert!(told.starts_with("the server's block 1 is damaged: "), "{told}");
    let short = super::stored::block(&schema(), &Stored::new(1).batches[..1]);
    insta::assert_snapshot!(
        with_second_block(short).await,
        @"the server's block 1 is damaged: it has 50 rows instead of 100"
    );
    let fewer = Stored::new(1).batches[0].project(&[0, 1]).unwrap();
    let narrow = super::stored::block(&fewer.schema(), &[fewer]);
    insta::assert_snapshot!(
        with_second_block(narrow).await,
        @"the server's block 1 is damaged: its columns are others than those of the first block"
    );
}

#[tokio::test]
async fn a_result_that_changes_is_no_result() {
    let reads = AtomicUsize::new(0);
    let scene = Scene::with(3, move |stored, asked| {
        let standing = Standing { status: "running", blocks: 2 };
        if !asked.is_manifest() {
            return stored.answer_at(asked, &standing);
        }
        let mut manifest: Value = stored.manifest(&standing);
        if reads.fetch_add(1, Ordering::SeqCst) > 0 {
            manifest["blocks"][0]["sha256"] = sha256(b"another").into();
        }
        Answer::json(&manifest.to_string())
    })
    .await;
    let error = scene.fetch("out.csv", hasty()).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Changed), "{error}");
}
