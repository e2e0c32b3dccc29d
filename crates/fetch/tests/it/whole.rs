//! A download from end to end, in each format.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::AnswerFormat;
use tidegate_fetch::{FORMATS, FetchOptions, Notice, Standing};
use tidegate_query::BodyWriter;
use tokio::sync::Barrier;

use super::scene::{Scene, hasty};
use super::stored::{Stored, schema};

/// What the server's own writer makes of the rows.
fn rendered(stored: &Stored, format: AnswerFormat) -> Vec<u8> {
    let mut writer = BodyWriter::new(format, &schema()).unwrap();
    let mut bytes = Vec::new();
    for batch in &stored.batches {
        bytes.extend_from_slice(&writer.write(batch).unwrap());
    }
    bytes.extend_from_slice(&writer.finish().unwrap());
    bytes
}

/// The text of JSON without how long it took.
fn timeless(bytes: &[u8]) -> Vec<u8> {
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
async fn every_format_holds_all_rows_in_order() {
    let scene = Scene::new(7).await;
    for format in FORMATS {
        let name = format!("out.{}", format.name());
        let fetched = scene.fetch(&name, hasty()).await.unwrap();
        let bytes = std::fs::read(scene.file(&name)).unwrap();
        assert_eq!(
            (fetched.rows, fetched.bytes, fetched.incomplete),
            (scene.stored.rows(), bytes.len() as u64, None),
            "{name}"
        );
        match format {
            AnswerFormat::Arrow => assert_eq!(scene.rows_of(&name), scene.rows()),
            AnswerFormat::Json => assert_eq!(timeless(&bytes), timeless(&rendered(&scene.stored, format))),
            format => assert!(bytes == rendered(&scene.stored, format), "{name}"),
        }
    }
    assert_eq!(scene.names(), ["out.arrow", "out.csv", "out.json", "out.ndjson", "out.parquet"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_come_several_at_once_and_no_more() {
    // Each request for a block waits for a second one: were there never two, the download would not end.
    let pair = Arc::new(Barrier::new(2));
    let scene = Scene::with(8, move |stored, asked| {
        let answer = stored.answer(asked);
        if asked.block().is_some() { answer.after(pair.clone()) } else { answer }
    })
    .await;
    let options = FetchOptions { parallel: 2, ..hasty() };
    let fetching = tokio::time::timeout(Duration::from_secs(60), scene.fetch("out.arrow", options));
    fetching.await.unwrap().unwrap();
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
    let blocks = scene.server.blocks_asked();
    assert_eq!(blocks.len(), 8);
    // With two at once nothing is asked for before all but one of those before it.
    for (place, block) in blocks.into_iter().enumerate() {
        assert!(block <= place + 1, "block {block} was asked for at place {place}");
    }
}

#[tokio::test]
async fn whoever_waits_hears_how_far_it_is() {
    let scene = Scene::new(5).await;
    let heard: Arc<Mutex<Vec<Standing>>> = Arc::default();
    let noted = heard.clone();
    let heard_by = Arc::new(move |notice: &Notice| match notice {
        Notice::Moved(standing) => noted.lock().push(*standing),
        other => panic!("{other}"),
    });
    scene.fetch("out.csv", FetchOptions { heard_by, ..hasty() }).await.unwrap();
    let heard = heard.lock();
    let bytes = scene.stored.blocks.iter().map(|block| block.len() as u64).sum();
    let rows = scene.stored.rows();
    let end = Standing { bytes, bytes_known: bytes, rows, rows_known: rows, is_running: false };
    assert_eq!(heard.last(), Some(&end));
    assert!(heard.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes && pair[0].rows <= pair[1].rows));
}
