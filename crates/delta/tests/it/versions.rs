//! The newest version of tables of other writers, whose logs these tests write by hand.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, TimeUnit};
use roaring::RoaringTreemap;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tidegate_delta::{DeltaError, DeltaTable, TableLog, TableVersion};

use super::fixture::{append, names, names_schema};

const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// A table whose log is written by hand. It has no data files.
pub(super) struct Log {
    folder: TempDir,
    version: u64,
}

impl Log {
    pub(super) fn new(protocol: &Value, columns: &Value, partition_columns: &[&str], configuration: &Value) -> Self {
        let mut log = Self { folder: tempdir().unwrap(), version: 0 };
        fs::create_dir(log.path("_delta_log")).unwrap();
        let metadata = json!({
            "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json!({"type": "struct", "fields": columns}).to_string(),
            "partitionColumns": partition_columns,
            "configuration": configuration,
        });
        log.commit(&[json!({"protocol": protocol}), json!({"metaData": metadata})]);
        log
    }

    /// A table with the columns `n` and `name` for old readers.
    fn plain() -> Self {
        let columns = json!([column("n", &json!("long")), column("name", &json!("string"))]);
        Self::new(&json!({"minReaderVersion": 1, "minWriterVersion": 2}), &columns, &[], &json!({}))
    }

    fn with_features(features: &[&str]) -> Self {
        let protocol = json!({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features});
        Self::new(&protocol, &json!([column("n", &json!("long"))]), &[], &json!({}))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn commit(&mut self, actions: &[Value]) {
        let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
        fs::write(self.path(&format!("_delta_log/{:020}.json", self.version)), lines.join("\n")).unwrap();
        self.version += 1;
    }

    pub(super) fn read(&self) -> Result<TableVersion, DeltaError> {
        read(self.folder.path())
    }
}

fn read(folder: &Path) -> Result<TableVersion, DeltaError> {
    TableLog::list(folder)?.read(1000, &open)
}

fn open(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

fn column(name: &str, data_type: &Value) -> Value {
    json!({"name": name, "type": data_type, "nullable": true, "metadata": {}})
}

fn add(path: &str) -> Value {
    json!({"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": true, "stats": "{\"numRecords\":10}"}})
}

fn remove(path: &str) -> Value {
    json!({"remove": {"path": path, "dataChange": true, "deletionTimestamp": 0}})
}

fn paths(version: &TableVersion) -> Vec<&str> {
    version.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn files_of_the_newest_version_are_found() {
    let mut log = Log::plain();
    log.commit(&[add("a.parquet"), add("b%20c/%C3%A4.parquet")]);
    log.commit(&[remove("a.parquet"), add("d.parquet"), json!({"domainMetadata": {"domain": "x"}})]);
    let version = log.read().unwrap();
    assert_eq!((version.number, paths(&version)), (2, vec!["b c/ä.parquet", "d.parquet"]));
    assert_eq!(version.files[0].rows, Some(10));
    assert_eq!(version.schema.field(0).data_type(), &DataType::Int64);
    assert!(version.mapping.is_none());
}

#[test]
fn a_file_is_removed_however_its_path_is_encoded() {
    let mut log = Log::plain();
    log.commit(&[add("city=Zürich/a.parquet"), add("b c.parquet")]);
    log.commit(&[remove("city=Z%C3%BCrich/a.parquet"), remove("b%20c.parquet"), add("d.parquet")]);
    assert_eq!(paths(&log.read().unwrap()), ["d.parquet"]);
}

#[test]
fn a_log_without_a_version_is_no_table() {
    let folder = tempdir().unwrap();
    assert!(matches!(TableLog::list(folder.path()), Err(DeltaError::Corrupt { .. })));
    fs::create_dir(folder.path().join("_delta_log")).unwrap();
    assert!(matches!(TableLog::list(folder.path()), Err(DeltaError::Corrupt { .. })));
}

#[test]
fn files_outside_of_the_table_are_refused() {
    for path in ["../a.parquet", "/a.parquet", "s3://bucket/a.parquet", "x/%2E%2E/%2E%2E/a.parquet", "file:/a.parquet"]
    {
        let mut log = Log::plain();
        log.commit(&[add(path)]);
        let refused = log.read();
        assert!(matches!(&refused, Err(DeltaError::OutsideOfTable(found)) if found == path), "{path}: {refused:?}");
    }
}

#[test]
fn more_files_than_the_limit_are_refused() {
    let mut log = Log::plain();
    log.commit(&[add("a.parquet"), add("b.parquet"), add("c.parquet")]);
    let listed = TableLog::list(log.folder.path()).unwrap();
    assert!(matches!(listed.read(2, &open), Err(DeltaError::Corrupt { .. })));
    assert_eq!(listed.read(3, &open).unwrap().files.len(), 3);
}

#[test]
fn unknown_features_are_refused_by_name() {
    assert!(Log::with_features(&["columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"]).read().is_ok());
    // Some writers name it in each table.
    assert!(Log::with_features(&["variantType"]).read().is_ok());
    let refused = Log::with_features(&["deletionVectors", "catalogManaged"]).read();
    assert!(matches!(&refused, Err(DeltaError::UnsupportedFeature(name)) if name == "catalogManaged"), "{refused:?}");
    let columns = json!([column("v", &json!("variant"))]);
    let protocol = json!({"minReaderVersion": 1, "minWriterVersion": 2});
    let refused = Log::new(&protocol, &columns, &[], &json!({})).read();
    assert!(matches!(&refused, Err(DeltaError::InvalidSchema(reason)) if reason.contains("variant")), "{refused:?}");
}

#[test]
fn partition_values_have_the_types_of_their_columns() {
    let texts = [
        ("whole", "long", "-7"),
        ("ratio", "double", "1.5E10"),
        ("price", "decimal(10,2)", "-1.10"),
        ("day", "date", "2021-02-28"),
        ("at", "timestamp", "2021-02-28 23:59:59.5"),
        ("flag", "boolean", "true"),
        ("data", "binary", "x"),
        ("text", "string", "a/b"),
        ("none", "string", ""),
    ];
    let columns: Vec<Value> = texts.iter().map(|(name, data_type, _)| column(name, &json!(data_type))).collect();
    let columns = [vec![column("n", &json!("long"))], columns].concat();
    let names: Vec<&str> = texts.iter().map(|(name, ..)| *name).collect();
    let protocol = json!({"minReaderVersion": 1, "minWriterVersion": 2});
    let mut log = Log::new(&protocol, &json!(columns), &names, &json!({}));
    let values: serde_json::Map<String, Value> =
        texts.iter().map(|(name, _, text)| ((*name).to_owned(), json!(text))).collect();
    let mut file = add("a.parquet");
    file["add"]["partitionValues"] = Value::Object(values);
    let mut nulls = add("b.parquet");
    nulls["add"]["partitionValues"] = json!({"whole": null});
    log.commit(&[file, nulls]);

    let version = log.read().unwrap();
    assert_eq!(version.partition_columns, names);
    let values = &version.files[0].partition_values;
    let types: Vec<&DataType> = values.iter().map(|value| value.data_type()).collect();
    let declared: Vec<&DataType> = version.schema.fields().iter().skip(1).map(|field| field.data_type()).collect();
    assert_eq!(types, declared);
    assert_eq!(types[4], &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    assert!((values[1].as_primitive::<Float64Type>().value(0) - 1.5e10).abs() < f64::EPSILON);
    assert_eq!(values[7].as_string::<i32>().value(0), "a/b");
    assert!(values[8].is_null(0));
    assert!(version.files[1].partition_values.iter().all(|value| value.is_null(0)));
}

#[test]
fn a_partition_value_of_another_type_is_refused() {
    let columns = json!([column("n", &json!("long")), column("day", &json!("date"))]);
    let mut log = Log::new(&json!({"minReaderVersion": 1, "minWriterVersion": 2}), &columns, &["day"], &json!({}));
    let mut file = add("a.parquet");
    file["add"]["partitionValues"] = json!({"day": "yesterday"});
    log.commit(&[file]);
    let refused = log.read();
    assert!(matches!(&refused, Err(DeltaError::InvalidRows(reason)) if reason.contains("yesterday")), "{refused:?}");
}

/// A table of ours with a checkpoint of its newest version, 3, and the folder of its log.
fn with_checkpoint() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let mut table = DeltaTable::create(folder.path(), &names_schema(), &[]).unwrap();
    for number in 1..=3 {
        append(&mut table, &names(&[(number, None)]));
    }
    table.checkpoint().unwrap();
    let log = folder.path().join("_delta_log");
    for version in 0..=3 {
        fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    (folder, log)
}

#[test]
fn checkpoints_of_all_forms_are_read() {
    let (folder, log) = with_checkpoint();
    let expected = read(folder.path()).unwrap();
    assert_eq!((expected.number, expected.files.len()), (3, 3));

    let classic = log.join(format!("{:020}.checkpoint.parquet", 3));
    let part = |part: u32| log.join(format!("{:020}.checkpoint.{part:010}.{:010}.parquet", 3, 2));
    fs::rename(&classic, part(2)).unwrap();
    assert!(TableLog::list(folder.path()).is_err(), "a part is missing");
    fs::copy(part(2), part(1)).unwrap();
    let in_parts = read(folder.path()).unwrap();
    assert_eq!((in_parts.number, paths(&in_parts)), (3, paths(&expected)));

    fs::create_dir(log.join("_sidecars")).unwrap();
    fs::rename(part(2), log.join("_sidecars/a b.parquet")).unwrap();
    let sidecar = json!({"sidecar": {"path": "a%20b.parquet", "sizeInBytes": 1, "modificationTime": 0}});
    let unique = log.join(format!("{:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 3));
    fs::write(&unique, format!("{}\n{sidecar}", json!({"checkpointMetadata": {"version": 3}}))).unwrap();
    let with_sidecar = read(folder.path()).unwrap();
    assert_eq!((with_sidecar.number, paths(&with_sidecar)), (3, paths(&expected)));
}

#[test]
fn a_missing_entry_is_no_smaller_table() {
    let mut log = Log::plain();
    log.commit(&[add("a.parquet")]);
    log.commit(&[remove("a.parquet")]);
    fs::remove_file(log.path(&format!("_delta_log/{:020}.json", 1))).unwrap();
    assert!(matches!(log.read(), Err(DeltaError::Corrupt { .. })));
}

/// The bytes of a deletion vector of these rows.
fn vector(rows: &[u64]) -> Vec<u8> {
    let mut bytes = 1_681_511_377_u32.to_le_bytes().to_vec();
    rows.iter().copied().collect::<RoaringTreemap>().serialize_into(&mut bytes).unwrap();
    bytes
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(4) {
        let mut whole = [0; 4];
        whole[..group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes(whole);
        let digits = (0..5).rev().map(|place| number / 85_u32.pow(place) % 85);
        text.extend(digits.map(|digit| char::from(DIGITS[digit as usize])));
    }
    text
}

fn with_vector(path: &str, vector: &Value) -> Value {
    let mut action = add(path);
    action["add"]["deletionVector"] = vector.clone();
    action
}

fn inline(rows: &[u64]) -> Value {
    let bytes = vector(rows);
    json!({"storageType": "i", "pathOrInlineDv": encode(&bytes), "sizeInBytes": bytes.len(), "cardinality": rows.len()})
}

#[test]
fn deleted_rows_in_the_log_are_found() {
    let mut log = Log::with_features(&["deletionVectors"]);
    log.commit(&[with_vector("a.parquet", &inline(&[0, 1, 2, 7, 1 << 33]))]);
    let version = log.read().unwrap();
    let deleted = version.files[0].deleted.as_ref().unwrap();
    assert_eq!((deleted.count(), deleted.last()), (5, Some(1 << 33)));
    assert_eq!(deleted.ranges().collect::<Vec<_>>(), [0..3, 7..8, (1 << 33)..(1 << 33) + 1]);
}

#[test]
fn more_deleted_rows_replace_those_before() {
    let mut log = Log::with_features(&["deletionVectors"]);
    let (first, second) = (inline(&[1]), inline(&[1, 2]));
    log.commit(&[add("a.parquet")]);
    log.commit(&[with_vector("a.parquet", &first), remove("a.parquet")]);
    let mut before = remove("a.parquet");
    before["remove"]["deletionVector"] = first;
    // The order within a commit is arbitrary.
    log.commit(&[with_vector("a.parquet", &second), before]);
    let version = log.read().unwrap();
    assert_eq!(paths(&version), ["a.parquet"]);
    assert_eq!(version.files[0].deleted.as_ref().unwrap().count(), 2);
}

#[test]
fn deleted_rows_in_a_file_are_checked() {
    let rows: Vec<u64> = (0..100_000).filter(|row| row % 3 == 0).collect();
    let bytes = vector(&rows);
    let mut log = Log::with_features(&["deletionVectors"]);
    let descriptor = json!({
        "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": bytes.len(),
        "cardinality": rows.len(),
    });
    log.commit(&[with_vector("a.parquet", &descriptor)]);
    let file = log.path("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
    fs::create_dir(log.path("ab")).unwrap();
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    let checksum = crc32fast::hash(&bytes).to_be_bytes();
    let whole = [&[1_u8][..], &length[..], &bytes[..], &checksum[..]].concat();
    fs::write(&file, &whole).unwrap();
    assert_eq!(log.read().unwrap().files[0].deleted.as_ref().unwrap().count(), rows.len() as u64);

    let mut changed = whole.clone();
    changed[100] ^= 1;
    for (damaged, name) in [(changed.as_slice(), "changed"), (&whole[..whole.len() - 1], "cut")] {
        fs::write(&file, damaged).unwrap();
        assert!(matches!(log.read(), Err(DeltaError::Corrupt { .. })), "{name}");
    }
    fs::remove_file(&file).unwrap();
    assert!(matches!(log.read(), Err(DeltaError::Io { .. })));
}

#[test]
fn wrong_deletion_vectors_are_refused() {
    let mut wrong_count = inline(&[1, 2]);
    wrong_count["cardinality"] = json!(3);
    let mut cut = inline(&[1, 2]);
    cut["sizeInBytes"] = json!(9);
    let mut other_format = inline(&[1]);
    other_format["pathOrInlineDv"] = json!(encode(&[0; 40]));
    for vector in [wrong_count, cut, other_format] {
        let mut log = Log::with_features(&["deletionVectors"]);
        log.commit(&[with_vector("a.parquet", &vector)]);
        let refused = log.read();
        assert!(matches!(refused, Err(DeltaError::Corrupt { .. })), "{vector}: {refused:?}");
    }
    let absolute = json!({"storageType": "p", "pathOrInlineDv": "file:///tmp/x.bin", "offset": 1, "sizeInBytes": 40, "cardinality": 1});
    let mut log = Log::with_features(&["deletionVectors"]);
    log.commit(&[with_vector("a.parquet", &absolute)]);
    assert!(matches!(log.read(), Err(DeltaError::OutsideOfTable(_))));
}
