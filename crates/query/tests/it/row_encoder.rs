//! Bodies outside of any call, and that they are read back as the rows that they were.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::*;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow::util::display::array_value_to_string;
use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::{Error, ErrorKind, Format};
use tidegate_query::RowEncoder;

use crate::bodies::read_arrow;
use crate::fake::{AnswerOptions, FakeDatabase, batch, request_answer};
use crate::formats::numbers;
use crate::parquet::read_parquet;

/// The body of `batches`.
pub(crate) fn written(form: Format, batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = RowEncoder::new(form, &batches[0].schema()).unwrap();
    let mut body: Vec<u8> = batches.iter().flat_map(|batch| writer.write(batch).unwrap()).collect();
    body.extend_from_slice(&writer.finish(false).unwrap());
    body
}

/// A body with its time taken out, which differs from run to run.
fn without_elapsed_ms(body: Vec<u8>) -> Vec<u8> {
    let Ok(text) = String::from_utf8(body.clone()) else { return body };
    let Some((before, after)) = text.split_once("\"elapsed_ms\":") else { return body };
    format!("{before}{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit())).into_bytes()
}

#[test]
fn a_file_of_arrow_has_dictionaries_of_several_batches() {
    let rows = |text: &str| {
        let values: ArrayRef = Arc::new([text].into_iter().collect::<DictionaryArray<Int8Type>>());
        let item = Field::new("item", values.data_type().clone(), true);
        let members = vec![Field::new("keys", DataType::Utf8, false), item.clone().with_name("values")];
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["key"]));
        let entries = StructArray::new(members.into(), vec![keys, values.clone()], None);
        let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let map = MapArray::new(field, OffsetBuffer::from_lengths([1]), entries, None, false);
        let fixed = FixedSizeListArray::new(Arc::new(item), 1, values.clone(), None);
        batch(&[("plain", values), ("fixed", Arc::new(fixed)), ("map", Arc::new(map))])
    };
    let batches = [rows("a"), rows("b")];
    let mut writer = RowEncoder::new(Format::ArrowFile, &batches[0].schema()).unwrap();
    let mut file: Vec<u8> = batches.iter().flat_map(|batch| writer.write(batch).unwrap()).collect();
    file.extend_from_slice(&writer.finish(false).unwrap());
    let read = FileReader::try_new(Cursor::new(file), None).unwrap().map(Result::unwrap);
    let columns = read.flat_map(|batch| batch.columns().to_vec());
    let texts: Vec<String> = columns.map(|column| array_value_to_string(&column, 0).unwrap()).collect();
    assert_eq!(texts, ["a", "[a]", "{key: a}", "b", "[b]", "{key: b}"]);
}

#[tokio::test]
async fn writes_same_body_as_a_call() {
    let batches = [numbers().slice(0, 0), numbers().slice(0, 1), numbers().slice(1, 2)];
    for form in Format::FOR_REST {
        let seen = request_answer(
            &FakeDatabase::new(batches.to_vec()),
            &AnswerOptions { body: Some(form), ..AnswerOptions::default() },
        )
        .await;
        let writer = RowEncoder::new(form, &numbers().schema()).unwrap();
        assert_eq!(writer.media_type(), seen.head.as_ref().unwrap().media_type);
        // A call looks at all first rows, a writer at those of the first batch: that of a table is one.
        let batches = if form == Format::Table { vec![numbers()] } else { batches.to_vec() };
        assert!(without_elapsed_ms(written(form, &batches)) == without_elapsed_ms(seen.body), "{form:?}");
    }
}

#[test]
fn a_body_of_no_rows_is_a_body() {
    for form in Format::FOR_REST {
        let empty = numbers().slice(0, 0);
        let whole = RowEncoder::new(form, &empty.schema()).unwrap().finish(false).unwrap();
        assert_eq!(
            without_elapsed_ms(whole.to_vec()),
            without_elapsed_ms(written(form, &[empty.clone(), empty])),
            "{form:?}"
        );
        assert_eq!(whole.is_empty(), form == Format::Ndjson);
    }
}

#[test]
fn sends_text_per_batch_and_reports_failure() {
    let rows = batch(&[("n", Arc::new(Int64Array::from(vec![1, 2])))]);
    let mut out = String::new();
    for form in [Format::Json, Format::Ndjson, Format::Csv, Format::Table] {
        for fails in [false, true] {
            let mut writer = RowEncoder::new(form, &rows.schema()).unwrap();
            let mut pieces = vec![writer.write(&rows).unwrap(), writer.write(&rows.slice(1, 1)).unwrap()];
            let error = Error::new(ErrorKind::Unavailable, "the disk is gone");
            pieces.push(if fails { writer.fail(&error) } else { writer.finish(true).unwrap() });
            let texts = pieces.into_iter().map(|piece| String::from_utf8(without_elapsed_ms(piece.to_vec())).unwrap());
            out.push_str(&format!("{} {:?}\n", form.name(), texts.collect::<Vec<_>>()));
        }
    }
    insta::assert_snapshot!(out, @r#"
    json ["{\"Query\":[{\"n\":1},{\"n\":2}", ",{\"n\":2}", "],\"columns\":[{\"name\":\"n\",\"type\":\"bigint\"}],\"rows\":3,,\"truncated\":true}"]
    json ["{\"Query\":[{\"n\":1},{\"n\":2}", ",{\"n\":2}", "],\"columns\":[{\"name\":\"n\",\"type\":\"bigint\"}],\"rows\":3,,\"truncated\":true,\"error\":\"the disk is gone\"}"]
    ndjson ["{\"n\":1}\n{\"n\":2}\n", "{\"n\":2}\n", ""]
    ndjson ["{\"n\":1}\n{\"n\":2}\n", "{\"n\":2}\n", "{\"error\":\"the disk is gone\"}\n"]
    csv ["n\r\n1\r\n2\r\n", "2\r\n", ""]
    csv ["n\r\n1\r\n2\r\n", "2\r\n", ""]
    table [" n\n---\n 1\n 2\n", " 2\n", "(3 rows)\n"]
    table [" n\n---\n 1\n 2\n", " 2\n", "the disk is gone\n"]
    "#);
}

#[test]
fn batches_of_other_columns_are_refused() {
    let one = batch(&[("n", Arc::new(Int64Array::from(vec![1])))]);
    for form in Format::FOR_REST {
        for (schema, rows) in [(numbers().schema(), &one), (one.schema(), &numbers())] {
            let mut writer = RowEncoder::new(form, &schema).unwrap();
            assert_eq!(writer.write(rows).unwrap_err().kind(), ErrorKind::Internal, "{form:?}");
        }
    }
}

#[test]
fn a_compressed_stream_of_arrow_is_read_back() {
    let texts = StringArray::from_iter_values((0..5_000).map(|number| format!("the same text, but for {number}")));
    let rows = batch(&[("text", Arc::new(texts))]);
    let stream = |compression| {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &rows.schema(), options).unwrap();
        writer.write(&rows).unwrap();
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    };
    let (compressed, plain) = (stream(Some(CompressionType::ZSTD)), stream(None));
    assert!(compressed.len() < plain.len() / 4, "{} of {} bytes", compressed.len(), plain.len());
    let read: Vec<RecordBatch> =
        StreamReader::try_new(Cursor::new(compressed), None).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(read, [rows]);
}

type Row = (Option<i64>, Option<String>, Option<i128>, Option<Vec<Option<bool>>>, i64, Option<Vec<u8>>);

fn row() -> impl Strategy<Value = Row> {
    (
        any::<Option<i64>>(),
        prop::option::of(any::<String>()),
        prop::option::of(-(10_i128.pow(20))..10_i128.pow(20)),
        prop::option::of(prop::collection::vec(any::<Option<bool>>(), 0..4)),
        -1_000_000_000_000_000..4_000_000_000_000_000_i64,
        prop::option::of(prop::collection::vec(any::<u8>(), 0..8)),
    )
}

fn batch_of(rows: &[Row]) -> RecordBatch {
    let mut lists = ListBuilder::new(BooleanBuilder::new());
    for row in rows {
        match &row.3 {
            None => lists.append_null(),
            Some(items) => lists.append_value(items.iter().copied()),
        }
    }
    let decimals = Decimal128Array::from_iter(rows.iter().map(|row| row.2)).with_precision_and_scale(25, 4).unwrap();
    let moments = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.4)).with_timezone("UTC");
    let texts = StringArray::from_iter(rows.iter().map(|row| row.1.as_deref()));
    let members = Fields::from(vec![Field::new("n", DataType::Int64, true), Field::new("text", DataType::Utf8, true)]);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0)));
    let validity = rows.iter().map(|row| row.0.is_some() || row.1.is_some()).collect::<Vec<bool>>();
    let structs = StructArray::new(members, vec![numbers.clone(), Arc::new(texts.clone())], Some(validity.into()));
    batch(&[
        ("n", numbers),
        ("text", Arc::new(texts)),
        ("decimal", Arc::new(decimals)),
        ("list", Arc::new(lists.finish())),
        ("moment", Arc::new(moments)),
        ("bytes", Arc::new(BinaryArray::from_iter(rows.iter().map(|row| row.5.as_deref())))),
        ("struct", Arc::new(structs)),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bodies_are_read_back_as_the_rows_that_they_were(
        batches in prop::collection::vec(prop::collection::vec(row(), 0..30), 1..4),
    ) {
        let rows: Vec<Row> = batches.concat();
        let batches: Vec<RecordBatch> = batches.iter().map(|rows| batch_of(rows)).collect();
        let schema = batches[0].schema();
        let whole = concat_batches(&schema, &batches).unwrap();

        let read = read_arrow(&written(Format::Arrow, &batches));
        prop_assert_eq!(&concat_batches(&schema, &read).unwrap(), &whole);
        let read = read_parquet(&written(Format::Parquet, &batches));
        prop_assert_eq!(&concat_batches(&schema, &read).unwrap(), &whole);

        let lines = String::from_utf8(written(Format::Ndjson, &batches)).unwrap();
        let lines: Vec<Value> = lines.split_terminator('\n').map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(lines.len(), rows.len());
        for (line, row) in lines.iter().zip(&rows) {
            let has_struct = row.0.is_some() || row.1.is_some();
            let members = has_struct.then(|| json!({"n": row.0, "text": row.1}));
            prop_assert_eq!(&line["n"], &json!(row.0));
            prop_assert_eq!(&line["text"], &json!(row.1));
            prop_assert_eq!(&line["list"], &json!(row.3));
            prop_assert_eq!(&line["struct"], &json!(members));
        }
    }
}
