//! Rejected requests and their problems; nothing stays open.

use tidegate_core::{Access, Acl, IpNetwork, UriTemplate};
use tidegate_runtime::{ResourceTemplate, SnapshotBuilder, handler_fn};
use tidegate_transport::http::HttpOptions;

use super::super::wire::Connection;
use super::fixture::{ABSENT, COMPLETE, FAILING, data, get, request, start, with};
use crate::http::rest::fixture::problem;

/// The problem of a request, after which the connection stays usable.
async fn refused(connection: &mut Connection, request: &[u8]) -> String {
    let answer = connection.ask(request).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    // A rejection by the host check contains nothing else.
    assert!(answer.header("x-content-type-options") == Some("nosniff") || answer.head.status == 403);
    assert_eq!(answer.header("content-disposition"), None);
    let message = problem(&answer);
    assert_eq!(connection.ask(&get("/results/ID")).await.head.status, 200, "after {message}");
    message
}

#[tokio::test]
async fn rejections_are_problems_and_keep_the_connection() {
    let server = start().await;
    let level = server.resource_usage().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (subject, request) in [
        ("absent", get(&format!("/results/{ABSENT}"))),
        ("absent data", get(&data(ABSENT))),
        ("no id", get("/results/nothing")),
        ("no id's data", get("/results/nothing/data")),
        ("no number", get("/results/ID/blocks/x")),
        ("too large a number", get("/results/ID/blocks/4294967296")),
        ("not its spelling", get("/results/ID/blocks/01")),
        ("failing", get(&data(FAILING))),
        ("no such path", get("/results/ID/rows")),
        ("no id at all", get("/results/")),
        ("the list", get("/results")),
        ("another method", request("DELETE", "/results/ID", &[])),
        ("another form", request("GET", "/results/ID/data", &[("Accept", "image/png")])),
        ("a table for people", request("GET", "/results/ID/data", &[("Accept", "text/plain")])),
        ("another form of a manifest", request("GET", "/results/ID", &[("Accept", "text/csv")])),
        ("unknown format", get("/results/ID/data?format=xml")),
        ("format for people", get("/results/ID/data?format=table")),
        ("format of a manifest", get("/results/ID?format=csv")),
        ("two formats", get("/results/ID/data?format=csv&format=csv")),
        ("unknown parameter", get("/results/ID/data?colour=red")),
        ("partial block", get("/results/ID/blocks/0?partial=true")),
        ("partial manifest", get("/results/ID?partial=true")),
        ("no truth", get("/results/ID/data?partial=1")),
        ("another tag", request("GET", "/results/ID/data", &[("If-Match", "\"other\"")])),
        ("no such bytes", request("GET", "/results/ID/data", &[("Range", "bytes=99999999-")])),
        ("another host", request("GET", "/results/ID", &[("Host", "evil.example.com")])),
        ("another origin", request("GET", "/results/ID", &[("Origin", "https://evil.example.com")])),
    ] {
        let message = refused(&mut connection, &request).await;
        table.push_str(&format!("{subject:28} {}\n", message.replace(COMPLETE, "ID").replace(ABSENT, "ABSENT")));
    }
    insta::assert_snapshot!(table, @r#"
    absent                       404 not_found: there is no resource "tidegate://results/ABSENT"
    absent data                  404 not_found: there is no resource "tidegate://results/ABSENT/data"
    no id                        404 not_found: there is no resource "tidegate://results/nothing"
    no id's data                 404 not_found: there is no resource "tidegate://results/nothing/data"
    no number                    404 not_found: there is no resource "tidegate://results/ID/blocks/x"
    too large a number           404 not_found: there is no resource "tidegate://results/ID/blocks/4294967296"
    not its spelling             404 not_found: there is no resource "tidegate://results/ID/blocks/01"
    failing                      503 unavailable: the result is incomplete: it has 5 rows
    no such path                 404 no_such_path: unknown path; the manifest of a result is at /results/{id}, its rows at /results/{id}/data, and its blocks at /results/{id}/blocks/{n}
    no id at all                 404 no_such_path: unknown path; the manifest of a result is at /results/{id}, its rows at /results/{id}/data, and its blocks at /results/{id}/blocks/{n}
    the list                     404 no_such_path: unknown path; the manifest of a result is at /results/{id}, its rows at /results/{id}/data, and its blocks at /results/{id}/blocks/{n}
    another method               405 method_not_allowed: DELETE is not supported here; supported methods: GET, HEAD, OPTIONS
    another form                 406 not_acceptable: none of the media types in Accept is available; available types: application/vnd.apache.arrow.stream, application/json, application/x-ndjson, text/csv, application/vnd.apache.parquet
    a table for people           406 not_acceptable: none of the media types in Accept is available; available types: application/vnd.apache.arrow.stream, application/json, application/x-ndjson, text/csv, application/vnd.apache.parquet
    another form of a manifest   406 not_acceptable: none of the media types in Accept is available; available types: application/json
    unknown format               400 bad_request: unknown format "xml"; available formats: arrow, json, ndjson, csv, parquet
    format for people            400 bad_request: unknown format "table"; available formats: arrow, json, ndjson, csv, parquet
    format of a manifest         400 bad_request: unknown format "csv"; available formats: json
    two formats                  400 bad_request: the parameter format is given more than once
    unknown parameter            400 bad_request: unknown query parameter "colour"
    partial block                400 bad_request: unknown query parameter "partial"
    partial manifest             400 bad_request: unknown query parameter "partial"
    no truth                     400 bad_request: the parameter partial must be true or false, not "1"
    another tag                  412 precondition_failed: the result has none of the entity tags in If-Match; omit If-Match to get the current version
    no such bytes                416 range_not_satisfiable: the range is outside the result, which has 617780 bytes
    another host                 403 forbidden: the host "evil.example.com" is not allowed; the server's option --allow-host adds it
    another origin               403 forbidden: the origin "https://evil.example.com" is not allowed; the server's option --allow-origin adds it
    "#);
    drop(connection);
    server.wait_until_back_at(&level).await;
}

#[tokio::test]
async fn impossible_and_absent_results_answer_alike() {
    let server = start().await;
    let mut message = Vec::new();
    for path in [
        format!("/results/{ABSENT}/blocks/1"),
        format!("/results/{COMPLETE}/blocks/4294967296"),
        format!("/results/{COMPLETE}/blocks/-1"),
        "/results/nothing/blocks/1".to_owned(),
    ] {
        let answer = server.download(&get(&path)).await;
        let text = answer.text().replace(&path.replace("/results/", "tidegate://results/"), "URI");
        message.push((answer.head.status, text));
    }
    assert!(message[0].1.contains("URI"));
    assert!(message.iter().all(|answer| *answer == message[0]), "{message:?}");
}

#[tokio::test]
async fn refusals_are_counted() {
    let server = start().await;
    for path in ["/results/ID/rows", "/results/ID?colour=red", "/results/nothing"] {
        server.download(&get(path)).await;
    }
    assert_eq!(server.figure(r#"tidegate_messages_refused_total{transport="rest"}"#).await, "2");
    let refused = r#"tidegate_calls_refused_total{kind="resource",outcome="not_found"}"#;
    assert_eq!(server.figure(refused).await, "1");
}

#[tokio::test]
async fn network_acl_applies() {
    let server = start().await;
    let elsewhere = Acl { transports: None, networks: IpNetwork::parse("192.0.2.0/24").map(|network| vec![network]) };
    let handler = handler_fn(|_| async { panic!("it is not reachable from here") });
    let template = UriTemplate::parse("tidegate://results/{id}").unwrap();
    let mut template = ResourceTemplate::new(template, "result", handler);
    template.access = Access { acl: elsewhere, ..Access::default() };
    server.host.service.registry().swap(SnapshotBuilder::new().template(template).build());
    assert_eq!(server.download(&get("/results/ID")).await.head.status, 404);
}

#[tokio::test]
async fn disabled_transport_is_not_found() {
    let server = with(HttpOptions { has_rest: false, ..HttpOptions::default() }).await;
    for path in ["/results", "/results/", "/results/ID", "/results/ID/data"] {
        assert_eq!(server.download(&get(path)).await.head.status, 404);
    }
}
