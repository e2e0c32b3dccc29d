//! Connections that break, servers that go away.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_client::fetch::{DownloadEvent, FetchError, FetchOptions};
use tokio::net::TcpSocket;

use super::fixture::{DownloadFixture, short_delay_options};
use super::test_server::TestResponse;

/// Breaks in a row that one path suffers at most; fewer than there are attempts.
const BREAKS_MAX: u64 = 6;

/// A number that depends on everything given and nothing else.
fn hash_of(seed: u64, path: &str, attempt: u64) -> u64 {
    let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ attempt;
    path.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23))
}

#[tokio::test]
async fn survives_connection_loss_at_any_point() {
    let mut breaks = 0;
    for seed in 0..16 {
        let attempts: Mutex<HashMap<String, u64>> = Mutex::default();
        let broken = Arc::new(Mutex::new(0));
        let counted = broken.clone();
        let scene = DownloadFixture::with(9, move |stored, recorded_request| {
            let answer = stored.respond(recorded_request);
            let attempt = {
                let mut attempts = attempts.lock();
                let attempt = attempts.entry(recorded_request.path.clone()).or_default();
                *attempt += 1;
                *attempt
            };
            // The id in the path is another each time.
            let path = recorded_request.path.rsplit('/').next().unwrap_or_default();
            let chance = hash_of(seed, if recorded_request.is_manifest() { "manifest" } else { path }, attempt);
            let is_first = recorded_request.is_manifest() && attempt == 1;
            if is_first || attempt % (BREAKS_MAX + 1) == 0 || chance.is_multiple_of(3) {
                return answer;
            }
            *counted.lock() += 1;
            let length = answer.bytes.len();
            answer.cut_at((chance >> 8) as usize % length)
        })
        .await;
        scene.fetch("out.arrow", short_delay_options()).await.unwrap();
        assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows(), "seed {seed}");
        assert_eq!(scene.list_files(), ["out.arrow"]);
        breaks += *broken.lock();
    }
    assert!(breaks > 50, "only {breaks} connections broke");
}

#[tokio::test]
async fn resumes_a_block_after_connection_loss() {
    let cut = 300;
    let scene = DownloadFixture::with(1, move |stored, recorded_request| match recorded_request.block() {
        Some(_) if recorded_request.header("range").is_none() => {
            let answer = stored.respond(recorded_request);
            let length = answer.bytes.len();
            answer.cut_at(length - cut)
        }
        _ => stored.respond(recorded_request),
    })
    .await;
    scene.fetch("out.arrow", short_delay_options()).await.unwrap();
    let arrived = scene.stored.blocks[0].len() - cut;
    let recorded_requests = scene.server.requests();
    let ranges: Vec<_> = recorded_requests
        .iter()
        .filter(|recorded_request| recorded_request.block().is_some())
        .map(|recorded_request| recorded_request.header("range"))
        .collect();
    assert_eq!(ranges, [None, Some(format!("bytes={arrived}-").as_str())]);
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
}

#[tokio::test]
async fn retries_busy_server() {
    let refusals = Mutex::new(vec!["503 Service Unavailable", "429 Too Many Requests", "502 Bad Gateway"]);
    let scene = DownloadFixture::with(2, move |stored, recorded_request| {
        match (recorded_request.block(), refusals.lock().pop()) {
            (Some(_), Some(status)) => TestResponse::problem(status, "come back later"),
            _ => stored.respond(recorded_request),
        }
    })
    .await;
    scene.fetch("out.arrow", short_delay_options()).await.unwrap();
    assert_eq!(scene.read_rows("out.arrow"), scene.expected_rows());
}

#[tokio::test]
async fn gives_up_on_lost_server() {
    let scene = DownloadFixture::with(4, |stored, recorded_request| match recorded_request.block() {
        Some(block) if block >= 2 => TestResponse { bytes: Vec::new(), barrier: None },
        _ => stored.respond(recorded_request),
    })
    .await;
    let waits = Arc::new(Mutex::new(0));
    let counted = waits.clone();
    let received_by = Arc::new(move |notice: &DownloadEvent| {
        if matches!(notice, DownloadEvent::Retrying { .. }) {
            *counted.lock() += 1;
        }
    });
    let options = FetchOptions { parallel: 1, attempts_max: 5, listener: received_by, ..short_delay_options() };
    let error = scene.fetch("out.csv", options).await.unwrap_err();
    assert!(matches!(error.cause(), FetchError::Unreachable { attempts: 5, .. }), "{error}");
    assert_eq!(*waits.lock(), 4);
    let message = scene.with_placeholders(&error.to_string());
    let (text, kept) = message.split_once('\n').unwrap();
    assert!(text.starts_with("http://HOST/results/ID could not be reached: "), "{text}");
    assert!(text.ends_with("; given up after 5 attempts"), "{text}");
    insta::assert_snapshot!(
        kept,
        @"2 blocks are kept in FOLDER/.out.csv.partial; to continue: tidegate fetch 'http://HOST/results/ID' -o 'FOLDER/out.csv'"
    );
    assert_eq!(scene.list_files(), [".out.csv.partial"]);
}

#[tokio::test]
async fn gives_up_sooner_on_unreachable_server() {
    let scene = DownloadFixture::new(1).await;
    // A bound socket that does not listen keeps its port closed.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/results/{}", socket.local_addr().unwrap(), scene.stored.id);
    let error = scene.fetch_from(&url, "out.csv", short_delay_options()).await.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { attempts: 4, .. }), "{error}");
    assert!(scene.list_files().is_empty());
}
