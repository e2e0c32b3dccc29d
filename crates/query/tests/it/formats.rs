//! Each format with every type, null and odd strings.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;
use tidegate_core::Format;
use tidegate_query::{ExtensionType, output_schema, with_type_name};

use crate::fake::{AnswerOptions, FakeDatabase, batch, request_answer};

async fn render(batches: Vec<RecordBatch>, format: Format) -> String {
    let seen = request_answer(
        &FakeDatabase::new(batches),
        &AnswerOptions { format: Some(format), ..AnswerOptions::default() },
    )
    .await;
    assert!(seen.failure.is_none(), "{:?}", seen.failure);
    assert_eq!(seen.blocks.len(), 1, "{:?}", seen.blocks);
    // Statistics differ from run to run.
    let text = seen.blocks.into_iter().next().unwrap();
    match text.find("\"elapsed_ms\":") {
        Some(start) => {
            let end = start + text[start..].find(',').unwrap();
            format!("{}\"elapsed_ms\":0{}", &text[..start], &text[end..])
        }
        None => text,
    }
}

async fn in_every_format(batches: Vec<RecordBatch>) -> String {
    let mut out = String::new();
    for format in Format::FOR_MODELS {
        let text = render(batches.clone(), format).await;
        if matches!(format, Format::Mcp | Format::Json) {
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
        out.push_str(&format!("--- {} ---\n{}\n", format.name(), text.replace('\r', "␍")));
    }
    out
}

pub(crate) fn numbers() -> RecordBatch {
    batch(&[
        ("tiny", Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)]))),
        ("big", Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(9_007_199_254_740_993)]))),
        ("huge", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]))),
        ("real", Arc::new(Float32Array::from(vec![Some(0.1), None, Some(f32::INFINITY)]))),
        ("double", Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), Some(-1e300)]))),
        (
            "price",
            Arc::new(
                Decimal128Array::from(vec![Some(12_345_678_901_234_567_890_123_456_789_i128), None, Some(-5)])
                    .with_precision_and_scale(38, 10)
                    .unwrap(),
            ),
        ),
        ("ok", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("nothing", Arc::new(NullArray::new(3))),
    ])
}

#[tokio::test]
async fn numbers_keep_every_digit() {
    insta::assert_snapshot!(in_every_format(vec![numbers()]).await);
}

pub(crate) fn strings() -> RecordBatch {
    batch(&[
        (
            "text",
            Arc::new(StringArray::from(vec![
                Some("plain"),
                None,
                Some(""),
                Some("comma, \"quote\" | pipe"),
                Some("two\nlines\r\nand\ttab \u{1b}[31m \u{0}"),
                Some(" spaces "),
                Some("42"),
                Some("true"),
                Some("- dash: [x] {y} \\ back"),
                Some("日本 \u{1F30A} é"),
            ])),
        ),
        (
            "view",
            Arc::new(StringViewArray::from(vec![
                Some("a string longer than twelve bytes"),
                None,
                Some("b"),
                None,
                None,
                None,
                None,
                None,
                None,
                None,
            ])),
        ),
        (
            "bytes",
            Arc::new(BinaryArray::from(vec![
                Some(&b"\x00\xff"[..]),
                None,
                Some(b""),
                None,
                None,
                None,
                None,
                None,
                None,
                None,
            ])),
        ),
    ])
}

#[tokio::test]
async fn odd_strings_and_bytes() {
    insta::assert_snapshot!(in_every_format(vec![strings()]).await);
}

pub(crate) fn times() -> RecordBatch {
    let zoned = |zone: &str| {
        Arc::new(
            TimestampMicrosecondArray::from(vec![Some(1_709_210_096_123_456), None]).with_timezone(zone.to_owned()),
        )
    };
    batch(&[
        ("date", Arc::new(Date32Array::from(vec![Some(19_782), None]))),
        ("date64", Arc::new(Date64Array::from(vec![Some(1_709_164_800_000), Some(1)]))),
        ("time", Arc::new(Time64MicrosecondArray::from(vec![Some(45_296_500_000), None]))),
        ("local", Arc::new(TimestampNanosecondArray::from(vec![Some(1_709_210_096_000_000_001), None]))),
        ("seconds", Arc::new(TimestampSecondArray::from(vec![Some(-1), None]))),
        ("utc", zoned("UTC")),
        ("offset", zoned("+05:30")),
        ("new_york", zoned("America/New_York")),
        (
            "interval",
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                Some(IntervalMonthDayNano::new(14, -3, 3_661_000_000_000)),
                None,
            ])),
        ),
        ("duration", Arc::new(DurationMillisecondArray::from(vec![Some(90_061_001), None]))),
    ])
}

#[tokio::test]
async fn dates_and_times() {
    insta::assert_snapshot!(in_every_format(vec![times()]).await);
}

pub(crate) fn extremes() -> RecordBatch {
    let moments = || TimestampMicrosecondArray::from(vec![i64::MIN, i64::MAX, i64::MAX - 1]);
    let interval = |months, days, nanos| Some(IntervalMonthDayNano::new(months, days, nanos));
    batch(&[
        ("date", Arc::new(Date32Array::from(vec![i32::MIN, i32::MAX, -719_529]))),
        ("local", Arc::new(moments())),
        ("zoned", Arc::new(moments().with_timezone("America/New_York"))),
        ("seconds", Arc::new(TimestampSecondArray::from(vec![0, 253_402_300_800, -62_167_219_201]))),
        (
            "interval",
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                interval(i32::MIN, i32::MIN, i64::MIN),
                interval(i32::MAX, i32::MAX, i64::MAX),
                interval(i32::MAX, i32::MAX, 0),
            ])),
        ),
    ])
}

#[tokio::test]
async fn the_extremes_of_dates_and_microseconds_are_infinities() {
    insta::assert_snapshot!(render(vec![extremes()], Format::Ndjson).await);
}

pub(crate) fn extension_types() -> RecordBatch {
    let field = |name: &str, kind| Field::new(name, kind, true);
    let number = ExtensionType::Number.annotate(with_type_name(field("number", DataType::Utf8), "numeric"));
    let json = ExtensionType::Json.annotate(with_type_name(field("json", DataType::Utf8), "jsonb"));
    let uuid = ExtensionType::Uuid.annotate(field("uuid", DataType::FixedSizeBinary(16)));
    let range = with_type_name(field("range", DataType::Utf8), "int4range");
    let numbers =
        StringArray::from(vec![Some("-12345678901234567890.10"), Some("NaN"), None, Some("0"), Some("1e5, no mark's")]);
    let documents = StringArray::from(vec![
        Some("{\"a\":\n\t[1, \"x\\ny\"]}"),
        Some("null"),
        None,
        Some(" \"text, | \" "),
        Some("{no json"),
    ]);
    let bytes = [Some(*b"\x12\x3e\x45\x67\xe8\x9b\x12\xd3\xa4\x56\x42\x66\x14\x17\x40\x00"), None, None, None, None];
    let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 16).unwrap();
    let ranges = StringArray::from(vec![Some("[1,5)"), None, None, None, None]);
    let list = |item: &Field, values: ArrayRef| -> (Field, ArrayRef) {
        let item = Arc::new(item.clone());
        let list = ListArray::new(item.clone(), OffsetBuffer::from_lengths([2, 0, 1, 1, 1]), values, None);
        (Field::new(format!("{}s", item.name()), DataType::List(item), true), Arc::new(list))
    };
    let (numbers, documents): (ArrayRef, ArrayRef) = (Arc::new(numbers), Arc::new(documents));
    let (number_list, number_lists) = list(&number, numbers.clone());
    let members =
        StructArray::new(vec![json.clone(), number.clone()].into(), vec![documents.clone(), numbers.clone()], None);
    let structure = field("struct", members.data_type().clone());
    let fields = vec![number, json, uuid, range, number_list, structure];
    let columns: Vec<ArrayRef> =
        vec![numbers, documents, Arc::new(uuids), Arc::new(ranges), number_lists, Arc::new(members)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[tokio::test]
async fn formats_extension_types() {
    insta::assert_snapshot!(in_every_format(vec![extension_types()]).await);
    let ndjson = render(vec![extension_types()], Format::Ndjson).await;
    assert_eq!(ndjson.lines().count(), 5);
    let schema = output_schema(&extension_types().schema());
    insta::assert_json_snapshot!(schema["properties"]["rows"]["items"]["properties"]);
}

#[tokio::test]
async fn extract_keeps_extension_types() {
    let wishes = AnswerOptions { extract: Some("number".to_owned()), ..AnswerOptions::default() };
    let seen = request_answer(&FakeDatabase::new(vec![extension_types()]), &wishes).await;
    assert_eq!(seen.blocks, ["[-12345678901234567890.10,0,\"1e5, no mark's\",\"NaN\",null]"]);
}

pub(crate) fn nested() -> RecordBatch {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a\"b"), None, Some("c")]));
    let fields = Fields::from(vec![Field::new("name", DataType::Utf8, true), Field::new("n", DataType::Int32, true)]);
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
    let structs = StructArray::new(fields, vec![name, numbers], Some(NullBuffer::from(vec![true, false, true])));
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    maps.keys().append_value("k \"1\"");
    maps.values().append_value(1);
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    maps.append(true).unwrap();
    let dictionary: DictionaryArray<Int8Type> = vec![Some("red"), None, Some("red")].into_iter().collect();
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &StringArray::from(vec![Some("x"), None]))
        .unwrap();
    let union_fields = UnionFields::try_new(
        vec![0, 1],
        vec![Field::new("i", DataType::Int32, true), Field::new("s", DataType::Utf8, true)],
    )
    .unwrap();
    let union = UnionArray::try_new(
        union_fields,
        ScalarBuffer::from(vec![0_i8, 1, 0]),
        Some(ScalarBuffer::from(vec![0, 0, 1])),
        vec![Arc::new(Int32Array::from(vec![Some(7), None])), Arc::new(StringArray::from(vec!["seven"]))],
    )
    .unwrap();
    let view = ListViewArray::new(
        Arc::new(Field::new("item", DataType::Int32, true)),
        ScalarBuffer::from(vec![1, 0, 0]),
        ScalarBuffer::from(vec![2, 0, 3]),
        Arc::new(Int32Array::from(vec![1, 2, 3])),
        None,
    );
    let of_structs = ListArray::new(
        Arc::new(Field::new("item", structs.data_type().clone(), true)),
        OffsetBuffer::from_lengths([2, 0, 1]),
        Arc::new(structs.clone()),
        None,
    );
    batch(&[
        ("list", Arc::new(list)),
        ("struct", Arc::new(structs)),
        ("map", Arc::new(maps.finish())),
        ("dictionary", Arc::new(dictionary)),
        ("runs", Arc::new(runs)),
        ("union", Arc::new(union)),
        ("view", Arc::new(view)),
        ("structs", Arc::new(of_structs)),
    ])
}

#[tokio::test]
async fn nested_values_are_json() {
    insta::assert_snapshot!(in_every_format(vec![nested()]).await);
}

#[tokio::test]
async fn slices_show_their_own_rows() {
    for column in nested().slice(1, 2).columns().iter().chain(numbers().slice(1, 2).columns()) {
        let sliced = batch(&[("c", column.clone())]);
        let indices = UInt32Array::from(vec![0, 1]);
        let Ok(copied) = arrow::compute::take(column, &indices, None) else { continue };
        let copied = batch(&[("c", copied)]);
        assert_eq!(render(vec![sliced], Format::Mcp).await, render(vec![copied], Format::Mcp).await);
    }
}

#[tokio::test]
async fn names_are_unique_and_never_empty() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let schema = ["a", "a", "", "a_2", "", "odd \"name\", |"].map(|name| Field::new(name, DataType::Int64, true));
    let rows = RecordBatch::try_new(Arc::new(Schema::new(schema.to_vec())), vec![column; 6]).unwrap();
    insta::assert_snapshot!(in_every_format(vec![rows]).await);
}

#[tokio::test]
async fn unnamed_columns_get_distinct_names() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let fields =
        ["?column?", "?column?", "", "say \"x\"", "say \"x\""].map(|name| Field::new(name, DataType::Int64, true));
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![column; 5]).unwrap();
    let visible = render(vec![rows], Format::Mcp).await;
    assert_eq!(visible, r#"[{"?column?":1,"?column?_2":1,"column_3":1,"say \"x\"":1,"say \"x\"_2":1}]"#);
}

#[tokio::test]
async fn no_rows_and_no_columns() {
    insta::assert_snapshot!(in_every_format(vec![numbers().slice(0, 0)]).await);
    let options = RecordBatchOptions::new().with_row_count(Some(2));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    assert_eq!(render(vec![rows], Format::Mcp).await, "[{},{}]");
}

#[tokio::test]
async fn widths_come_from_the_first_rows_and_nothing_is_cut() {
    let first = batch(&[("word", Arc::new(StringArray::from(vec!["a", "long word", "日本"])))]);
    let later = batch(&[("word", Arc::new(StringArray::from(vec!["x".repeat(70)])))]);
    insta::assert_snapshot!(render(vec![first, later], Format::Table).await);
}

#[tokio::test]
async fn toon_reads_back_as_the_same_rows() {
    for rows in [numbers(), nested()] {
        let text = render(vec![rows.clone()], Format::Toon).await;
        let back: serde_json::Value = toon_format::decode_default(&text).unwrap();
        let rows: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(&render(vec![rows], Format::Mcp).await).unwrap();
        assert_eq!(back.as_array().unwrap().len(), rows.len());
        assert_eq!(back[0].as_object().unwrap().len(), rows[0].len());
    }
}

#[tokio::test]
async fn extract_gives_unique_sorted_values() {
    let rows = || {
        FakeDatabase::new(vec![
            batch(&[("c", Arc::new(StringArray::from(vec![Some("b, \"x\""), None, Some("a")])))]),
            batch(&[("c", Arc::new(StringArray::from(vec![Some("a"), Some("10"), None])))]),
        ])
    };
    let mut out = String::new();
    for format in Format::FOR_MODELS {
        let wishes = AnswerOptions { format: Some(format), extract: Some("C".to_owned()), ..AnswerOptions::default() };
        let seen = request_answer(&rows(), &wishes).await;
        let text = seen.blocks.concat();
        let text = text.split(",\"elapsed_ms\"").next().unwrap();
        out.push_str(&format!("--- {} ({}) ---\n{}\n", format.name(), seen.mode(), text.replace('\r', "␍")));
    }
    insta::assert_snapshot!(out);
    let wishes = AnswerOptions { extract: Some("carier".to_owned()), ..AnswerOptions::default() };
    insta::assert_snapshot!(request_answer(&rows(), &wishes).await.failure.unwrap(), @r#"
    extract: the answer has no column "carier"
    Valid choices: c
    "#);
}

#[tokio::test]
async fn extract_orders_numbers_as_numbers_and_has_bounds() {
    let numbers = batch(&[("n", Arc::new(Int64Array::from(vec![Some(10), Some(9), Some(-1), None, Some(10)])))]);
    let wishes = AnswerOptions { extract: Some("n".to_owned()), ..AnswerOptions::default() };
    assert_eq!(request_answer(&FakeDatabase::new(vec![numbers.clone()]), &wishes).await.blocks, ["[-1,9,10,null]"]);
    let qualified = AnswerOptions { extract: Some("t.N".to_owned()), ..AnswerOptions::default() };
    assert_eq!(request_answer(&FakeDatabase::new(vec![numbers]), &qualified).await.blocks, ["[-1,9,10,null]"]);
    let failure = request_answer(&FakeDatabase::counting(2, 60_000), &wishes).await.failure.unwrap();
    insta::assert_snapshot!(failure, @r#"
    extract: column "n" has more than 100000 unique values or 8 MiB of them
    Narrow the query with where, or select a coarser value.
    "#);
    let wishes = AnswerOptions { max_rows: Some(3), ..wishes };
    insta::assert_snapshot!(request_answer(&FakeDatabase::counting(1, 10), &wishes).await.blocks.join("\n"), @r"
    [0,1,2]
    Showing the first 3 values; more exist. Raise the limit.
    ");
}

/// A column whose values have each a type of their own, as SQLite's have.
pub(crate) fn own_types() -> UnionArray {
    let members = [
        ("integer", DataType::Int64),
        ("real", DataType::Float64),
        ("text", DataType::Utf8),
        ("blob", DataType::Binary),
    ];
    let fields = members.map(|(name, data_type)| Arc::new(Field::new(name, data_type, true)));
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1, i64::MAX])),
        Arc::new(Float64Array::from(vec![1.0, f64::NEG_INFINITY])),
        Arc::new(StringArray::from(vec!["1", "a,\"b"])),
        Arc::new(BinaryArray::from_opt_vec(vec![Some(&[0, 255][..]), None])),
    ];
    let kinds = ScalarBuffer::from(vec![0_i8, 1, 2, 3, 3, 2, 1, 0]);
    let offsets = ScalarBuffer::from(vec![0, 0, 0, 0, 1, 1, 1, 1]);
    UnionArray::try_new((0_i8..).zip(fields).collect(), kinds, Some(offsets), children).unwrap()
}

#[tokio::test]
async fn values_of_a_dense_union_are_written_by_their_own_types() {
    let column = own_types();
    let whole = batch(&[("v", Arc::new(column.clone()))]);
    insta::assert_snapshot!(in_every_format(vec![whole.clone()]).await, @r#"
    --- mcp ---
    [{"v":1},{"v":1.0},{"v":"1"},{"v":"AP8="},{"v":null},{"v":"a,\"b"},{"v":"-Infinity"},{"v":9223372036854775807}]
    --- json ---
    {"Query":[{"v":1},{"v":1.0},{"v":"1"},{"v":"AP8="},{"v":null},{"v":"a,\"b"},{"v":"-Infinity"},{"v":9223372036854775807}],"columns":[{"name":"v","type":"union"}],"rows":8,"elapsed_ms":0,"truncated":false}
    --- table ---
     v
    ---------------------
     1
     1.0
     1
     AP8=
     NULL
     a,"b
     -Infinity
     9223372036854775807
    (8 rows)

    --- csv ---
    v␍
    1␍
    1.0␍
    1␍
    AP8=␍
    ␍
    "a,""b"␍
    -Infinity␍
    9223372036854775807␍

    --- markdown ---
    | v |
    | --- |
    | 1 |
    | 1.0 |
    | 1 |
    | AP8= |
    | NULL |
    | a,"b |
    | -Infinity |
    | 9223372036854775807 |

    --- ndjson ---
    {"v":1}
    {"v":1.0}
    {"v":"1"}
    {"v":"AP8="}
    {"v":null}
    {"v":"a,\"b"}
    {"v":"-Infinity"}
    {"v":9223372036854775807}

    --- toon ---
    [8]{v}:
      1
      1.0
      "1"
      AP8=
      null
      "a,\"b"
      "-Infinity"
      9223372036854775807
    "#);
    // Parts of it are the same values.
    let parts = vec![whole.slice(0, 3), whole.slice(3, 2), whole.slice(5, 3)];
    assert_eq!(render(parts, Format::Ndjson).await, render(vec![whole.clone()], Format::Ndjson).await);
    insta::assert_snapshot!(tidegate_query::output_schema(&whole.schema())["properties"]["rows"]["items"]["properties"], @r#"{"v":{"type":["integer","null","number","string"]}}"#);
}
