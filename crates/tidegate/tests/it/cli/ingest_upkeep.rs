//! `tidegate ingest` and the metrics: what an operator sees and does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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
    let before = contents(&configured.folder().join("plant"));
    let intact = configured.run(&["ingest", "verify", "plant"]);
    assert!(contents(&configured.folder().join("plant")) == before, "it only reads");
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
    configured.write("databases: [{name: plant, ingest: plant, tables: {sensors: {retention: soon}}}]");
    let unknown = configured.run(&["ingest", "verify"]);
    assert_ne!(unknown.code, Some(0), "{unknown:?}");
    assert!(unknown.stderr.contains("databases[0].tables.sensors.retention: "), "{unknown:?}");
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

/// All files below a folder, with what is in them and when they were changed.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(contents(&entry.path())),
            false => {
                let modified = entry.metadata().unwrap().modified().unwrap();
                found.insert(entry.path(), (std::fs::read(entry.path()).unwrap(), modified));
            }
        }
    }
    found
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

const TWO_DATABASES: &str = "databases: [{name: plant, ingest: plant}, {name: other, ingest: other}]\n";

async fn call(server: &Server, path: &str, body: Value) -> (u16, String) {
    let response = Client::new().post(server.url.replace("/mcp", path)).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Stores a row.
async fn store_one(server: &Server, table: &str) -> (u16, String) {
    call(server, &format!("/data/{table}"), json!([{"id": 1}])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_byte_of_a_log_closes_one_table_until_its_owner_acts() {
    let configured = ConfiguredFolder::new(TWO_DATABASES);
    let server = serve(&configured);
    for table in ["plant/sensors", "plant/events", "other/sensors"] {
        assert_eq!(store_one(&server, table).await.0, 201, "{table}");
    }
    server.signal("KILL");
    server.wait_for_exit();
    let log = configured.folder().join("plant/.tidegate/log/00000000000000000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    // A byte of the first record, which has the row of plant.sensors.
    bytes[100] ^= 1;
    std::fs::write(&log, bytes).unwrap();

    let status = configured.run(&["ingest", "status", "plant"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let warning = "database plant: table \"sensors\" is closed: the record 1 of the log";
    assert!(status.stderr.contains(warning), "{status:?}");
    assert!(status.stdout.contains("last error: the record 1 of the log, with 1 row, is lost"), "{status:?}");
    let server = serve(&configured);
    for (path, body) in [
        ("/data/plant/sensors", json!([{"id": 2}])),
        ("/rest/sql", json!({"database": "plant", "sql": "SELECT * FROM sensors"})),
    ] {
        let (code, text) = call(&server, path, body).await;
        assert_eq!(code, 503, "{path}: {text}");
        assert!(text.contains("sensors") && text.contains("delete the file .tidegate/damaged/sensors.json"), "{text}");
    }
    let health = call(&server, "/rest/tools/node_status/call", json!({})).await.1;
    assert!(health.contains("degraded; see unreadable_tables"), "{health}");
    assert!(health.contains("plant.sensors: the record 1 of the log"), "{health}");
    for table in ["plant/events", "other/sensors"] {
        assert_eq!(store_one(&server, table).await.0, 200, "{table}");
    }
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    std::fs::remove_file(configured.folder().join("plant/.tidegate/damaged/sensors.json")).unwrap();
    let server = serve(&configured);
    assert_eq!(store_one(&server, "plant/sensors").await.0, 201, "a table that has lost all of its rows is made again");
    let count = json!({"database": "plant", "sql": "SELECT count(*) AS n FROM sensors", "format": "csv"});
    assert_eq!(call(&server, "/rest/sql", count).await.1.replace('\r', "").trim(), "n\n1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_read_costs_its_database_alone() {
    let configured = ConfiguredFolder::new(TWO_DATABASES);
    let server = serve(&configured);
    for table in ["plant/sensors", "other/sensors"] {
        assert_eq!(store_one(&server, table).await.0, 201, "{table}");
    }
    let url = server.url.replace("/mcp", "");
    assert_eq!(configured.run(&["ingest", "flush", "--connect", &url]).code, Some(0));
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    let log = configured.folder().join("plant/.tidegate/log");
    let whole = ["id", "id.copy"].map(|name| std::fs::read(log.join(name)).unwrap());
    for name in ["id", "id.copy"] {
        std::fs::write(log.join(name), "damaged").unwrap();
    }
    let reason = "is closed: cannot read .tidegate/log/id: it is damaged";
    std::fs::write(configured.folder().join("rows.ndjson"), "{\"id\": 2}\n").unwrap();
    for command in [&["ingest", "status", "plant"][..], &["import", "rows.ndjson", "--to", "plant.sensors"]] {
        let refused = configured.run(command);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(&format!("database plant {reason}")), "{refused:?}");
        assert!(!refused.stderr.contains("--connect"), "{refused:?}");
    }
    let server = serve(&configured);
    for (path, body) in [
        ("/data/plant/sensors", json!([{"id": 2}])),
        ("/data/plant/new", json!([{"id": 2}])),
        ("/rest/sql", json!({"database": "plant", "sql": "SELECT * FROM sensors"})),
    ] {
        let (code, text) = call(&server, path, body).await;
        assert_eq!(code, 503, "{path}: {text}");
        assert!(text.contains(reason), "{path}: {text}");
    }
    let health = call(&server, "/rest/tools/node_status/call", json!({})).await.1;
    assert!(health.contains("degraded; see unreadable_tables"), "{health}");
    assert!(health.contains(&format!("plant.sensors: the database {reason}")), "{health}");
    assert_eq!(store_one(&server, "other/sensors").await.0, 200);
    for name in ["id", "id.copy"] {
        std::fs::remove_file(log.join(name)).unwrap();
    }
    server.signal("HUP");
    wait_until(async || {
        store_one(&server, "plant/sensors").await.1.contains("it is missing, and the log has segments")
    })
    .await;
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    std::fs::write(log.join("id.copy"), &whole[1]).unwrap();
    let server = serve(&configured);
    assert_eq!(store_one(&server, "plant/sensors").await.0, 200);
    assert_eq!(std::fs::read(log.join("id")).unwrap(), whole[0]);
}

/// Its tables are unknown while it is closed.
#[tokio::test(flavor = "multi_thread")]
async fn policies_of_a_closed_folder_are_checked_when_it_opens() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    store(&configured, &[1], &[]);
    let log = configured.folder().join("plant/.tidegate/log");
    let whole = ["id", "id.copy"].map(|name| std::fs::read(log.join(name)).unwrap());
    for name in ["id", "id.copy"] {
        std::fs::write(log.join(name), "damaged").unwrap();
    }
    let with_policy =
        "databases:\n  - {name: plant, ingest: plant, policies: [{table: sensors, rows: 'site = :tenant'}]}\n";
    configured.write(with_policy);
    let mut server = serve(&configured);
    assert_eq!(store_one(&server, "plant/sensors").await.0, 503);
    for (name, content) in ["id", "id.copy"].iter().zip(&whole) {
        std::fs::write(log.join(name), content).unwrap();
    }
    server.signal("HUP");
    let found = server.wait_for_log("policies[0].rows");
    assert!(found.contains("site"), "{found}");
    assert_eq!(store_one(&server, "plant/sensors").await.0, 503);
    configured.write(CONFIGURATION);
    wait_until(async || store_one(&server, "plant/sensors").await.0 == 200).await;
}

/// What the administrator should know is said at the start, by doctor and by node_status.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_take_no_rows_and_open_folders_are_named_before_the_first_write() {
    use std::os::unix::fs::PermissionsExt;
    let configured = ConfiguredFolder::new(TWO_DATABASES);
    let server = serve(&configured);
    for table in ["plant/sensors", "plant/events"] {
        assert_eq!(store_one(&server, table).await.0, 201, "{table}");
    }
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    let plant = configured.folder().join("plant");
    let log = plant.join("sensors/_delta_log");
    let entries = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
    let versions = entries.filter_map(|path| path.file_stem()?.to_str()?.parse::<u64>().ok());
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}});
    std::fs::write(log.join(format!("{:020}.json", versions.max().unwrap() + 1)), protocol.to_string()).unwrap();
    std::fs::rename(plant.join("events"), configured.folder().join("events")).unwrap();
    std::fs::write(plant.join("events"), "a file").unwrap();
    for folder in [plant.clone(), plant.join("sensors")] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let lines = [
        "table \"sensors\" takes no rows: writers of the table need the Delta feature \"writer version 4\"",
        "other users can open the folder of the database and, in it, sensors: ",
    ];
    let damaged = "\"events\" is damaged: it is not a folder";

    let doctor = configured.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains(&format!("WRONG  table plant.events cannot be read: {damaged}")), "{doctor:?}");
    let status = configured.run(&["ingest", "status", "plant"]);
    let closed = format!("database plant: table \"events\" is closed: {damaged}");
    assert!(status.stderr.contains(&closed), "{status:?}");
    for line in lines {
        assert!(doctor.stdout.contains(&format!("mind   database plant: {line}")), "{line}: {doctor:?}");
        assert!(status.stderr.contains(&format!("database plant: {line}")), "{line}: {status:?}");
    }
    let server = serve(&configured);
    let health = call(&server, "/rest/tools/node_status/call", json!({"format": "csv"})).await.1.replace("\"\"", "\"");
    for line in [lines[0], lines[1], damaged] {
        assert!(health.contains(line), "{line}: {health}");
    }
    let count = json!({"database": "plant", "sql": "SELECT count(*) AS n FROM sensors", "format": "csv"});
    assert_eq!(call(&server, "/rest/sql", count).await.1.replace('\r', "").trim(), "n\n1");
    let (code, text) = store_one(&server, "plant/sensors").await;
    assert!(code == 503 && text.contains("takes no rows: writers of the table need"), "{text}");
    assert_eq!(store_one(&server, "plant/readings").await.0, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delta_table_that_another_program_damages_closes_while_the_server_runs() {
    let configured = ConfiguredFolder::new(TWO_DATABASES);
    let server = serve(&configured);
    let url = server.url.replace("/mcp", "");
    let flush = || configured.run(&["ingest", "flush", "--connect", &url, "plant.sensors"]);
    for table in ["plant/sensors", "plant/events"] {
        assert_eq!(store_one(&server, table).await.0, 201, "{table}");
    }
    assert_eq!(flush().code, Some(0));
    let versions = std::fs::read_dir(configured.folder().join("plant/sensors/_delta_log")).unwrap();
    let version = |path: PathBuf| path.file_stem()?.to_str()?.parse::<u64>().ok();
    let last = versions.filter_map(|entry| version(entry.unwrap().path())).max().unwrap();
    let damaged = format!("sensors/_delta_log/{:020}.json", last + 1);
    std::fs::write(configured.folder().join("plant").join(&damaged), "no JSON").unwrap();
    assert_eq!(store_one(&server, "plant/sensors").await.0, 200);
    let flushed = flush();
    assert_ne!(flushed.code, Some(0), "{flushed:?}");
    let sql = json!({"database": "plant", "sql": "SELECT * FROM sensors"});
    let (read, stored) = (call(&server, "/rest/sql", sql).await, store_one(&server, "plant/sensors").await);
    assert_eq!((read.0, stored.0), (503, 503), "{read:?} {stored:?}");
    assert_eq!(store_one(&server, "plant/events").await.0, 200);
    let health = call(&server, "/rest/tools/node_status/call", json!({})).await.1;
    assert!(health.contains("degraded; see unreadable_tables"), "{health}");
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    let only_read = configured.run(&["call", "sql", "database=plant", "sql=SELECT * FROM sensors"]);
    assert_ne!(only_read.code, Some(0), "{only_read:?}");
    let root = configured.folder().canonicalize().unwrap().display().to_string();
    for text in [&flushed.stderr, &read.1, &stored.1, &health, &only_read.stderr] {
        assert!(text.contains(&damaged), "{text}");
        assert!(!text.contains(&root), "{text}");
    }
}
