//! Limits, the audit log, and the log of refusals of a server with Flight SQL.

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::ErrorKind;

use super::super::run_in;
use super::flight_server::{FlightReader, FlightServer};
use super::sign;
use super::site_network::{ISSUER, KeyPair, UnitingServer};

const CONFIGURATION: &str = "
server: {listen: '127.0.0.1:0', flight: '127.0.0.1:0'}
databases: [{name: plant, files: data}]
roles:
  - {name: reader, toolsets: ['*'], databases: [plant]}
  - {name: limited, toolsets: ['*'], databases: [plant], limits: {requests_per_second: 0.001, burst: 5}}
limits: {timeout: 5s}
audit: {file: audit.jsonl}
auth: {keys: keys.json}
";
const READINGS: (&str, &str) =
    ("data/readings.csv", "id,machine,degrees\n1,press,12\n2,oven,180\n3,press,15\n4,oven,210\n");
const COUNT: &str = "SELECT count(*) AS n FROM readings";
/// A statement without rows and without an end.
const ENDLESS: &str = "SELECT g.value FROM readings r CROSS JOIN generate_series(1, 100000000000) AS g(value) \
                       WHERE r.degrees + g.value < 0";
const REFUSAL: &str = "the key or token is not valid";

fn start() -> FlightServer {
    FlightServer::start(CONFIGURATION, &[READINGS], &[("ann", "reader"), ("bob", "limited")])
}

/// The lines of the audit log of a server that has ended.
fn audit_lines(folder: &TempDir) -> Vec<Value> {
    let verified = run_in(folder.path(), &["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let log = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn calls_of_sql(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["kind"] == "call" && line["target"]["name"] == "sql").collect()
}

fn refused_messages(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["kind"] == "refused_message").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_lines_name_the_caller_the_tool_and_the_transport() {
    let server = start();
    let reader = FlightReader::open(&server.flight, server.key("ann"), "plant");
    let rows = reader.rows("SELECT machine FROM readings WHERE degrees < 100 ORDER BY id").await.unwrap();
    assert_eq!(rows, ["press", "press"]);
    let unknown = FlightReader::open(&server.flight, "sesame", "plant");
    assert_eq!(unknown.rows(COUNT).await.unwrap_err().kind(), ErrorKind::Unauthenticated);
    reader.close().await;
    unknown.close().await;
    let (folder, _) = server.stop();
    let lines = audit_lines(&folder);
    let calls = calls_of_sql(&lines);
    assert_eq!(calls.len(), 1, "{lines:?}");
    let call = calls[0];
    let expected = [
        ("subject", json!("ann")),
        ("roles", json!(["reader"])),
        ("transport", json!("flight")),
        ("address", json!("127.0.0.1")),
        ("target", json!({"kind": "tool", "name": "sql"})),
        ("rows", json!(2)),
        ("outcome", json!("done")),
    ];
    for (member, value) in expected {
        assert_eq!(call[member], value, "{member}: {call}");
    }
    let statement = &call["statements"][0];
    assert_eq!((&statement["database"], &statement["tables"]), (&json!("plant"), &json!(["readings"])), "{call}");
    // Before its first statement, the client calls other tools to detect the program of the server.
    let mut others = lines.iter().filter(|line| line["kind"] == "call");
    assert!(others.all(|line| line["transport"] == "flight" && line["subject"] == "ann"), "{lines:?}");
    let refused = refused_messages(&lines);
    assert_eq!((&refused[0]["transport"], &refused[0]["reason"]), (&json!("flight"), &json!(REFUSAL)), "{lines:?}");
    assert!(!lines.iter().any(|line| line.to_string().contains("sesame")), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_above_its_rate_is_refused_and_others_are_not() {
    let server = start();
    let reader = FlightReader::open(&server.flight, server.key("bob"), "plant");
    let mut answered = 0;
    let refused = loop {
        match reader.rows(COUNT).await {
            Ok(rows) => assert_eq!(rows, ["4"]),
            Err(error) => break error,
        }
        answered += 1;
        assert!(answered <= 5, "more requests than the burst were answered");
    };
    assert!(answered > 0, "{refused}");
    assert_eq!(refused.kind(), ErrorKind::RateLimited, "{refused}");
    assert!(refused.message().contains("too many requests from you"), "{refused}");
    // The limit is that of the caller, over every transport.
    let url = server.url().replace("/mcp", "/rest/sql");
    let request = Client::new().post(url).bearer_auth(server.key("bob")).json(&json!({"sql": COUNT}));
    assert_eq!(request.send().await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    let other = FlightReader::open(&server.flight, server.key("ann"), "plant");
    assert_eq!(other.rows(COUNT).await.unwrap(), ["4"]);
    reader.close().await;
    other.close().await;
    let (folder, _) = server.stop();
    let lines = audit_lines(&folder);
    let refused = refused_messages(&lines);
    let reason = refused[0]["reason"].as_str().unwrap();
    assert_eq!((&refused[0]["transport"], &refused[0]["subject"]), (&json!("flight"), &json!("bob")), "{lines:?}");
    assert!(reason.starts_with("too many requests"), "{lines:?}");
    let answers = calls_of_sql(&lines);
    assert_eq!(answers.iter().filter(|call| call["subject"] == "bob").count(), answered, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_above_the_time_limit_ends_with_an_error() {
    let server = start();
    let reader = FlightReader::open(&server.flight, server.key("ann"), "plant");
    let ended = reader.rows(ENDLESS).await.unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::TimedOut, "{ended}");
    // The time limit is that of the server; the client would name another one.
    assert!(ended.message().contains("the call exceeded its time limit of 5.0 s"), "{ended}");
    assert_eq!(reader.rows(COUNT).await.unwrap(), ["4"]);
    reader.close().await;
    let (folder, _) = server.stop();
    let lines = audit_lines(&folder);
    let outcomes: Vec<&str> = calls_of_sql(&lines).into_iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["timed_out", "done"], "{lines:?}");
}

/// A node that trusts `public`, for callers of a network.
fn start_node(public: &str) -> FlightServer {
    let configuration = format!(
        "server: {{listen: '127.0.0.1:0', flight: '127.0.0.1:0'}}\n\
         databases: [{{name: plant, files: data}}]\n\
         roles: [{{name: reader, toolsets: ['*'], databases: [plant], claims: {{roles: reader}}}}]\n\
         auth: {{tokens: {{issuer: '{ISSUER}', audience: oslo, algorithms: [EdDSA], public_key: uniting.pem}}}}\n"
    );
    FlightServer::start(&configuration, &[READINGS, ("uniting.pem", public)], &[])
}

/// A server with a network of this node. It signs with `key`.
fn start_uniting_server(key: &KeyPair, node: &FlightServer) -> UnitingServer {
    let configuration = format!(
        "server: {{listen: '127.0.0.1:0'}}\n\
         databases:\n  - name: sites\n    network: {{nodes: [{{name: oslo, url: '{}', database: plant}}], timeout: 60s, \
         trust: {{issuer: '{ISSUER}', key: '${{file:uniting-key.pem}}'}}}}\n\
         roles: [{{name: reader, toolsets: ['*'], databases: [sites]}}]\n\
         auth: {{keys: keys.json}}\n",
        node.flight
    );
    UnitingServer::start_with(key, &configuration, &[("ann", "reader", Some("north"))])
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_tokens_are_logged_without_their_text() {
    let (key, trusted) = (KeyPair::generate(), KeyPair::generate());
    let mut node = start_node(&trusted.public);
    let server = start_uniting_server(&key, &node);
    let refused = server.call("ann", "sql", json!({"database": "sites", "sql": COUNT})).await;
    assert!(refused.is_error && refused.text.contains("oslo") && !refused.text.contains("eyJ"), "{refused:?}");
    let line = node.wait_for_log("message refused");
    assert!(line.contains("flight") && line.contains(REFUSAL), "{line}");
    // The beginning of every signed token.
    assert!(!line.contains("eyJ"), "{line}");
    let claims = json!({
        "iss": ISSUER, "aud": "oslo", "sub": "ann", "exp": 4_000_000_000_u64, "roles": ["reader"], "tenant": "north",
    });
    let mut for_another_node = claims.clone();
    for_another_node["aud"] = "rome".into();
    for (problem, token) in [
        ("signed by another key", sign(&key, &claims)),
        ("for another node", sign(&trusted, &for_another_node)),
        ("of another form", "sesame".to_owned()),
    ] {
        let reader = FlightReader::open(&node.flight, &token, "plant");
        let error = reader.rows(COUNT).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{problem}: {error}");
        let line = node.wait_for_log("message refused");
        assert!(line.contains("flight") && line.contains(REFUSAL), "{problem}: {line}");
        let parts = token.split('.').chain(["eyJ"]);
        let found: Vec<&str> = parts.filter(|part| line.contains(part) || error.to_string().contains(part)).collect();
        assert!(found.is_empty(), "{problem}: {found:?} in {line} or in {error}");
        reader.close().await;
    }
    // With the right key, the node answers.
    let reader = FlightReader::open(&node.flight, &sign(&trusted, &claims), "plant");
    assert_eq!(reader.rows(COUNT).await.unwrap(), ["4"]);
    reader.close().await;
    drop(server);
    let (_folder, log) = node.stop();
    assert!(!log.contains("eyJ") && !log.contains("sesame"), "{log}");
}
