//! A download from end to end, in each format.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_client::fetch::{DownloadEvent, DownloadProgress, FetchOptions};
use tidegate_core::Format;
use tidegate_query::RowEncoder;
use tokio::sync::Barrier;

use super::fixture::{DownloadFixture, short_delay_options};
use super::stored_result::{StoredResultFixture, schema};

/// What the server's own writer makes of the rows.
fn server_rendering(stored: &StoredResultFixture, format: Format) -> Vec<u8> {
    let mut writer = RowEncoder::new(format, &schema()).unwrap();
    let mut bytes = Vec::new();
    for batch in &stored.batches {
        bytes.extend_from_slice(&writer.write(batch).unwrap());
    }
    bytes.extend_from_slice(&writer.finish(false).unwrap());
    bytes
}

/// The text of JSON without how long it took.
fn without_elapsed_time(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    match text.split_once("\"elapsed_ms\":") {
        Some((before, after)) => {
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}{after}").into_bytes()
        }
        None => bytes.to_vec(),
    }
}

#[tokio::test]
async fn every_format_has_all_rows_in_order() {
    let scene = DownloadFixture::new(7).await;
    for format in Format::FOR_DOWNLOADS {
        let name = format!("out.{}", format.name());
        let fetched = scene.fetch(&name, short_delay_options()).await.unwrap();
        let bytes = std::fs::read(scene.file(&name)).unwrap();
        assert_eq!(
            (fetched.rows, fetched.bytes, fetched.incomplete),
            (scene.stored.rows(), bytes.len() as u64, None),
            "{name}"
        );
        match format {
            Format::Arrow => assert_eq!(scene.read_rows(&name), scene.expected_rows()),
            Format::Json => {
                assert_eq!(without_elapsed_time(&bytes), without_elapsed_time(&server_rendering(&scene.stored, format)))
            }
            format => assert!(bytes == server_rendering(&scene.stored, format), "{name}"),
        }
    }
    assert_eq!(scene.list_files(), ["out.arrow", "out.csv", "out.json", "out.ndjson", "out.parquet"]);
}

#[tokio::test]
async fn only_the_ending_of_streams_makes_a_stream() {
    let scene = DownloadFixture::new(3).await;
    for (name, is_file) in [("out.arrow", true), ("out.feather", true), ("out.arrows", false)] {
        scene.fetch(name, short_delay_options()).await.unwrap();
        assert_eq!(scene.read_rows(name), scene.expected_rows());
        let bytes = std::fs::read(scene.file(name)).unwrap();
        assert_eq!((bytes.starts_with(b"ARROW1"), bytes.ends_with(b"ARROW1")), (is_file, is_file), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fetches_blocks_in_parallel_up_to_the_limit() {
    // Each request for a block waits for a second one: were there never two, the download would not end.
    let pair = Arc::new(Barrier::new(2));
    let scene = DownloadFixture::with(8, move |stored, recorded_request| {
        let answer = stored.respond(recorded_request);
        if recorded_request.block().is_some() { answer.wait_for(pair.clone()) } else { answer }
    })
    .await;
    let options = FetchOptions { parallel: 2, ..short_delay_options() };
    let fetching = tokio::time::timeout(Duration::from_secs(60), scene.fetch("out.arrow", options));
    fetching.await.unwrap().unwrap();
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
    let blocks = scene.server.requested_blocks();
    assert_eq!(blocks.len(), 8);
    // With two parallel requests, a block is requested only when all but one of the earlier ones have arrived.
    for (place, block) in blocks.into_iter().enumerate() {
        assert!(block <= place + 1, "block {block} was asked for at place {place}");
    }
}

#[tokio::test]
async fn listener_receives_progress() {
    let scene = DownloadFixture::new(5).await;
    let received: Arc<Mutex<Vec<DownloadProgress>>> = Arc::default();
    let noted = received.clone();
    let received_by = Arc::new(move |notice: &DownloadEvent| match notice {
        DownloadEvent::Progressed(download_progress) => noted.lock().push(*download_progress),
        other => panic!("{other}"),
    });
    scene.fetch("out.csv", FetchOptions { listener: received_by, ..short_delay_options() }).await.unwrap();
    let received = received.lock();
    let bytes = scene.stored.blocks.iter().map(|block| block.len() as u64).sum();
    let rows = scene.stored.rows();
    let end = DownloadProgress { bytes, bytes_known: bytes, rows, rows_known: rows, is_running: false };
    assert_eq!(received.last(), Some(&end));
    assert!(received.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes && pair[0].rows <= pair[1].rows));
}
