//! `tidegate ingest` and the metrics: what an operator sees and does.

use std::path::{Path, PathBuf};

use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::{Server, wait_until};

const CONFIGURATION: &str = "
databases:
  - {name: plant, ingest: plant, tables: {sensors: {columns: {id: int64 not null}}}}
";

fn store(configured: &ConfiguredFolder, ids: &[u32], connect: &[&str]) {
    let lines: String = ids.iter().map(|id| format!("{{\"id\": {id}}}\n")).collect();
    let file = format!("rows{}.ndjson", ids[0]);
    std::fs::write(configured.folder().join(&file), lines).unwrap();
    let ran = configured.run(&[&["import", &file, "--to", "plant.sensors"], connect].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn data_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect()
}

async fn metric(server: &Server, name: &str) -> f64 {
    let metrics = Client::new().get(server.url.replace("/mcp", "/metrics")).send().await.unwrap().text().await.unwrap();
    let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_keeps_up_the_tables_of_a_running_server() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    let url = server.url.replace("/mcp", "");
    let connect = ["--connect", url.as_str()];
    store(&configured, &[1, 2, 3], &connect);
    let ingest = |action: &str, more: &[&str]| configured.run(&[&["ingest", action][..], &connect, more].concat());
    let status: Value = serde_json::from_str(&ingest("status", &["--json"]).stdout).unwrap();
    let table = &status["tables"][0];
    let number = |table: &Value, name: &str| table[name].as_u64().unwrap();
    assert_eq!((&table["table"], number(table, "waiting_rows") + number(table, "rows")), (&"sensors".into(), 3));
    assert_eq!(metric(&server, "tidegate_ingest_rows_total{database=\"plant\",outcome=\"stored\"}").await, 3.0);
    let flushed = ingest("flush", &["plant.sensors"]);
    assert_eq!(flushed.code, Some(0), "{flushed:?}");
    let line = ingest("status", &["plant"]).stdout;
    assert!(line.starts_with("plant.sensors: 0 rows wait in the log (0 bytes); 3 rows in 1 file ("), "{line}");
    assert_eq!(metric(&server, "tidegate_ingest_waiting_rows{database=\"plant\"}").await, 0.0);
    assert_eq!(metric(&server, "tidegate_ingest_files{database=\"plant\"}").await, 1.0);
    assert_eq!(ingest("verify", &[]).stdout, "plant.sensors: intact; 3 rows in 1 file, 0 in the log\n");
    assert_eq!(ingest("compact", &[]).code, Some(0));
    let unknown = ingest("status", &["plant.sensor"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("sensor"), "{unknown:?}");
    // A server has the folder, so no other process takes it.
    let locked = configured.run(&["ingest", "status"]);
    assert_eq!(locked.code, Some(1), "{locked:?}");
    assert!(locked.stderr.contains("--connect"), "{locked:?}");
}

#[test]
fn damaged_files_are_found_while_the_server_is_stopped() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    store(&configured, &[1, 2], &[]);
    store(&configured, &[3], &[]);
    let intact = configured.run(&["ingest", "verify", "plant"]);
    assert_eq!(
        (intact.code, intact.stdout.as_str()),
        (Some(0), "plant.sensors: intact; 3 rows in 2 files, 0 in the log\n")
    );
    let files = data_files(&configured.folder().join("plant/sensors"));
    let mut bytes = std::fs::read(&files[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&files[0], bytes).unwrap();
    let damaged = configured.run(&["ingest", "verify"]);
    assert_eq!(damaged.code, Some(1), "{damaged:?}");
    assert!(damaged.stdout.starts_with("plant.sensors: damaged; "), "{damaged:?}");
    assert!(damaged.stdout.contains(files[0].file_name().unwrap().to_str().unwrap()), "{damaged:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ingest_tools_are_for_operators_and_programs() {
    let configured = ConfiguredFolder::new(&format!(
        "{CONFIGURATION}
roles: [{{name: writer, toolsets: ['*'], ingest: [plant.*]}}, {{name: keeper, toolsets: ['*'], access: [operator]}}]
auth: {{proxy: {{networks: [127.0.0.1], user_header: x-user, roles_header: x-roles}}}}
"
    ));
    let server = serve(&configured);
    let call = async |role: &str| {
        let url = server.url.replace("/mcp", "/rest/tools/ingest_status/call");
        let request = Client::new().post(url).header("x-user", "ann").header("x-roles", role);
        request.json(&serde_json::json!({})).send().await.unwrap().status().as_u16()
    };
    assert_eq!((call("keeper").await, call("writer").await), (200, 404));
    let tools = configured.run(&["tools"]).stdout;
    assert!(!tools.contains("maintain_ingest"), "commands that only read do not open folders: {tools}");
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Sends one row with its number as the key, and returns whether it is a repeat.
async fn send_once(server: &Server, id: u32) -> bool {
    let url = server.url.replace("/mcp", "/data/plant/sensors");
    let request = Client::new().post(url).header("content-type", "application/x-ndjson");
    let request = request.header("idempotency-key", id.to_string()).body(format!("{{\"id\": {id}}}\n"));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json::<Value>().await.unwrap()["repeated"].as_bool().unwrap()
}

async fn ids(server: &Server) -> Value {
    let question = json!({"sql": "SELECT array_agg(id ORDER BY id) AS ids FROM sensors"});
    let request = Client::new().post(server.url.replace("/mcp", "/rest/sql")).json(&question);
    let answer = request.header("accept", "application/x-ndjson").send().await.unwrap();
    answer.json::<Value>().await.unwrap()["ids"].clone()
}

/// A backup is the folder of a server that is stopped, or a snapshot of the file system, which has all files at one moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_the_folder_is_a_backup_with_rows_and_keys() {
    for is_stopped in [true, false] {
        let configured = ConfiguredFolder::new(CONFIGURATION);
        let server = serve(&configured);
        assert!(!send_once(&server, 1).await);
        let url = server.url.replace("/mcp", "");
        assert_eq!(configured.run(&["ingest", "flush", "--connect", &url]).code, Some(0));
        assert!(!send_once(&server, 2).await);
        let restored = ConfiguredFolder::new(CONFIGURATION);
        let copy = || copy_folder(&configured.folder().join("plant"), &restored.folder().join("plant"));
        if is_stopped {
            server.signal("TERM");
            assert_eq!(server.wait_for_exit().0.code(), Some(0));
            copy();
        } else {
            // No file changes while the process is paused.
            server.signal("STOP");
            let state = format!("/proc/{}/stat", server.pid());
            wait_until(async || std::fs::read_to_string(&state).unwrap().contains(") T ")).await;
            copy();
            server.signal("CONT");
            assert!(!send_once(&server, 3).await);
        }
        let server = serve(&restored);
        assert_eq!(ids(&server).await, json!([1, 2]), "{is_stopped}");
        for (id, is_repeat) in [(1, true), (2, true), (3, false), (3, true)] {
            assert_eq!(send_once(&server, id).await, is_repeat, "{is_stopped}: {id}");
        }
        assert_eq!(ids(&server).await, json!([1, 2, 3]), "{is_stopped}");
        let url = server.url.replace("/mcp", "");
        let verified = restored.run(&["ingest", "verify", "--connect", &url]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        assert!(verified.stdout.starts_with("plant.sensors: intact; "), "{verified:?}");
    }
}
