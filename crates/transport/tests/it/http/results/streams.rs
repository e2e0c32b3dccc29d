//! Results that are still being written, that fail, or that are not read.

use std::time::Duration;

use tidegate_transport::http::HttpOptions;

use super::fixture::{BREAKING, COMPLETE, DAMAGED, ENDLESS, PIECE_BYTES, ROWS, RUNNING, SHORT, data, get, request};
use super::fixture::{start, with};

#[tokio::test]
async fn the_first_rows_arrive_before_the_last_are_made() {
    let server = start().await;
    let mut connection = server.connect().await;
    connection.send(&request("GET", &data(RUNNING), &[("TE", "trailers")])).await;
    let head = connection.head().await;
    assert!(head.is_chunked());
    assert_eq!((head.header("etag"), head.header("accept-ranges")), (None, None));
    assert_eq!(head.header("trailer"), Some("tidegate-rows, tidegate-truncated, tidegate-cursor"));
    let mut read = Vec::new();
    while read.len() < PIECE_BYTES {
        read.extend(connection.chunk().await.unwrap());
    }
    server.host.release.cancel();
    while let Some(chunk) = connection.chunk().await {
        read.extend(chunk);
    }
    assert!(read == *ROWS, "the rows are not intact");
    assert_eq!(connection.trailers, [("tidegate-rows".to_owned(), "40000".to_owned())]);
    assert_eq!(connection.ask(&get("/results/ID")).await.head.status, 200);
}

#[tokio::test]
async fn failed_stream_breaks_the_connection() {
    for headers in [&[][..], &[("Accept-Encoding", "gzip")], &[("Accept-Encoding", "zstd")]] {
        let server = start().await;
        let mut connection = server.connect().await;
        connection.send(&request("GET", &format!("{}?format=csv", data(BREAKING)), headers)).await;
        assert_eq!(connection.head().await.status, 200);
        connection.chunk().await.unwrap();
        server.host.release.cancel();
        connection.until_broken().await;
        server.until_open_calls(0).await;
    }
}

#[tokio::test]
async fn content_length_body_ends_only_on_success() {
    for id in [DAMAGED, SHORT] {
        for range in [&[][..], &[("Range", "bytes=-1000")], &[("Range", "bytes=100-")]] {
            let server = start().await;
            let mut connection = server.connect().await;
            connection.send(&request("GET", &data(id), range)).await;
            let head = connection.head().await;
            let bytes: usize = head.header("content-length").unwrap().parse().unwrap();
            server.host.release.cancel();
            let read = connection.until_broken().await;
            assert!(read.len() < bytes, "{id} {range:?}: the client cannot detect the failure");
            server.until_open_calls(0).await;
        }
    }
}

#[tokio::test]
async fn disconnect_cancels_the_download() {
    let server = start().await;
    let level = server.resource_usage().await;
    for path in [data(ENDLESS), data(RUNNING)] {
        let mut connection = server.connect().await;
        connection.send(&get(&path)).await;
        connection.head().await;
        connection.chunk().await.unwrap();
        server.until_open_calls(1).await;
        drop(connection);
        server.until_open_calls(0).await;
    }
    let mut connection = server.connect().await;
    connection.send(&get(&data(COMPLETE))).await;
    connection.head().await;
    drop(connection);
    server.wait_until_back_at(&level).await;
}

#[tokio::test]
async fn stalled_reader_is_disconnected() {
    let server = with(HttpOptions { write_within: Duration::from_millis(200), ..HttpOptions::default() }).await;
    let mut connection = server.connect().await;
    connection.send(&get(&data(ENDLESS))).await;
    connection.head().await;
    server.until_open_calls(1).await;
    server.until_open_calls(0).await;
}
