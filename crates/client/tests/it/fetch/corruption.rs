//! Blocks without their hash, results that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_client::fetch::{DownloadEvent, FetchError, FetchOptions};

use super::fixture::{DownloadFixture, short_delay_options};
use super::stored_result::{ManifestState, StoredResultFixture, schema, sha256};
use super::test_server::TestResponse;

/// A server that flips a bit in the middle of block 1, that many times.
async fn corrupting_server(times: usize) -> DownloadFixture {
    let left = AtomicUsize::new(times);
    DownloadFixture::with(3, move |stored, recorded_request| {
        let mut answer = stored.respond(recorded_request);
        let is_flipped = recorded_request.block() == Some(1)
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
async fn corrupt_block_is_fetched_again() {
    let scene = corrupting_server(1).await;
    let damaged: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noted = damaged.clone();
    let received_by = Arc::new(move |notice: &DownloadEvent| {
        if let DownloadEvent::BlockDamaged { block } = notice {
            noted.lock().push(*block);
        }
    });
    scene.fetch("out.arrow", FetchOptions { listener: received_by, ..short_delay_options() }).await.unwrap();
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
    assert_eq!(*damaged.lock(), [1]);
}

#[tokio::test]
async fn repeatedly_corrupt_block_fails_without_file() {
    let scene = corrupting_server(usize::MAX).await;
    let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
    insta::assert_snapshot!(
        error.cause(),
        @"the server's block 1 is damaged: its bytes did not match the hash of the manifest, 2 times"
    );
    assert_eq!(scene.server.requested_blocks().iter().filter(|block| **block == 1).count(), 2);
    assert_eq!(scene.list_files(), [".out.csv.partial"], "what was whole is kept");
}

#[tokio::test]
async fn wrong_block_length_is_corruption() {
    for (change, name) in [(false, "shorter"), (true, "longer")] {
        let scene = DownloadFixture::with(1, move |stored, recorded_request| {
            let Some(index) = recorded_request.block() else { return stored.respond(recorded_request) };
            let mut body = stored.blocks[index].clone();
            if change {
                body.extend_from_slice(&[0; 1_000_000]);
            } else {
                body.truncate(10);
            }
            TestResponse::new("200 OK", &[("ETag", "\"x\"")], &body)
        })
        .await;
        let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
        assert!(matches!(error, FetchError::Damaged { block: 0, .. }), "{name}: {error}");
        assert!(scene.list_files().is_empty(), "{name}: nothing is worth keeping");
    }
}

/// The error for a result of two blocks, the second of which is `second`, with the correct hash.
async fn error_for_second_block(second: Vec<u8>) -> String {
    let mut stored = StoredResultFixture::new(2);
    stored.blocks[1] = second;
    let scene = DownloadFixture::with_stored(Arc::new(stored), StoredResultFixture::respond).await;
    let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
    assert!(!scene.file("out.csv").exists());
    error.cause().to_string()
}

#[tokio::test]
async fn valid_hash_of_invalid_arrow_is_rejected() {
    let message = error_for_second_block(b"this is no Arrow".to_vec()).await;
    assert!(message.starts_with("the server's block 1 is damaged: "), "{message}");
    let short = super::stored_result::block(&schema(), &StoredResultFixture::new(1).batches[..1]);
    insta::assert_snapshot!(
        error_for_second_block(short).await,
        @"the server's block 1 is damaged: it has 50 rows instead of 100"
    );
    let fewer = StoredResultFixture::new(1).batches[0].project(&[0, 1]).unwrap();
    let narrow = super::stored_result::block(&fewer.schema(), &[fewer]);
    insta::assert_snapshot!(
        error_for_second_block(narrow).await,
        @"the server's block 1 is damaged: its columns differ from those of the first block"
    );
}

#[tokio::test]
async fn changed_manifest_is_an_error() {
    let reads = AtomicUsize::new(0);
    let scene = DownloadFixture::with(3, move |stored, recorded_request| {
        let manifest_state = ManifestState { status: "running", blocks: 2 };
        if !recorded_request.is_manifest() {
            return stored.respond_at(recorded_request, &manifest_state);
        }
        let mut manifest: Value = stored.manifest(&manifest_state);
        if reads.fetch_add(1, Ordering::SeqCst) > 0 {
            manifest["blocks"][0]["sha256"] = sha256(b"another").into();
        }
        TestResponse::json(&manifest.to_string())
    })
    .await;
    let error = scene.fetch("out.csv", short_delay_options()).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::ResultChanged), "{error}");
}
