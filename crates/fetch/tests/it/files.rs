//! Results that hold a file: what is written is that file.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use serde_json::json;
use tidegate_core::AnswerFormat;
use tidegate_fetch::{Destination, FetchError, Fetched, ResultAddress, fetch};
use uuid::Uuid;

use super::scene::{Scene, hasty};
use super::server::{Answer, Asked};
use super::stored::{Standing, Stored, block};

/// Rows of each block.
const ROWS: usize = 100;
const BLOCKS: usize = 3;

/// The bytes of a file that are no text.
fn bytes() -> Vec<u8> {
    (0..BLOCKS * ROWS * 700 - 13).map(|n| (n * 31 % 256) as u8).collect()
}

fn stored() -> Stored {
    let schema = Arc::new(Schema::new(vec![Field::new("bytes", DataType::Binary, false)]));
    let bytes = bytes();
    let pieces: Vec<&[u8]> = bytes.chunks(700).collect();
    let batch = |pieces: &[&[u8]]| {
        let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(pieces));
        RecordBatch::try_new(schema.clone(), vec![column]).unwrap()
    };
    let batches: Vec<RecordBatch> = pieces.chunks(ROWS).map(batch).collect();
    let blocks = batches.iter().map(|batch| block(&schema, std::slice::from_ref(batch))).collect();
    Stored { id: Uuid::new_v4(), batches, blocks }
}

/// A server that says that the file has so many bytes.
async fn scene(length: usize) -> Scene {
    Scene::of(Arc::new(stored()), move |stored: &Stored, asked: &Asked| {
        if !asked.is_manifest() {
            return stored.answer(asked);
        }
        let mut manifest = stored.manifest(&Standing { status: "complete", blocks: BLOCKS });
        manifest["file"] = json!({"name": "photo.png", "media_type": "image/png", "bytes": length});
        Answer::json(&manifest.to_string())
    })
    .await
}

async fn fetched(scene: &Scene, name: &str, format: Option<AnswerFormat>) -> Result<Fetched, FetchError> {
    let destination = Destination::of_any(scene.file(name), format, false)?;
    fetch(&ResultAddress::parse(&scene.url()).unwrap(), &destination, hasty(), &scene.stop).await
}

#[tokio::test]
async fn a_file_is_written_as_it_is_whatever_its_name_says() {
    let scene = scene(bytes().len()).await;
    for name in ["photo.png", "photo", "photo.csv", "photo.arrow"] {
        let done = fetched(&scene, name, None).await.unwrap();
        assert!(std::fs::read(scene.file(name)).unwrap() == bytes(), "{name}");
        assert_eq!((done.bytes, done.incomplete), (bytes().len() as u64, None));
    }
    // Its blocks are had by those who say so.
    let done = fetched(&scene, "blocks", Some(AnswerFormat::Arrow)).await.unwrap();
    assert_eq!(done.rows, (BLOCKS * ROWS) as u64);
    assert!(std::fs::read(scene.file("blocks")).unwrap() != bytes());
    let refused = fetched(&scene, "table", Some(AnswerFormat::Csv)).await.unwrap_err();
    insta::assert_snapshot!(refused, @"the result holds a file, which is no table to be written as csv; without --format it is written as it is");
    assert!(!scene.file("table").exists());
}

#[tokio::test]
async fn a_file_of_another_length_gets_no_name() {
    let scene = scene(bytes().len() + 1).await;
    let refused = fetched(&scene, "photo.png", None).await.unwrap_err();
    assert!(matches!(refused.cause(), FetchError::OtherLength { .. }), "{refused}");
    assert!(!scene.file("photo.png").exists());
}

#[tokio::test]
async fn rows_need_a_format_before_anything_is_fetched() {
    let scene = Scene::new(2).await;
    let refused = fetched(&scene, "out.txt", None).await.unwrap_err();
    assert!(matches!(refused, FetchError::NoFormat { .. }), "{refused}");
    assert!(scene.names().is_empty());
}
