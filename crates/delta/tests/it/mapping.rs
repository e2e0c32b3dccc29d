//! Columns with other names in the data files, and the types that files may have.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use serde_json::{Value, json};
use tidegate_delta::{DeltaError, TableVersion, is_readable_type};

use super::versions::Log;

/// A column that is called `file_NAME` in the data files.
fn mapped(name: &str, id: i32, data_type: &Value) -> Value {
    let metadata = json!({"delta.columnMapping.physicalName": format!("file_{name}"), "delta.columnMapping.id": id});
    json!({"name": name, "type": data_type, "nullable": true, "metadata": metadata})
}

fn read(columns: &Value, mode: &str) -> Result<TableVersion, DeltaError> {
    let protocol = json!({"minReaderVersion": 2, "minWriterVersion": 5});
    Log::new(&protocol, columns, &[], &json!({"delta.columnMapping.mode": mode})).read()
}

/// The paths of the leaves of a file with the names of the table.
fn renamed(columns: &Value, mode: &str, file: &str) -> Result<Vec<String>, String> {
    let version = read(columns, mode).unwrap();
    let file = SchemaDescriptor::new(Arc::new(parse_message_type(file).unwrap()));
    let renamed = version.mapping.unwrap().rename(&file).map_err(|error| error.to_string())?;
    Ok(renamed.columns().iter().map(|leaf| leaf.path().string()).collect())
}

fn nested_columns() -> Value {
    let point = json!({"type": "struct", "fields": [mapped("x", 2, &json!("long")), mapped("y", 3, &json!("long"))]});
    let points = json!({"type": "array", "elementType": point, "containsNull": true});
    let by_name = json!({"type": "map", "keyType": "string", "valueType": point, "valueContainsNull": true});
    json!([mapped("n", 1, &json!("long")), mapped("points", 4, &points), mapped("places", 5, &by_name)])
}

#[test]
fn columns_are_found_by_their_names_in_the_files() {
    let file = "message spark_schema {
        optional group file_places (MAP) {
            repeated group key_value {
                required binary key (UTF8);
                optional group value { optional int64 file_y; optional int64 file_x; }
            }
        }
        optional int64 n;
        optional group file_points (LIST) {
            repeated group list { optional group element { optional int64 file_x; } }
        }
        optional int64 file_n;
    }";
    let paths = renamed(&nested_columns(), "name", file).unwrap();
    // A column that was dropped is not the new one with its name.
    let expected = [
        "places.key_value.key",
        "places.key_value.value.y",
        "places.key_value.value.x",
        "n~",
        "points.list.element.x",
        "n",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn columns_are_found_by_their_numbers() {
    let file = "message spark_schema {
        optional group a (LIST) = 4 {
            repeated group array { optional int64 b = 3; }
        }
        optional int64 n = 7;
        optional int64 c = 1;
    }";
    assert_eq!(renamed(&nested_columns(), "id", file).unwrap(), ["points.array.y", "n~", "n"]);
    let without = "message spark_schema { optional int64 file_n; }";
    assert!(renamed(&nested_columns(), "id", without).unwrap_err().contains("no numbers"));
}

#[test]
fn a_mapping_without_names_is_refused() {
    let columns = json!([{"name": "n", "type": "long", "nullable": true, "metadata": {}}]);
    for mode in ["name", "id"] {
        let refused = read(&columns, mode);
        assert!(matches!(refused, Err(DeltaError::InvalidSchema(_))), "{mode}: {refused:?}");
    }
    assert!(matches!(read(&nested_columns(), "other"), Err(DeltaError::UnsupportedFeature(_))));
    assert!(read(&columns, "none").unwrap().mapping.is_none());
}

#[test]
fn partition_values_have_the_names_of_the_files() {
    let protocol = json!({"minReaderVersion": 2, "minWriterVersion": 5});
    let columns = json!([mapped("n", 1, &json!("long")), mapped("day", 2, &json!("date"))]);
    let mut log = Log::new(&protocol, &columns, &["day"], &json!({"delta.columnMapping.mode": "name"}));
    log.commit(&[json!({"add": {
        "path": "a.parquet", "partitionValues": {"file_day": "2021-02-28"}, "size": 1, "modificationTime": 0, "dataChange": true,
    }})]);
    let version = log.read().unwrap();
    assert_eq!(version.partition_columns, ["day"]);
    assert!(version.files[0].partition_values[0].is_valid(0));
}

#[test]
fn types_that_lose_nothing_are_readable() {
    use DataType::{Binary, Date32, Decimal128, Float32, Float64, Int8, Int32, Int64, Timestamp, Utf8, Utf8View};
    let instant = |unit| Timestamp(unit, Some("UTC".into()));
    let dictionary = |values: DataType| DataType::Dictionary(Box::new(Int32), Box::new(values));
    let list = |item: DataType, name: &str| DataType::List(Arc::new(Field::new(name, item, true)));
    let fields = |names: &[&str]| DataType::Struct(names.iter().map(|name| Field::new(*name, Int32, true)).collect());
    let map = |value: DataType| {
        let entries = Fields::from(vec![Field::new("key", Utf8, false), Field::new("value", value, true)]);
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
    };
    let readable = [
        (Utf8, Utf8View),
        (dictionary(Utf8), Utf8View),
        (Int8, Int64),
        (Int64, Int32),
        (Int32, Decimal128(12, 2)),
        (Float32, Float64),
        (Int32, Float64),
        (Decimal128(5, 2), Decimal128(10, 4)),
        (Date32, Timestamp(TimeUnit::Microsecond, None)),
        (Timestamp(TimeUnit::Nanosecond, None), instant(TimeUnit::Microsecond)),
        // As tables of ours declare it.
        (Int64, instant(TimeUnit::Nanosecond)),
        (Decimal128(20, 0), DataType::UInt64),
        (list(Int32, "element"), list(Int64, "item")),
        (fields(&["b", "c"]), fields(&["a", "b"])),
        (map(fields(&["a", "b"])), map(fields(&["a", "b"]))),
    ];
    for (found, declared) in readable {
        assert!(is_readable_type(&found, &declared), "{found} as {declared}");
    }
    let refused = [
        (Utf8, Int64),
        (dictionary(Utf8), Int64),
        (Int64, Utf8),
        (Binary, Utf8),
        (Int64, Float64),
        (Float64, Float32),
        (Float64, Int64),
        (Decimal128(10, 4), Decimal128(10, 2)),
        (Decimal128(10, 2), Decimal128(10, 4)),
        (Timestamp(TimeUnit::Microsecond, None), Date32),
        (Int64, Timestamp(TimeUnit::Microsecond, None)),
        (list(Utf8, "item"), list(Int64, "item")),
        (map(fields(&["b", "a"])), map(fields(&["a", "b"]))),
        (fields(&["a"]), Int32),
    ];
    for (found, declared) in refused {
        assert!(!is_readable_type(&found, &declared), "{found} as {declared}");
    }
}
