//! Pages over a log whose times are whole seconds and whose files are rotated and compressed between the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tidegate::engines::{EmbeddedDatabase, Engine, EngineOptions, FileLimits, LogTableOptions, TextTableOptions};
use tidegate_query::Database;
use tidegate_tools::LogSource;

use crate::log_counting::node::LogNode;

/// More rotations than this delete no file, so that each entry stays.
const ROTATIONS_MAX: usize = 20;

/// What happens between two pages.
#[derive(Debug, Clone)]
struct Change {
    is_rotation: bool,
    lines: Vec<Line>,
}

/// A line that is added.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Seconds after the line before it.
    later: i64,
    /// Whether a line without a time follows it.
    has_remark: bool,
}

/// A log of nginx with the table `events`. Each line has a number.
struct RotatedLog {
    folder: TempDir,
    node: LogNode,
    seconds: i64,
    /// The lines with a time and those without, in the order in which they were written.
    lines: (Vec<String>, Vec<String>),
}

/// A database with the table `events` of the folder.
fn database(name: &str, folder: &Path) -> Arc<dyn Database> {
    let engine = Engine::start(EngineOptions::default()).unwrap();
    let log = LogTableOptions::parse(Some("combined"), None, &BTreeMap::new(), None).unwrap();
    let options = TextTableOptions { log, ..TextTableOptions::default() };
    let limits = FileLimits { rescan_after: Duration::ZERO, ..FileLimits::default() };
    let tables = BTreeMap::from([("events".to_owned(), options)]);
    Arc::new(EmbeddedDatabase::open_with(name, vec![folder.to_owned()], &engine, limits, tables).unwrap())
}

impl RotatedLog {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("events.log"), "").unwrap();
        let node = LogNode::new(database("files", folder.path()));
        Self { folder, node, seconds: 0, lines: (Vec::new(), Vec::new()) }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("events.log{ending}"))
    }

    fn apply(&mut self, change: &Change) {
        // A file without lines would have no time, and is not rotated by nginx either.
        if change.is_rotation && std::fs::metadata(self.path("")).unwrap().len() > 0 {
            self.rotate();
        }
        let mut text = String::new();
        for line in &change.lines {
            self.seconds += line.later;
            let number = self.lines.0.len() + self.lines.1.len();
            let (minute, second) = (self.seconds / 60, self.seconds % 60);
            let written = format!(
                "10.0.0.1 - - [01/Mar/2026:12:{minute:02}:{second:02} +0000] \"GET /{number} HTTP/1.1\" 200 1 \"-\" \"curl/8\""
            );
            text.push_str(&format!("{written}\n"));
            self.lines.0.push(written);
            if line.has_remark {
                let remark = format!("remark {number}");
                text.push_str(&format!("{remark}\n"));
                self.lines.1.push(remark);
            }
        }
        let mut file = std::fs::File::options().append(true).open(self.path("")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// As logrotate with `delaycompress`: the newest rotated file stays uncompressed.
    fn rotate(&self) {
        for number in (2..ROTATIONS_MAX).rev() {
            let from = self.path(&format!(".{number}.gz"));
            if from.exists() {
                std::fs::rename(from, self.path(&format!(".{}.gz", number + 1))).unwrap();
            }
        }
        if let Ok(text) = std::fs::read(self.path(".1")) {
            let file = std::fs::File::create(self.path(".2.gz")).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            encoder.write_all(&text).unwrap();
            encoder.finish().unwrap();
            std::fs::remove_file(self.path(".1")).unwrap();
        }
        std::fs::rename(self.path(""), self.path(".1")).unwrap();
        std::fs::write(self.path(""), "").unwrap();
    }

    async fn ask(&self, limit: usize, more: (&str, &str)) -> Value {
        let columns = json!(["entry_text"]);
        let arguments = [("limit", json!(limit)), ("columns", columns), (more.0, json!(more.1))];
        self.node.ask(Map::from_iter(arguments.map(|(name, value)| (name.to_owned(), value)))).await
    }

    /// The lines of all pages from `answer` on, with the changes between them.
    async fn read_pages(&mut self, mut answer: Value, limit: usize, changes: &[Change]) -> Vec<String> {
        let mut changes = changes.iter();
        let mut lines = Vec::new();
        loop {
            let page = texts(&answer);
            let is_empty = page.is_empty();
            lines.extend(page);
            let Some(cursor) = answer["cursor"].as_str().map(str::to_owned) else { return lines };
            match changes.next() {
                Some(change) => self.apply(change),
                None if is_empty => return lines,
                None => {}
            }
            answer = self.ask(limit, ("cursor", &cursor)).await;
        }
    }
}

fn texts(answer: &Value) -> Vec<String> {
    let columns = answer["entries"]["columns"].as_array().into_iter().flatten();
    let Some(place) = columns.into_iter().position(|column| column == "entry_text") else { return Vec::new() };
    let rows = answer["entries"]["rows"].as_array().into_iter().flatten();
    rows.map(|row| row[place].as_str().unwrap().to_owned()).collect()
}

/// `lines` has each of `expected` once, and of the others none twice.
fn check_once(what: &str, lines: &[String], expected: &[String]) {
    let distinct: BTreeSet<&String> = lines.iter().collect();
    assert_eq!(distinct.len(), lines.len(), "{what} repeats a line: {lines:#?}");
    let missing: Vec<&String> = expected.iter().filter(|line| !distinct.contains(line)).collect();
    assert!(missing.is_empty(), "{what} has lost {missing:#?} of {lines:#?}");
}

fn changes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Change>> {
    let line = (prop_oneof![3 => Just(0i64), 1 => Just(1)], prop::bool::weighted(0.15))
        .prop_map(|(later, has_remark)| Line { later, has_remark });
    let change = (any::<bool>(), prop::collection::vec(line, 1..8))
        .prop_map(|(is_rotation, lines)| Change { is_rotation, lines });
    prop::collection::vec(change, count)
}

#[test]
fn pages_over_rotated_files_have_each_entry_once() {
    let config = Config {
        cases: Config::default().cases.div_ceil(16),
        max_shrink_iters: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cases = (changes(1..6), changes(0..6), changes(0..4), 1usize..7, any::<bool>());
    TestRunner::new(config)
        .run(&cases, |(before, during, after, limit, is_forward)| {
            let mut log = RotatedLog::new();
            before.iter().for_each(|change| log.apply(change));
            let (first_timed, first_remarks) = log.lines.clone();
            runtime.block_on(async {
                let direction = if is_forward { "forward" } else { "backward" };
                let answer = log.ask(limit, ("direction", direction)).await;
                let tail = answer["tail"].as_str().map(str::to_owned);
                let lines = log.read_pages(answer, limit, &during).await;
                let expected = if is_forward { log.lines.0.clone() } else { first_timed.clone() };
                check_once("the pages", &lines, &[expected, first_remarks].concat());
                let Some(tail) = tail else { return };
                let answer = log.ask(limit, ("cursor", &tail)).await;
                let lines = log.read_pages(answer, limit, &after).await;
                let added = log.lines.0.get(first_timed.len()..).unwrap();
                check_once("the tail", &lines, added);
                assert_eq!(lines.len(), added.len(), "the tail has old lines: {lines:#?}");
            });
            Ok(())
        })
        .unwrap();
}

/// The order within a second is that of the file, and an older file comes first.
#[test]
fn entries_of_one_second_are_in_the_order_of_their_files() {
    let line = Line { later: 0, has_remark: false };
    let mut log = RotatedLog::new();
    log.apply(&Change { is_rotation: false, lines: vec![Line { later: 1, ..line }, Line { later: 1, ..line }, line] });
    log.apply(&Change { is_rotation: true, lines: vec![line, line] });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answer = runtime.block_on(log.ask(10, ("direction", "forward")));
    assert_eq!(texts(&answer), log.lines.0);
}

/// Lines with an earlier time are in order of time, and come through pages backward only.
#[test]
fn a_clock_that_goes_back_loses_no_entry() {
    let line = |later| Line { later, has_remark: false };
    let mut log = RotatedLog::new();
    log.apply(&Change { is_rotation: false, lines: vec![line(10), line(10), line(-15), line(1)] });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let in_order = |log: &RotatedLog, order: &[usize]| -> Vec<String> {
        order.iter().map(|index| log.lines.0[*index].clone()).collect()
    };
    runtime.block_on(async {
        let answer = log.ask(1, ("direction", "backward")).await;
        let tail = answer["tail"].as_str().unwrap().to_owned();
        assert_eq!(log.read_pages(answer, 1, &[]).await, in_order(&log, &[1, 0, 3, 2]));
        // A rotation, then a line before the newest one, and one after it.
        log.apply(&Change { is_rotation: true, lines: vec![line(6), line(10)] });
        let answer = log.ask(10, ("cursor", &tail)).await;
        assert_eq!(texts(&answer), in_order(&log, &[5]), "only what is newer");
        let answer = log.ask(10, ("direction", "backward")).await;
        assert_eq!(texts(&answer), in_order(&log, &[5, 1, 4, 0, 3, 2]));
    });
}

#[test]
fn files_that_vanish_are_an_error_for_their_log_alone() {
    let line = Line { later: 1, has_remark: true };
    let mut log = RotatedLog::new();
    let mut other = RotatedLog::new();
    log.apply(&Change { is_rotation: false, lines: vec![line] });
    other.apply(&Change { is_rotation: false, lines: vec![line, line] });
    let source = |database: &str| LogSource {
        name: format!("of_{database}"),
        database: database.to_owned(),
        table: "events".to_owned(),
        ..LogSource::default()
    };
    let databases = [database("one", log.folder.path()), database("two", other.folder.path())];
    let node = LogNode::with_sources(&databases, &[source("one"), source("two")]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let arguments = json!({"source": ["of_one", "of_two"]});
        let whole = node.call("query_logs", arguments.clone()).await.unwrap();
        assert_eq!((&whole["matched"], &whole["partial"]), (&json!(6), &json!(false)));
        let sources = node.call("list_logs_sources", json!({})).await.unwrap();
        assert_eq!((&sources[0]["parse_errors"], &sources[1]["parse_errors"]), (&json!(1), &json!(2)));
        std::fs::remove_file(log.path("")).unwrap();
        let part = node.call("query_logs", arguments).await.unwrap();
        assert_eq!((&part["matched"], &part["partial"]), (&json!(4), &json!(true)));
        assert_eq!(part["errors"].as_object().unwrap().keys().collect::<Vec<_>>(), ["of_one"]);
        let sources = node.call("list_logs_sources", json!({})).await.unwrap();
        assert!(sources[0]["error"].is_string() && sources[1]["error"].is_null(), "{sources}");
    });
}
