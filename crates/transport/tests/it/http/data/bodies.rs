//! Bodies that are large, broken, slow or not wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_testkit::wait::{wait_until, within_timeout};
use tidegate_transport::http::HttpOptions;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::DataServer;
use crate::http::rest::fixture::{get, problem, request};
use crate::http::wire::Connection;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const CHUNKED: (&str, &str) = ("Transfer-Encoding", "chunked");
/// Larger than all buffers between a client and a handler.
const LARGE_BYTES: u64 = 96 << 20;
/// What may be in buffers of the system and of the server while the handler does not read.
const BUFFERED_BYTES_MAX: u64 = 48 << 20;
const PIECE_BYTES_MAX: u64 = 1 << 20;

fn head(path: &str, length: u64) -> Vec<u8> {
    request("POST", path, &[JSON, ("Content-Length", &length.to_string())], "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_waits_in_its_connection_until_the_handler_reads() {
    let server = DataServer::start().await;
    let stream = TcpStream::connect(server.server.address).await.unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let has_blocked = tokio_util::sync::CancellationToken::new();
    let (counter, blocked) = (sent.clone(), has_blocked.clone());
    let sending = tokio::spawn(async move {
        let piece = vec![b' '; 256 << 10];
        let mut pending = head("/data/plant/held", LARGE_BYTES);
        let head_bytes = pending.len() as u64;
        let total = head_bytes + LARGE_BYTES;
        let mut done = 0;
        while done < total {
            if pending.is_empty() {
                pending.extend_from_slice(&piece[..piece.len().min((total - done) as usize)]);
            }
            stream.writable().await.unwrap();
            match stream.try_write(&pending) {
                Ok(written) => {
                    pending.drain(..written);
                    done += written as u64;
                    counter.store(done, Ordering::SeqCst);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => blocked.cancel(),
                Err(error) => panic!("{error}"),
            }
        }
        stream
    });
    within_timeout("a full connection", has_blocked.cancelled()).await;
    // The server serves others meanwhile, and could read on if it did.
    let mut connection = server.server.connect().await;
    for _ in 0..200 {
        let answer = connection.ask(&request("POST", "/data/plant/sensors", &[JSON], "[]")).await;
        assert_eq!(answer.head.status, 200);
    }
    assert!(sent.load(Ordering::SeqCst) < BUFFERED_BYTES_MAX, "{} bytes were read ahead", sent.load(Ordering::SeqCst));
    server.release.cancel();
    let stream = within_timeout("the end of the body", sending).await.unwrap();
    let answer = Connection::over(stream).answer().await;
    assert_eq!(answer.head.status, 200);
    assert_eq!(server.stored(), LARGE_BYTES + 400);
    assert!(server.largest_piece.load(Ordering::SeqCst) <= PIECE_BYTES_MAX);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_stored() {
    let server = DataServer::start().await;
    for bytes in [
        [head("/data/plant/sensors", 100), b"[1, 2".to_vec()].concat(),
        request("POST", "/data/plant/sensors", &[JSON, CHUNKED], "5\r\n[1, 2\r\n"),
        request("POST", "/data/plant/sensors", &[JSON, CHUNKED], "5\r\n[1"),
    ] {
        let mut connection = server.server.connect().await;
        connection.send(&bytes).await;
        server.server.until_open_calls(1).await;
        drop(connection);
        server.server.until_open_calls(0).await;
    }
    // The end of one direction only: the client still reads.
    let mut stream = TcpStream::connect(server.server.address).await.unwrap();
    let broken = request("POST", "/data/plant/sensors", &[JSON, CHUNKED], "5\r\n[1, 2\r\nno size\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut stream, &broken).await.unwrap();
    let answer = Connection::over(stream).answer().await;
    assert_eq!(problem(&answer), "400 bad_request: the body broke off before its end; nothing was stored");
    assert_eq!(server.stored(), 0);
}

#[tokio::test]
async fn a_slow_body_ends() {
    let options = HttpOptions { read_within: Duration::from_millis(100), ..HttpOptions::default() };
    let server = DataServer::with(options).await;
    let mut connection = server.server.connect().await;
    let answer = connection.ask(&[head("/data/plant/sensors", 100), b"[".to_vec()].concat()).await;
    assert_eq!(problem(&answer), "408 too_slow: the body arrived too slowly; nothing was stored");
    assert_eq!((server.stored(), server.server.open_calls()), (0, 0));
}

#[tokio::test]
async fn bodies_over_the_limit_are_refused() {
    let options = HttpOptions { data_bytes_max: 1_000, body_bytes_max: 10, ..HttpOptions::default() };
    let server = DataServer::with(options).await;
    let mut connection = server.server.connect().await;
    let fits = connection.ask(&request("POST", "/data/plant/sensors", &[JSON], &" ".repeat(1_000))).await;
    assert_eq!((fits.head.status, server.stored()), (200, 1_000));
    let declared = connection.ask(&request("POST", "/data/plant/sensors", &[JSON], &" ".repeat(1_001))).await;
    assert_eq!(problem(&declared), "413 too_large: the body has 1001 bytes; at most 1000 are taken at once");
    assert_eq!(server.server.figure(r#"tidegate_messages_refused_total{transport="rest"}"#).await, "1");
    let chunk = format!("3e9\r\n{}\r\n0\r\n\r\n", " ".repeat(1_001));
    let streamed = connection.ask(&request("POST", "/data/plant/sensors", &[JSON, CHUNKED], &chunk)).await;
    assert_eq!(problem(&streamed), "413 too_large: the body is larger than 1000 bytes");
    assert_eq!(connection.ask(&get("/health")).await.head.status, 200);
    assert_eq!(server.stored(), 1_000);
}

#[tokio::test]
async fn a_client_that_waits_sends_its_body_only_if_it_is_read() {
    let server = DataServer::with(HttpOptions { data_bytes_max: 1_000, ..HttpOptions::default() }).await;
    let waiting = |path: &str, length: &str| {
        request("POST", path, &[JSON, ("Content-Length", length), ("Expect", "100-continue")], "")
    };
    let mut connection = server.server.connect().await;
    connection.send(&waiting("/data/plant/sensors", "4")).await;
    assert_eq!(connection.head().await.status, 100);
    assert_eq!(connection.ask(b"[{}]").await.head.status, 200);
    for (path, length, status) in [("/data/plant/absent", "4", 404), ("/data/plant/sensors", "1001", 413)] {
        let mut connection = server.server.connect().await;
        connection.send(&waiting(path, length)).await;
        assert_eq!(connection.head().await.status, status, "{path}");
    }
    assert_eq!(server.stored(), 4);
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_call() {
    let server = DataServer::start().await;
    let mut stream = TcpStream::connect(server.server.address).await.unwrap();
    let bytes = [head("/data/plant/held", 4), b"[{}]".to_vec()].concat();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes).await.unwrap();
    server.server.until_open_calls(1).await;
    drop(stream);
    wait_until("the end of the call", async || server.server.open_calls() == 0).await;
    assert_eq!(server.stored(), 0);
    let mut rest = Vec::new();
    let mut other = TcpStream::connect(server.server.address).await.unwrap();
    let closing = request("GET", "/health", &[("Connection", "close")], "");
    tokio::io::AsyncWriteExt::write_all(&mut other, &closing).await.unwrap();
    other.read_to_end(&mut rest).await.unwrap();
    assert!(rest.starts_with(b"HTTP/1.1 200"));
}
