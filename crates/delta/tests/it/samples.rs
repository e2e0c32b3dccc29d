//! A column of each type, with the values that another reader has to find.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Decimal256Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, Int64Builder, ListArray, MapBuilder, StringArray,
    StringBuilder, StructArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, TimeUnit, i256};
use serde_json::{Value, json};

use super::foreign::hex;

/// A column of a table.
pub(super) struct Sample {
    pub(super) field: Field,
    pub(super) values: ArrayRef,
    /// The values as other readers find them.
    pub(super) foreign: Vec<Value>,
}

/// The number of rows of a sample. The last one is null.
const ROWS: usize = 4;

fn sample(name: &str, values: impl Into<ArrayRef>, foreign: Value) -> Sample {
    let values = values.into();
    let foreign = foreign.as_array().unwrap().clone();
    assert_eq!((values.len(), foreign.len()), (ROWS, ROWS), "{name}");
    Sample { field: Field::new(name, values.data_type().clone(), true), values, foreign }
}

fn array(values: impl arrow::array::Array + 'static) -> ArrayRef {
    Arc::new(values)
}

/// Integers of 64 bits as another type.
fn longs(values: [i64; 3], data_type: &DataType) -> ArrayRef {
    let values = Int64Array::from(vec![Some(values[0]), Some(values[1]), Some(values[2]), None]);
    cast(&values, data_type).unwrap()
}

/// The columns, of which the first numbers the rows.
pub(super) fn samples() -> Vec<Sample> {
    let mut samples = vec![sample("row", array(Int64Array::from(vec![0, 1, 2, 3])), json!([0, 1, 2, 3]))];
    samples.extend(numbers());
    samples.extend(texts());
    samples.extend(times());
    samples.extend(nested());
    let json = Field::new("json", DataType::Utf8, true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into());
    let values = vec![Some("{\"a\": 1}"), Some("[]"), Some("null"), None];
    samples.push(Sample {
        field: json,
        foreign: values.iter().map(|value| json!(value)).collect(),
        values: array(StringArray::from(values)),
    });
    samples
}

fn numbers() -> Vec<Sample> {
    let float = |value: f64| Value::from(hex(&value.to_be_bytes()));
    let decimal = |values: Vec<Option<i128>>, precision, scale| {
        array(Decimal128Array::from(values).with_precision_and_scale(precision, scale).unwrap())
    };
    let nines = 10_i128.pow(38) - 1;
    let wide =
        Decimal256Array::from(vec![Some(i256::from_i128(nines)), Some(i256::from_i128(-nines)), Some(i256::ONE), None]);
    vec![
        sample(
            "boolean",
            array(BooleanArray::from(vec![Some(true), Some(false), Some(true), None])),
            json!([true, false, true, null]),
        ),
        sample(
            "byte",
            array(Int8Array::from(vec![Some(i8::MIN), Some(i8::MAX), Some(0), None])),
            json!([-128, 127, 0, null]),
        ),
        sample(
            "short",
            array(Int16Array::from(vec![Some(i16::MIN), Some(i16::MAX), Some(0), None])),
            json!([i16::MIN, i16::MAX, 0, null]),
        ),
        sample(
            "integer",
            array(Int32Array::from(vec![Some(i32::MIN), Some(i32::MAX), Some(0), None])),
            json!([i32::MIN, i32::MAX, 0, null]),
        ),
        sample("long", longs([i64::MIN, i64::MAX, 0], &DataType::Int64), json!([i64::MIN, i64::MAX, 0, null])),
        sample(
            "u8",
            array(UInt8Array::from(vec![Some(0), Some(u8::MAX), Some(128), None])),
            json!([0, 255, 128, null]),
        ),
        sample(
            "u16",
            array(UInt16Array::from(vec![Some(0), Some(u16::MAX), Some(1), None])),
            json!([0, u16::MAX, 1, null]),
        ),
        sample(
            "u32",
            array(UInt32Array::from(vec![Some(0), Some(u32::MAX), Some(1), None])),
            json!([0, u32::MAX, 1, null]),
        ),
        sample(
            "u64",
            array(UInt64Array::from(vec![Some(0), Some(u64::MAX), Some(1), None])),
            json!(["0", u64::MAX.to_string(), "1", null]),
        ),
        sample(
            "float",
            array(Float32Array::from(vec![Some(0.1), Some(f32::MAX), Some(-0.0), None])),
            json!([float(f64::from(0.1_f32)), float(f64::from(f32::MAX)), float(-0.0), null]),
        ),
        sample(
            "double",
            array(Float64Array::from(vec![Some(f64::MIN), Some(f64::MAX), Some(0.1), None])),
            json!([float(f64::MIN), float(f64::MAX), float(0.1), null]),
        ),
        sample(
            "infinite",
            array(Float64Array::from(vec![
                Some(f64::INFINITY),
                Some(f64::NEG_INFINITY),
                Some(f64::MIN_POSITIVE),
                None,
            ])),
            json!([float(f64::INFINITY), float(f64::NEG_INFINITY), float(f64::MIN_POSITIVE), null]),
        ),
        sample(
            "nan",
            array(Float64Array::from(vec![Some(f64::NAN), Some(1.0), Some(-1.0), None])),
            json!(["nan", float(1.0), float(-1.0), null]),
        ),
        sample(
            "decimal",
            decimal(vec![Some(12345), Some(-1), Some(0), None], 10, 2),
            json!(["123.45", "-0.01", "0.00", null]),
        ),
        sample(
            "decimal38",
            decimal(vec![Some(nines), Some(-nines), Some(1), None], 38, 0),
            json!([nines.to_string(), (-nines).to_string(), "1", null]),
        ),
        sample(
            "fraction38",
            decimal(vec![Some(nines), Some(-nines), Some(5), None], 38, 37),
            json!([
                format!("9.{}", "9".repeat(37)),
                format!("-9.{}", "9".repeat(37)),
                format!("0.{}5", "0".repeat(36)),
                null
            ]),
        ),
        sample(
            "decimal256",
            array(wide.with_precision_and_scale(38, 1).unwrap()),
            json!([format!("{}.9", "9".repeat(37)), format!("-{}.9", "9".repeat(37)), "0.1", null]),
        ),
    ]
}

fn texts() -> Vec<Sample> {
    let long = format!("{}\u{1F600}", "long text ".repeat(20));
    let text = vec![Some(""), Some("ä\u{10FFFF}\n\"\\\u{1}"), Some(long.as_str()), None];
    let foreign = json!(text);
    let text = StringArray::from(text);
    let bytes: Vec<Option<&[u8]>> = vec![Some(b""), Some(b"\x00\xff"), Some(b"abc"), None];
    let fixed = vec![Some(b"ab\x00"), Some(b"\xff\xfe\xfd"), Some(b"xyz"), None];
    vec![
        sample("large", cast(&text, &DataType::LargeUtf8).unwrap(), foreign.clone()),
        sample("view", cast(&text, &DataType::Utf8View).unwrap(), foreign.clone()),
        sample("text", array(text), foreign),
        sample("binary", array(BinaryArray::from(bytes)), json!(["", "00ff", "616263", null])),
        sample(
            "fixed",
            array(FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 3).unwrap()),
            json!(["616200", "fffefd", "78797a", null]),
        ),
    ]
}

fn times() -> Vec<Sample> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let zone = |name: &str| Some(Arc::<str>::from(name));
    // The years 1 and 9999 are the bounds of other readers.
    let common = [-62_135_596_800_000_000, 253_402_300_799_999_999, 1];
    let any = [i64::MIN, i64::MAX, 1];
    let mut samples = vec![
        sample(
            "date",
            cast(&longs([-719_162, 2_932_896, 0], &DataType::Int32), &DataType::Date32).unwrap(),
            json!([-719_162, 2_932_896, 0, null]),
        ),
        sample(
            "instant",
            longs(common, &DataType::Timestamp(Microsecond, zone("UTC"))),
            json!([common[0], common[1], common[2], null]),
        ),
        sample(
            "zoned",
            longs(common, &DataType::Timestamp(Microsecond, zone("Europe/Berlin"))),
            json!([common[0], common[1], common[2], null]),
        ),
        sample(
            "local",
            longs(common, &DataType::Timestamp(Microsecond, None)),
            json!([common[0], common[1], common[2], null]),
        ),
    ];
    let as_longs = [
        ("seconds", DataType::Timestamp(Second, None)),
        ("milliseconds", DataType::Timestamp(Millisecond, zone("UTC"))),
        ("nanoseconds", DataType::Timestamp(Nanosecond, zone("+02:00"))),
        ("date64", DataType::Date64),
        ("time", DataType::Time64(Nanosecond)),
        ("duration", DataType::Duration(Nanosecond)),
    ];
    samples.extend(
        as_longs.map(|(name, data_type)| sample(name, longs(any, &data_type), json!([any[0], any[1], any[2], null]))),
    );
    let time32 = cast(&longs([0, 86_399, 1], &DataType::Int32), &DataType::Time32(Second)).unwrap();
    samples.push(sample("time32", time32, json!([0, 86_399, 1, null])));
    samples
}

fn nested() -> Vec<Sample> {
    let lists = vec![Some(vec![Some(1), None, Some(3)]), Some(vec![]), Some(vec![None]), None];
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(lists.clone());
    let times = longs([i64::MIN, i64::MAX, 1], &DataType::Timestamp(TimeUnit::Nanosecond, None));
    let texts: ArrayRef = array(StringArray::from(vec![Some("a"), None, Some(""), None]));
    let parts = StructArray::try_from(vec![("time", times), ("list", array(list.clone())), ("text", texts)]).unwrap();
    let (fields, columns, _) = parts.into_parts();
    let parts = StructArray::new(fields, columns, Some(vec![true, true, true, false].into()));
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for row in 0..3 {
        for key in 0..row {
            map.keys().append_value(format!("k{key}"));
            map.values().append_option((key > 0).then_some(key));
        }
        map.append(true).unwrap();
    }
    map.append(false).unwrap();
    vec![
        sample("list", array(list.clone()), json!(lists)),
        sample(
            "struct",
            array(parts),
            json!([
                {"time": i64::MIN, "list": [1, null, 3], "text": "a"},
                {"time": i64::MAX, "list": [], "text": null},
                {"time": 1, "list": [null], "text": ""},
                null,
            ]),
        ),
        sample(
            "map",
            array(map.finish()),
            json!([
                [],
                [{"key": "k0", "value": null}],
                [{"key": "k0", "value": null}, {"key": "k1", "value": 1}],
                null,
            ]),
        ),
    ]
}

/// Partition values whose names of folders need escapes, or have a meaning of their own.
pub(super) fn odd_texts() -> Vec<Option<String>> {
    let texts = [
        "plain",
        "a/b",
        "100%",
        "%20",
        "ä ö",
        "x=y",
        "a'b\"c",
        "日本",
        "a+b c",
        "..",
        ".",
        "C:\\x",
        "_hidden",
        "\n\t\u{1}",
        "null",
        "\u{1F600}",
        "?#&;",
        "trailing ",
        "",
    ];
    let mut texts: Vec<_> = texts.iter().map(|text| Some((*text).to_owned())).collect();
    texts.push(None);
    texts
}

/// Partition values that names of folders cannot have.
pub(super) fn nameless_texts() -> Vec<Option<String>> {
    vec![
        Some("__HIVE_DEFAULT_PARTITION__".to_owned()),
        Some("long/".repeat(60)),
        Some(format!("{}1", "long/".repeat(60))),
        None,
    ]
}
