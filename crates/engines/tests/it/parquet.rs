//! Parquet files of other writers: types that the Arrow library does not have, and footers that are wrong.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType as ParquetType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int96,
    Int96Type,
};
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use tidegate_core::Principal;
use tidegate_query::Database as _;

use crate::support::{Folder, numbers, write_arrow, write_parquet};

/// Writes one column.
type WriteColumn<'c> = &'c dyn Fn(&mut SerializedRowGroupWriter<'_, fs::File>);

/// Writes a row group with the columns of `message`, each by one of `columns`.
fn write_columns(path: &Path, message: &str, columns: &[WriteColumn<'_>]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let schema = Arc::new(parse_message_type(&format!("message schema {{ {message} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    columns.iter().for_each(|write| write(&mut group));
    group.close().unwrap();
    writer.close().unwrap();
}

/// Writes the values of the next column, each with its definition level and, in lists, its repetition level.
fn write_next<T: ParquetType>(
    group: &mut SerializedRowGroupWriter<'_, fs::File>,
    values: &[T::T],
    definitions: &[i16],
    repetitions: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, Some(definitions), repetitions).unwrap();
    column.close().unwrap();
}

/// Writes a file with the optional column `v`.
pub(crate) fn write_column<T: ParquetType>(path: &Path, column_type: &str, values: &[Option<T::T>]) {
    let definitions: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    write_columns(
        path,
        &format!("optional {column_type};"),
        &[&|group| {
            write_next::<T>(group, &present, &definitions, None);
        }],
    );
}

fn fixed(bytes: &[u8]) -> FixedLenByteArray {
    ByteArray::from(bytes.to_vec()).into()
}

fn interval(months: u32, days: u32, milliseconds: u32) -> FixedLenByteArray {
    fixed(&[months, days, milliseconds].map(u32::to_le_bytes).concat())
}

/// A time so many days after 1970-01-01.
pub(crate) fn time(days: i64, nanos: u64) -> Int96 {
    Int96::from(vec![nanos as u32, (nanos >> 32) as u32, (days + 2_440_588) as u32])
}

const INTERVAL: &str = "fixed_len_byte_array(12) v (INTERVAL)";
pub(crate) const DAY_OF_9999_12_31: i64 = 2_932_896;

#[tokio::test]
async fn intervals_have_months_days_and_milliseconds() {
    let folder = Folder::new();
    let values = [Some(interval(14, 3, 3_600_001)), None, Some(interval(0, 0, 2_592_000_000)), Some(interval(0, 0, 0))];
    write_column::<FixedLenByteArrayType>(&folder.join("spans.parquet"), INTERVAL, &values);
    write_column::<FixedLenByteArrayType>(&folder.join("long.parquet"), INTERVAL, &[Some(interval(u32::MAX, 0, 0))]);
    let node = folder.database();
    assert_eq!(node.columns("spans").await.unwrap(), "v interval");
    assert_eq!(
        node.rows("SELECT timestamp '2024-01-01' + v FROM spans").await,
        "2025-03-04T01:00:00.001\nnull\n2024-01-31T00:00:00\n2024-01-01T00:00:00"
    );
    assert_eq!(node.rows("SELECT count(*) FROM spans WHERE v > interval '1 year'").await, "1");
    let refusal = node.refusal("SELECT v FROM long").await;
    assert!(refusal.contains("column \"v\" of the table \"long\" has an interval beyond 32 bits"), "{refusal}");
}

#[tokio::test]
async fn times_of_96_bits_have_all_years() {
    let folder = Folder::new();
    let values = [Some(time(DAY_OF_9999_12_31, 0)), Some(time(19_723, 45_296_789_000_000)), None];
    let older = [Some(time(-719_162, 0))];
    write_column::<Int96Type>(&folder.join("times/a.parquet"), "int96 v", &values);
    write_column::<Int96Type>(&folder.join("times/b.parquet"), "int96 v", &older);
    let node = folder.database();
    assert_eq!(node.columns("times").await.unwrap(), "v timestamp");
    assert_eq!(
        node.rows("SELECT v FROM times ORDER BY v NULLS LAST").await,
        "0001-01-01T00:00:00\n2024-01-01T12:34:56.789\n9999-12-31T00:00:00\nnull"
    );
    assert_eq!(node.rows("SELECT v FROM times WHERE v > '9000-01-01'").await, "9999-12-31T00:00:00");
    assert_eq!(node.rows("SELECT max(v) FROM times").await, "9999-12-31T00:00:00");
}

/// The type of a column is microseconds until a time needs nanoseconds. No time is rounded.
#[tokio::test]
async fn times_of_96_bits_keep_their_nanoseconds() {
    let folder = Folder::new();
    let fine = || Some(time(19_723, 1));
    write_column::<Int96Type>(&folder.join("fine/a.parquet"), "int96 v", &[Some(time(19_722, 0))]);
    write_column::<Int96Type>(&folder.join("fine/b.parquet"), "int96 v", &[fine()]);
    write_column::<Int96Type>(&folder.join("both.parquet"), "int96 v", &[fine(), Some(time(DAY_OF_9999_12_31, 0))]);
    let node = folder.database();
    for _ in 0..2 {
        assert_eq!(
            node.rows("SELECT v FROM fine ORDER BY v").await,
            "2023-12-31T00:00:00\n2024-01-01T00:00:00.000000001"
        );
    }
    // A file that is inspected after the correction has the type of the others.
    write_column::<Int96Type>(&folder.join("fine/c.parquet"), "int96 v", &[Some(time(19_724, 0))]);
    assert_eq!(node.rows("SELECT count(v) FROM fine").await, "3");
    let refusal = node.refusal("SELECT v FROM both").await;
    assert!(refusal.contains("outside of the years 1677 to 2262"), "{refusal}");
}

#[tokio::test]
async fn nested_intervals_times_and_uuids_are_read() {
    let folder = Folder::new();
    let message = "optional group s { optional fixed_len_byte_array(12) span (INTERVAL); }
        optional group l (LIST) { repeated group list { optional int96 element; } }
        optional group m (MAP) {
            repeated group key_value { required binary key (UTF8); optional fixed_len_byte_array(16) value (UUID); }
        }";
    let id: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
    write_columns(
        &folder.join("nested.parquet"),
        message,
        &[
            &|group| write_next::<FixedLenByteArrayType>(group, &[interval(1, 0, 0)], &[2], None),
            &|group| {
                let times = [time(DAY_OF_9999_12_31, 0), time(0, 0)];
                write_next::<Int96Type>(group, &times, &[3, 3], Some(&[0, 1]));
            },
            &|group| write_next::<ByteArrayType>(group, &["k".into()], &[2], Some(&[0])),
            &|group| write_next::<FixedLenByteArrayType>(group, &[fixed(&id)], &[3], Some(&[0])),
        ],
    );
    let node = folder.database();
    assert_eq!(node.columns("nested").await.unwrap(), "s struct(span interval), l timestamp[], m map(text, text)");
    assert_eq!(
        node.rows("SELECT timestamp '2024-01-31' + s['span'], l[1], l[2], map_values(m) FROM nested").await,
        "2024-02-29T00:00:00|9999-12-31T00:00:00|1970-01-01T00:00:00|[00112233-4455-6677-8899-aabbccddeeff]"
    );
}

#[tokio::test]
async fn columns_of_json_have_its_operators() {
    let folder = Folder::new();
    let documents: [Option<ByteArray>; 2] = [Some(r#"{"a": {"b": 7}}"#.into()), None];
    write_column::<ByteArrayType>(&folder.join("documents/a.parquet"), "binary v (JSON)", &documents);
    write_column::<ByteArrayType>(&folder.join("documents/b.parquet"), "binary v (JSON)", &documents);
    write_column::<ByteArrayType>(&folder.join("mixed/a.parquet"), "binary v (JSON)", &documents);
    let same = [r#"{"a":1,"b":2}"#, r#"{"b": 2, "a": 1.0}"#].map(|text| Some(ByteArray::from(text)));
    write_column::<ByteArrayType>(&folder.join("same.parquet"), "binary v (JSON)", &same);
    write_column::<ByteArrayType>(&folder.join("mixed/b.parquet"), "binary v (UTF8)", &[Some("no document".into())]);
    let node = folder.database();
    assert_eq!(node.columns("documents").await.unwrap(), "v json");
    assert_eq!(node.rows("SELECT v->'a'->>'b' FROM documents").await, "7\nnull\n7\nnull");
    // Those of jsonb, too, which has more of them.
    for condition in
        ["v @> '{\"a\": {}}'", "v ? 'a'", "v ?| '{a,x}'", "v @? '$.a.b'", "v @@ '$.a.b == 7'", "v['a']['b'] = '7'"]
    {
        assert_eq!(node.rows(&format!("SELECT count(*) FROM documents WHERE {condition}")).await, "2", "{condition}");
    }
    assert_eq!(node.rows("SELECT v #- '{a,b}', v - 'a' FROM documents LIMIT 1").await, "{\"a\": {}}|{}");
    assert_eq!(node.rows("SELECT count(DISTINCT v) FROM same").await, "1");
    assert_eq!(node.rows("SELECT count(*) FROM (SELECT v FROM same GROUP BY v UNION SELECT v FROM same) d").await, "1");
    assert_eq!(node.rows(r#"SELECT v = '{"b":2,"a":1}', v > '{}' FROM same"#).await, "true|true\ntrue|true");
    let keys = node.rows("SELECT jsonb_typeof(v), jsonb_object_keys(v) FROM same ORDER BY 2").await;
    assert_eq!(keys, "object|a\nobject|a\nobject|b\nobject|b");
    let refusal = node.refusal("SELECT v->'a' = v->'b' FROM same").await;
    assert!(refusal.contains("write value::jsonb on both sides"), "{refusal}");
    assert_eq!(node.columns("mixed").await.unwrap(), "v text");
    assert_eq!(node.rows("SELECT count(v) FROM mixed").await, "2");
}

#[tokio::test]
async fn extension_types_of_arrow_are_json_and_uuids() {
    let folder = Folder::new();
    let extension =
        |field: Field, name: &str| field.with_metadata([("ARROW:extension:name".to_owned(), name.to_owned())].into());
    let schema = Schema::new(vec![
        extension(Field::new("j", DataType::Utf8, true), "arrow.json"),
        extension(Field::new("u", DataType::FixedSizeBinary(16), true), "arrow.uuid"),
    ]);
    let id: [u8; 16] = std::array::from_fn(|index| index as u8 * 17);
    let documents: ArrayRef = Arc::new(StringArray::from(vec![Some(r#"{"a": 7}"#), None]));
    let ids = FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(id), None].into_iter(), 16).unwrap();
    let batch = RecordBatch::try_new(Arc::new(schema), vec![documents, Arc::new(ids)]).unwrap();
    write_arrow(&folder.join("file.arrow"), &batch, false);
    write_arrow(&folder.join("stream.arrows"), &batch, true);
    let node = folder.database();
    for table in ["file", "stream"] {
        assert_eq!(node.columns(table).await.unwrap(), "j json, u text");
        let rows = node.rows(&format!("SELECT j->>'a', u FROM {table}")).await;
        assert_eq!(rows, "7|00112233-4455-6677-8899-aabbccddeeff\nnull|null");
    }
}

#[tokio::test]
async fn uuids_within_other_values_of_arrow_are_text() {
    let folder = Folder::new();
    let uuid = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())];
    let uuid = |name: &str| Field::new(name, DataType::FixedSizeBinary(16), true).with_metadata(uuid.clone().into());
    let id: [u8; 16] = std::array::from_fn(|index| index as u8 * 17);
    let ids = || FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(id), None].into_iter(), 16).unwrap();
    let plain = Field::new("n", DataType::FixedSizeBinary(16), true);
    let structure = StructArray::new(vec![uuid("u"), plain].into(), vec![Arc::new(ids()), Arc::new(ids())], None);
    let list = ListArray::new(Arc::new(uuid("item")), OffsetBuffer::from_lengths([0, 2]), Arc::new(ids()), None);
    let columns: [(&str, ArrayRef); 2] = [("s", Arc::new(structure)), ("l", Arc::new(list))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write_arrow(&folder.join("file.arrow"), &batch, false);
    write_arrow(&folder.join("stream.arrows"), &batch, true);
    write_parquet(&folder.join("parquet.parquet"), &batch, 5);
    let node = folder.database();
    for table in ["file", "stream", "parquet"] {
        assert_eq!(node.columns(table).await.unwrap(), "s struct(u text, n bytea), l text[]", "{table}");
        let rows = node.rows(&format!("SELECT s['u'], l[1] FROM {table}")).await;
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(rows, format!("{text}|null\nnull|{text}"), "{table}");
        assert_eq!(node.rows(&format!("SELECT count(*) FROM {table} WHERE s['u'] = '{text}'")).await, "1", "{table}");
    }
}

/// Writes a row in which the columns `a` and `b` are 1 and 2, beside groups without fields.
pub(crate) fn write_empty_groups(path: &Path) {
    let write = |value: i32| {
        move |group: &mut SerializedRowGroupWriter<'_, fs::File>| {
            write_next::<Int32Type>(group, &[value], &[1], None);
        }
    };
    let message = "optional group e {} optional int32 a; optional group n { optional group m {} } optional int32 b;";
    write_columns(path, message, &[&write(1), &write(2)]);
}

/// They have no values in the file, and must not move other columns.
#[tokio::test]
async fn groups_without_fields_are_no_columns() {
    let folder = Folder::new();
    write_empty_groups(&folder.join("t.parquet"));
    let node = folder.database();
    assert_eq!(node.columns("t").await.unwrap(), "a integer, b integer");
    assert_eq!(node.rows("SELECT * FROM t").await, "1|2");
    assert_eq!(node.rows("SELECT b FROM t WHERE b > 1").await, "2");
    assert_eq!(node.rows("SELECT min(a), max(b) FROM t").await, "1|2");
}

#[tokio::test]
async fn structures_of_arrow_without_members_are_json() {
    let folder = Folder::new();
    let empty = StructArray::new_empty_fields(3, Some(vec![true, false, true].into()));
    let item = Arc::new(Field::new("item", DataType::Struct(Fields::empty()), true));
    let list = ListArray::new(item, OffsetBuffer::from_lengths([2, 1, 0]), Arc::new(empty.clone()), None);
    let columns: [(&str, ArrayRef); 2] = [("e", Arc::new(empty)), ("l", Arc::new(list))];
    write_arrow(&folder.join("t.arrow"), &RecordBatch::try_from_iter(columns).unwrap(), false);
    let node = folder.database();
    assert_eq!(node.columns("t").await.unwrap(), "e json, l json[]");
    assert_eq!(node.rows("SELECT e, l[1], l[2] FROM t").await, "{}|{}|null\nnull|{}|null\n{}|null|null");
    assert_eq!(node.rows("SELECT e::text, count(*) FROM t GROUP BY e::text ORDER BY 2").await, "null|1\n{}|2");
}

/// A few bytes of a file may be a page of gigabytes.
#[tokio::test]
async fn pages_that_a_query_has_no_memory_for_are_refused_by_name() {
    let folder = Folder::with(&[("other.csv", "x\n1\n")]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(130 << 20)]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("t", texts)]).unwrap();
    // Without copies of the text in a dictionary and as bounds.
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let file = fs::File::create(folder.join("large.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(*), max(id) FROM large").await, "1|7");
    let refusal = node.refusal("SELECT t FROM large").await;
    assert!(refusal.contains("the file large.parquet cannot be read: column \"t\" has pages of 1363148"), "{refusal}");
    assert_eq!(node.rows("SELECT id FROM large").await, "7");
}

/// The rows 0 to 4, with a footer that says of both columns what `statistics` says.
fn write_with_statistics(path: &Path, statistics: [Statistics; 2]) {
    write_parquet(path, &numbers(5), 5);
    let whole = fs::read(path).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(whole.clone())).unwrap();
    let mut builder = metadata.into_builder();
    let group = builder.take_row_groups().remove(0);
    let columns = group.columns().iter().zip(statistics);
    let columns =
        columns.map(|(column, statistics)| column.clone().into_builder().set_statistics(statistics).build().unwrap());
    let columns = columns.collect();
    let group = group.into_builder().set_column_metadata(columns).build().unwrap();
    let mut bytes = whole[..footer_start(&whole)].to_vec();
    ParquetMetaDataWriter::new(&mut bytes, &builder.set_row_groups(vec![group]).build()).finish().unwrap();
    fs::write(path, bytes).unwrap();
}

fn footer_start(file: &[u8]) -> usize {
    let tail = file.len() - 8;
    tail - u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) as usize
}

/// Some writers have statistics of other values. Only those that are marked as exact are taken for values.
#[tokio::test]
async fn statistics_that_are_not_exact_are_no_values() {
    let folder = Folder::new();
    let ids = ValueStatistics::new(Some(3_i64), Some(3), Some(1), Some(0), false);
    let names = ValueStatistics::<ByteArray>::new(None, None, Some(0), Some(5), false);
    let statistics =
        [Statistics::Int64(ids.with_max_is_exact(false).with_min_is_exact(false)), Statistics::ByteArray(names)];
    write_with_statistics(&folder.join("wrong.parquet"), statistics);
    let ids = ValueStatistics::new(Some(4_i64), Some(0), None, Some(7), false);
    let names = ValueStatistics::<ByteArray>::new(None, None, None, Some(9), false);
    write_with_statistics(&folder.join("absurd.parquet"), [Statistics::Int64(ids), Statistics::ByteArray(names)]);
    let node = folder.database();
    for table in ["wrong", "absurd"] {
        let rows = node.rows(&format!("SELECT id, name FROM {table} LIMIT 2")).await;
        assert_eq!(rows, "0|name 0\n1|name 1", "{table}");
        let sql = format!("SELECT count(*), count(id), count(name), count(DISTINCT id), min(id), max(id) FROM {table}");
        assert_eq!(node.rows(&sql).await, "5|5|5|5|0|4", "{table}");
    }
}

#[tokio::test]
async fn a_footer_that_contradicts_itself_about_its_rows_is_an_error() {
    let folder = Folder::new();
    write_parquet(&folder.join("rows.parquet"), &numbers(5), 5);
    let mut bytes = fs::read(folder.join("rows.parquet")).unwrap();
    // The field with the number of rows of the file, in the compact protocol of Thrift, before the list of row groups.
    let footer = footer_start(&bytes);
    let positions: Vec<usize> =
        (footer..bytes.len() - 2).filter(|start| bytes[*start..start + 3] == [0x16, 5 << 1, 0x19]).collect();
    let [position] = positions[..] else { panic!("{positions:?}") };
    bytes[position + 1] = 0;
    folder.write("hidden.parquet", bytes);
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(*) FROM rows").await, "5");
    let refusal = node.refusal("SELECT * FROM hidden").await;
    assert!(refusal.contains("\"hidden\""), "{refusal}");
    assert!(refusal.contains("its footer declares 0 rows, and its row groups have 5"), "{refusal}");
}

#[tokio::test]
async fn columns_have_the_descriptions_of_their_writer() {
    let folder = Folder::with(&[("other.csv", "x\n1\n")]);
    let described = |name: &str, key: &str, text: &str| {
        let metadata = HashMap::from([(key.to_owned(), text.to_owned())]);
        Field::new(name, DataType::Int64, true).with_metadata(metadata)
    };
    let fields = [
        described("amount", "description", " Net amount in cents "),
        described("id", "comment", "Number of the order"),
        described("state", "PARQUET:field_id", "7"),
    ];
    let columns: Vec<ArrayRef> = fields.iter().map(|_| Arc::new(Int64Array::from(vec![1])) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).unwrap();
    write_parquet(&folder.join("orders.parquet"), &batch, 10);
    write_arrow(&folder.join("sales.arrow"), &batch, false);
    let node = folder.database();
    for table in ["orders", "sales"] {
        let columns = node.database.columns(table, &Principal::anonymous()).await.unwrap();
        let comments: Vec<Option<&str>> = columns.iter().map(|column| column.comment.as_deref()).collect();
        assert_eq!(comments, [Some("Net amount in cents"), Some("Number of the order"), None], "{table}");
        assert!(columns.iter().all(|column| column.facts.is_none()), "{table}: a description of its own replaces them");
    }
}
