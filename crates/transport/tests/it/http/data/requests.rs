//! The call that results from each request, its answers, and refusals.

use serde_json::Value;
use tidegate_transport::http::HttpOptions;

use super::DataServer;
use crate::http::rest::fixture::{get, problem, request};
use crate::http::wire::{Answer, Connection};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn line(answer: &Answer) -> String {
    let headers =
        ["tidegate-rows", "tidegate-sequence", "preference-applied", "retry-after", "accept-encoding", "allow"];
    let headers: Vec<String> =
        headers.iter().filter_map(|name| Some(format!("{name}: {}", answer.header(name)?))).collect();
    match answer.header("content-type") {
        Some("application/problem+json") => {
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            let members = ["choices", "violations"].map(|name| body[name].clone());
            let members: Vec<String> =
                members.iter().filter(|member| !member.is_null()).map(ToString::to_string).collect();
            format!("{} | {} | {}", problem(answer), members.join(" "), headers.join(", "))
        }
        _ => format!("{} {} | {}", answer.head.status, answer.text(), headers.join(", ")),
    }
}

async fn ask(connection: &mut Connection, request: &[u8]) -> String {
    let line = line(&connection.ask(request).await);
    assert_eq!(connection.ask(&get("/rest/jobs")).await.head.status, 404, "after {line}");
    line
}

#[tokio::test]
async fn each_request_becomes_one_call() {
    let server = DataServer::start().await;
    let mut connection = server.server.connect().await;
    let path = "/data/plant/sensors";
    let mut table = String::new();
    for (subject, request) in [
        ("append", request("POST", path, &[JSON], "[{}]")),
        ("chunked", request("POST", path, &[JSON, ("Transfer-Encoding", "chunked")], "2\r\n[]\r\n0\r\n\r\n")),
        ("empty", request("POST", path, &[JSON], "")),
        ("replace", request("PUT", path, &[("Content-Type", "Text/CSV; charset=UTF-8")], "a\n1\n")),
        ("drop", request("DELETE", path, &[], "")),
        ("created", request("POST", "/data/plant/new", &[JSON], "[]")),
        ("coded", request("POST", path, &[JSON, ("Content-Encoding", "gzip")], "x")),
        ("key", request("POST", path, &[JSON, ("Idempotency-Key", "\"k 1\"")], "[]")),
        ("minimal", request("POST", path, &[JSON, ("Prefer", "wait=1, return=minimal")], "[]")),
        ("created, minimal", request("POST", "/data/plant/new", &[JSON, ("Prefer", "return=minimal")], "[]")),
        ("representation", request("POST", path, &[JSON, ("Prefer", "return=representation")], "[]")),
        ("encoded names", request("POST", "/data/pl%C3%A4nt/a%2Fb", &[JSON], "[]")),
        ("parameters", {
            let path = "/data/plant/s?on_reject=row&create=false&delimiter=%3B&null=NA&header=false&binary=hex";
            request("POST", path, &[JSON], "[]")
        }),
        ("OPTIONS", request("OPTIONS", path, &[], "")),
        ("logs", request("POST", "/v1/logs", &[JSON], "{}")),
        ("traces", request("POST", "/v1/traces", &[JSON, ("Content-Encoding", "gzip")], "x")),
        ("OPTIONS of logs", request("OPTIONS", "/v1/logs", &[], "")),
    ] {
        table.push_str(&format!("{subject:17} {}\n", ask(&mut connection, &request).await));
    }
    insta::assert_snapshot!(table);
}

#[tokio::test]
async fn refusals_keep_the_connection() {
    let server = DataServer::start().await;
    let mut connection = server.server.connect().await;
    let path = "/data/plant/sensors";
    let mut table = String::new();
    for (subject, request) in [
        ("no type", request("POST", path, &[], "[]")),
        ("another type", request("POST", path, &[("Content-Type", "application/xml")], "<a/>")),
        ("two types", request("POST", path, &[JSON, JSON], "[]")),
        ("another charset", request("POST", path, &[("Content-Type", "text/csv; charset=latin1")], "a")),
        ("another coding", request("POST", path, &[JSON, ("Content-Encoding", "br")], "[]")),
        ("two codings", request("POST", path, &[JSON, ("Content-Encoding", "gzip, gzip")], "[]")),
        ("empty key", request("POST", path, &[JSON, ("Idempotency-Key", "\"\"")], "[]")),
        ("two keys", request("POST", path, &[JSON, ("Idempotency-Key", "a"), ("Idempotency-Key", "b")], "[]")),
        ("long key", request("POST", path, &[JSON, ("Idempotency-Key", &"x".repeat(256))], "[]")),
        ("unknown parameter", request("POST", "/data/plant/sensors?mode=all", &[JSON], "[]")),
        ("parameter of a drop", request("DELETE", "/data/plant/sensors?create=true", &[], "")),
        ("format", request("POST", "/data/plant/sensors?format=csv", &[JSON], "[]")),
        ("no flag", request("POST", "/data/plant/sensors?create=perhaps", &[JSON], "[]")),
        ("GET", get(path)),
        ("PUT of logs", request("PUT", "/v1/logs", &[JSON], "{}")),
        ("another type of logs", request("POST", "/v1/logs", &[("Content-Type", "text/plain")], "a")),
        ("another coding of logs", request("POST", "/v1/logs", &[JSON, ("Content-Encoding", "br")], "{}")),
        ("no table", request("POST", "/data/plant", &[JSON], "[]")),
        ("empty table", request("POST", "/data/plant/", &[JSON], "[]")),
        ("conflict", request("POST", "/data/plant/running", &[JSON], "[]")),
        ("no room", request("POST", "/data/plant/full", &[JSON], "[]")),
        ("absent table", request("POST", "/data/plant/absent", &[JSON], "[]")),
        ("rows that do not fit", request("POST", "/data/plant/misfit", &[JSON], "[]")),
        ("another origin", request("POST", path, &[JSON, ("Origin", "https://evil.example.com")], "[]")),
    ] {
        table.push_str(&format!("{subject:21} {}\n", ask(&mut connection, &request).await));
    }
    insta::assert_snapshot!(table);
    assert_eq!(server.stored(), 0);
}

#[tokio::test]
async fn without_a_target_no_table_takes_rows() {
    let server = crate::http::Server::start().await;
    let answer = server.rest(&request("POST", "/data/plant/sensors", &[JSON], "[]")).await;
    assert_eq!(
        problem(&answer),
        "404 not_found: there is no table \"sensors\" of database \"plant\" that takes rows from you"
    );
    assert!(
        answer.text().contains("A database of the configuration takes rows with its key ingest"),
        "{}",
        answer.text()
    );
    let document = server.rest(&get("/rest/openapi.json")).await;
    assert!(!document.text().contains("/data/"));
}

#[tokio::test]
async fn document_has_the_path_of_tables() {
    let server = DataServer::start().await;
    let document = server.server.rest(&get("/rest/openapi.json")).await;
    let document: Value = serde_json::from_slice(&document.body).unwrap();
    insta::assert_json_snapshot!(document["paths"]["/data/{database}/{table}"]["post"]);
    let methods: Vec<&String> = document["paths"]["/data/{database}/{table}"].as_object().unwrap().keys().collect();
    assert_eq!(methods, ["post", "put", "delete"]);
}

#[tokio::test]
async fn rows_belong_to_rest() {
    let server = DataServer::start().await;
    let stop = request("POST", "/rest/transports/rest/stop", &[], "");
    assert_eq!(server.server.rest(&stop).await.head.status, 200);
    let answer = server.server.rest(&request("POST", "/data/plant/sensors", &[JSON], "[]")).await;
    assert!(problem(&answer).starts_with("503 unavailable: an operator has stopped rest"), "{}", answer.text());
    let server = DataServer::with(HttpOptions { has_rest: false, ..HttpOptions::default() }).await;
    let answer = server.server.rest(&request("POST", "/data/plant/sensors", &[JSON], "[]")).await;
    assert_eq!((answer.head.status, server.stored()), (404, 0));
}
