//! Results that hold a file: what is written is that file.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use serde_json::json;
use tidegate_client::fetch::{FetchError, FetchedFile, OutputFile, ResultAddress, fetch};
use tidegate_core::Format;
use uuid::Uuid;

use super::fixture::{DownloadFixture, short_delay_options};
use super::stored_result::{ManifestState, StoredResultFixture, block};
use super::test_server::{RecordedRequest, TestResponse};

/// Rows of each block.
const ROWS: usize = 100;
const BLOCKS: usize = 3;

/// The bytes of a file that are no text.
fn bytes() -> Vec<u8> {
    (0..BLOCKS * ROWS * 700 - 13).map(|n| (n * 31 % 256) as u8).collect()
}

fn stored_file() -> StoredResultFixture {
    let schema = Arc::new(Schema::new(vec![Field::new("bytes", DataType::Binary, false)]));
    let bytes = bytes();
    let pieces: Vec<&[u8]> = bytes.chunks(700).collect();
    let batch = |pieces: &[&[u8]]| {
        let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(pieces));
        RecordBatch::try_new(schema.clone(), vec![column]).unwrap()
    };
    let batches: Vec<RecordBatch> = pieces.chunks(ROWS).map(batch).collect();
    let blocks = batches.iter().map(|batch| block(&schema, std::slice::from_ref(batch))).collect();
    StoredResultFixture { id: Uuid::new_v4(), batches, blocks }
}

/// A server that announces a file with that number of bytes.
async fn file_fixture(length: usize) -> DownloadFixture {
    DownloadFixture::with_stored(
        Arc::new(stored_file()),
        move |stored: &StoredResultFixture, recorded_request: &RecordedRequest| {
            if !recorded_request.is_manifest() {
                return stored.respond(recorded_request);
            }
            let mut manifest = stored.manifest(&ManifestState { status: "complete", blocks: BLOCKS });
            manifest["file"] = json!({"name": "photo.png", "media_type": "image/png", "bytes": length});
            TestResponse::json(&manifest.to_string())
        },
    )
    .await
}

async fn fetch_as(scene: &DownloadFixture, name: &str, format: Option<Format>) -> Result<FetchedFile, FetchError> {
    let output_file = OutputFile::with_optional_format(scene.file(name), format, false)?;
    fetch(&ResultAddress::parse(&scene.url()).unwrap(), &output_file, short_delay_options(), &scene.stop).await
}

#[tokio::test]
async fn file_is_written_unchanged_for_any_extension() {
    let scene = file_fixture(bytes().len()).await;
    for name in ["photo.png", "photo", "photo.csv", "photo.arrow"] {
        let done = fetch_as(&scene, name, None).await.unwrap();
        assert!(std::fs::read(scene.file(name)).unwrap() == bytes(), "{name}");
        assert_eq!((done.bytes, done.incomplete), (bytes().len() as u64, None));
    }
    // An explicit Arrow format writes its blocks.
    let done = fetch_as(&scene, "blocks", Some(Format::Arrow)).await.unwrap();
    assert_eq!(done.rows, (BLOCKS * ROWS) as u64);
    assert!(std::fs::read(scene.file("blocks")).unwrap() != bytes());
    let refused = fetch_as(&scene, "table", Some(Format::Csv)).await.unwrap_err();
    insta::assert_snapshot!(refused, @"the result is a file and cannot be written as csv; leave out --format to write the file itself");
    assert!(!scene.file("table").exists());
}

#[tokio::test]
async fn file_of_wrong_length_is_discarded() {
    let scene = file_fixture(bytes().len() + 1).await;
    let refused = fetch_as(&scene, "photo.png", None).await.unwrap_err();
    assert!(matches!(refused.cause(), FetchError::LengthMismatch { .. }), "{refused}");
    assert!(!scene.file("photo.png").exists());
}

#[tokio::test]
async fn row_result_without_format_fails_before_fetching() {
    let scene = DownloadFixture::new(2).await;
    let refused = fetch_as(&scene, "out.txt", None).await.unwrap_err();
    assert!(matches!(refused, FetchError::UnknownFormat { .. }), "{refused}");
    assert!(scene.list_files().is_empty());
}
