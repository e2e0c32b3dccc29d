//! `tidegate import`: rows of files, stored in this process or by a server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use reqwest::Client;
use serde_json::json;

use super::rmcp_client::serve;
use super::server::Server;
use super::{CommandOutput, ConfiguredFolder, tidegate};

const CONFIGURATION: &str = "
databases:
  - name: plant
    ingest: plant
    tables:
      sensors: {columns: {id: int64 not null, name: string, value: double}}
";
const CSV: &str = "id,name,value\n1,Ann,0.5\n2,\"B\nob\",\n3,,-1e3\n";
/// The rows of [`CSV`], as an answer has them.
const ROWS: &str = "1,Ann,0.5\n2,\"B\nob\",\n3,,-1000.0";

/// A folder with a database that takes rows.
struct Plant(ConfiguredFolder);

impl Plant {
    fn new() -> Self {
        Self(ConfiguredFolder::new(CONFIGURATION))
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.0.folder().join(name), text).unwrap();
    }

    fn import(&self, arguments: &[&str]) -> CommandOutput {
        self.0.run(&[&["import", "--to", "plant.sensors"], arguments].concat())
    }

    fn import_text(&self, text: &str, arguments: &[&str]) -> CommandOutput {
        let mut command = tidegate();
        command.current_dir(self.0.folder()).args(["import", "-", "--to", "plant.sensors"]).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// The rows of an answer of this process, without their header.
    fn rows(&self, sql: &str) -> String {
        let ran = self.0.run(&["call", "sql", &format!("sql={sql}"), "database=plant", "format=csv"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        without_header(&ran.stdout)
    }

    /// Makes [`CSV`] in every format, and returns the files.
    fn write_formats(&self) -> Vec<&'static str> {
        self.write("rows.csv", CSV);
        self.write("rows.tsv", CSV.replace(',', "\t"));
        for format in ["ndjson", "json", "arrow", "parquet"] {
            let sql = "SELECT id, name, value FROM rows ORDER BY id";
            let file = format!("rows.{format}");
            let ran = self.0.run(&["export", sql, "rows.csv", "--output", &file]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        std::fs::copy(self.0.folder().join("rows.ndjson"), self.0.folder().join("lines.jsonl")).unwrap();
        compress(&self.0, "gzip", "lines.jsonl", "lines.jsonl.gz");
        compress(&self.0, "zstd", "rows.csv", "rows.csv.zst");
        vec!["rows.csv", "rows.tsv", "rows.ndjson", "rows.arrow", "rows.parquet", "lines.jsonl.gz", "rows.csv.zst"]
    }
}

fn compress(configured: &ConfiguredFolder, program: &str, file: &str, to: &str) {
    let compressed = Command::new(program).arg("-c").arg(configured.folder().join(file)).output().unwrap();
    assert!(compressed.status.success());
    std::fs::write(configured.folder().join(to), compressed.stdout).unwrap();
}

fn without_header(csv: &str) -> String {
    csv.replace("\r\n", "\n").split_once('\n').unwrap().1.trim_end().to_owned()
}

fn base(server: &Server) -> String {
    server.url.replace("/mcp", "")
}

/// The rows of an answer of `server`, without their header.
async fn rows_of(server: &Server, sql: &str) -> String {
    let arguments = json!({"database": "plant", "sql": sql, "format": "csv"});
    let request = Client::new().post(format!("{}/rest/sql", base(server))).json(&arguments);
    without_header(&request.send().await.unwrap().text().await.unwrap())
}

const ALL_ROWS: &str = "SELECT DISTINCT id, name, value FROM sensors ORDER BY id";
const COUNTS: &str = "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM sensors";

#[test]
fn every_format_is_imported_in_this_process_and_repeated_safely() {
    let plant = Plant::new();
    let files = plant.write_formats();
    let first = plant.import(&files);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""), "{first:?}");
    let expected: Vec<String> = files.iter().map(|file| format!("{file}: 3 rows stored")).collect();
    assert_eq!(first.lines(), expected);
    let stored = format!("{},3", files.len() * 3);
    assert_eq!((plant.rows(ALL_ROWS).as_str(), plant.rows(COUNTS)), (ROWS, stored.clone()));
    let second = plant.import(&files);
    assert_eq!(second.lines()[0], "rows.csv: 0 rows stored, 3 rows stored by an earlier run");
    assert_eq!((second.code, plant.rows(COUNTS)), (Some(0), stored));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_is_imported_by_a_server_and_repeated_safely() {
    let plant = Plant::new();
    let files = plant.write_formats();
    let server = serve(&plant.0);
    let base = base(&server);
    let arguments: Vec<&str> = files.iter().copied().chain(["--connect", &base]).collect();
    let first = plant.import(&arguments);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""), "{first:?}");
    let expected: Vec<String> = files.iter().map(|file| format!("{file}: 3 rows stored")).collect();
    assert_eq!(first.lines(), expected);
    assert_eq!(rows_of(&server, ALL_ROWS).await, ROWS);
    let second = plant.import(&arguments);
    assert!(second.lines().iter().all(|line| line.ends_with("3 rows stored by an earlier run")), "{second:?}");
    assert_eq!(rows_of(&server, COUNTS).await, format!("{},3", files.len() * 3));
    // The server has the folder open.
    let refused = plant.import(&["rows.csv"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains(&format!("in use for writing by process {}", server.pid())), "{refused:?}");
    assert!(refused.stderr.contains("--connect"), "{refused:?}");
}

#[test]
fn standard_input_is_stored_once_per_run_or_per_key() {
    let plant = Plant::new();
    let line = "{\"id\": 1}\n";
    for _ in 0..2 {
        let ran = plant.import_text(line, &["--format", "ndjson"]);
        assert_eq!(ran.stdout, "standard input: 1 row stored\n", "{ran:?}");
    }
    for _ in 0..2 {
        assert_eq!(plant.import_text(line, &["--format", "ndjson", "--key", "today"]).code, Some(0));
    }
    assert_eq!(plant.rows(COUNTS), "3,1");
    let ran = plant.import_text(line, &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn rows_that_do_not_fit_are_refused_or_kept() {
    let plant = Plant::new();
    plant.write("bad.csv", "id,name,value\n1,Ann,1\n2,Bob,much\nx,Cy,1\n");
    let refused = plant.import(&["bad.csv"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    for expected in
        ["bad.csv: 2 rows do not fit", "line 3, column \"value\": ", "line 4, column \"id\": ", "--on-reject row"]
    {
        assert!(refused.stderr.contains(expected), "{expected}: {refused:?}");
    }
    let kept = plant.import(&["bad.csv", "--on-reject", "row"]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert_eq!(kept.stdout, "bad.csv: 1 row stored, 2 rows rejected in plant.sensors__rejects\n");
    assert!(kept.stderr.contains("  line 3, column \"value\": "), "{kept:?}");
    assert_eq!(
        (plant.rows(COUNTS).as_str(), plant.rows("SELECT count(*) FROM sensors__rejects").as_str()),
        ("1,1", "2")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_part_names_the_lines_that_are_stored() {
    let plant = Plant::new();
    let server = serve(&plant.0);
    let base = base(&server);
    let mut lines: Vec<String> = (0..40).map(|id| format!("{id},\"a\nb\",1")).collect();
    lines[30] = "thirty,c,1".to_owned();
    let text = |lines: &[String]| format!("id,name,value\n{}\n", lines.join("\n"));
    plant.write("rows.csv", text(&lines));
    let arguments = ["rows.csv", "--part-size", "100B", "--connect", &base];
    let refused = plant.import(&arguments);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    // Each record before it has two lines, and the header one.
    assert!(refused.stderr.contains("line 62, column \"id\""), "{refused:?}");
    let next = refused.stderr.split("--from-line ").nth(1).unwrap().lines().next().unwrap().trim();
    lines[30] = "30,c,1".to_owned();
    plant.write("rows.csv", text(&lines));
    let corrected = plant.import(&[&arguments[..], &["--from-line", next]].concat());
    assert_eq!(corrected.code, Some(0), "{corrected:?}");
    assert_eq!(rows_of(&server, COUNTS).await, "40,40");
}

#[test]
fn a_table_is_created_when_that_was_confirmed() {
    let plant = Plant::new();
    plant.write("new.csv", "at,size\n2026-01-01T00:00:00Z,1\n");
    let server = serve(&plant.0);
    let base = base(&server);
    let mut server = Some(server);
    for connect in [&["--connect", base.as_str()][..], &[]] {
        let import = |more: &[&str]| plant.0.run(&[&["import", "new.csv", "--to"], more, connect].concat());
        let name = if connect.is_empty() { "plant.local" } else { "plant.remote" };
        if let Some(server) = server.take_if(|_| connect.is_empty()) {
            // Its folder is free when it has ended, which is later than when it accepts no connection.
            server.signal("TERM");
            server.wait_for_exit();
        }
        let absent = import(&[name]);
        assert_eq!(absent.code, Some(1), "{absent:?}");
        assert!(absent.stderr.contains("--create creates it"), "{absent:?}");
        let unanswered = import(&[name, "--create"]);
        assert_eq!(unanswered.code, Some(2), "{unanswered:?}");
        assert!(unanswered.stderr.contains("  at    "), "{unanswered:?}");
        let created = import(&[name, "--create", "--yes"]);
        assert_eq!((created.code, created.stdout), (Some(0), format!("new.csv: 1 row stored; {name} was created\n")));
    }
    assert_eq!(plant.rows("SELECT l.size + r.size AS sum FROM local l JOIN remote r USING (at)"), "2");
}

#[test]
fn rows_are_replaced_however_often() {
    let plant = Plant::new();
    plant.write("one.ndjson", "{\"id\": 1}\n");
    plant.write("two.ndjson", "{\"id\": 2}\n{\"id\": 3}\n");
    for (file, expected) in [("one.ndjson", "1,1"), ("two.ndjson", "2,2"), ("one.ndjson", "1,1")] {
        let ran = plant.import(&[file, "--replace", "--part-size", "10B"]);
        assert_eq!((ran.code, plant.rows(COUNTS).as_str()), (Some(0), expected), "{ran:?}");
    }
    let ran = plant.import(&["one.ndjson", "two.ndjson", "--replace"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// What a proxy does when so many bytes have passed to the server.
#[derive(Clone, Copy)]
enum Interruption {
    /// Passes nothing on from then on, and keeps the connections.
    Stall,
    /// Breaks the connection, once.
    Break,
}

/// Passes bytes on to `server` until `bytes` have passed. The receiver is notified when that happens.
fn interrupting_proxy(server: SocketAddr, bytes: usize, interruption: Interruption) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (interrupted, receiver) = channel();
    let passed = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let upstream = TcpStream::connect(server).unwrap();
            let (mut from, mut to) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                // Either side may be gone.
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            let (passed, interrupted) = (passed.clone(), interrupted.clone());
            std::thread::spawn(move || pass_on(client, upstream, &passed, bytes, interruption, &interrupted));
        }
    });
    (address, receiver)
}

fn pass_on(
    mut client: TcpStream,
    mut upstream: TcpStream,
    passed: &AtomicUsize,
    bytes: usize,
    interruption: Interruption,
    interrupted: &Sender<()>,
) {
    let mut buffer = [0; 512];
    loop {
        let count = client.read(&mut buffer).unwrap_or_default();
        if count == 0 {
            let _ = upstream.shutdown(Shutdown::Both);
            return;
        }
        let before = passed.fetch_add(count, Ordering::SeqCst);
        let is_first = before < bytes && before + count >= bytes;
        if is_first {
            let _ = interrupted.send(());
        }
        match interruption {
            Interruption::Stall if before + count >= bytes => continue,
            Interruption::Break if is_first => {
                let _ = upstream.shutdown(Shutdown::Both);
                let _ = client.shutdown(Shutdown::Both);
                return;
            }
            Interruption::Stall | Interruption::Break => {}
        }
        if upstream.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            return;
        }
    }
}

const MANY: usize = 1000;

fn write_many(plant: &Plant) {
    let lines: String = (0..MANY).map(|id| format!("{{\"id\": {id}, \"name\": \"name of {id}\"}}\n")).collect();
    plant.write("many.ndjson", lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_is_continued_without_lost_or_doubled_rows() {
    let plant = Plant::new();
    write_many(&plant);
    let server = serve(&plant.0);
    let (proxy, interrupted) = interrupting_proxy(server.address(), 15_000, Interruption::Stall);
    let arguments = ["import", "many.ndjson", "--to", "plant.sensors", "--part-size", "4KiB", "--connect"];
    let mut killed = tidegate();
    killed.current_dir(plant.0.folder()).args(arguments).arg(format!("http://{proxy}"));
    let mut child = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    interrupted.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let stored: usize = rows_of(&server, "SELECT count(*) FROM sensors").await.parse().unwrap();
    assert!(stored > 0 && stored < MANY, "{stored}");
    let repeated = plant.0.run(&[&arguments[..], &[&base(&server)]].concat());
    let rest = MANY - stored;
    let expected = format!("many.ndjson: {rest} rows stored, {stored} rows stored by an earlier run\n");
    assert_eq!((repeated.code, repeated.stdout), (Some(0), expected));
    assert_eq!(rows_of(&server, COUNTS).await, format!("{MANY},{MANY}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_repeated() {
    let plant = Plant::new();
    write_many(&plant);
    let server = serve(&plant.0);
    for (file, bytes) in [("first", 6_000), ("second", 20_000)] {
        std::fs::copy(plant.0.folder().join("many.ndjson"), plant.0.folder().join(format!("{file}.ndjson"))).unwrap();
        let (proxy, _interrupted) = interrupting_proxy(server.address(), bytes, Interruption::Break);
        let (file, url) = (format!("{file}.ndjson"), format!("http://{proxy}"));
        let ran = plant.import(&[&file, "--part-size", "16KiB", "--connect", &url]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("again in"), "{ran:?}");
    }
    assert_eq!(rows_of(&server, COUNTS).await, format!("{},{MANY}", 2 * MANY));
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let plant = Plant::new();
    plant.write("rows.txt", "{}\n");
    plant.write("rows.parquet.gz", "");
    for arguments in [
        &["rows.txt"][..],
        &["rows.parquet.gz"],
        &["absent.csv"],
        &["shop", "--format", "csv"],
        &["rows.txt", "--format", "ndjson", "--no-header"],
        &["rows.txt", "--format", "ndjson", "--yes"],
        &["rows.txt", "--format", "ndjson", "--bearer", "abc"],
    ] {
        let ran = plant.import(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    }
}
