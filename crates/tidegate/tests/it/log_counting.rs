//! Counts of logs in Parquet files beside scans and brute force, over random rows.

mod network;
#[path = "../../../tools/tests/it/log_counting/node.rs"]
#[allow(dead_code, reason = "the tests of the tools use the rest")]
pub(crate) mod node;
#[path = "../../../tools/tests/it/log_counting/properties.rs"]
mod properties;
#[path = "../../../tools/tests/it/log_counting/rows.rs"]
mod rows;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::core::Format;
use tidegate::engines::{EmbeddedDatabase, Engine, EngineOptions, FileLimits};
use tidegate::query::RowEncoder;

use self::node::LogNode;
use self::properties::{check_answers, check_pages};
use self::rows::{DAY_START, LogRow, questions, rows};

/// A source of random rows that can grow.
trait LogTable {
    fn new(type_of_time: &str, rows: &[LogRow]) -> Self;

    fn node(&self) -> &LogNode;

    /// Replaces all rows.
    fn replace(&self, type_of_time: &str, rows: &[LogRow]);
}

/// A folder with the table `events`.
struct ParquetTable {
    folder: TempDir,
    node: LogNode,
}

impl LogTable for ParquetTable {
    fn new(type_of_time: &str, rows: &[LogRow]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), type_of_time, rows);
        let engine = Engine::start(EngineOptions::default()).unwrap();
        let database = open("files", folder.path(), &engine);
        Self { node: LogNode::new(Arc::new(database)), folder }
    }

    fn node(&self) -> &LogNode {
        &self.node
    }

    fn replace(&self, type_of_time: &str, rows: &[LogRow]) {
        write(self.folder.path(), type_of_time, rows);
    }
}

/// The files in `folder`. A changed file is seen at once, however soon after the last look at the folder.
fn open(name: &str, folder: &Path, engine: &Engine) -> EmbeddedDatabase {
    let limits = FileLimits { rescan_after: Duration::ZERO, ..FileLimits::default() };
    EmbeddedDatabase::open_with(name, vec![folder.to_owned()], engine, limits, BTreeMap::new()).unwrap()
}

/// Writes the rows as a Parquet file, which replaces an earlier one. An export writes the same file.
fn write(folder: &Path, type_of_time: &str, rows: &[LogRow]) {
    let time = |row: &LogRow| row.time.map(|time| DAY_START * 1_000_000 + time);
    let times: TimestampMicrosecondArray = rows.iter().map(time).collect();
    let times = if type_of_time == "timestamp" { times } else { times.with_timezone("UTC") };
    let columns: [(&str, ArrayRef, bool); 5] = [
        ("time", Arc::new(times), true),
        ("message", Arc::new(rows.iter().map(|row| row.message.as_deref()).collect::<StringArray>()), true),
        ("level", Arc::new(rows.iter().map(|row| row.level.as_deref()).collect::<StringArray>()), true),
        ("code", Arc::new(rows.iter().map(|row| row.code).collect::<Int64Array>()), true),
        ("flag", Arc::new(rows.iter().map(|row| row.flag).collect::<BooleanArray>()), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut encoder = RowEncoder::new(Format::Parquet, batch.schema_ref()).unwrap();
    let mut file = encoder.write(&batch).unwrap().to_vec();
    file.extend(encoder.finish(false).unwrap());
    std::fs::write(folder.join("other.csv"), "a\n1\n").unwrap();
    let unfinished = folder.join("events.unfinished");
    std::fs::write(&unfinished, file).unwrap();
    std::fs::rename(&unfinished, folder.join("events.parquet")).unwrap();
}

fn times() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["timestamp", "timestamptz"])
}

/// Counts of the source, a scan and brute force agree.
fn check_counts<T: LogTable>(divisor: u32) {
    let cases = Config::default().cases.div_ceil(divisor);
    let config = Config { cases, max_shrink_iters: 30, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cases = (rows(40), times(), prop::collection::vec(questions(), 5));
    TestRunner::new(config)
        .run(&cases, |(rows, type_of_time, questions)| {
            let table = T::new(type_of_time, &rows);
            for question in questions {
                let flag = |flag| if flag { "true" } else { "false" };
                runtime.block_on(check_answers(table.node(), &rows, &question, flag));
            }
            Ok(())
        })
        .unwrap();
}

/// Pages have each entry once, while newer entries are added.
fn check_growing_pages<T: LogTable>(divisor: u32) {
    let cases = Config::default().cases.div_ceil(divisor);
    let config = Config { cases, max_shrink_iters: 30, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cases = (rows(25), rows(6), times(), 1usize..7, any::<bool>());
    TestRunner::new(config)
        .run(&cases, |(rows, added, type_of_time, limit, is_forward)| {
            let last = rows.iter().filter_map(|row| row.time).max().unwrap_or(0);
            let newer = |row: LogRow| LogRow {
                time: Some(last + if row.flag == Some(true) { 1_000_000 } else { 0 }),
                message: Some(format!("new {:?}", row.code)),
                ..row
            };
            let added: Vec<LogRow> = added.into_iter().map(newer).collect();
            let table = T::new(type_of_time, &rows);
            let all: Vec<LogRow> = rows.iter().chain(&added).cloned().collect();
            let grow = async || table.replace(type_of_time, &all);
            runtime.block_on(check_pages(table.node(), &rows, (limit, is_forward), &added, grow));
            Ok(())
        })
        .unwrap();
}

#[test]
fn counts_of_parquet_files_are_those_of_a_scan() {
    check_counts::<ParquetTable>(32);
}

#[test]
fn pages_of_parquet_files_have_each_entry_once() {
    check_growing_pages::<ParquetTable>(32);
}

/// A Parquet file is counted, a text file is scanned once.
#[test]
fn parquet_files_are_counted() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let row = |index: i64| LogRow {
        time: Some(index * 1_000),
        message: None,
        level: None,
        code: Some(index % 7),
        flag: Some(index % 2 == 0),
    };
    let rows: Vec<LogRow> = (0..210).map(row).collect();
    let table = ParquetTable::new("timestamp", &rows);
    let Value::Object(arguments) = json!({"selections": {"code": ["3"]}, "histogram": {"field": "flag"}, "limit": 2})
    else {
        unreachable!()
    };
    let counted = runtime.block_on(table.node.ask(arguments.clone()));
    assert_eq!((&counted["evaluated"], &counted["matched"], &counted["returned"]), (&json!(30), &json!(30), &json!(2)));
    let scanned = runtime.block_on(table.node.scan(arguments));
    assert_eq!((&scanned["evaluated"], &scanned["matched"]), (&json!(210), &json!(30)));
}
