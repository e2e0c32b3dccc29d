//! Connections that break, servers that go away.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_fetch::{FetchError, FetchOptions, Notice};
use tokio::net::TcpListener;

use super::scene::{Scene, hasty};
use super::server::Answer;

/// Breaks in a row that one path suffers at most; fewer than there are attempts.
const BREAKS_MAX: u64 = 6;

/// A number that depends on everything given and nothing else.
fn mixed(seed: u64, path: &str, attempt: u64) -> u64 {
    let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ attempt;
    path.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23))
}

#[tokio::test]
async fn connections_that_break_anywhere_cost_time_and_nothing_else() {
    let mut breaks = 0;
    for seed in 0..16 {
        let attempts: Mutex<HashMap<String, u64>> = Mutex::default();
        let broken = Arc::new(Mutex::new(0));
        let counted = broken.clone();
        let scene = Scene::with(9, move |stored, asked| {
            let answer = stored.answer(asked);
            let attempt = {
                let mut attempts = attempts.lock();
                let attempt = attempts.entry(asked.path.clone()).or_default();
                *attempt += 1;
                *attempt
            };
            // The id in the path is another each time.
            let path = asked.path.rsplit('/').next().unwrap_or_default();
            let chance = mixed(seed, if asked.is_manifest() { "manifest" } else { path }, attempt);
            let is_first = asked.is_manifest() && attempt == 1;
            if is_first || attempt % (BREAKS_MAX + 1) == 0 || chance.is_multiple_of(3) {
                return answer;
            }
            *counted.lock() += 1;
            let length = answer.bytes.len();
            answer.cut_at((chance >> 8) as usize % length)
        })
        .await;
        scene.fetch("out.arrow", hasty()).await.unwrap();
        assert_eq!(scene.rows_of("out.arrow"), scene.rows(), "seed {seed}");
        assert_eq!(scene.names(), ["out.arrow"]);
        breaks += *broken.lock();
    }
    assert!(breaks > 50, "only {breaks} connections broke");
}

#[tokio::test]
async fn what_arrived_before_a_break_is_not_fetched_again() {
    let cut = 300;
    let scene = Scene::with(1, move |stored, asked| match asked.block() {
        Some(_) if asked.header("range").is_none() => {
            let answer = stored.answer(asked);
            let length = answer.bytes.len();
            answer.cut_at(length - cut)
        }
        _ => stored.answer(asked),
    })
    .await;
    scene.fetch("out.arrow", hasty()).await.unwrap();
    let arrived = scene.stored.blocks[0].len() - cut;
    let asked = scene.server.asked();
    let ranges: Vec<_> =
        asked.iter().filter(|asked| asked.block().is_some()).map(|asked| asked.header("range")).collect();
    assert_eq!(ranges, [None, Some(format!("bytes={arrived}-").as_str())]);
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
}

#[tokio::test]
async fn a_server_that_is_busy_for_a_while_is_asked_again() {
    let refusals = Mutex::new(vec!["503 Service Unavailable", "429 Too Many Requests", "502 Bad Gateway"]);
    let scene = Scene::with(2, move |stored, asked| match (asked.block(), refusals.lock().pop()) {
        (Some(_), Some(status)) => Answer::problem(status, "come back later"),
        _ => stored.answer(asked),
    })
    .await;
    scene.fetch("out.arrow", hasty()).await.unwrap();
    assert_eq!(scene.rows_of("out.arrow"), scene.rows());
}

#[tokio::test]
async fn a_server_that_goes_away_is_given_up() {
    let scene = Scene::with(4, |stored, asked| match asked.block() {
        Some(block) if block >= 2 => Answer { bytes: Vec::new(), barrier: None },
        _ => stored.answer(asked),
    })
    .await;
    let waits = Arc::new(Mutex::new(0));
    let counted = waits.clone();
    let heard_by = Arc::new(move |notice: &Notice| {
        if matches!(notice, Notice::Waiting { .. }) {
            *counted.lock() += 1;
        }
    });
    let options = FetchOptions { parallel: 1, attempts_max: 5, heard_by, ..hasty() };
    let error = scene.fetch("out.csv", options).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Unreachable { attempts: 5, .. }), "{error}");
    assert_eq!(*waits.lock(), 4);
    let told = scene.named(&error.to_string());
    let (said, kept) = told.split_once('\n').unwrap();
    assert!(said.starts_with("http://HOST/results/ID could not be reached: "), "{said}");
    assert!(said.ends_with("; given up after 5 attempts"), "{said}");
    insta::assert_snapshot!(
        kept,
        @"2 blocks are kept in FOLDER/.out.csv.partial; to go on from there: tidegate fetch 'http://HOST/results/ID' -o 'FOLDER/out.csv'"
    );
    assert_eq!(scene.names(), [".out.csv.partial"]);
}

#[tokio::test]
async fn a_server_that_never_was_there_is_given_up_sooner() {
    let scene = Scene::new(1).await;
    let nowhere = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let url = format!("http://{nowhere}/results/{}", scene.stored.id);
    let error = scene.fetch_from(&url, "out.csv", hasty()).await.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { attempts: 4, .. }), "{error}");
    assert!(scene.names().is_empty());
}
