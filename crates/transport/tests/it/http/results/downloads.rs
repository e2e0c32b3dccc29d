//! The call that results from each request, and the format and file name of its answer.

use super::fixture::{COMPLETE, EMPTY, FILE, PARTIAL, REQUESTED, ROWS, data, fields, get, request, start};

/// The response headers that a client may use.
const FIELDS: [&str; 16] = [
    "content-type",
    "content-length",
    "content-disposition",
    "content-encoding",
    "content-range",
    "accept-ranges",
    "etag",
    "cache-control",
    "vary",
    "tidegate-rows",
    "x-content-type-options",
    "cross-origin-resource-policy",
    "referrer-policy",
    "transfer-encoding",
    "trailer",
    "allow",
];

#[tokio::test]
async fn every_path_is_one_call_of_a_resource() {
    let server = start().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for path in [
        "/results/ID",
        "/results/ID?format=json",
        "/results/ID/blocks/0",
        "/results/ID/blocks/7?format=csv",
        "/results/ID/data",
        "/results/ID/data?format=ndjson&partial=true",
        "/results/ID/data?partial=false",
        "/results/88888888-1111-4222-8333-44445555666%36/data",
    ] {
        let answer = connection.ask(&get(&path.replace("ID", REQUESTED))).await;
        table.push_str(&format!("GET {path}\n  {}\n", answer.text().replace(REQUESTED, "ID")));
        assert_eq!(answer.head.status, 200);
        assert_eq!(answer.header("tidegate-job").unwrap().len(), 36);
    }
    insta::assert_snapshot!(table, @r#"
    GET /results/ID
      {"uri":"tidegate://results/ID","arguments":{},"format":"json","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    GET /results/ID?format=json
      {"uri":"tidegate://results/ID","arguments":{},"format":"json","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    GET /results/ID/blocks/0
      {"uri":"tidegate://results/ID/blocks/0","arguments":{},"format":"arrow","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    GET /results/ID/blocks/7?format=csv
      {"uri":"tidegate://results/ID/blocks/7","arguments":{},"format":"csv","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    GET /results/ID/data
      {"uri":"tidegate://results/ID/data","arguments":{},"format":"arrow","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    GET /results/ID/data?format=ndjson&partial=true
      {"uri":"tidegate://results/ID/data","arguments":{"partial":true,"format":"ndjson"},"format":"ndjson","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    GET /results/ID/data?partial=false
      {"uri":"tidegate://results/ID/data","arguments":{"partial":false},"format":"arrow","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    GET /results/88888888-1111-4222-8333-44445555666%36/data
      {"uri":"tidegate://results/ID/data","arguments":{},"format":"arrow","subject":"anonymous","transport":"rest","peer":"127.0.0.1"}
    "#);
    let calls = r#"tidegate_calls_total{kind="resource",name="result",outcome="done",transport="rest"}"#;
    assert_eq!(server.figure(calls).await, "8");
}

#[tokio::test]
async fn format_parameter_overrides_accept() {
    let server = start().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (accept, parameters) in [
        (None, ""),
        (Some("*/*"), ""),
        (Some("text/html, application/xhtml+xml, */*;q=0.8"), ""),
        (Some("application/*"), ""),
        (Some("text/*"), ""),
        (Some("application/json"), ""),
        (Some("application/x-ndjson"), ""),
        (Some("text/csv, application/json;q=0.5"), ""),
        (Some("application/vnd.apache.arrow.stream"), ""),
        (Some("application/vnd.apache.parquet"), ""),
        (Some("application/json"), "?format=csv"),
    ] {
        let headers: Vec<_> = accept.map(|accept| ("Accept", accept)).into_iter().collect();
        let mut message = Vec::new();
        for path in ["/results/ID/data", "/results/ID/blocks/3"] {
            let answer = connection.ask(&request("GET", &format!("{path}{parameters}"), &headers)).await;
            let disposition = answer.header("content-disposition").unwrap().split_once("filename=").unwrap().1;
            message.push(format!("{} {disposition}", answer.header("content-type").unwrap()));
        }
        table.push_str(&format!("{:45} {parameters:12} {}\n", accept.unwrap_or("-"), message.join(" ")));
    }
    insta::assert_snapshot!(table, @r#"
    -                                                          application/vnd.apache.arrow.stream "result-0a1b2c3d.arrows" application/vnd.apache.arrow.stream "result-0a1b2c3d-3.arrows"
    */*                                                        application/vnd.apache.arrow.stream "result-0a1b2c3d.arrows" application/vnd.apache.arrow.stream "result-0a1b2c3d-3.arrows"
    text/html, application/xhtml+xml, */*;q=0.8                application/vnd.apache.arrow.stream "result-0a1b2c3d.arrows" application/vnd.apache.arrow.stream "result-0a1b2c3d-3.arrows"
    application/*                                              application/vnd.apache.arrow.stream "result-0a1b2c3d.arrows" application/vnd.apache.arrow.stream "result-0a1b2c3d-3.arrows"
    text/*                                                     text/csv "result-0a1b2c3d.csv" text/csv "result-0a1b2c3d-3.csv"
    application/json                                           application/json "result-0a1b2c3d.json" application/json "result-0a1b2c3d-3.json"
    application/x-ndjson                                       application/x-ndjson "result-0a1b2c3d.ndjson" application/x-ndjson "result-0a1b2c3d-3.ndjson"
    text/csv, application/json;q=0.5                           text/csv "result-0a1b2c3d.csv" text/csv "result-0a1b2c3d-3.csv"
    application/vnd.apache.arrow.stream                        application/vnd.apache.arrow.stream "result-0a1b2c3d.arrows" application/vnd.apache.arrow.stream "result-0a1b2c3d-3.arrows"
    application/vnd.apache.parquet                             application/vnd.apache.parquet "result-0a1b2c3d.parquet" application/vnd.apache.parquet "result-0a1b2c3d-3.parquet"
    application/json                              ?format=csv  text/csv "result-0a1b2c3d.csv" text/csv "result-0a1b2c3d-3.csv"
    "#);
}

#[tokio::test]
async fn sets_content_and_cache_headers() {
    let server = start().await;
    let mut table = String::new();
    for (path, headers) in [
        ("/results/ID", &[][..]),
        ("/results/ID/blocks/3", &[]),
        ("/results/ID/blocks/3", &[("Range", "bytes=10-19")]),
        ("/results/ID/data?format=csv", &[]),
        ("/results/ID/data?format=csv", &[("Accept-Encoding", "gzip")]),
        ("/results/88888888-1111-4222-8333-444455556666/data", &[]),
        ("/results/77777777-1111-4222-8333-444455556666/data", &[]),
    ] {
        let answer = server.download(&request("GET", path, headers)).await;
        let status = answer.head.status;
        table.push_str(&format!("GET {path} {headers:?}\n{status}\n{}\n", fields(&answer.head, &FIELDS)));
    }
    insta::assert_snapshot!(table, @r#"
    GET /results/ID []
    200
    content-type: application/json
    content-length: 8
    cache-control: no-store
    vary: accept, accept-encoding, authorization
    tidegate-rows: 40000
    x-content-type-options: nosniff
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer

    GET /results/ID/blocks/3 []
    200
    content-type: application/vnd.apache.arrow.stream
    content-length: 617780
    content-disposition: attachment; filename="result-0a1b2c3d-3.arrows"
    accept-ranges: bytes
    etag: "tag-arrow"
    cache-control: private, max-age=300, immutable
    vary: accept, accept-encoding, authorization
    x-content-type-options: nosniff
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer

    GET /results/ID/blocks/3 [("Range", "bytes=10-19")]
    206
    content-type: application/vnd.apache.arrow.stream
    content-length: 10
    content-disposition: attachment; filename="result-0a1b2c3d-3.arrows"
    content-range: bytes 10-19/617780
    accept-ranges: bytes
    etag: "tag-arrow"
    cache-control: private, max-age=300, immutable
    vary: accept, accept-encoding, authorization
    x-content-type-options: nosniff
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer

    GET /results/ID/data?format=csv []
    200
    content-type: text/csv
    content-disposition: attachment; filename="result-0a1b2c3d.csv"
    etag: "tag-csv"
    cache-control: private, max-age=300, immutable
    vary: accept, accept-encoding, authorization
    x-content-type-options: nosniff
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer
    transfer-encoding: chunked

    GET /results/ID/data?format=csv [("Accept-Encoding", "gzip")]
    200
    content-type: text/csv
    content-disposition: attachment; filename="result-0a1b2c3d.csv"
    content-encoding: gzip
    etag: W/"tag-csv"
    cache-control: private, max-age=300, immutable
    vary: accept, accept-encoding, authorization
    x-content-type-options: nosniff
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer
    transfer-encoding: chunked

    GET /results/88888888-1111-4222-8333-444455556666/data []
    200
    content-type: application/vnd.apache.arrow.stream
    content-length: 162
    content-disposition: attachment; filename="result-88888888.arrows"
    cache-control: no-store
    vary: accept, accept-encoding, authorization
    tidegate-rows: 40000
    x-content-type-options: nosniff
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer

    GET /results/77777777-1111-4222-8333-444455556666/data []
    200
    content-type: application/vnd.apache.arrow.stream
    content-length: 0
    content-disposition: attachment; filename="result-77777777.arrows"
    accept-ranges: bytes
    etag: "tag-arrow"
    cache-control: private, max-age=300, immutable
    vary: accept, accept-encoding, authorization
    tidegate-rows: 40000
    x-content-type-options: nosniff
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer
    "#);
}

#[tokio::test]
async fn complete_body_has_facts() {
    let server = start().await;
    for format in ["arrow", "ndjson", "csv", "json"] {
        let answer = server.download(&get(&format!("/results/ID/data?format={format}"))).await;
        assert!(answer.body == *ROWS, "the rows are not intact as {format}");
    }
    let empty = server.download(&get(&data(EMPTY))).await;
    assert_eq!((empty.head.status, empty.text(), empty.header("content-length")), (200, "", Some("0")));
    let manifest = server.download(&get("/results/ID")).await;
    assert_eq!(manifest.text(), "{\"id\":1}");
}

#[tokio::test]
async fn head_returns_headers_only() {
    let server = start().await;
    let mut connection = server.connect().await;
    for (path, headers) in [
        ("/results/ID", &[][..]),
        ("/results/ID/data", &[]),
        ("/results/ID/blocks/3", &[("Accept-Encoding", "gzip")]),
        ("/results/ID/data?format=csv", &[]),
        ("/results/ID/data?format=csv", &[("Accept-Encoding", "gzip")]),
        ("/results/ID/data", &[("If-None-Match", "\"tag-arrow\"")]),
        ("/results/99999999-1111-4222-8333-444455556666/data", &[]),
        ("/results/ID/data?colour=red", &[]),
    ] {
        let whole = server.download(&request("GET", path, headers)).await.head;
        connection.send(&request("HEAD", path, headers)).await;
        let head = connection.head().await;
        assert_eq!(head.status, whole.status, "{path}");
        let described: Vec<&str> = FIELDS.into_iter().filter(|name| *name != "transfer-encoding").collect();
        assert_eq!(fields(&head, &described), fields(&whole, &described), "{path}");
    }
    // The next response follows immediately, so there was no body.
    assert_eq!(connection.ask(&get("/results/ID")).await.head.status, 200);
    server.until_open_calls(0).await;
    assert!(server.download(&get(&data(COMPLETE))).await.body == *ROWS);
}

#[tokio::test]
async fn every_path_says_which_methods_it_takes() {
    let server = start().await;
    let mut connection = server.connect().await;
    for path in ["/results/ID", "/results/ID/data", "/results/ID/blocks/0", "/results/nothing"] {
        let answer = connection.ask(&request("OPTIONS", path, &[])).await;
        assert_eq!((answer.head.status, answer.header("allow")), (204, Some("GET, HEAD, OPTIONS")), "{path}");
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let answer = connection.ask(&request(method, path, &[])).await;
            assert_eq!((answer.head.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")), "{path}");
        }
    }
    assert_eq!(server.figure("tidegate_messages_refused_total{transport=\"rest\"}").await, "16");
}

#[tokio::test]
async fn stored_file_ignores_accept() {
    let server = start().await;
    let path = data(FILE);
    for accept in ["*/*", "text/csv", "image/png", "application/xml"] {
        let answer = server.download(&request("GET", &path, &[("Accept", accept), ("Accept-Encoding", "gzip")])).await;
        assert_eq!(answer.head.status, 200);
        assert!(answer.body[..] == ROWS[..], "{accept}");
        let names = [
            "content-type",
            "content-length",
            "content-encoding",
            "content-disposition",
            "content-security-policy",
            "x-content-type-options",
            "etag",
        ];
        insta::allow_duplicates! {
            insta::assert_snapshot!(fields(&answer.head, &names), @r#"
            content-type: text/html
            content-length: 617780
            content-disposition: attachment; filename="Gr__e.html"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%2Ehtml
            content-security-policy: default-src 'none'; sandbox
            x-content-type-options: nosniff
            etag: "tag-file"
            "#);
        }
    }
    let part = server.download(&request("GET", &path, &[("Range", "bytes=100000-100009")])).await;
    assert_eq!((part.head.status, &part.body[..]), (206, &ROWS[100_000..100_010]));
    let known = server.download(&request("GET", &path, &[("If-None-Match", "\"tag-file\"")])).await;
    assert_eq!(known.head.status, 304);
    // A result with rows is not available in a format without rows.
    let refused = server.download(&request("GET", &data(COMPLETE), &[("Accept", "image/png")])).await;
    assert_eq!(refused.head.status, 406);
}

#[tokio::test]
async fn every_download_of_a_partial_result_names_the_nodes() {
    let server = start().await;
    let whole = server.download(&get("/results/ID/data")).await;
    assert_eq!(whole.header("tidegate-partial"), None);
    let tag = whole.header("etag").unwrap().to_owned();
    let cases: [(&[(&str, &str)], u16); 4] = [
        (&[], 200),
        (&[("Accept", "text/csv"), ("Accept-Encoding", "gzip")], 200),
        (&[("Range", "bytes=0-9")], 206),
        (&[("If-None-Match", &tag)], 304),
    ];
    for (headers, status) in cases {
        let answer = server.download(&request("GET", &data(PARTIAL), headers)).await;
        assert_eq!((answer.head.status, answer.header("tidegate-partial")), (status, Some("oslo")), "{headers:?}");
    }
    let mut connection = server.connect().await;
    connection.send(&request("HEAD", &data(PARTIAL), &[])).await;
    assert_eq!(connection.head().await.header("tidegate-partial"), Some("oslo"));
    let manifest = server.download(&get(&format!("/results/{PARTIAL}"))).await;
    assert_eq!(manifest.header("tidegate-partial"), Some("oslo"));
}
