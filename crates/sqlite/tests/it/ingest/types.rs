//! Each declared type, with its extremes, and what is refused.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::datatypes::DataType;
use insta::assert_snapshot;
use tidegate_query::WriteTarget as _;
use tidegate_sqlite::SqliteOptions;

use super::{Target, columns, refusal, refusal_line};

const TYPES: &str = "CREATE TABLE t (i INTEGER, big BIGINT, r REAL, s TEXT, v VARCHAR(3), b BLOB, bare, flag BOOLEAN,
    day DATE, at TIME, moment DATETIME, zoned TIMESTAMPTZ, price DECIMAL(20, 4), amount NUMERIC, doc JSON, other STRING)";

fn rows() -> arrow::array::RecordBatch {
    let decimal = |values: [Option<i128>; 3], precision, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale).unwrap())
    };
    let text = |values: [Option<&str>; 3]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let integers = || Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(i64::MAX), None])) as ArrayRef;
    let blob: Vec<Option<&[u8]>> = vec![Some(b"\0\xff"), Some(b""), None];
    let moments =
        || TimestampMicrosecondArray::from(vec![Some(-62_167_219_200_000_000), Some(253_402_300_799_999_999), None]);
    columns([
        ("i", integers()),
        ("big", integers()),
        ("r", Arc::new(Float64Array::from(vec![Some(f64::NEG_INFINITY), Some(5e-324), None]))),
        ("s", text([Some("1e5"), Some("a\u{1d11e}"), None])),
        ("v", text([Some("longer than three"), Some(""), None])),
        ("b", Arc::new(BinaryArray::from(blob))),
        ("bare", text([Some("12"), Some("x"), None])),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("day", Arc::new(Date32Array::from(vec![Some(-719_528), Some(2_932_896), None]))),
        ("at", Arc::new(Time64MicrosecondArray::from(vec![Some(0), Some(86_399_999_999), None]))),
        ("moment", Arc::new(moments())),
        ("zoned", Arc::new(moments().with_timezone("UTC"))),
        ("price", decimal([Some(-99_999_999_999_999), Some(i128::from(i64::MAX) * 10), None], 20, 4)),
        ("amount", decimal([Some(i128::from(i64::MAX) * 1_000_000_000_000_000), Some(1), None], 38, 15)),
        ("doc", text([Some(r#"{"a": 1}"#), Some(r#""5""#), None])),
        ("other", text([Some("2024-01-01"), Some("x1"), None])),
    ])
}

#[tokio::test]
async fn declared_types_have_columns_of_a_body() {
    let target = Target::new(TYPES, &["t"]);
    let schema = target.schema("t").await;
    let rows = rows();
    for (field, array) in schema.fields().iter().zip(rows.columns()) {
        assert_eq!(field.data_type(), array.data_type(), "{field}");
    }
    let inexact = "SQLite stores the number exactly only up to 15 digits, or as integer (column price)";
    let error = refusal(target.append("t", vec![rows]).await);
    assert_eq!((error.message(), error.refused_row()), (inexact, Some(1)));
    assert_eq!(target.value("SELECT count(*) FROM t"), "0");
}

#[tokio::test]
async fn stored_values_are_read_by_the_engine_and_the_library() {
    let target = Target::new(TYPES, &["t"]);
    // Ten times the largest integer has no exact form; the rest has.
    let mut arrays = rows().columns().to_vec();
    arrays[12] = Arc::new(
        Decimal128Array::from(vec![Some(-99_999_999_999_999), Some(i128::from(i64::MAX / 1_000_000) * 10_000), None])
            .with_precision_and_scale(24, 4)
            .unwrap(),
    );
    let names = rows().schema();
    let names: Vec<&'static str> = names.fields().iter().map(|field| &*field.name().clone().leak()).collect();
    target.append("t", vec![columns(names.iter().copied().zip(arrays))]).await.unwrap();
    let mut lines = Vec::new();
    for name in &names {
        let value = format!("(SELECT group_concat(typeof({name}) || ' ' || quote({name}), ', ') FROM t)");
        lines.push(format!("{name}: {}", target.value(&value)));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    i: integer -9223372036854775808, integer 9223372036854775807, null NULL
    big: integer -9223372036854775808, integer 9223372036854775807, null NULL
    r: real -9.0e+999, real 4.9406564584124654e-324, null NULL
    s: text '1e5', text 'a𝄞', null NULL
    v: text 'longer than three', text '', null NULL
    b: blob X'00FF', blob X'', null NULL
    bare: text '12', text 'x', null NULL
    flag: integer 1, integer 0, null NULL
    day: text '0000-01-01', text '9999-12-31', null NULL
    at: text '00:00:00', text '23:59:59.999999', null NULL
    moment: text '0000-01-01 00:00:00', text '9999-12-31 23:59:59.999999', null NULL
    zoned: text '0000-01-01 00:00:00Z', text '9999-12-31 23:59:59.999999Z', null NULL
    price: real -9999999999.9999008, integer 9223372036854, null NULL
    amount: integer 9223372036854775807, real 1.0e-15, null NULL
    doc: text '{"a": 1}', text '"5"', null NULL
    other: text '2024-01-01', text 'x1', null NULL
    "#);
    let node = target.folder.open(&["data.db"], SqliteOptions::default());
    assert_snapshot!(node.rows("SELECT i, r, day, moment, zoned, price, amount, doc FROM t").await, @r#"
    -9223372036854775808,-Infinity,0000-01-01,0000-01-01 00:00:00,0000-01-01 00:00:00Z,-9999999999.9999,9223372036854775807,"{""a"": 1}"
    9223372036854775807,5e-324,9999-12-31,9999-12-31 23:59:59.999999,9999-12-31 23:59:59.999999Z,9223372036854,1e-15,"""5"""
    ,,,,,,,
    "#);
}

#[tokio::test]
async fn strict_tables_have_exact_types() {
    let target = Target::new(
        "CREATE TABLE t (i INT NOT NULL, r REAL, s TEXT DEFAULT 'x' NOT NULL, b BLOB, a ANY, g INT AS (i * 2),
             PRIMARY KEY (i)) STRICT, WITHOUT ROWID;
         CREATE TABLE plain (id INTEGER PRIMARY KEY, code TEXT NOT NULL);
         CREATE VIEW seen AS SELECT 1; CREATE VIRTUAL TABLE words USING fts5(word);",
        &["t", "plain", "seen", "words", "gone"],
    );
    let mut lines = Vec::new();
    for table in ["t", "plain"] {
        for field in target.schema(table).await.fields() {
            let null = if field.is_nullable() { "" } else { " not null" };
            lines.push(format!("{table}.{} {}{null}", field.name(), field.data_type()));
        }
    }
    for table in ["seen", "words", "gone", "plane"] {
        let error = refusal(target.ingest.table(table).await);
        lines.push(format!("{}: {error}", error.kind().name()));
    }
    lines.push(refusal(target.ingest.drop_table("t").await).to_string());
    assert_snapshot!(lines.join("\n"), @r#"
    t.i Int64 not null
    t.r Float64
    t.s Utf8
    t.b Binary
    t.a Utf8
    plain.id Int64
    plain.code Utf8 not null
    invalid_arguments: the table "seen" of the database "shop" takes no rows: it is a view
    invalid_arguments: the table "words" of the database "shop" takes no rows: it is a virtual table
    not_found: the table "gone" is declared, but the database "shop" has none
    The owner of the node corrects the name.
    not_found: the database "shop" has no table "plane" that takes rows
    Valid choices: plain, gone
    The owner of the node adds an existing table under ingest: [plane].
    existing tables, as those of the database "shop", are not dropped here
    Replace the rows of t with none, or drop it with SQL of its owner.
    "#);
}

#[tokio::test]
async fn values_that_sqlite_would_change_are_refused() {
    let target = Target::new(TYPES, &["t"]);
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let decimal = |value: i128, scale: i8| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(38, scale).unwrap())
    };
    let cases: Vec<(&'static str, ArrayRef)> = vec![
        ("r", Arc::new(Float64Array::from(vec![f64::NAN]))),
        ("s", text("a\0b")),
        ("other", text("1e5")),
        ("doc", text(" 12 ")),
        ("price", decimal(1_234_567_890_123_456, 4)),
        ("price", decimal(i128::from(i64::MAX) + 1, 0)),
        ("day", Arc::new(Date32Array::from(vec![2_932_897]))),
        ("at", Arc::new(Time64MicrosecondArray::from(vec![86_400_000_000]))),
        ("moment", Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX]))),
        ("i", Arc::new(Float64Array::from(vec![1.0]))),
        ("nothing", text("x")),
    ];
    let mut lines = Vec::new();
    for (name, array) in cases {
        lines.push(refusal_line(&refusal(target.append("t", vec![columns([(name, array)])]).await)));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    invalid_arguments: row 0: the number is NaN, which SQLite stores as null (column r)
    invalid_arguments: row 0: the text holds a NUL character, where the functions of SQLite end it (column s)
    invalid_arguments: row 0: SQLite would store the text as a number (column other)
    invalid_arguments: row 0: SQLite would store the text as a number (column doc)
    invalid_arguments: row 0: SQLite stores the number exactly only up to 15 digits, or as integer (column price)
    invalid_arguments: row 0: SQLite stores the number exactly only up to 15 digits, or as integer (column price)
    invalid_arguments: row 0: the year is not between 0 and 9999 (column day)
    invalid_arguments: row 0: the time is outside of a day (column at)
    invalid_arguments: row 0: the year is not between 0 and 9999 (column moment)
    invalid_arguments: the columns do not fit the table "t"
    - i: the rows have Float64, and the column takes Int64
    invalid_arguments: the columns do not fit the table "t"
    - nothing: the table has no such column that takes values
    "#);
    assert_eq!(target.value("SELECT count(*) FROM t"), "0");
    assert_eq!(*target.schema("t").await.field(0).data_type(), DataType::Int64);
}
