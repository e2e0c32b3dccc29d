//! A second run takes up what the first one fetched.

use tidegate_fetch::{FetchError, FetchOptions};
use tokio_util::sync::CancellationToken;

use super::scene::{Scene, hasty};

fn one_at_a_time() -> FetchOptions {
    FetchOptions { parallel: 1, ..hasty() }
}

/// A download that was stopped when the block `stopped_at` was asked for.
async fn stopped(blocks: usize, stopped_at: usize) -> Scene {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let scene = Scene::with(blocks, move |stored, asked| {
        if asked.block() == Some(stopped_at) && !stopping.is_cancelled() {
            stopping.cancel();
        }
        stored.answer(asked)
    })
    .await;
    let scene = Scene { stop, ..scene };
    let error = scene.fetch("out.arrow", one_at_a_time()).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Interrupted), "{error}");
    let told = scene.named(&error.to_string());
    assert!(told.starts_with("stopped\n"), "{told}");
    assert!(told.contains("kept in FOLDER/.out.arrow.partial; to go on from there: tidegate fetch"), "{told}");
    assert_eq!(scene.names(), [".out.arrow.partial"]);
    Scene { stop: CancellationToken::new(), ..scene }
}

/// The blocks that were asked for since `before` requests for blocks.
async fn fetched_since(scene: &Scene, before: usize) -> Vec<usize> {
    scene.fetch("out.arrow", one_at_a_time()).await.unwrap();
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
    assert_eq!(scene.names(), ["out.arrow"]);
    scene.server.blocks_asked().split_off(before)
}

#[tokio::test]
async fn only_what_is_missing_is_fetched() {
    let scene = stopped(6, 4).await;
    let before = scene.server.blocks_asked().len();
    assert_eq!(before, 5);
    let first = fetched_since(&scene, before).await;
    // The block that was on its way when the stop came may have arrived, or not.
    assert!(first == [4, 5] || first == [5], "{first:?}");
}

#[tokio::test]
async fn kept_blocks_are_checked_again() {
    let scene = stopped(4, 3).await;
    let partial = scene.file(".out.arrow.partial");
    std::fs::write(partial.join("1.arrow"), &scene.stored.blocks[0]).unwrap();
    std::fs::write(partial.join("2.arrow"), &scene.stored.blocks[2][..100]).unwrap();
    let _ = std::fs::remove_file(partial.join("3.arrow"));
    let before = scene.server.blocks_asked().len();
    assert_eq!(fetched_since(&scene, before).await, [1, 2, 3]);
}

#[tokio::test]
async fn blocks_of_another_result_are_not_taken() {
    let scene = stopped(4, 3).await;
    std::fs::write(scene.file(".out.arrow.partial").join("result"), "another\n").unwrap();
    let before = scene.server.blocks_asked().len();
    assert_eq!(fetched_since(&scene, before).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_format_of_its_own_stands_in_the_command_that_goes_on() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let scene = Scene::with(3, move |stored, asked| {
        if asked.block() == Some(2) {
            stopping.cancel();
        }
        stored.answer(asked)
    })
    .await;
    let address = tidegate_fetch::ResultAddress::parse(&format!("{}?link=secret", scene.url())).unwrap();
    let format = Some(tidegate_core::AnswerFormat::Csv);
    let destination = tidegate_fetch::Destination::new(scene.file("out.txt"), format, false).unwrap();
    let error = tidegate_fetch::fetch(&address, &destination, one_at_a_time(), &stop).await.unwrap_err();
    let told = scene.named(&error.to_string());
    assert!(
        told.ends_with("tidegate fetch 'http://HOST/results/ID?link=…' -o 'FOLDER/out.txt' --format csv"),
        "{told}"
    );
}
