//! gzip and zstd: only for text and only on request, without loss.

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};

use super::fixture::{ENDLESS, PIECE_BYTES, ROWS, RUNNING, data, get, request, start};

/// Decodes bytes; without a coding they are returned unchanged.
async fn decoded(coding: Option<&str>, bytes: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn AsyncRead + Unpin + '_> = match coding {
        Some("gzip") => Box::new(GzipDecoder::new(bytes)),
        Some("zstd") => Box::new(ZstdDecoder::new(bytes)),
        None => Box::new(bytes),
        other => panic!("unexpected coding {other:?}"),
    };
    let mut decoded = Vec::new();
    reader.read_to_end(&mut decoded).await.unwrap();
    decoded
}

#[tokio::test]
async fn decoded_bytes_are_identical() {
    let server = start().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (format, accepted) in [
        ("csv", "gzip"),
        ("csv", "zstd"),
        ("csv", "gzip, deflate, br, zstd"),
        ("csv", "gzip;q=1, zstd;q=0.1"),
        ("csv", "br"),
        ("csv", "identity"),
        ("csv", "identity;q=0"),
        ("ndjson", "zstd"),
        ("json", "gzip"),
        ("arrow", "gzip, zstd"),
    ] {
        let path = format!("/results/ID/data?format={format}");
        let answer = connection.ask(&request("GET", &path, &[("Accept-Encoding", accepted)])).await;
        let coding = answer.header("content-encoding");
        assert!(decoded(coding, &answer.body).await == *ROWS, "{format} as {accepted}");
        assert_eq!(answer.body.len() < ROWS.len(), coding.is_some());
        assert_eq!(answer.header("accept-ranges").is_some(), format == "arrow");
        assert!(answer.header("vary").unwrap().contains("accept-encoding"));
        let tag = answer.header("etag").unwrap();
        table.push_str(&format!("{format:7} {accepted:25} {:5} {tag}\n", coding.unwrap_or("-")));
        // A client with the current version, encoded or not, gets 304.
        let headers = [("Accept-Encoding", accepted), ("If-None-Match", tag)];
        let retried = connection.ask(&request("GET", &path, &headers)).await;
        assert_eq!((retried.head.status, retried.header("etag")), (304, Some(tag)));
        let plain = connection.ask(&request("GET", &path, &[("If-None-Match", tag)])).await;
        assert_eq!(plain.head.status, 304);
    }
    insta::assert_snapshot!(table, @r#"
    csv     gzip                      gzip  W/"tag-csv"
    csv     zstd                      zstd  W/"tag-csv"
    csv     gzip, deflate, br, zstd   zstd  W/"tag-csv"
    csv     gzip;q=1, zstd;q=0.1      gzip  W/"tag-csv"
    csv     br                        -     "tag-csv"
    csv     identity                  -     "tag-csv"
    csv     identity;q=0              -     "tag-csv"
    ndjson  zstd                      zstd  W/"tag-ndjson"
    json    gzip                      gzip  W/"tag-json"
    arrow   gzip, zstd                -     "tag-arrow"
    "#);
    let manifest = connection.ask(&request("GET", "/results/ID", &[("Accept-Encoding", "gzip")])).await;
    assert_eq!(decoded(manifest.header("content-encoding"), &manifest.body).await, b"{\"id\":1}");
}

#[tokio::test]
async fn the_first_rows_arrive_coded_before_the_last_are_made() {
    for coding in ["gzip", "zstd"] {
        let server = start().await;
        let mut connection = server.connect().await;
        let path = format!("{}?format=csv", data(RUNNING));
        connection.send(&request("GET", &path, &[("Accept-Encoding", coding)])).await;
        let head = connection.head().await;
        assert!(head.is_chunked());
        assert_eq!((head.header("etag"), head.header("cache-control")), (None, Some("no-store")));
        let mut coded = Vec::new();
        while begun(coding, &coded).await.len() < PIECE_BYTES {
            coded.extend(connection.chunk().await.unwrap());
        }
        server.host.release.cancel();
        while let Some(chunk) = connection.chunk().await {
            coded.extend(chunk);
        }
        assert!(decoded(Some(coding), &coded).await == *ROWS, "the rows are not intact");
        assert_eq!(connection.ask(&get("/results/ID")).await.head.status, 200);
    }
}

/// The decoded part of incomplete encoded bytes.
async fn begun(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let reader = BufReader::new(bytes);
    let mut decoder: Box<dyn AsyncRead + Unpin + '_> = match coding {
        "gzip" => Box::new(GzipDecoder::new(reader)),
        _ => Box::new(ZstdDecoder::new(reader)),
    };
    let mut decoded = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    // The decoder reports an error at the end of the available bytes.
    while let Ok(count) = decoder.read(&mut piece).await
        && count > 0
    {
        decoded.extend_from_slice(&piece[..count]);
    }
    decoded
}

#[tokio::test]
async fn compressed_body_applies_backpressure() {
    let server = start().await;
    let level = server.resource_usage().await;
    for coding in ["gzip", "zstd"] {
        let mut connection = server.connect().await;
        let path = format!("{}?format=csv", data(ENDLESS));
        connection.send(&request("GET", &path, &[("Accept-Encoding", coding)])).await;
        connection.head().await;
        connection.chunk().await.unwrap();
        server.until_open_calls(1).await;
        drop(connection);
        server.until_open_calls(0).await;
    }
    server.wait_until_back_at(&level).await;
}
