//! Answers that are Parquet files: every type, groups of rows, bounds, what breaks off.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::printer::print_schema;
use tidegate_core::{AnswerFormat, Budget, Error, ErrorKind};
use tidegate_query::BodyWriter;

use crate::fake::{Fake, Seen, Wishes, ask, batch};
use crate::formats::{extremes, marked, nested, numbers, own_types, strings, times};
use crate::writers::written;

fn opened(bytes: &[u8]) -> ParquetRecordBatchReaderBuilder<Bytes> {
    ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes)).unwrap()
}

/// The rows of a file, in batches of any size.
pub(crate) fn read_parquet(bytes: &[u8]) -> Vec<RecordBatch> {
    let reader: ParquetRecordBatchReader = opened(bytes).build().unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

fn metadata(bytes: &[u8]) -> Arc<ParquetMetaData> {
    opened(bytes).metadata().clone()
}

async fn asked(fake: &Fake, wishes: Wishes) -> Seen {
    ask(fake, &Wishes { body: Some(AnswerFormat::Parquet), ..wishes }).await
}

/// The columns as any reader sees them, and as readers of Arrow do.
fn columns(bytes: &[u8]) -> String {
    let file = opened(bytes);
    let mut message = Vec::new();
    print_schema(&mut message, file.metadata().file_metadata().schema());
    let fields = file.schema().fields().iter();
    let fields: Vec<String> = fields.map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    format!("{}\n{}", String::from_utf8(message).unwrap(), fields.join("\n"))
}

#[test]
fn values_are_read_back_as_they_were() {
    for rows in [numbers(), strings(), times(), extremes(), marked(), nested()] {
        let is_union = |field: &FieldRef| matches!(field.data_type(), DataType::Union(..));
        let plain: Vec<usize> = rows
            .schema()
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| !is_union(field))
            .map(|(index, _)| index)
            .collect();
        let rows = rows.project(&plain).unwrap();
        let read =
            read_parquet(&written(AnswerFormat::Parquet, &[rows.slice(0, 1), rows.slice(1, rows.num_rows() - 1)]));
        let shown = |batches: &[RecordBatch]| String::from_utf8(written(AnswerFormat::Ndjson, batches)).unwrap();
        assert_eq!(shown(&read), shown(&[rows]));
    }
}

#[test]
fn a_file_has_the_types_that_every_reader_knows() {
    let shown = |rows: RecordBatch| columns(&written(AnswerFormat::Parquet, &[rows]));
    insta::assert_snapshot!(shown(numbers()), @"");
    insta::assert_snapshot!(shown(times()), @"");
    insta::assert_snapshot!(shown(marked()), @"");
    insta::assert_snapshot!(shown(nested()), @"");
}

#[test]
fn values_that_have_each_a_type_of_their_own_are_text() {
    let read = read_parquet(&written(AnswerFormat::Parquet, &[batch(&[("v", Arc::new(own_types()))])]));
    let texts: Vec<Option<&str>> = read[0].column(0).as_string::<i32>().iter().collect();
    insta::assert_snapshot!(format!("{texts:?}"), @"");
}

#[test]
fn dictionaries_of_several_batches_are_one_column() {
    let of = |start: usize| -> RecordBatch {
        let texts: Vec<String> = (start..start + 100).map(|number| format!("text {number}")).collect();
        let dictionary: DictionaryArray<Int8Type> = texts.iter().map(|text| Some(text.as_str())).collect();
        batch(&[("c", Arc::new(dictionary))])
    };
    let read = read_parquet(&written(AnswerFormat::Parquet, &[of(0), of(100)]));
    let texts: Vec<&str> = read.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten()).collect();
    assert_eq!((texts.len(), texts[199]), (200, "text 199"));
}

#[test]
fn names_are_unique_and_never_empty() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let fields = ["a", "a", "", "odd \"name\", |", "a.b"].map(|name| Field::new(name, DataType::Int64, false));
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![column; 5]).unwrap();
    insta::assert_snapshot!(columns(&written(AnswerFormat::Parquet, &[rows])), @"");
}

#[test]
fn moments_that_have_no_place_are_an_error_and_not_null() {
    let rows = batch(&[("t", Arc::new(TimestampSecondArray::from(vec![i64::MAX])))]);
    let mut writer = BodyWriter::new(AnswerFormat::Parquet, &rows.schema()).unwrap();
    assert_eq!(writer.write(&rows).unwrap_err().kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn an_answer_without_rows_is_a_file_with_its_columns() {
    let seen = asked(&Fake::of(vec![numbers().slice(0, 0)]), Wishes::default()).await;
    assert_eq!((seen.rows, metadata(&seen.body).file_metadata().num_rows()), (0, 0));
    assert_eq!(opened(&seen.body).schema().fields().len(), numbers().num_columns());
    assert!(read_parquet(&seen.body).is_empty());
}

#[tokio::test]
async fn an_answer_without_columns_is_refused() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let seen = asked(&Fake::of(vec![rows]), Wishes::default()).await;
    insta::assert_snapshot!(seen.failure.unwrap(), @"the answer has no columns, and a Parquet file has one at least");
}

#[tokio::test]
async fn rows_are_bounded_and_compressed() {
    let budget = Budget { rows: Some(9_000), bytes: None };
    let seen = asked(&Fake::counting(4, 4_000), Wishes { budget, ..Wishes::default() }).await;
    let metadata = metadata(&seen.body);
    assert_eq!((metadata.file_metadata().num_rows(), metadata.num_row_groups()), (9_000, 1));
    assert_eq!((seen.rows, &seen.metadata["dev.tidegate/truncated"]), (9_000, &true.into()));
    let read = read_parquet(&seen.body);
    let numbers = read.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    assert!(numbers.eq(0..9_000));
    assert!(seen.body.len() < 9_000 * 8 / 2, "{} bytes", seen.body.len());
}

#[tokio::test]
async fn groups_leave_when_they_are_complete() {
    const GROUP_ROWS_MAX: i64 = 1024 * 1024;
    let fake = Fake::counting(150, 8_192);
    let seen = asked(&fake, Wishes::default()).await;
    let rows: Vec<i64> = metadata(&seen.body).row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [GROUP_ROWS_MAX, 150 * 8_192 - GROUP_ROWS_MAX]);
    assert_eq!(seen.rows, 150 * 8_192);

    // The first group was sent when the failure came: it is there, and it is no file.
    let failure = || Error::new(ErrorKind::Unavailable, "the disk is gone");
    let seen = asked(&Fake { failure: Some(failure), ..fake }, Wishes::default()).await;
    assert_eq!(seen.failure.unwrap().kind(), ErrorKind::Unavailable);
    assert_eq!(seen.rows, GROUP_ROWS_MAX.unsigned_abs());
    assert!(seen.body.starts_with(b"PAR1") && seen.body.len() > 100_000);
    assert!(ParquetRecordBatchReaderBuilder::try_new(Bytes::from(seen.body)).is_err());
}
