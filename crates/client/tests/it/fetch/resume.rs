//! A second run takes up what the first one fetched.

use tidegate_client::fetch::{FetchError, FetchOptions};
use tokio_util::sync::CancellationToken;

use super::fixture::{DownloadFixture, short_delay_options};

fn sequential_options() -> FetchOptions {
    FetchOptions { parallel: 1, ..short_delay_options() }
}

/// A download that was stopped at the request for the block `stopped_at`.
async fn interrupted_download(blocks: usize, stopped_at: usize) -> DownloadFixture {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let scene = DownloadFixture::with(blocks, move |stored, recorded_request| {
        if recorded_request.block() == Some(stopped_at) && !stopping.is_cancelled() {
            stopping.cancel();
        }
        stored.respond(recorded_request)
    })
    .await;
    let scene = DownloadFixture { stop, ..scene };
    let error = scene.fetch("out.arrow", sequential_options()).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Interrupted), "{error}");
    let message = scene.with_placeholders(&error.to_string());
    assert!(message.starts_with("stopped\n"), "{message}");
    assert!(message.contains("kept in FOLDER/.out.arrow.partial; to continue: tidegate fetch"), "{message}");
    assert_eq!(scene.list_files(), [".out.arrow.partial"]);
    DownloadFixture { stop: CancellationToken::new(), ..scene }
}

/// The blocks that were requested after the first `before` requests for blocks.
async fn resume_and_list_requests(scene: &DownloadFixture, before: usize) -> Vec<usize> {
    scene.fetch("out.arrow", sequential_options()).await.unwrap();
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
    assert_eq!(scene.list_files(), ["out.arrow"]);
    scene.server.requested_blocks().split_off(before)
}

#[tokio::test]
async fn resume_fetches_only_missing_blocks() {
    let scene = interrupted_download(6, 4).await;
    let before = scene.server.requested_blocks().len();
    assert_eq!(before, 5);
    let first = resume_and_list_requests(&scene, before).await;
    // The block that was on its way when the stop came may have arrived, or not.
    assert!(first == [4, 5] || first == [5], "{first:?}");
}

#[tokio::test]
async fn resume_verifies_kept_blocks() {
    let scene = interrupted_download(4, 3).await;
    let partial = scene.file(".out.arrow.partial");
    std::fs::write(partial.join("1.arrow"), &scene.stored.blocks[0]).unwrap();
    std::fs::write(partial.join("2.arrow"), &scene.stored.blocks[2][..100]).unwrap();
    let _ = std::fs::remove_file(partial.join("3.arrow"));
    let before = scene.server.requested_blocks().len();
    assert_eq!(resume_and_list_requests(&scene, before).await, [1, 2, 3]);
}

#[tokio::test]
async fn blocks_of_another_result_are_discarded() {
    let scene = interrupted_download(4, 3).await;
    std::fs::write(scene.file(".out.arrow.partial").join("result"), "another\n").unwrap();
    let before = scene.server.requested_blocks().len();
    assert_eq!(resume_and_list_requests(&scene, before).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn resume_command_includes_explicit_format() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let scene = DownloadFixture::with(3, move |stored, recorded_request| {
        if recorded_request.block() == Some(2) {
            stopping.cancel();
        }
        stored.respond(recorded_request)
    })
    .await;
    let address = tidegate_client::fetch::ResultAddress::parse(&format!("{}?link=secret", scene.url())).unwrap();
    let format = Some(tidegate_core::Format::Csv);
    let output_file = tidegate_client::fetch::OutputFile::new(scene.file("out.txt"), format, false).unwrap();
    let error = tidegate_client::fetch::fetch(&address, &output_file, sequential_options(), &stop).await.unwrap_err();
    let message = scene.with_placeholders(&error.to_string());
    assert!(
        message.ends_with("tidegate fetch 'http://HOST/results/ID?link=…' -o 'FOLDER/out.txt' --format csv"),
        "{message}"
    );
}
