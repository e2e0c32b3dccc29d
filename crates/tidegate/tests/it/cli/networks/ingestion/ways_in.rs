//! Other ways in than NDJSON and `append_rows`: bodies of other formats, declared tools, and `tidegate import`.

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::sign;
use super::super::site_network::{ISSUER, NODES, call};
use super::Network;
use crate::cli::{CommandOutput, run_in};

const CSV: &str = "site,machine,degrees\noslo,press,1\nrome,press,2\nbergen,oven,4\nparis,press,8\n,oven,16\n";
const FILES: [&str; 3] = ["rows.csv", "rows.arrow", "rows.parquet"];
/// Those of [`FILES`].
const MEDIA_TYPES: [&str; 3] = ["text/csv", "application/vnd.apache.arrow.file", "application/vnd.apache.parquet"];

/// A folder with the rows of [`CSV`] in each of [`FILES`].
fn write_files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rows.csv"), CSV).unwrap();
    for file in ["rows.arrow", "rows.parquet"] {
        let sql = "SELECT site, machine, degrees FROM rows";
        let ran = run_in(folder.path(), &["export", sql, "rows.csv", "--output", file]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    folder
}

/// The rows of [`CSV`] by node and site, after they were stored `times` times.
fn stored_rows(times: i64) -> Value {
    let rows = [
        ("cork", None, 16),
        ("cork", Some("paris"), 8),
        ("oslo", Some("bergen"), 4),
        ("oslo", Some("oslo"), 1),
        ("rome", Some("rome"), 2),
    ];
    rows.into_iter()
        .map(|(node, site, degrees)| json!({"_node": node, "site": site, "n": times, "total": degrees * times}))
        .collect()
}

/// The rows that the nodes have themselves, as each reports them to Ann without the network.
async fn rows_at_nodes(network: &Network) -> Vec<Value> {
    let sql = "SELECT site, tenant, count(*) AS n FROM readings GROUP BY site, tenant ORDER BY site NULLS FIRST";
    let mut rows = Vec::new();
    for (name, node) in NODES.iter().zip(&network.nodes) {
        let claims = json!({
            "iss": ISSUER, "aud": name, "sub": "ann", "exp": 4_000_000_000_u64, "roles": ["writer"], "tenant": "north",
        });
        let token = sign(&network.key, &claims);
        rows.push(call(&node.http, &token, "sql", json!({"database": "plant", "sql": sql})).await.json());
    }
    rows
}

/// The same, if each has the rows of [`CSV`] that it holds, `times` times.
fn stored_at_nodes(times: i64) -> [Value; 3] {
    let row = |site: Option<&str>| json!({"site": site, "tenant": "north", "n": times});
    [
        json!([row(Some("bergen")), row(Some("oslo"))]),
        json!([row(Some("rome"))]),
        json!([row(None), row(Some("paris"))]),
    ]
}

async fn send(network: &Network, media_type: &str, key: Option<&str>, body: Vec<u8>) -> (StatusCode, Value) {
    let url = network.server.url().replace("/mcp", "/data/sites/readings");
    let request = Client::new().post(url).bearer_auth(network.server.key("ann")).header("content-type", media_type);
    let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
    let answer = request.body(body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_each_format_are_stored_by_the_nodes_that_hold_their_rows() {
    let network = Network::start();
    let folder = write_files();
    for (times, (media_type, file)) in (1..).zip(MEDIA_TYPES.into_iter().zip(FILES)) {
        let body = std::fs::read(folder.path().join(file)).unwrap();
        let (status, answer) = send(&network, media_type, None, body.clone()).await;
        assert!(status.is_client_error(), "{file} without a key: {status} {answer}");
        assert!(answer.to_string().contains("nothing was stored"), "{file} without a key: {answer}");
        for _ in 0..2 {
            let (status, answer) = send(&network, media_type, Some(file), body.clone()).await;
            assert_eq!((status, &answer["rows"]), (StatusCode::OK, &json!(5)), "{file}: {answer}");
            assert_eq!(network.stored().await, stored_rows(times), "{file}");
        }
    }
    assert_eq!(rows_at_nodes(&network).await, stored_at_nodes(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_a_row_that_does_not_fit_stores_nothing() {
    let network = Network::start();
    for (body, column) in [
        ("site,degrees\noslo,1\nrome,warm\n", "degrees"),
        ("site,degrees\noslo,1\nrome,3000000000\n", "degrees"),
        ("site,pressure\noslo,1\n", "pressure"),
    ] {
        let (status, answer) = send(&network, "text/csv", Some(body.lines().last().unwrap()), body.into()).await;
        assert!(status.is_client_error() && answer.to_string().contains(column), "{body}: {status} {answer}");
    }
    let folder = write_files();
    for (media_type, file) in MEDIA_TYPES.into_iter().zip(FILES).skip(1) {
        let mut body = std::fs::read(folder.path().join(file)).unwrap();
        // Without a part of its index, a file of Arrow still has all its rows.
        body.truncate(body.len() / 2);
        let (status, answer) = send(&network, media_type, Some(file), body).await;
        assert!(status.is_client_error(), "{file}: {status} {answer}");
    }
    assert_eq!(network.stored().await, json!([]));
}

const REPORT: &str = "
tools:
  - name: report_reading
    description: Stores a reading.
    insert_into: sites.readings
    input:
      site: {type: string, required: false}
      degrees: {type: integer}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_tool_inserts_at_the_node_that_holds_the_row() {
    let network = Network::start_with(REPORT);
    let report = async |caller: &str, arguments: Value| network.server.call(caller, "report_reading", arguments).await;
    for arguments in [
        json!({"site": "oslo", "degrees": 1}),
        json!({"site": "rome", "degrees": 2}),
        json!({"site": "bergen", "degrees": 4}),
        json!({"site": "paris", "degrees": 8}),
        json!({"degrees": 16}),
    ] {
        let stored = report("ann", arguments).await;
        assert!(!stored.is_error && stored.text.contains("\"rows\":1"), "{stored:?}");
    }
    assert_eq!(network.stored().await, stored_rows(1));
    assert_eq!(rows_at_nodes(&network).await, stored_at_nodes(1));
    // Dan may not write; Cyd may by this server, and not by the nodes.
    let hidden = report("dan", json!({"site": "oslo", "degrees": 1})).await;
    assert!(hidden.is_error && hidden.text.starts_with("there is no tool \"report_reading\""), "{hidden:?}");
    let refused = report("cyd", json!({"site": "oslo", "degrees": 1})).await;
    assert!(refused.is_error && refused.text.contains("oslo"), "{refused:?}");
    let refused = report("ann", json!({"site": "oslo", "degrees": 3_000_000_000_i64})).await;
    assert!(refused.is_error && refused.text.contains("degrees"), "{refused:?}");
    assert_eq!(network.stored().await, stored_rows(1), "nothing else was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_imported_once() {
    let network = Network::start();
    let folder = write_files();
    let base = network.server.url().replace("/mcp", "");
    let import = |caller: &str, arguments: &[&str]| -> CommandOutput {
        let to = ["import", "--to", "sites.readings", "--connect", &base, "--bearer", network.server.key(caller)];
        run_in(folder.path(), &[&to[..], arguments].concat())
    };
    for (times, file) in (1..).zip(FILES) {
        for repeat in 0..2 {
            let ran = import("ann", &[file]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(repeat > 0 || ran.stdout == format!("{file}: 5 rows stored\n"), "{ran:?}");
            assert_eq!(network.stored().await, stored_rows(times), "{file}");
        }
    }
    // The same rows in several parts, which have keys of their own.
    std::fs::copy(folder.path().join("rows.csv"), folder.path().join("parts.csv")).unwrap();
    for _ in 0..2 {
        let ran = import("ann", &["parts.csv", "--part-size", "30B"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(network.stored().await, stored_rows(4));
    }
    assert_eq!(rows_at_nodes(&network).await, stored_at_nodes(4));
    let refused = import("dan", &["rows.csv"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert_eq!(network.stored().await, stored_rows(4), "nothing else was stored");
}
