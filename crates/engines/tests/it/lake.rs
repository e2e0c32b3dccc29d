//! Folders of Delta tables are read as their log says; other formats with bookkeeping of their own are refused by name.

use std::fs;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Int8Type};
use insta::assert_snapshot;
use parquet::data_type::Int96Type;
use serde_json::{Value, json};
use tidegate_query::Freshness;

use crate::parquet::{DAY_OF_9999_12_31, time, write_column};
use crate::support::{
    Folder, TestNode, no_delay_limits, no_rescan_limits, numbers, settle, two_thread_options, wait_until_all_settled,
    write_parquet,
};

const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// A Delta table in the folder of a database, whose log is written by hand.
struct DeltaLog<'a> {
    folder: &'a Folder,
    name: &'static str,
    version: u64,
}

impl<'a> DeltaLog<'a> {
    fn new(folder: &'a Folder, name: &'static str) -> Self {
        Self { folder, name, version: 0 }
    }

    /// A table with the columns of [`numbers`].
    fn of_numbers(folder: &'a Folder, name: &'static str) -> Self {
        let mut log = Self::new(folder, name);
        log.commit(&[protocol(&["deletionVectors"]), metadata(&[("id", "long"), ("name", "string")], &[], "none")]);
        log
    }

    fn commit(&mut self, actions: &[Value]) {
        let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
        self.folder.write(&format!("{}/_delta_log/{:020}.json", self.name, self.version), lines.join("\n"));
        self.version += 1;
    }

    /// Writes a data file, and returns the action that adds it.
    fn add(&self, path: &str, batch: &RecordBatch) -> Value {
        write_parquet(&self.folder.join(&format!("{}/{path}", self.name)), batch, 10);
        added(path)
    }
}

fn protocol(features: &[&str]) -> Value {
    json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}})
}

/// Columns that are called `file_NAME` in the data files, if `mode` maps them.
fn metadata(columns: &[(&str, &str)], partition_columns: &[&str], mode: &str) -> Value {
    let field = |(id, (name, data_type)): (usize, &(&str, &str))| {
        let in_files = name.rsplit('.').next().unwrap();
        let mapping =
            json!({"delta.columnMapping.physicalName": format!("file_{in_files}"), "delta.columnMapping.id": id});
        json!({"name": name.split('.').next().unwrap(), "type": data_type, "nullable": false, "metadata": mapping})
    };
    let fields: Vec<Value> = columns.iter().enumerate().map(field).collect();
    json!({"metaData": {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json!({"type": "struct", "fields": fields}).to_string(),
        "partitionColumns": partition_columns,
        "configuration": {"delta.columnMapping.mode": mode},
    }})
}

fn added(path: &str) -> Value {
    json!({"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": true}})
}

fn removed(path: &str) -> Value {
    json!({"remove": {"path": path, "dataChange": true, "deletionTimestamp": 0}})
}

/// The action with deleted rows.
fn without_rows(mut action: Value, rows: &[u16]) -> Value {
    let count = u16::try_from(rows.len()).unwrap();
    let mut bytes = 1_681_511_377_u32.to_le_bytes().to_vec();
    // One bitmap with the high part 0, with one container of single values.
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend([0_u32, 12_346, 1].map(u32::to_le_bytes).concat());
    bytes.extend([0, count - 1].map(u16::to_le_bytes).concat());
    bytes.extend(16_u32.to_le_bytes());
    bytes.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
    let mut text = String::new();
    for group in bytes.chunks(4) {
        let mut whole = [0; 4];
        whole[..group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes(whole);
        text.extend((0..5).rev().map(|place| char::from(DIGITS[(number / 85_u32.pow(place) % 85) as usize])));
    }
    action["add"]["deletionVector"] =
        json!({"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": bytes.len(), "cardinality": count});
    action
}

fn numbers_from(first: i64, count: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + count));
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values((first..first + count).map(|id| format!("name {id}"))));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

#[tokio::test]
async fn a_delta_table_has_the_rows_of_its_newest_version() {
    let folder = Folder::with(&[("other.csv", "x\n1\n")]);
    let mut log = DeltaLog::of_numbers(&folder, "orders");
    let actions = [log.add("a.parquet", &numbers_from(0, 5)), log.add("b%20c.parquet", &numbers_from(90, 3))];
    // The name of the file is decoded.
    fs::rename(folder.join("orders/b%20c.parquet"), folder.join("orders/b c.parquet")).unwrap();
    log.commit(&actions);
    let actions = [removed("a.parquet"), log.add("sub/d.parquet", &numbers_from(5, 2))];
    log.commit(&actions);
    folder.write("orders/_change_data/x.csv", "x\n1\n");
    folder.write("orders/inner/y.csv", "y\n1\n");

    let node = folder.database();
    assert_snapshot!(node.tables().await, @r"
    orders: 5 rows
    other: 1 rows
    ");
    assert_eq!(node.columns("orders").await.unwrap(), "id bigint, name text");
    assert_eq!(
        node.rows("SELECT * FROM orders ORDER BY id").await,
        "5|name 5\n6|name 6\n90|name 90\n91|name 91\n92|name 92"
    );
    assert_eq!(node.rows("SELECT count(*), min(id), max(id) FROM orders").await, "5|5|92");
    let comment = node.catalog().await.tables[0].comment.clone().unwrap();
    assert_eq!(comment, "Delta table, version 2; 2 files");

    let alone = TestNode::open(vec![folder.join("orders")], two_thread_options());
    assert_eq!(alone.tables().await, "orders: 5 rows");
}

#[tokio::test]
async fn a_table_without_files_has_its_columns() {
    let folder = Folder::new();
    let mut log = DeltaLog::of_numbers(&folder, "orders");
    let action = log.add("a.parquet", &numbers(3));
    log.commit(&[action]);
    log.commit(&[removed("a.parquet")]);
    let node = folder.database();
    assert_eq!(node.tables().await, "orders: 0 rows");
    assert_eq!(node.rows("SELECT count(*), max(name) FROM orders").await, "0|null");
}

#[tokio::test]
async fn partition_values_come_from_the_log() {
    let folder = Folder::new();
    let mut log = DeltaLog::new(&folder, "visits");
    log.commit(&[
        protocol(&[]),
        metadata(&[("day", "date"), ("id", "long"), ("name", "string"), ("code", "string")], &["day", "code"], "none"),
    ]);
    let mut files = [log.add("day=2021-01-01/a.parquet", &numbers(2)), log.add("elsewhere/b.parquet", &numbers(1))];
    files[0]["add"]["partitionValues"] = json!({"day": "2021-02-28", "code": "007"});
    files[1]["add"]["partitionValues"] = json!({"day": null, "code": "1"});
    log.commit(&files);
    let node = folder.database();
    assert_eq!(node.columns("visits").await.unwrap(), "id bigint, name text, day date, code text");
    assert_eq!(
        node.rows("SELECT id, day, code FROM visits ORDER BY code, id").await,
        "0|2021-02-28|007\n1|2021-02-28|007\n0|null|1"
    );
    assert_eq!(node.rows("SELECT count(*) FROM visits WHERE day > date '2021-01-31'").await, "2");
    assert_eq!(node.rows("SELECT id, name FROM visits WHERE day IS NULL").await, "0|name 0");
}

#[tokio::test]
async fn deleted_rows_are_in_no_answer() {
    let folder = Folder::new();
    let mut log = DeltaLog::of_numbers(&folder, "orders");
    // Row groups have 10 rows: one loses some, one loses all.
    let deleted: Vec<u16> = [0, 3, 4].into_iter().chain(10..20).chain([29]).collect();
    let actions =
        [without_rows(log.add("a.parquet", &numbers(30)), &deleted), log.add("b.parquet", &numbers_from(100, 1))];
    log.commit(&actions);
    let node = folder.database();
    assert_eq!(node.tables().await, "orders: 17 rows");
    for (sql, expected) in [
        ("SELECT count(*) FROM orders", "17"),
        ("SELECT count(name) FROM orders", "17"),
        ("SELECT count(*) FROM orders WHERE id >= 0", "17"),
        ("SELECT min(id), max(id) FROM orders WHERE id < 50", "1|28"),
        ("SELECT min(id), max(id) FROM orders", "1|100"),
        ("SELECT id FROM orders LIMIT 3", "1\n2\n5"),
        ("SELECT id FROM orders WHERE id BETWEEN 9 AND 20", "9\n20"),
        ("SELECT name FROM orders WHERE id = 29", ""),
        ("SELECT id FROM orders WHERE id < 100 ORDER BY id DESC LIMIT 2", "28\n27"),
    ] {
        assert_eq!(node.rows(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn listings_have_the_newest_version_and_scan_the_folder_for_a_new_one_only() {
    let folder = Folder::new();
    let mut log = DeltaLog::of_numbers(&folder, "orders");
    let action = log.add("a.parquet", &numbers_from(0, 5));
    log.commit(&[action]);
    wait_until_all_settled(&folder.path()).await;
    let node = folder.database();
    for _ in 0..3 {
        assert_eq!((node.tables().await.as_str(), node.database.folder_scans()), ("orders: 5 rows", 1));
    }
    let action = log.add("b.parquet", &numbers_from(90, 3));
    log.commit(&[action]);
    assert_eq!(node.tables().await, "orders: 8 rows");
}

#[tokio::test]
async fn more_deleted_rows_are_a_new_version() {
    let folder = Folder::new();
    let mut log = DeltaLog::of_numbers(&folder, "orders");
    let action = log.add("a.parquet", &numbers(4));
    log.commit(std::slice::from_ref(&action));
    settle(&folder.join("orders/a.parquet"), 1).await;
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), no_rescan_limits());
    let lookup = async || node.rows("SELECT name FROM orders WHERE id = 2").await;
    let count = async || node.rows("SELECT count(*) FROM orders").await;
    assert_eq!((lookup().await.as_str(), count().await.as_str()), ("name 2", "4"));
    assert_eq!((lookup().await.as_str(), node.database.small_table_reads()), ("name 2", 1));
    log.commit(&[removed("a.parquet"), without_rows(action, &[2])]);
    assert_eq!((lookup().await.as_str(), count().await.as_str()), ("", "3"));
    let action = log.add("b.parquet", &numbers_from(2, 1));
    log.commit(&[action]);
    assert_eq!((lookup().await.as_str(), count().await.as_str()), ("name 2", "4"));
}

#[tokio::test]
async fn an_answer_is_valid_until_the_next_version() {
    let folder = Folder::new();
    let mut log = DeltaLog::of_numbers(&folder, "orders");
    let action = log.add("a.parquet", &numbers(4));
    log.commit(std::slice::from_ref(&action));
    settle(&folder.join("orders/a.parquet"), 1).await;
    let node = folder.database();
    let sql = "SELECT sum(id) FROM orders";
    let before = node.freshness(sql).await;
    assert!(matches!(before, Freshness::UntilChanged(_)));
    assert_eq!(node.freshness(sql).await, before);
    log.commit(&[removed("a.parquet"), without_rows(action, &[2])]);
    assert_ne!(node.freshness(sql).await, before);
}

#[tokio::test]
async fn columns_are_renamed_without_new_files() {
    let folder = Folder::new();
    let mut log = DeltaLog::new(&folder, "orders");
    log.commit(&[protocol(&["columnMapping"]), metadata(&[("id", "long"), ("name", "string")], &[], "name")]);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..30));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..30).map(|id| format!("name {id}"))));
    // A column of the file that the table does not have has the name of one that it has.
    let others: ArrayRef = Arc::new(Int32Array::from_iter_values(0..30));
    let batch = RecordBatch::try_from_iter([("name", others), ("file_id", ids), ("file_name", names)]).unwrap();
    let action = log.add("a.parquet", &batch);
    log.commit(&[action]);
    let node = folder.database();
    assert_eq!(node.columns("orders").await.unwrap(), "id bigint, name text");
    assert_eq!(node.rows("SELECT name FROM orders WHERE id = 25").await, "name 25");
    assert_eq!(node.rows("SELECT count(*), max(id), max(name) FROM orders").await, "30|29|name 9");
    // `number` is the column `id` of the files, `name` a new one; `title` is the old `name`.
    log.commit(&[metadata(&[("number.id", "long"), ("name.later", "string"), ("title.name", "string")], &[], "name")]);
    assert_eq!(node.columns("orders").await.unwrap(), "number bigint, name text, title text");
    assert_eq!(node.rows("SELECT title, name FROM orders WHERE number = 25").await, "name 25|null");
    assert_eq!(node.rows("SELECT count(*), count(name) FROM orders WHERE number > 27").await, "2|0");
}

#[tokio::test]
async fn types_become_wider_but_never_others() {
    let folder = Folder::new();
    let wider: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let mut log = DeltaLog::new(&folder, "wider");
    log.commit(&[protocol(&["typeWidening"]), metadata(&[("id", "long"), ("added", "string")], &[], "none")]);
    let action = log.add("a.parquet", &RecordBatch::try_from_iter([("id", wider)]).unwrap());
    log.commit(&[action]);
    let wider: ArrayRef = Arc::new(Int32Array::from(vec![3]));
    let dictionary: ArrayRef = Arc::new(["x"].into_iter().collect::<DictionaryArray<Int8Type>>());
    let batch = RecordBatch::try_from_iter([("id", wider), ("added", dictionary)]).unwrap();
    let action = log.add("b.parquet", &batch);
    log.commit(&[action]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1", "0870"]));
    let mut log = DeltaLog::new(&folder, "other");
    log.commit(&[protocol(&[]), metadata(&[("id", "long")], &[], "none")]);
    let action = log.add("a.parquet", &RecordBatch::try_from_iter([("id", text)]).unwrap());
    log.commit(&[action]);
    let node = folder.database();
    assert_eq!(node.rows("SELECT id, added FROM wider WHERE id > 1 ORDER BY id").await, "2|null\n3|x");
    assert_eq!(node.columns("wider").await.unwrap(), "id bigint, added text");
    let refusal = node.refusal("SELECT id FROM other").await;
    assert!(
        refusal.contains(
            r#"other/a.parquet cannot be read: column "id" has the type text, and bigint in the Delta table"#
        ),
        "{refusal}"
    );
}

#[tokio::test]
async fn times_of_96_bits_have_the_type_of_the_log() {
    let folder = Folder::new();
    let mut log = DeltaLog::new(&folder, "times");
    log.commit(&[protocol(&[]), metadata(&[("v", "timestamp")], &[], "none")]);
    write_column::<Int96Type>(&folder.join("times/a.parquet"), "int96 v", &[Some(time(DAY_OF_9999_12_31, 0)), None]);
    log.commit(&[added("a.parquet")]);
    let node = folder.database();
    assert_eq!(node.columns("times").await.unwrap(), "v timestamp with time zone");
    assert_eq!(node.rows("SELECT v FROM times ORDER BY v NULLS LAST").await, "9999-12-31T00:00:00Z\nnull");
    write_column::<Int96Type>(&folder.join("times/b.parquet"), "int96 v", &[Some(time(19_723, 1))]);
    log.commit(&[added("b.parquet")]);
    let refusal = node.refusal("SELECT v FROM times").await;
    assert!(refusal.contains("times with nanoseconds, but its type has microseconds"), "{refusal}");
}

#[tokio::test]
async fn times_of_data_files_have_any_unit() {
    let folder = Folder::new();
    let mut log = DeltaLog::new(&folder, "times");
    log.commit(&[protocol(&[]), metadata(&[("v", "timestamp")], &[], "none")]);
    let times: [ArrayRef; 3] = [
        Arc::new(TimestampMillisecondArray::from(vec![1])),
        Arc::new(TimestampMicrosecondArray::from(vec![400]).with_timezone("UTC")),
        Arc::new(TimestampNanosecondArray::from(vec![2_000_000])),
    ];
    for (path, times) in ["a.parquet", "b.parquet", "c.parquet"].into_iter().zip(times) {
        let action = log.add(path, &RecordBatch::try_from_iter([("v", times)]).unwrap());
        log.commit(&[action]);
    }
    let node = folder.database();
    assert_eq!(node.rows("SELECT extract(microseconds FROM v)::int FROM times ORDER BY v").await, "400\n1000\n2000");
    let sql = "SELECT count(*) FROM times WHERE v < timestamptz '1970-01-01 00:00:00.0015Z'";
    assert_eq!(node.rows(sql).await, "2");
}

/// Spark writes each member of a structure as one that may be null, whatever the table declares.
#[tokio::test]
async fn members_that_are_never_null_are_read_from_files_where_they_may_be() {
    let folder = Folder::new();
    let mut log = DeltaLog::new(&folder, "people");
    let member = |name: &str, data_type: Value, nullable: bool| json!({"name": name, "type": data_type, "nullable": nullable, "metadata": {}});
    let place = json!({
        "type": "struct",
        "fields": [member("city", json!("string"), false), member("zip", json!("integer"), false)],
    });
    let places = json!({"type": "array", "elementType": place, "containsNull": false});
    let columns = json!({"type": "struct", "fields": [member("home", place, true), member("others", places, true)]});
    let mut declared = metadata(&[], &[], "none");
    declared["metaData"]["schemaString"] = columns.to_string().into();
    log.commit(&[protocol(&[]), declared]);

    let members =
        Fields::from(vec![Field::new("city", DataType::Utf8, true), Field::new("zip", DataType::Int32, true)]);
    let cities: ArrayRef = Arc::new(StringArray::from(vec![Some("Ulm"), None]));
    let zips: ArrayRef = Arc::new(Int32Array::from(vec![Some(89_073), None]));
    let homes = StructArray::new(members.clone(), vec![cities, zips], Some(NullBuffer::from(vec![true, false])));
    let item = Arc::new(Field::new("element", DataType::Struct(members), true));
    let others = ListArray::new(item, OffsetBuffer::from_lengths([1, 0]), Arc::new(homes.slice(0, 1)), None);
    let columns: [(&str, ArrayRef); 2] = [("home", Arc::new(homes)), ("others", Arc::new(others))];
    let action = log.add("a.parquet", &RecordBatch::try_from_iter(columns).unwrap());
    log.commit(&[action]);
    let node = folder.database();
    assert_eq!(
        node.rows("SELECT home['city'], home['zip'], others[1]['zip'] FROM people").await,
        "Ulm|89073|89073\nnull|null|null"
    );
    assert_eq!(node.rows("SELECT count(*) FROM people WHERE home IS NULL").await, "1");
}

#[tokio::test]
async fn what_is_not_supported_is_refused_by_name() {
    let folder = Folder::with(&[
        ("ice/data/a.csv", "x\n1\n"),
        ("ice/metadata/v1.metadata.json", "{}"),
        ("hudi/a.csv", "x\n1\n"),
        ("hudi/.hoodie/hoodie.properties", ""),
        ("plain/metadata/notes.csv", "x\n1\n"),
        ("empty/_delta_log/readme.txt", ""),
    ]);
    let mut log = DeltaLog::new(&folder, "managed");
    log.commit(&[protocol(&["catalogManaged"]), metadata(&[("id", "long")], &[], "none")]);
    let mut log = DeltaLog::of_numbers(&folder, "lost");
    log.commit(&[added("missing.parquet")]);
    let mut log = DeltaLog::of_numbers(&folder, "outside");
    log.commit(&[added("../lost/x.parquet")]);
    assert_snapshot!(folder.database().tables().await, @r#"
    empty: unreadable, "_delta_log" is damaged: it has no version of a table
    hudi: unreadable, Hudi tables are not read; export its rows as Parquet files into a folder of their own
    ice: unreadable, Iceberg tables are not read; export its rows as Parquet files into a folder of their own
    lost: unreadable, its file lost/missing.parquet: the file no longer exists
    managed: unreadable, the table needs the Delta feature "catalogManaged", which is not supported
    outside: unreadable, the log has the file "../lost/x.parquet", which is not below the folder of the table
    plain.metadata.notes: 1 rows
    "#);
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_outside_the_folder_is_read() {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    let (folder, outside) = (Folder::new(), Folder::new());
    let mut log = DeltaLog::of_numbers(&outside, "secret");
    let action = log.add("a.parquet", &numbers(3));
    log.commit(&[action]);
    fs::create_dir_all(folder.join("log")).unwrap();
    symlink(outside.join("secret/_delta_log"), folder.join("log/_delta_log")).unwrap();
    let link = |name: &str, target: &Path| symlink(target, folder.join(name)).unwrap();

    let mut log = DeltaLog::of_numbers(&folder, "file");
    log.commit(&[added("a.parquet")]);
    link("file/a.parquet", &outside.join("secret/a.parquet"));
    let mut log = DeltaLog::of_numbers(&folder, "folder");
    log.commit(&[added("sub/a.parquet")]);
    link("folder/sub", &outside.join("secret"));
    fs::create_dir_all(folder.join("entry/_delta_log")).unwrap();
    let entry = format!("_delta_log/{:020}.json", 0);
    link(&format!("entry/{entry}"), &outside.join(&format!("secret/{entry}")));

    let node = folder.database();
    let tables = node.catalog().await;
    assert_eq!(tables.tables.len(), 4);
    for table in &tables.tables {
        let refusal = node.refusal(&format!("SELECT * FROM \"{}\"", table.name)).await;
        assert!(refusal.contains("points outside the database folder"), "{}: {refusal}", table.name);
        assert!(!refusal.contains(&outside.path().display().to_string()), "{refusal}");
    }
}

#[tokio::test]
async fn a_glob_for_files_of_a_delta_table_reads_the_table() {
    let folder = Folder::with(&[("orders/x.csv", "x\n1\n")]);
    let mut log = DeltaLog::of_numbers(&folder, "orders");
    let actions = [log.add("a.parquet", &numbers(3)), log.add("b.parquet", &numbers(3))];
    log.commit(&actions);
    log.commit(&[removed("a.parquet")]);
    let open = |glob: &str| TestNode::open_with(vec![folder.join(glob)], two_thread_options(), no_delay_limits());
    assert_eq!(open("**/*.parquet").tables().await, "orders: 3 rows");
    assert_eq!(open("**/*.csv").tables().await, "");
}
