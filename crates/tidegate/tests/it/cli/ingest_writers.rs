//! Two servers with one folder: the first writes, the second names it in a warning and in what it answers to rows.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use reqwest::{Client, Response};
use serde_json::{Value, json};

use super::server::{Server, wait_until};
use super::{ConfiguredFolder, tidegate};

const CONFIGURATION: &str = "
databases: [{name: plant, ingest: plant, tables: {sensors: {columns: {n: int64}}}}]
receivers: {otlp: plant}
";

fn serve(configured: &ConfiguredFolder) -> Server {
    Server::start(tidegate().current_dir(configured.folder()).args(["serve", "--listen", "127.0.0.1:0"]))
}

/// The line with `text` in the log of a server that starts. A thread of its own writes the log, maybe after the addresses.
fn startup_line(configured: &ConfiguredFolder, text: &str) -> String {
    let mut command = tidegate();
    command.current_dir(configured.folder()).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains(text));
    child.kill().unwrap();
    child.wait().unwrap();
    line.unwrap()
}

async fn send(server: &Server, path: &str, body: &str) -> Response {
    let request = Client::new().post(server.url.replace("/mcp", path)).header("content-type", "application/json");
    request.body(body.to_owned()).send().await.unwrap()
}

async fn count(server: &Server) -> Value {
    let url = server.url.replace("/mcp", "/rest/sql");
    let arguments = json!({"sql": "SELECT count(*) AS n FROM sensors"});
    let response = Client::new().post(url).json(&arguments).header("accept", "application/x-ndjson").send().await;
    response.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_reads_and_names_the_one_that_writes() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let first = serve(&configured);
    assert_eq!(send(&first, "/data/plant/sensors", r#"[{"n": 1}]"#).await.status(), 200);
    let flushed = configured.run(&["ingest", "flush", "--connect", &first.url.replace("/mcp", "")]);
    assert_eq!(flushed.code, Some(0), "{flushed:?}");
    let writer = format!("process {} on ", first.pid());

    let warning = startup_line(&configured, "database plant: takes no rows");
    assert!(warning.contains(&writer), "{warning}");
    let second = serve(&configured);
    assert_eq!(count(&second).await["n"], 1);
    let logs =
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "one"}}]}]}]}).to_string();
    for (path, body) in
        [("/data/plant/sensors", r#"[{"n": 2}]"#), ("/data/plant/new", r#"[{"n": 2}]"#), ("/v1/logs", &logs)]
    {
        let refused = send(&second, path, body).await;
        assert_eq!(refused.status(), 503, "{path}");
        assert!(refused.headers().contains_key("retry-after"), "{path}");
        let text = refused.text().await.unwrap();
        assert!(text.contains("takes no rows here") && text.contains(&writer), "{path}: {text}");
        assert!(!text.contains(configured.folder().to_str().unwrap()), "{path}: {text}");
    }
    // It takes over after the first one has ended and the configuration is read again.
    first.signal("TERM");
    assert_eq!(first.wait_for_exit().0.code(), Some(0));
    second.signal("HUP");
    wait_until(async || send(&second, "/data/plant/sensors", r#"[{"n": 3}]"#).await.status() == 200).await;
    assert_eq!(count(&second).await["n"], 2);
}
