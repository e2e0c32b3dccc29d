//! Arrow streams and Parquet files: types that fit, values that do not, and bodies that are not what they claim.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, Date32Array, Decimal128Array, DictionaryArray, FixedSizeListArray, Float32Array,
    Float64Array, Int32Array, Int64Array, LargeListArray, ListArray, NullArray, RecordBatch, RecordBatchOptions,
    StringArray, StringViewArray, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Int32Type, IntervalUnit, Schema, TimeUnit};
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use parquet::arrow::ArrowWriter;
use parquet::data_type::{
    ByteArray, DataType as ParquetType, FixedLenByteArray, FixedLenByteArrayType, Int96, Int96Type,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tidegate_ingest_formats::{
    BodyCoding, BodyError, BodyFormat, BodyLimits, BodyOptions, ParquetBody, RejectMode, RowPosition, UnknownColumns,
    infer_schema, parquet_schema,
};

use super::fixture::{
    Decoded, big_endian_schema, decode_parquet, decode_pieces, list_of, row_options, schema, write_arrow, write_parquet,
};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// Decodes a batch as Arrow and as Parquet, which must give the same.
fn decode(table: &Schema, options: &BodyOptions, batch: &RecordBatch) -> Result<Decoded, BodyError> {
    let arrow = decode_pieces(table, options, &write_arrow(std::slice::from_ref(batch)), 1 << 12);
    let parquet = decode_parquet(table, options, write_parquet(std::slice::from_ref(batch)));
    match (&arrow, &parquet) {
        (Ok(arrow), Ok(parquet)) => {
            assert_eq!(arrow.text(), parquet.text());
            assert_eq!(arrow.reasons(), parquet.reasons());
        }
        (Err(arrow), Err(parquet)) => assert_eq!(arrow, parquet),
        _ => panic!("{arrow:?} is not {parquet:?}"),
    }
    arrow
}

/// Decodes one column into a column of another type.
fn convert(array: impl Array + 'static, data_type: DataType) -> (Vec<String>, Vec<String>) {
    let table = schema(&[("v", data_type)]);
    let decoded = decode(&table, &row_options(BodyFormat::Arrow), &batch(vec![("v", Arc::new(array))])).unwrap();
    assert!(decoded.batches.iter().all(|batch| batch.schema().as_ref() == &table));
    (decoded.text(), decoded.reasons())
}

#[test]
fn equal_types_pass_through_in_batches() {
    let table = schema(&[("a", DataType::Int64), ("b", DataType::Utf8)]);
    let values = Int64Array::from_iter_values(0..25);
    let texts: StringArray = (0..25).map(|row| (row % 3 > 0).then(|| format!("t{row}"))).collect();
    // The order of the columns is that of the table.
    let sent = batch(vec![("b", Arc::new(texts)), ("a", Arc::new(values))]);
    let limits = BodyLimits { batch_rows_max: 10, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..BodyOptions::new(BodyFormat::Arrow) };
    let decoded = decode(&table, &options, &sent).unwrap();
    assert_eq!(decoded.batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(decoded.text()[24], "24|·");
    assert_eq!(decoded.positions[24], RowPosition::Index(24));
}

#[test]
fn numbers_convert_exactly_or_are_rejected() {
    let big = Int64Array::from(vec![Some(9_007_199_254_740_993), Some(7), None, Some(i64::MAX)]);
    let (rows, reasons) = convert(big.clone(), DataType::Float64);
    assert_eq!(rows, ["7.0", "·"]);
    assert_eq!(
        reasons,
        [
            "row 0, column \"v\": 9007199254740993 does not fit; the column is a double",
            "row 3, column \"v\": 9223372036854775807 does not fit; the column is a double",
        ]
    );
    assert_eq!(convert(big.clone(), DataType::Int32).0, ["7", "·"]);
    assert_eq!(
        convert(big.clone(), DataType::Decimal128(20, 1)).0,
        ["9007199254740993.0", "7.0", "·", "9223372036854775807.0"]
    );
    assert_eq!(convert(big, DataType::Decimal128(5, 1)).0, ["7.0", "·"]);
    assert_eq!(convert(Int32Array::from(vec![1, -1]), DataType::Int64).0, ["1", "-1"]);
    assert_eq!(convert(Int32Array::from(vec![1, -1]), DataType::UInt8).0, ["1"]);
    assert_eq!(convert(UInt64Array::from(vec![u64::MAX, 3]), DataType::Int64).0, ["3"]);
    let doubles = Float64Array::from(vec![0.5, 0.1, f64::NAN, 1e300, 3.0]);
    assert_eq!(convert(doubles.clone(), DataType::Float32).0, ["0.5", "NaN", "3.0"]);
    assert_eq!(convert(doubles, DataType::Int16).0, ["3"]);
    assert_eq!(convert(Float32Array::from(vec![0.1, 2.0]), DataType::Float64).0, ["0.10000000149011612", "2.0"]);
    let decimals = Decimal128Array::from(vec![1250, 1255]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(convert(decimals.clone(), DataType::Decimal128(10, 1)).0, ["12.5"]);
    assert_eq!(convert(decimals.clone(), DataType::Decimal128(3, 2)).0, Vec::<String>::new());
    assert_eq!(convert(decimals, DataType::Decimal256(40, 4)).0, ["12.5000", "12.5500"]);
}

#[test]
fn times_convert_exactly_or_are_rejected() {
    let nanoseconds = TimestampNanosecondArray::from(vec![1_000, 1_001]).with_timezone("Europe/Berlin");
    let (rows, _) = convert(nanoseconds, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    assert_eq!(rows, ["1970-01-01T00:00:00.000001Z"]);
    let milliseconds = TimestampMillisecondArray::from(vec![1, i64::MAX]);
    let (rows, _) = convert(milliseconds, DataType::Timestamp(TimeUnit::Nanosecond, None));
    assert_eq!(rows, ["1970-01-01T00:00:00.001"]);
    assert_eq!(convert(Date32Array::from(vec![19_782]), DataType::Date64).0, ["2024-02-29T00:00:00"]);
    let day = 86_400_000_000;
    let times = Time64MicrosecondArray::from(vec![0, day - 1, day, -1]);
    assert_eq!(convert(times, DataType::Time64(TimeUnit::Microsecond)).0, ["00:00:00", "23:59:59.999999"]);
}

#[test]
fn texts_bytes_and_nulls_convert() {
    let texts = StringViewArray::from(vec![Some("a"), None, Some("a long text that is not inlined")]);
    assert_eq!(convert(texts, DataType::LargeUtf8).0, ["a", "·", "a long text that is not inlined"]);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("x"), None, Some("y"), Some("x")].into_iter().collect();
    assert_eq!(convert(dictionary, DataType::Utf8).0, ["x", "·", "y", "x"]);
    let target = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    assert_eq!(convert(StringArray::from(vec!["x", "x"]), target).0, ["x", "x"]);
    assert_eq!(convert(BinaryArray::from(vec![&b"\x00\xff"[..]]), DataType::BinaryView).0, ["00ff"]);
    assert_eq!(convert(NullArray::new(2), DataType::Int64).0, ["·", "·"]);
}

#[test]
fn nested_values_convert() {
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let values = Int64Array::from(vec![Some(1), Some(1 << 40), None, Some(2), Some(1 << 50)]);
    let nulls = NullBuffer::from(vec![true, true, true, false]);
    // The last list is null, and its items do not count.
    let lists =
        ListArray::new(item, OffsetBuffer::new(ScalarBuffer::from(vec![0, 1, 2, 4, 5])), Arc::new(values), Some(nulls));
    let table = schema(&[("v", list_of(DataType::Int32))]);
    let sent = batch(vec![("v", Arc::new(lists.clone()))]);
    let decoded = decode_pieces(&table, &row_options(BodyFormat::Arrow), &write_arrow(&[sent]), 100).unwrap();
    assert_eq!(decoded.text(), ["[1]", "[·, 2]", "·"]);
    assert_eq!(
        decoded.reasons(),
        ["row 1, column \"v[0]\": 1099511627776 does not fit; the column is an integer of 32 bits"]
    );
    let large = DataType::LargeList(Arc::new(Field::new_list_field(DataType::Int64, true)));
    assert_eq!(convert(lists, large.clone()).0[2], "[·, 2]");
    let lists =
        LargeListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>(vec![Some(vec![Some(5)]), None]);
    assert_eq!(convert(lists, list_of(DataType::Int32)).0, ["[5]", "·"]);
    // Members have the order of the table; one that is missing is null.
    let objects = StructArray::from(vec![
        (Arc::new(Field::new("y", DataType::Int64, true)), Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        (
            Arc::new(Field::new("x", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef,
        ),
    ]);
    let members = vec![
        Field::new("x", DataType::Utf8, false),
        Field::new("y", DataType::Int32, true),
        Field::new("z", DataType::Int32, true),
    ];
    let (rows, reasons) = convert(objects, DataType::Struct(members.into()));
    assert_eq!(rows, ["{x: a, y: 1, z: ·}"]);
    assert_eq!(reasons, ["row 1, column \"v.x\": it is null, and the column takes no nulls"]);
}

#[test]
fn values_within_a_null_do_not_count() {
    let large = || Arc::new(Int64Array::from(vec![1, 1 << 40])) as ArrayRef;
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let members = vec![Field::new("x", DataType::Int64, false)];
    let objects = StructArray::new(members.into(), vec![large()], nulls.clone());
    let target = DataType::Struct(vec![Field::new("x", DataType::Int32, false)].into());
    assert_eq!(convert(objects, target), (vec!["{x: 1}".to_owned(), "·".to_owned()], vec![]));
    let item = |data_type| Arc::new(Field::new_list_field(data_type, true));
    let lists = FixedSizeListArray::new(item(DataType::Int64), 1, large(), nulls);
    for target in [DataType::FixedSizeList(item(DataType::Int32), 1), DataType::List(item(DataType::Int32))] {
        assert_eq!(convert(lists.clone(), target), (vec!["[1]".to_owned(), "·".to_owned()], vec![]));
    }
}

#[test]
fn columns_that_do_not_fit_refuse_the_body() {
    let table =
        Schema::new(vec![Field::new("device", DataType::Utf8, false), Field::new("value", DataType::Float64, true)]);
    let device = || Arc::new(StringArray::from(vec!["a"])) as ArrayRef;
    let number = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let time = || Arc::new(TimestampMicrosecondArray::from(vec![1])) as ArrayRef;
    let error = |table: &Schema, sent: Vec<(&str, ArrayRef)>| {
        let error = decode(table, &row_options(BodyFormat::Arrow), &batch(sent)).unwrap_err();
        assert!(matches!(error, BodyError::Columns(_)), "{error:?}");
        error.to_string()
    };
    assert_eq!(
        error(&table, vec![("device", device()), ("valu", number())]),
        "there is no column \"valu\"; did you mean \"value\"?"
    );
    assert_eq!(
        error(&table, vec![("device", number()), ("value", time())]),
        "column \"device\": it is an integer of 64 bits in the body, and text in the table; column \"value\": it is a timestamp without zone in microseconds in the body, and a double in the table"
    );
    assert_eq!(
        error(&table, vec![("a", number()), ("device", device()), ("b", number())]),
        "there is no column \"a\"; the nearest name is \"value\"; nor are there: \"b\""
    );
    assert_eq!(
        error(&table, vec![("value", number())]),
        "column \"device\": it is missing, and the column takes no nulls"
    );
    assert_eq!(
        error(&table, vec![("device", number())]),
        "column \"device\": it is an integer of 64 bits in the body, and text in the table"
    );
    let numbers = schema(&[("v", DataType::Int64)]);
    assert_eq!(
        error(&numbers, vec![("v", device())]),
        "column \"v\": it is text in the body, and an integer of 64 bits in the table"
    );
    let times = schema(&[("v", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))]);
    assert_eq!(
        error(&times, vec![("v", time())]),
        "column \"v\": it is a timestamp without zone in microseconds in the body, and a timestamp with zone UTC in microseconds in the table"
    );
}

/// They would become rows of nulls, as many as the sender writes into a number.
#[test]
fn rows_without_columns_refuse_the_body() {
    let rows = RecordBatchOptions::new().with_row_count(Some(1_000));
    let sent = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &rows).unwrap();
    let body = write_arrow(std::slice::from_ref(&sent));
    for unknown_columns in [UnknownColumns::Refuse, UnknownColumns::Add] {
        let options = BodyOptions { unknown_columns, ..row_options(BodyFormat::Arrow) };
        let error = decode_pieces(&schema(&[("v", DataType::Int64)]), &options, &body, 512).unwrap_err();
        let reason = "the body has no columns, so that its rows have no values";
        assert_eq!(error, BodyError::Columns(reason.to_owned()));
    }
}

#[test]
fn rows_that_do_not_fit_refuse_the_body_unless_only_they_are_rejected() {
    let table = Schema::new(vec![Field::new("v", DataType::Int64, false)]);
    let sent = batch(vec![("v", Arc::new(Int64Array::from(vec![Some(1), None, Some(3), None])))]);
    let error = decode(&table, &BodyOptions::new(BodyFormat::Arrow), &sent).unwrap_err();
    let BodyError::Rejected { rows, count } = error else { panic!("{error}") };
    assert_eq!((rows.len(), count, rows[0].position), (2, 2, RowPosition::Index(1)));
    let options = BodyOptions { reject_mode: RejectMode::Row, ..BodyOptions::new(BodyFormat::Arrow) };
    let decoded = decode(&table, &options, &sent).unwrap();
    assert_eq!(
        (decoded.text(), decoded.positions),
        (vec!["1".to_owned(), "3".to_owned()], vec![RowPosition::Index(0), RowPosition::Index(2)])
    );
}

#[test]
fn columns_are_added_where_that_is_allowed() {
    let table = schema(&[("a", DataType::Int64)]);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("x"), None].into_iter().collect();
    let sent = batch(vec![("b", Arc::new(dictionary)), ("a", Arc::new(Int64Array::from(vec![1, 2])))]);
    let options = BodyOptions { unknown_columns: UnknownColumns::Add, ..BodyOptions::new(BodyFormat::Arrow) };
    let decoded = decode(&table, &options, &sent).unwrap();
    assert_eq!(decoded.text(), ["1|x", "2|·"]);
    assert_eq!(decoded.schema.field(1), &Field::new("b", DataType::Utf8, true));
}

#[test]
fn compressed_and_delta_streams_are_read() {
    let first: DictionaryArray<Int32Type> = vec!["x", "y"].into_iter().collect();
    let second: DictionaryArray<Int32Type> = vec!["x", "y", "z"].into_iter().collect();
    let table = schema(&[("v", DataType::Utf8), ("w", DataType::Int64)]);
    for compression in [None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)] {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let options = options.with_dictionary_handling(DictionaryHandling::Delta);
        let batches = [&first, &second].map(|values| {
            let numbers = Int64Array::from_iter_values(0..values.len() as i64);
            batch(vec![("v", Arc::new(values.clone())), ("w", Arc::new(numbers))])
        });
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        let body = writer.into_inner().unwrap();
        let decoded = decode_pieces(&table, &BodyOptions::new(BodyFormat::Arrow), &body, 7).unwrap();
        assert_eq!(decoded.text(), ["x|0", "y|1", "x|0", "y|1", "z|2"]);
    }
}

#[test]
fn batches_that_are_too_large_are_refused() {
    let limits = BodyLimits { message_bytes_max: 10_000, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..BodyOptions::new(BodyFormat::Arrow) };
    let sent = batch(vec![("v", Arc::new(Int64Array::from(vec![0; 5_000])))]);
    let table = schema(&[("v", DataType::Int64)]);
    let error = decode_pieces(&table, &options, &write_arrow(std::slice::from_ref(&sent)), 512).unwrap_err();
    assert!(error.to_string().starts_with("a batch has 40"), "{error}");
    // Zeros compress to almost nothing, but not in memory.
    let compressed = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &sent.schema(), compressed).unwrap();
    writer.write(&sent).unwrap();
    let error = decode_pieces(&table, &options, &writer.into_inner().unwrap(), 512).unwrap_err();
    assert!(error.to_string().starts_with("a batch has more than 10000 bytes after decompression"), "{error}");
}

/// Programs that write files pad the beginning to 8 or 64 bytes.
#[test]
fn a_file_is_read_as_its_stream() {
    let table = schema(&[("v", DataType::Int64)]);
    let sent = batch(vec![("v", Arc::new(Int64Array::from(vec![1, 2, 3])))]);
    let options = BodyOptions::new(BodyFormat::Arrow);
    let expected = decode_pieces(&table, &options, &write_arrow(&[sent.clone(), sent.clone()]), 512).unwrap().text();
    assert_eq!(expected.len(), 6);
    for alignment in [8, 64] {
        let aligned = IpcWriteOptions::try_new(alignment, false, MetadataVersion::V5).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &sent.schema(), aligned).unwrap();
        writer.write(&sent).unwrap();
        let first_batch = writer.get_ref().len();
        writer.write(&sent).unwrap();
        let file = writer.into_inner().unwrap();
        for piece in [1, 7, 512, file.len()] {
            assert_eq!(decode_pieces(&table, &options, &file, piece).unwrap().text(), expected, "{alignment} {piece}");
        }
        let schema_of = |body: &[u8]| infer_schema(body, &options).unwrap().schema;
        assert_eq!(schema_of(&file), schema_of(&write_arrow(std::slice::from_ref(&sent))));
        // The index alone may be missing.
        assert!(decode_pieces(&table, &options, &file[..file.len() - 1], 512).is_ok());
        assert!(decode_pieces(&table, &options, &file[..70], 512).is_err());
        let cut = decode_pieces(&table, &options, &file[..first_batch], 512).unwrap_err();
        assert_eq!(cut, BodyError::Incomplete("the body ends between the batches of its Arrow file".to_owned()));
    }
}

#[test]
fn other_bytes_are_refused() {
    let table = schema(&[("v", DataType::Int64)]);
    for body in
        [&b"{\"v\":1}"[..], b"ARROW1\0\0", b"PAR1PAR1", b"\0\0\0\0\0\0\0\0\0", b"\xff\xff\xff\xff\0\0\0\0x", b""]
    {
        assert!(decode_pieces(&table, &BodyOptions::new(BodyFormat::Arrow), body, 100).is_err(), "{body:?}");
        assert!(decode_parquet(&table, &BodyOptions::new(BodyFormat::Parquet), body.to_vec()).is_err(), "{body:?}");
    }
    let gzip = BodyOptions { coding: BodyCoding::Gzip, ..BodyOptions::new(BodyFormat::Parquet) };
    assert!(matches!(ParquetBody::new(Cursor::new(Vec::new()), &table, gzip), Err(BodyError::Options(_))));
    let pushed = decode_pieces(&table, &BodyOptions::new(BodyFormat::Parquet), b"PAR1", 100).unwrap_err();
    assert!(pushed.to_string().contains("ParquetBody"), "{pushed}");
}

#[test]
fn arrow_streams_of_machines_with_another_byte_order_are_refused() {
    let sent = write_arrow(&[batch(vec![("v", Arc::new(Int64Array::from(vec![1])))])]);
    let body_of_schema = 8 + u32::from_le_bytes(sent[4..8].try_into().unwrap()) as usize;
    let body = [&big_endian_schema("v")[..], &sent[body_of_schema..]].concat();
    let table = schema(&[("v", DataType::Int64)]);
    let error = decode_pieces(&table, &BodyOptions::new(BodyFormat::Arrow), &body, 100).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the Arrow stream of the body has numbers with the byte order of other machines; send Parquet, CSV or JSON"
    );
    assert_eq!(infer_schema(&body, &BodyOptions::new(BodyFormat::Arrow)).unwrap_err(), error);
}

#[test]
fn large_parquet_files_are_refused_before_they_are_read() {
    let sent = batch(vec![("v", Arc::new(Int64Array::from_iter_values(0..5_000)))]);
    let limits = BodyLimits { decompressed_bytes_max: 1_000, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..BodyOptions::new(BodyFormat::Parquet) };
    let error = decode_parquet(&schema(&[("v", DataType::Int64)]), &options, write_parquet(&[sent])).unwrap_err();
    assert_eq!(error, BodyError::TooLarge("the values of the body have more than 1000 bytes".to_owned()));
}

/// A Parquet file of a writer without Arrow, whose only column has one value.
fn foreign_parquet<T: ParquetType>(column_type: &str, value: T::T) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message schema {{ optional {column_type}; }}")).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(&[value], Some(&[1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// The library would read other values.
#[test]
fn outdated_timestamps_and_intervals_of_parquet_are_refused() {
    let time = foreign_parquet::<Int96Type>("int96 v", Int96::from(vec![0, 0, 9_000_000]));
    let interval = FixedLenByteArray::from(ByteArray::from(vec![1; 12]));
    let interval = foreign_parquet::<FixedLenByteArrayType>("fixed_len_byte_array(12) v (INTERVAL)", interval);
    for (file, data_type, problem) in [
        (time, DataType::Timestamp(TimeUnit::Nanosecond, None), "timestamps of the outdated type INT96;"),
        (interval, DataType::Interval(IntervalUnit::DayTime), "intervals of Parquet, of which"),
    ] {
        let table = schema(&[("v", data_type)]);
        let error = decode_parquet(&table, &BodyOptions::new(BodyFormat::Parquet), file).unwrap_err().to_string();
        assert!(error.starts_with(&format!("column \"v\" has {problem}")), "{error}");
    }
}

#[test]
fn schemas_are_read_from_the_body() {
    let sent = batch(vec![("v", Arc::new(Int64Array::from(vec![1]))), ("w", Arc::new(StringArray::from(vec!["a"])))]);
    let inferred =
        infer_schema(&write_arrow(std::slice::from_ref(&sent)), &BodyOptions::new(BodyFormat::Arrow)).unwrap();
    assert_eq!(inferred.schema, sent.schema());
    let mut writer = ArrowWriter::try_new(Vec::new(), sent.schema(), None).unwrap();
    writer.write(&sent).unwrap();
    let schema = parquet_schema(Cursor::new(writer.into_inner().unwrap())).unwrap();
    assert_eq!(schema.fields(), sent.schema().fields());
}

#[test]
fn json_text_is_checked() {
    let metadata = [("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into();
    let table = Schema::new(vec![Field::new("v", DataType::Utf8, true).with_metadata(metadata)]);
    let sent = batch(vec![("v", Arc::new(StringArray::from(vec![Some("{\"a\": 1}"), Some("{a}"), None])))]);
    let decoded = decode(&table, &row_options(BodyFormat::Arrow), &sent).unwrap();
    assert_eq!(decoded.text(), ["{\"a\": 1}", "·"]);
    assert_eq!(decoded.reasons(), ["row 1, column \"v\": \"{a}\" is not JSON"]);
}

/// A file whose footer declares this many levels of columns.
fn nested_file(levels: usize) -> Vec<u8> {
    // The version, then the list of elements: each optional, with a name and one child.
    let mut footer = vec![0x15, 0x02, 0x19, 0xFC];
    let mut count = levels + 1;
    while count >= 0x80 {
        footer.push((count & 0x7F) as u8 | 0x80);
        count >>= 7;
    }
    footer.push(count as u8);
    for _ in 0..levels {
        footer.extend([0x35, 0x02, 0x18, 0x01, b'a', 0x15, 0x02, 0x00]);
    }
    footer.extend([0x15, 0x02, 0x25, 0x02, 0x18, 0x01, b'a', 0x00, 0x16, 0x00, 0x19, 0x0C, 0x00]);
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1".as_slice(), &footer, &length, b"PAR1"].concat()
}

#[test]
fn columns_that_are_nested_without_end_are_refused() {
    let refused = parquet_schema(Cursor::new(nested_file(200_000))).unwrap_err();
    assert_eq!(refused, BodyError::Columns("the columns are nested more than 100 levels deep".to_owned()));
    // The same footer with few levels is valid.
    assert_eq!(parquet_schema(Cursor::new(nested_file(3))).unwrap().field(0).name(), "a");
}

#[test]
fn rows_without_end_are_refused() {
    let rows = 1 << 23;
    let sent = batch(vec![("v", Arc::new(NullArray::new(rows)))]);
    let table = schema(&[("v", DataType::Int64)]);
    let limits = BodyLimits { batch_rows_max: rows, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..BodyOptions::new(BodyFormat::Arrow) };
    let error =
        decode_pieces(&table, &options, &write_arrow(&[sent.clone(), sent.clone(), sent]), usize::MAX).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the values of the body have more than 500 times as many bytes as the body; send them with less compression"
    );
}
