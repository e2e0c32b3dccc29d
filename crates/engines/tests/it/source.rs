//! Tables of a source: files and recent rows are one table, and each statement reads one moment.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use tidegate_core::Principal;
use tidegate_engines::{
    ColumnRange, EmbeddedDatabase, Engine, RecordedFile, RecordedTable, RecordedTables, RowSelect, TableRecorder,
};
use tidegate_query::{Database, DatabaseKind, Freshness, HashKey, RowCondition, RowPolicies, RowPolicy, RowTransform};

use crate::support::{Folder, TestNode, lines, run_plan, two_thread_options};

#[derive(Debug, Default)]
struct TestSource(Mutex<Arc<RecordedTables>>);

impl TableRecorder for TestSource {
    fn tables(&self) -> Arc<RecordedTables> {
        self.0.lock().unwrap().clone()
    }
}

/// A source with the table `readings` (time, value, device, day), which is stored apart by day.
struct Fixture {
    folder: Folder,
    source: Arc<TestSource>,
    node: TestNode,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("time", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false),
        Field::new("day", DataType::Utf8, true),
        Field::new("device", DataType::Utf8, true),
        Field::new("value", DataType::Int64, true),
    ]))
}

fn recent(first: i64, rows: i64, day: &str) -> RecordBatch {
    let numbers = || first..first + rows;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampNanosecondArray::from_iter_values(numbers()).with_timezone("UTC")),
        Arc::new(StringArray::from_iter_values(numbers().map(|_| day))),
        Arc::new(StringArray::from_iter_values(numbers().map(|number| format!("d{}", number % 3)))),
        Arc::new(Int64Array::from_iter_values(numbers())),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// Writes the rows without their day. Times are integers, as in formats that have no nanoseconds.
fn write_file(folder: &Path, name: &str, first: i64, rows: i64, day: Option<&str>) -> RecordedFile {
    let numbers = || first..first + rows;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(Int64Array::from_iter_values(numbers()))),
        ("device", Arc::new(StringArray::from_iter_values(numbers().map(|number| format!("d{}", number % 3))))),
        ("value", Arc::new(Int64Array::from_iter_values(numbers()))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(folder.join(name)).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    RecordedFile {
        name: name.to_owned(),
        bytes: std::fs::metadata(folder.join(name)).unwrap().len(),
        rows: rows as u64,
        modified: SystemTime::UNIX_EPOCH,
        partition_values: vec![Arc::new(StringArray::from(vec![day]))],
        ranges: vec![ColumnRange {
            column: "value".to_owned(),
            minimum: Some(Arc::new(Int64Array::from(vec![first]))),
            maximum: Some(Arc::new(Int64Array::from(vec![first + rows - 1]))),
            is_exact: true,
            nulls: Some(0),
        }],
    }
}

impl Fixture {
    fn new() -> Self {
        let (engine, source) = (Engine::start(two_thread_options()).unwrap(), Arc::new(TestSource::default()));
        let database = EmbeddedDatabase::of_source("db", DatabaseKind::Ingest, source.clone(), &engine).unwrap();
        let node = TestNode { engine, database: Arc::new(database) };
        Self { folder: Folder::new(), source, node }
    }

    fn table(&self, files: Vec<RecordedFile>, recent: Vec<RecordBatch>) -> RecordedTable {
        RecordedTable {
            folder: self.folder.path(),
            schema: schema(),
            partition_columns: vec!["day".to_owned()],
            files: Arc::new(files),
            version: recent.len() as u64,
            recent: Arc::new(recent),
            lease: Arc::new(()),
            comment: Some("readings of devices".to_owned()),
        }
    }

    fn publish(&self, table: RecordedTable) {
        let tables = [("readings".to_owned(), table)].into();
        *self.source.0.lock().unwrap() = Arc::new(RecordedTables { tables, ..RecordedTables::default() });
    }

    /// Two files of different days with 100 rows each, and 50 recent rows.
    fn publish_all(&self) {
        let folder = self.folder.path();
        let files = vec![
            write_file(&folder, "a.parquet", 0, 100, Some("monday")),
            write_file(&folder, "b.parquet", 100, 100, None),
        ];
        self.publish(self.table(files, vec![recent(200, 25, "monday"), recent(225, 25, "tuesday")]));
    }

    async fn rows(&self, sql: &str) -> String {
        self.node.rows(sql).await
    }
}

#[tokio::test]
async fn an_empty_text_of_a_partition_is_not_null() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path();
    let files = vec![write_file(&folder, "a.parquet", 0, 2, Some("")), write_file(&folder, "b.parquet", 10, 3, None)];
    for recent in [Vec::new(), vec![recent(20, 1, "")]] {
        let of_recent = recent.len() as u64;
        fixture.publish(fixture.table(files.clone(), recent));
        for (condition, count) in [
            ("day = ''", 2 + of_recent),
            ("day IS NULL", 3),
            ("day <> 'monday'", 2 + of_recent),
            ("length(day) = 0", 2 + of_recent),
        ] {
            let answer = fixture.rows(&format!("SELECT count(*) FROM readings WHERE {condition}")).await;
            assert_eq!(answer, count.to_string(), "{condition}");
        }
    }
}

#[tokio::test]
async fn files_and_recent_rows_are_one_table() {
    let fixture = Fixture::new();
    fixture.publish_all();
    assert_eq!(fixture.node.tables().await, "readings: 250 rows");
    assert_eq!(
        fixture.rows("SELECT count(*), sum(value), min(value), max(value) FROM readings").await,
        "250|31125|0|249"
    );
    assert_eq!(
        fixture.rows("SELECT day, count(*) FROM readings GROUP BY 1 ORDER BY 1 NULLS FIRST").await,
        "null|100\nmonday|125\ntuesday|25"
    );
    assert_eq!(
        fixture.rows("SELECT value FROM readings WHERE value IN (99, 100, 224, 230) ORDER BY 1").await,
        "99\n100\n224\n230"
    );
    assert_eq!(fixture.rows("SELECT count(*) FROM readings WHERE day = 'tuesday'").await, "25");
    assert_eq!(fixture.rows("SELECT count(*) FROM readings WHERE day IS NULL AND device = 'd0'").await, "33");
    assert_eq!(fixture.rows("SELECT value FROM readings ORDER BY value DESC LIMIT 2").await, "249\n248");
}

#[tokio::test]
async fn times_of_files_and_recent_rows_have_nanoseconds() {
    let fixture = Fixture::new();
    fixture.publish_all();
    assert_eq!(
        fixture.rows("SELECT time FROM readings WHERE value IN (99, 249) ORDER BY time").await,
        "1970-01-01T00:00:00.000000099Z\n1970-01-01T00:00:00.000000249Z"
    );
}

#[tokio::test]
async fn next_statement_reads_what_was_published() {
    let fixture = Fixture::new();
    let principal = Principal::anonymous();
    fixture.publish(fixture.table(Vec::new(), vec![recent(0, 10, "monday")]));
    let before = fixture.node.database.version_tag(Some("readings"), &principal).await.unwrap();
    assert_eq!(fixture.rows("SELECT count(*) FROM readings").await, "10");
    let plan = fixture.node.plan("SELECT count(*) FROM readings WHERE value >= 0").await.unwrap();
    fixture.publish(fixture.table(Vec::new(), vec![recent(0, 10, "monday"), recent(10, 10, "monday")]));
    assert_eq!(fixture.rows("SELECT count(*) FROM readings").await, "20");
    assert_eq!(lines(&run_plan(plan).await.unwrap()), "10");
    assert_ne!(fixture.node.database.version_tag(Some("readings"), &principal).await.unwrap(), before);
    let fresh = fixture.node.freshness("SELECT count(*) FROM readings").await;
    assert!(matches!(fresh, Freshness::UntilChanged(_)), "{fresh:?}");
    fixture.publish(
        fixture.table(vec![write_file(&fixture.folder.path(), "c.parquet", 0, 20, Some("monday"))], Vec::new()),
    );
    assert_eq!(fixture.rows("SELECT count(*) FROM readings WHERE value >= 0").await, "20");
}

#[tokio::test]
async fn files_are_leased_while_a_statement_reads_them() {
    let fixture = Fixture::new();
    let lease: Arc<dyn std::any::Any + Send + Sync> = Arc::new(());
    let observed = Arc::downgrade(&lease);
    let files = vec![write_file(&fixture.folder.path(), "a.parquet", 0, 100, Some("monday"))];
    fixture.publish(RecordedTable { lease, ..fixture.table(files, Vec::new()) });
    let plan = fixture.node.plan("SELECT sum(value) FROM readings").await.unwrap();
    fixture.publish(fixture.table(Vec::new(), Vec::new()));
    assert_eq!(fixture.rows("SELECT count(*) FROM readings").await, "0");
    assert!(observed.upgrade().is_some(), "the plan still needs the files");
    assert_eq!(lines(&run_plan(plan).await.unwrap()), "4950");
    assert!(observed.upgrade().is_none(), "nothing needs the files");
}

#[tokio::test]
async fn row_policies_apply_to_recent_rows() {
    let fixture = Fixture::new();
    fixture.publish_all();
    let rows = Some(RowCondition::parse("device = 'd1'").unwrap());
    let policy =
        RowPolicy { table: "readings".to_owned(), rows, columns: Default::default(), except_roles: Default::default() };
    let database =
        EmbeddedDatabase::of_source("db", DatabaseKind::Ingest, fixture.source.clone(), &fixture.node.engine).unwrap();
    let policies = RowPolicies::new(vec![policy], HashKey::from_secret(b"a secret of tests"));
    let node =
        TestNode { engine: fixture.node.engine.clone(), database: Arc::new(database.with_row_policies(policies)) };
    assert!(node.database.check_policies().await.unwrap().is_empty());
    assert_eq!(node.rows("SELECT count(*), min(device), max(device) FROM readings").await, "83|d1|d1");
    assert_eq!(node.rows("SELECT count(*) FROM readings WHERE day = 'tuesday'").await, "8");
}

#[tokio::test]
async fn select_computes_each_row_from_one_row() {
    let engine = Engine::start(two_thread_options()).unwrap();
    let select = RowSelect::parse(
        "SELECT value * 2 AS doubled, upper(device) AS device FROM incoming WHERE value % 2 = 0",
        &engine,
    );
    let computed = select.unwrap().transform(recent(0, 5, "monday")).await.unwrap();
    assert_eq!(lines(&computed), "0|D0\n4|D2\n8|D1");
    for sql in [
        "SELECT value FROM incoming ORDER BY value",
        "SELECT value FROM incoming LIMIT 1",
        "SELECT device FROM incoming GROUP BY device",
        "SELECT value FROM other",
        "SELECT a.value FROM incoming a, incoming b",
        "SELECT value FROM incoming UNION ALL SELECT value FROM incoming",
    ] {
        assert!(RowSelect::parse(sql, &engine).is_err(), "{sql}");
    }
    for sql in ["SELECT max(value) FROM incoming", "SELECT (SELECT max(value) FROM incoming) FROM incoming"] {
        let error = RowSelect::parse(sql, &engine).unwrap().transform(recent(0, 5, "monday")).await.unwrap_err();
        assert!(error.to_string().contains("from several rows"), "{error}");
    }
    let error =
        RowSelect::parse("SELECT missing FROM incoming", &engine).unwrap().transform(recent(0, 5, "monday")).await;
    assert!(error.unwrap_err().to_string().contains("missing"));
}

#[tokio::test]
async fn files_without_matching_rows_are_not_opened() {
    let fixture = Fixture::new();
    fixture.publish_all();
    std::fs::remove_file(fixture.folder.join("b.parquet")).unwrap();
    assert_eq!(fixture.rows("SELECT count(*) FROM readings WHERE value < 50").await, "50");
    assert_eq!(fixture.rows("SELECT count(*) FROM readings WHERE day = 'monday' AND value >= 0").await, "125");
    let error = fixture.node.try_rows("SELECT count(*) FROM readings WHERE value >= 50").await.unwrap_err();
    assert!(error.to_string().contains("readings"), "{error}");
}

#[tokio::test]
async fn an_unreadable_table_has_its_reason_and_others_are_read() {
    let fixture = Fixture::new();
    let tables = [("readings".to_owned(), fixture.table(Vec::new(), vec![recent(0, 5, "monday")]))].into();
    let unreadable = [("events".to_owned(), "rows are lost".to_owned())].into();
    let notes = vec!["keys are lost".to_owned()];
    *fixture.source.0.lock().unwrap() = Arc::new(RecordedTables { tables, unreadable, notes });
    assert_eq!(fixture.node.tables().await, "events: unreadable, rows are lost\nreadings: 5 rows");
    assert_eq!(fixture.node.catalog().await.notes, ["keys are lost"]);
    assert_eq!(fixture.rows("SELECT count(*) FROM readings").await, "5");
    assert_eq!(
        fixture.node.refusal("SELECT * FROM events").await,
        "unavailable: the table \"events\" cannot be read: rows are lost"
    );
}
