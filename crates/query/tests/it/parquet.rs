//! Answers that are Parquet files: every type, groups of rows, bounds, what breaks off.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::printer::print_schema;
use tidegate_core::{Budget, Error, ErrorKind, Format};
use tidegate_query::RowEncoder;

use crate::fake::{AnswerOptions, AnswerRecord, FakeDatabase, batch, request_answer};
use crate::formats::{extension_types, extremes, nested, numbers, own_types, strings, times};
use crate::row_encoder::written;

fn open_parquet(bytes: &[u8]) -> ParquetRecordBatchReaderBuilder<Bytes> {
    ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes)).unwrap()
}

/// The rows of a file, in batches of any size.
pub(crate) fn read_parquet(bytes: &[u8]) -> Vec<RecordBatch> {
    let reader: ParquetRecordBatchReader = open_parquet(bytes).build().unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

fn metadata(bytes: &[u8]) -> Arc<ParquetMetaData> {
    open_parquet(bytes).metadata().clone()
}

async fn answer_for(fake: &FakeDatabase, wishes: AnswerOptions) -> AnswerRecord {
    request_answer(fake, &AnswerOptions { body: Some(Format::Parquet), ..wishes }).await
}

/// The columns as any reader sees them, and as readers of Arrow do.
fn columns(bytes: &[u8]) -> String {
    let file = open_parquet(bytes);
    let mut message = Vec::new();
    print_schema(&mut message, file.metadata().file_metadata().schema());
    let fields = file.schema().fields().iter();
    let fields: Vec<String> = fields.map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    format!("{}\n{}", String::from_utf8(message).unwrap(), fields.join("\n"))
}

#[test]
fn values_are_read_back_as_they_were() {
    // Unions become text, and of a `Date64` the day stays: it has nothing else where Arrow is kept to.
    let is_same = |field: &Field| !matches!(field.data_type(), DataType::Union(..) | DataType::Date64);
    for rows in [numbers(), strings(), times(), extremes(), extension_types(), nested()] {
        let schema = rows.schema();
        let same: Vec<usize> = (0..schema.fields().len()).filter(|index| is_same(schema.field(*index))).collect();
        let rows = rows.project(&same).unwrap();
        let parts = [rows.slice(0, 1), rows.slice(1, rows.num_rows() - 1)];
        let read = read_parquet(&written(Format::Parquet, &parts));
        let visible = |batches: &[RecordBatch]| String::from_utf8(written(Format::Ndjson, batches)).unwrap();
        assert_eq!(visible(&read), visible(&[rows]));
    }
}

#[test]
fn file_uses_portable_types() {
    let visible = |rows: RecordBatch| columns(&written(Format::Parquet, &[rows]));
    insta::assert_snapshot!(visible(numbers()), @r#"
    message arrow_schema {
      OPTIONAL INT32 tiny (INTEGER(8,true));
      OPTIONAL INT64 big;
      OPTIONAL INT64 huge (INTEGER(64,false));
      OPTIONAL FLOAT real;
      OPTIONAL DOUBLE double;
      OPTIONAL FIXED_LEN_BYTE_ARRAY (16) price (DECIMAL(38,10));
      OPTIONAL BOOLEAN ok;
      OPTIONAL INT32 nothing (UNKNOWN);
    }

    tiny Int8
    big Int64
    huge UInt64
    real Float32
    double Float64
    price Decimal128(38, 10)
    ok Boolean
    nothing Null
    "#);
    insta::assert_snapshot!(visible(times()), @r#"
    message arrow_schema {
      OPTIONAL INT32 date (DATE);
      OPTIONAL INT32 date64 (DATE);
      OPTIONAL INT64 time (TIME(MICROS,false));
      OPTIONAL INT64 local (TIMESTAMP(NANOS,false));
      OPTIONAL INT64 seconds (TIMESTAMP(MILLIS,false));
      OPTIONAL INT64 utc (TIMESTAMP(MICROS,true));
      OPTIONAL INT64 offset (TIMESTAMP(MICROS,true));
      OPTIONAL INT64 new_york (TIMESTAMP(MICROS,true));
      OPTIONAL BYTE_ARRAY interval (STRING);
      OPTIONAL BYTE_ARRAY duration (STRING);
    }

    date Date32
    date64 Date32
    time Time64(µs)
    local Timestamp(ns)
    seconds Timestamp(ms)
    utc Timestamp(µs, "UTC")
    offset Timestamp(µs, "+05:30")
    new_york Timestamp(µs, "America/New_York")
    interval Utf8
    duration Utf8
    "#);
    insta::assert_snapshot!(visible(extension_types()), @r#"
    message arrow_schema {
      OPTIONAL BYTE_ARRAY number (STRING);
      OPTIONAL BYTE_ARRAY json (STRING);
      OPTIONAL FIXED_LEN_BYTE_ARRAY (16) uuid (UUID);
      OPTIONAL BYTE_ARRAY range (STRING);
      OPTIONAL group numbers (LIST) {
        REPEATED group list {
          OPTIONAL BYTE_ARRAY number (STRING);
        }
      }
      OPTIONAL group struct {
        OPTIONAL BYTE_ARRAY json (STRING);
        OPTIONAL BYTE_ARRAY number (STRING);
      }
    }

    number Utf8
    json Utf8
    uuid FixedSizeBinary(16)
    range Utf8
    numbers List(Utf8, field: 'number', metadata: {"ARROW:extension:name": "tidegate.number", "tidegate.type": "numeric"})
    struct Struct("json": Utf8, metadata: {"ARROW:extension:name": "arrow.json", "tidegate.type": "jsonb"}, "number": Utf8, metadata: {"ARROW:extension:name": "tidegate.number", "tidegate.type": "numeric"})
    "#);
    insta::assert_snapshot!(visible(nested()), @r#"
    message arrow_schema {
      OPTIONAL group list (LIST) {
        REPEATED group list {
          OPTIONAL INT64 item;
        }
      }
      OPTIONAL group struct {
        OPTIONAL BYTE_ARRAY name (STRING);
        OPTIONAL INT32 n;
      }
      OPTIONAL group map (MAP) {
        REPEATED group entries {
          REQUIRED BYTE_ARRAY keys (STRING);
          OPTIONAL INT64 values;
        }
      }
      OPTIONAL BYTE_ARRAY dictionary (STRING);
      OPTIONAL BYTE_ARRAY runs (STRING);
      OPTIONAL BYTE_ARRAY union (STRING);
      OPTIONAL group view (LIST) {
        REPEATED group list {
          OPTIONAL INT32 item;
        }
      }
      OPTIONAL group structs (LIST) {
        REPEATED group list {
          OPTIONAL group item {
            OPTIONAL BYTE_ARRAY name (STRING);
            OPTIONAL INT32 n;
          }
        }
      }
    }

    list List(Int64)
    struct Struct("name": Utf8, "n": Int32)
    map Map("entries": non-null Struct("keys": non-null Utf8, "values": Int64), unsorted)
    dictionary Utf8
    runs Utf8
    union Utf8
    view List(Int32)
    structs List(Struct("name": Utf8, "n": Int32))
    "#);
}

#[test]
fn union_values_become_text() {
    let read = read_parquet(&written(Format::Parquet, &[batch(&[("v", Arc::new(own_types()))])]));
    let texts: Vec<Option<&str>> = read[0].column(0).as_string::<i32>().iter().collect();
    insta::assert_snapshot!(format!("{texts:?}"), @r#"[Some("1"), Some("1.0"), Some("1"), Some("AP8="), None, Some("a,\"b"), Some("-Infinity"), Some("9223372036854775807")]"#);
}

#[test]
fn dictionaries_of_several_batches_are_one_column() {
    let of = |start: usize| -> RecordBatch {
        let texts: Vec<String> = (start..start + 100).map(|number| format!("text {number}")).collect();
        let dictionary: DictionaryArray<Int8Type> = texts.iter().map(|text| Some(text.as_str())).collect();
        batch(&[("c", Arc::new(dictionary))])
    };
    let read = read_parquet(&written(Format::Parquet, &[of(0), of(100)]));
    let texts: Vec<&str> = read.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten()).collect();
    assert_eq!((texts.len(), texts[199]), (200, "text 199"));
}

#[test]
fn names_are_unique_and_never_empty() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let fields = ["a", "a", "", "odd \"name\", |", "a.b"].map(|name| Field::new(name, DataType::Int64, false));
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![column; 5]).unwrap();
    insta::assert_snapshot!(columns(&written(Format::Parquet, &[rows])), @r#"
    message arrow_schema {
      REQUIRED INT64 a;
      REQUIRED INT64 a_2;
      REQUIRED INT64 column_3;
      REQUIRED INT64 odd "name", |;
      REQUIRED INT64 a.b;
    }

    a Int64
    a_2 Int64
    column_3 Int64
    odd "name", | Int64
    a.b Int64
    "#);
}

#[test]
fn rejects_timestamps_out_of_range() {
    let rows = batch(&[("t", Arc::new(TimestampSecondArray::from(vec![i64::MAX])))]);
    let mut writer = RowEncoder::new(Format::Parquet, &rows.schema()).unwrap();
    assert_eq!(writer.write(&rows).unwrap_err().kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn an_answer_without_rows_is_a_file_with_its_columns() {
    let seen = answer_for(&FakeDatabase::new(vec![numbers().slice(0, 0)]), AnswerOptions::default()).await;
    assert_eq!((seen.rows, metadata(&seen.body).file_metadata().num_rows()), (0, 0));
    assert_eq!(open_parquet(&seen.body).schema().fields().len(), numbers().num_columns());
    assert!(read_parquet(&seen.body).is_empty());
}

#[tokio::test]
async fn an_answer_without_columns_is_refused() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let seen = answer_for(&FakeDatabase::new(vec![rows]), AnswerOptions::default()).await;
    insta::assert_snapshot!(seen.failure.unwrap(), @"the answer has no columns, but a Parquet file needs at least one");
}

#[tokio::test]
async fn rows_are_bounded_and_compressed() {
    let budget = Budget { rows: Some(9_000), bytes: None };
    let seen =
        answer_for(&FakeDatabase::counting(4, 4_000), AnswerOptions { budget, ..AnswerOptions::default() }).await;
    let metadata = metadata(&seen.body);
    assert_eq!((metadata.file_metadata().num_rows(), metadata.num_row_groups()), (9_000, 1));
    assert_eq!((seen.rows, seen.metadata.is_truncated), (9_000, Some(true)));
    let read = read_parquet(&seen.body);
    let numbers = read.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    assert!(numbers.eq(0..9_000));
    assert!(seen.body.len() < 9_000 * 8 / 2, "{} bytes", seen.body.len());
}

#[tokio::test]
async fn sends_complete_row_groups() {
    const GROUP_ROWS_MAX: i64 = 1024 * 1024;
    let fake = FakeDatabase::counting(150, 8_192);
    let seen = answer_for(&fake, AnswerOptions::default()).await;
    let rows: Vec<i64> = metadata(&seen.body).row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [GROUP_ROWS_MAX, 150 * 8_192 - GROUP_ROWS_MAX]);
    assert_eq!(seen.rows, 150 * 8_192);

    // The first group was sent when the failure came: it is there, and it is no file.
    let failure = || Error::new(ErrorKind::Unavailable, "the disk is gone");
    let seen = answer_for(&FakeDatabase { failure: Some(failure), ..fake }, AnswerOptions::default()).await;
    assert_eq!(seen.failure.as_ref().unwrap().kind(), ErrorKind::Unavailable);
    assert_eq!(seen.rows, GROUP_ROWS_MAX.unsigned_abs());
    assert!(seen.body.starts_with(b"PAR1") && seen.body.len() > 100_000);
    assert!(ParquetRecordBatchReaderBuilder::try_new(Bytes::from(seen.body)).is_err());
}
