//! Rejected requests and their problems; nothing stays open.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_transport::http::HttpOptions;

use super::super::wire::Connection;
use super::fixture::{get, post, problem, request, script, start, with};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const DOCS: &str = include_str!("../../../../../../docs/reference/errors.md");

/// The problem of a request, after which the connection stays usable.
async fn refused(connection: &mut Connection, request: &[u8]) -> String {
    let message = problem(&connection.ask(request).await);
    assert_eq!(connection.ask(&get("/rest/jobs")).await.head.status, 200, "after {message}");
    message
}

#[tokio::test]
async fn malformed_request_keeps_the_connection() {
    let server = with(HttpOptions { body_bytes_max: 1_000, ..HttpOptions::default() }).await;
    let mut connection = server.connect().await;
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(2_000));
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(400), "]".repeat(400));
    let call = |headers: &[(&str, &str)], body: &str| request("POST", "/rest/tools/script/call", headers, body);
    let mut table = String::new();
    for (subject, request) in [
        ("no JSON", call(&[JSON], "{\"steps\":")),
        ("no object", call(&[JSON], "[1]")),
        ("too deep", call(&[JSON], &nested)),
        ("too large", call(&[JSON], &long)),
        ("no type", call(&[], "{}")),
        ("another type", call(&[("Content-Type", "application/x-www-form-urlencoded")], "a=1")),
        ("two types", call(&[JSON, JSON], "{}")),
        ("another charset", call(&[("Content-Type", "application/json; charset=utf-16")], "{}")),
        ("SQL for a tool", call(&[("Content-Type", "application/sql")], "SELECT 1")),
        ("another form", call(&[JSON, ("Accept", "application/xml")], "{}")),
        ("no form", call(&[JSON, ("Accept", "*/*;q=0")], "{}")),
        ("wrong arguments", call(&[JSON], "{\"steps\":1,\"more\":2}")),
        ("another method", request("PUT", "/rest/tools/script/call", &[JSON], "{}")),
        ("GET of a call", get("/rest/tools/script/call")),
        ("no such tool", post("/rest/tools/scrip/call", &json!({}))),
        ("no such tool's schema", get("/rest/tools/scrip/schema")),
        ("no such path", get("/rest/tables")),
        ("path that is no UTF-8", get("/rest/tools/%FF")),
        ("a name too long", get(&format!("/rest/tools/{}", "x".repeat(4_097)))),
        ("unknown format", get("/rest/jobs?format=xml")),
        ("two formats", get("/rest/jobs?format=csv&format=csv")),
        ("unknown parameter", get("/rest/jobs?colour=red")),
        ("two of a parameter", get("/rest/jobs?extract=id&extract=id")),
        ("no number", get("/rest/databases/a/tables/b/rows?limit=ten")),
        ("parameters of a document", get("/rest/tools?format=csv")),
        ("an argument twice", post("/rest/sql?max_rows=1", &json!({"sql": "", "max_rows": 2}))),
        ("another host", request("GET", "/rest/tools", &[("Host", "evil.example.com")], "")),
    ] {
        table.push_str(&format!("{subject:25} {}\n", refused(&mut connection, &request).await));
    }
    insta::assert_snapshot!(table, @r#"
    no JSON                   400 bad_request: the body is not valid JSON: EOF while parsing a value at line 1 column 9
    no object                 400 bad_request: the body must be a JSON object: the arguments by name
    too deep                  400 bad_request: the body is not valid JSON: recursion limit exceeded at line 1 column 132
    too large                 413 body_too_large: the body is larger than 1000 bytes
    no type                   415 unsupported_media_type: Content-Type is missing; it must be application/json
    another type              415 unsupported_media_type: the media type of the body is not supported; Content-Type must be application/json
    two types                 415 unsupported_media_type: Content-Type is given more than once; Content-Type must be application/json
    another charset           415 unsupported_media_type: the body must be UTF-8, not utf-16; Content-Type must be application/json
    SQL for a tool            415 unsupported_media_type: the media type of the body is not supported; Content-Type must be application/json
    another form              406 not_acceptable: none of the media types in Accept is available; available types: application/json, application/x-ndjson, text/csv, application/vnd.apache.arrow.stream, application/vnd.apache.parquet, text/plain, text/markdown
    no form                   406 not_acceptable: none of the media types in Accept is available; available types: application/json, application/x-ndjson, text/csv, application/vnd.apache.arrow.stream, application/vnd.apache.parquet, text/plain, text/markdown
    wrong arguments           422 invalid_arguments: the arguments of tool "script" are wrong
    another method            405 method_not_allowed: PUT is not supported here; supported methods: POST, OPTIONS
    GET of a call             405 method_not_allowed: GET is not supported here; supported methods: POST, OPTIONS
    no such tool              404 not_found: there is no tool "scrip"
    no such tool's schema     404 not_found: there is no tool "scrip"
    no such path              404 no_such_path: there is no path /rest/tables; /rest/ lists the tools
    path that is no UTF-8     400 bad_request: the path is not UTF-8 after percent-decoding
    a name too long           400 bad_request: the name is 4097 bytes long; at most 4096
    unknown format            400 bad_request: unknown format "xml"; available formats: json, ndjson, csv, arrow, parquet, table, markdown, mcp
    two formats               400 bad_request: the parameter format is given more than once
    unknown parameter         400 bad_request: unknown query parameter "colour"
    two of a parameter        400 bad_request: the parameter extract is given more than once
    no number                 400 bad_request: the parameter limit must be a whole number, not "ten"
    parameters of a document  400 bad_request: this path has no query parameters
    an argument twice         400 bad_request: the argument max_rows is given both in the body and in the query string
    another host              403 forbidden: the host "evil.example.com" is not allowed; the server's option --allow-host adds it
    "#);
    assert_eq!(server.open_calls(), 0);
}

#[tokio::test]
async fn slow_body_times_out() {
    let server = with(HttpOptions { read_within: Duration::from_millis(100), ..HttpOptions::default() }).await;
    let mut connection = server.connect().await;
    let headers = [JSON, ("Content-Length", "100")];
    let answer = connection.ask(&request("POST", "/rest/tools/script/call", &headers, "{")).await;
    assert_eq!(problem(&answer), "408 too_slow: the body arrived too slowly");
    assert_eq!(server.open_calls(), 0);
}

#[tokio::test]
async fn problem_lists_choices() {
    let server = start().await;
    let answer = server.rest(&request("POST", "/rest/tools/script/call", &[JSON], "{\"steps\":1}")).await;
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap(), @r#"
    {
      "type": "tag:tidegate.dev,2026:problem/invalid_arguments",
      "title": "Invalid arguments",
      "status": 422,
      "detail": "the arguments of tool \"script\" are wrong",
      "violations": [
        {
          "path": "steps",
          "message": "1 is not of type \"array\""
        }
      ]
    }
    "#);
    let answer = server.rest(&request("PATCH", "/rest/jobs/7", &[], "")).await;
    assert_eq!(answer.header("allow"), Some("GET, HEAD, DELETE, OPTIONS"));
    let options = server.rest(&request("OPTIONS", "/rest/sql", &[], "")).await;
    assert_eq!((options.head.status, options.header("allow")), (204, Some("POST, OPTIONS")));
}

#[tokio::test]
async fn error_statuses_match_the_documentation() {
    let server = start().await;
    let kinds = [
        "invalid_arguments",
        "not_found",
        "forbidden",
        "unauthenticated",
        "rate_limited",
        "timed_out",
        "cancelled",
        "too_large",
        "unavailable",
        "internal",
    ];
    let mut table = String::new();
    for kind in kinds {
        let answer = server.rest(&script(json!([["fail", "as requested", kind]]), &[])).await;
        assert_eq!(problem(&answer), format!("{} {kind}: as requested", answer.head.status));
        assert_eq!(answer.header("www-authenticate").is_some(), answer.head.status == 401);
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        table.push_str(&format!("| `{kind}` | {} | {}\n", answer.head.status, body["title"].as_str().unwrap()));
    }
    insta::assert_snapshot!(table, @r#"
    | `invalid_arguments` | 422 | Invalid arguments
    | `not_found` | 404 | Not found
    | `forbidden` | 403 | The caller is not allowed to do this
    | `unauthenticated` | 401 | Authentication is required
    | `rate_limited` | 429 | Too many calls at once
    | `timed_out` | 504 | The call exceeded its time limit
    | `cancelled` | 409 | The call was cancelled
    | `too_large` | 413 | The request or its answer is too large
    | `unavailable` | 503 | A part of the server is unavailable
    | `internal` | 500 | Internal error
    "#);
    for row in table.lines() {
        assert!(DOCS.contains(row), "the documentation has no row {row}");
    }
    let panicked = server.rest(&script(json!([["panic"]]), &[])).await;
    let body: Value = serde_json::from_slice(&panicked.body).unwrap();
    assert_eq!((panicked.head.status, body["id"].as_str().unwrap().len()), (500, 36));
    assert!(!panicked.text().contains("as requested"));
}

#[tokio::test]
async fn disabled_transport_is_not_found() {
    let server = with(HttpOptions { has_rest: false, ..HttpOptions::default() }).await;
    for path in ["/rest", "/rest/", "/rest/tools"] {
        assert_eq!(server.rest(&get(path)).await.head.status, 404);
    }
}
