//! Tables for other readers, and tables of other writers. `tests/delta/foreign_readers.py` sets the folder of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, Float64Type, Int64Type, Schema, TimeUnit};
use serde_json::{Map, Value, json};
use tempfile::tempdir;
use tidegate_delta::{DeltaCommit, DeltaError, DeltaTable, PartitionBy};

use super::fixture::{append, rows};
use super::samples::{nameless_texts, odd_texts, samples};

/// The variable with the folder that the script and these tests share.
const FOLDER_VARIABLE: &str = "TIDEGATE_DELTA_FOLDER";

/// Writes the rows that another reader has to find.
fn write_expected(folder: &Path, columns: &Map<String, Value>) {
    fs::write(folder.with_extension("json"), serde_json::to_vec(columns).unwrap()).unwrap();
}

/// A table with all types, a column that came later, removed rows, and a checkpoint without the log before it.
fn write_types(folder: &Path) {
    let samples = samples();
    let fields: Vec<_> = samples.iter().map(|sample| sample.field.clone()).collect();
    let schema = Schema::new(fields.clone());
    let columns = samples.iter().map(|sample| Arc::clone(&sample.values)).collect();
    let all = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    let mut table = DeltaTable::create(folder, &schema, &[]).unwrap();
    for row in 0..all.num_rows() {
        append(&mut table, &all.slice(row, 1));
    }
    append(&mut table, &all.slice(0, 1));
    let remove = vec![Arc::clone(table.snapshot().files.last().unwrap())];
    table.commit(DeltaCommit { remove, operation: "DELETE", ..DeltaCommit::default() }).unwrap();
    let with_late = Schema::new([fields, vec![Field::new("late", DataType::Utf8, true)]].concat());
    table
        .commit(DeltaCommit { schema: Some(with_late.clone()), operation: "ADD COLUMNS", ..DeltaCommit::default() })
        .unwrap();
    while table.snapshot().version < 101 {
        let transaction = Some(("writer".to_owned(), 1));
        table.commit(DeltaCommit { transaction, operation: "WRITE", ..DeltaCommit::default() }).unwrap();
    }
    let log = folder.join("_delta_log");
    assert!(log.join("00000000000000000100.checkpoint.parquet").exists());
    for version in 0..100 {
        fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    let mut expected: Map<_, _> =
        samples.into_iter().map(|sample| (sample.field.name().clone(), Value::Array(sample.foreign))).collect();
    expected.insert("late".to_owned(), vec![Value::Null; all.num_rows()].into());
    write_expected(folder, &expected);
    let table = DeltaTable::open(folder).unwrap().unwrap();
    assert_eq!(*table.snapshot().schema, with_late);
    assert_eq!(rows(folder, &table.snapshot()).num_rows(), all.num_rows());
}

/// A table by day, text, a large number and a timestamp, with names that need escapes.
fn write_partitions(folder: &Path, texts: &[Option<String>]) {
    let count = i64::try_from(texts.len()).unwrap();
    let hour = 3_600_000_000;
    let times = || (0..count).map(move |row| (row - 5) * 7 * hour - 1);
    let zone: Arc<str> = "UTC".into();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("row", Arc::new((0..count).collect::<Int64Array>())),
        ("text ä", Arc::new(texts.iter().map(Option::as_deref).collect::<StringArray>())),
        (
            "time",
            cast(&times().collect::<Int64Array>(), &DataType::Timestamp(TimeUnit::Microsecond, Some(zone.clone())))
                .unwrap(),
        ),
        (
            "at",
            cast(&times().collect::<Int64Array>(), &DataType::Timestamp(TimeUnit::Microsecond, Some(zone))).unwrap(),
        ),
        ("big", cast(&(0..count).map(|row| row % 2).collect::<Int64Array>(), &DataType::UInt64).unwrap()),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))
            .unwrap();
    let partition_by = [
        PartitionBy::Day("time".to_owned()),
        PartitionBy::Column("text ä".to_owned()),
        PartitionBy::Column("at".to_owned()),
        PartitionBy::Column("big".to_owned()),
    ];
    let mut table = DeltaTable::create(folder, &batch.schema(), &partition_by).unwrap();
    append(&mut table, &batch);
    table.checkpoint().unwrap();
    let expected = json!({
        "row": (0..count).collect::<Vec<_>>(),
        "text ä": texts.iter().map(|text| text.clone().filter(|text| !text.is_empty())).collect::<Vec<_>>(),
        "time": times().collect::<Vec<_>>(),
        "at": times().collect::<Vec<_>>(),
        "big": (0..count).map(|row| (row % 2).to_string()).collect::<Vec<_>>(),
        "time_day": times().map(|time| time.div_euclid(24 * hour)).collect::<Vec<_>>(),
    });
    write_expected(folder, expected.as_object().unwrap());
    let table = DeltaTable::open(folder).unwrap().unwrap();
    let read = rows(folder, &table.snapshot());
    let (position, numbers) = (read.schema().index_of("text ä").unwrap(), read.column(0).as_primitive::<Int64Type>());
    for (row, text) in numbers.values().iter().zip(read.column(position).as_string::<i32>()) {
        assert_eq!(text, texts[usize::try_from(*row).unwrap()].as_deref());
    }
}

#[test]
fn writes_tables_for_other_readers() {
    let temporary = tempdir().unwrap();
    let folder =
        std::env::var_os(FOLDER_VARIABLE).map_or_else(|| temporary.path().to_owned(), PathBuf::from).join("ours");
    fs::create_dir_all(&folder).unwrap();
    write_types(&folder.join("types"));
    write_partitions(&folder.join("partitions"), &odd_texts());
    write_partitions(&folder.join("nameless_partitions"), &nameless_texts());
}

/// Each table of the script comes with the rows that it has, or with the feature for which it is refused.
#[test]
fn reads_tables_of_other_writers() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    for entry in fs::read_dir(Path::new(&folder).join("theirs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let table_folder = path.with_extension("");
        if let Some(feature) = expected.get("refused") {
            let error = DeltaTable::open(&table_folder).unwrap_err();
            assert!(matches!(&error, DeltaError::UnsupportedFeature(found) if found == feature), "{path:?}: {error}");
            continue;
        }
        let table = DeltaTable::open(&table_folder).unwrap().unwrap();
        let snapshot = table.snapshot();
        let read = rows(&table_folder, &snapshot);
        let order = arrow::compute::sort_to_indices(read.column_by_name("row").unwrap(), None, None).unwrap();
        let read = arrow::compute::take_record_batch(&read, &order).unwrap();
        for (name, values) in expected["columns"].as_object().unwrap() {
            let column = read.column_by_name(name).unwrap_or_else(|| panic!("{path:?} has no column {name}"));
            let found: Vec<_> = (0..column.len()).map(|row| to_json(column, row)).collect();
            assert_eq!(Value::Array(found), *values, "{path:?}, column {name}");
        }
    }
}

/// A value as the script writes it.
fn to_json(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    let number = |through: &DataType| {
        let through = cast(&column.slice(row, 1), through).unwrap();
        Value::from(cast(&through, &DataType::Int64).unwrap().as_primitive::<Int64Type>().value(0))
    };
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Binary => hex(column.as_binary::<i32>().value(row)).into(),
        DataType::Float64 => hex(&column.as_primitive::<Float64Type>().value(row).to_be_bytes()).into(),
        DataType::Decimal128(_, _) => column.as_primitive::<Decimal128Type>().value_as_string(row).into(),
        DataType::Date32 => number(&DataType::Int32),
        DataType::List(_) => {
            let values = column.as_list::<i32>().value(row);
            (0..values.len()).map(|row| to_json(&values, row)).collect::<Vec<_>>().into()
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns().iter();
            Value::Object(
                fields
                    .iter()
                    .zip(columns)
                    .map(|(field, column)| (field.name().clone(), to_json(column, row)))
                    .collect(),
            )
        }
        _ => number(&DataType::Int64),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
