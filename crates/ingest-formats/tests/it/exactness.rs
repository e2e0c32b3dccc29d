//! Which value fits into which column, and what it becomes: exactly, or not at all.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use tidegate_ingest_formats::{BinaryText, BodyFormat, BodyOptions};

use super::fixture::{decode, list_of, map_of, row_options, schema};

/// Decodes one value into a column of this type, from JSON. Rejected values give nothing.
fn json(data_type: &DataType, value: &str) -> Option<String> {
    let options = row_options(BodyFormat::Ndjson);
    let decoded = decode(&schema(&[("v", data_type.clone())]), &options, &format!("{{\"v\":{value}}}\n")).unwrap();
    assert_eq!(decoded.rows() + decoded.rejected.len(), 1);
    decoded.text().into_iter().next()
}

/// The same from CSV, with the value in quotes.
fn csv(data_type: &DataType, value: &str) -> Option<String> {
    let options = row_options(BodyFormat::Csv);
    let body = format!("v\n\"{}\"\n", value.replace('"', "\"\""));
    let decoded = decode(&schema(&[("v", data_type.clone())]), &options, &body).unwrap();
    assert_eq!(decoded.rows() + decoded.rejected.len(), 1);
    decoded.text().into_iter().next()
}

fn assert_json(data_type: &DataType, cases: &[(&str, Option<&str>)]) {
    for (value, expected) in cases {
        assert_eq!(json(data_type, value).as_deref(), *expected, "{value} as {data_type}");
    }
}

fn assert_csv(data_type: &DataType, cases: &[(&str, Option<&str>)]) {
    for (value, expected) in cases {
        assert_eq!(csv(data_type, value).as_deref(), *expected, "{value} as {data_type}");
    }
}

#[test]
fn integers() {
    assert_json(
        &DataType::Int64,
        &[
            ("9007199254740993", Some("9007199254740993")),
            ("9223372036854775807", Some("9223372036854775807")),
            ("-9223372036854775808", Some("-9223372036854775808")),
            ("9223372036854775808", None),
            ("5.0", Some("5")),
            ("5e2", Some("500")),
            ("5.5", None),
            ("1e-1", None),
            ("-0", Some("0")),
            ("\"5\"", None),
            ("true", None),
            ("[1]", None),
            ("{}", None),
            ("null", Some("·")),
        ],
    );
    assert_json(&DataType::Int8, &[("127", Some("127")), ("128", None), ("-128", Some("-128")), ("-129", None)]);
    assert_json(&DataType::UInt8, &[("255", Some("255")), ("256", None), ("-1", None)]);
    assert_json(&DataType::UInt64, &[("18446744073709551615", Some("18446744073709551615")), ("-1", None)]);
    assert_json(
        &DataType::UInt64,
        &[("18446744073709551616", None), ("1.8446744073709551615e19", Some("18446744073709551615"))],
    );
    let cases = [("007", Some("7")), ("+7", Some("7")), ("7.0", Some("7")), (" 7", None), ("7 ", None), ("", None)];
    assert_csv(&DataType::Int64, &cases);
    assert_csv(&DataType::Int64, &[("0x7", None), ("1_000", None), ("1,000", None), ("seven", None), ("7L", None)]);
}

#[test]
fn floats() {
    assert_json(
        &DataType::Float64,
        &[
            ("0.1", Some("0.1")),
            ("9007199254740993", Some("9007199254740992.0")),
            ("1e308", Some("1e308")),
            ("1e309", None),
            ("1e-400", None),
            ("0e-400", Some("0.0")),
            ("\"NaN\"", Some("NaN")),
            ("\"-Infinity\"", Some("-inf")),
            ("NaN", None),
            ("\"0.1\"", None),
            ("\"nan\"", None),
        ],
    );
    assert_json(&DataType::Float32, &[("0.1", Some("0.1")), ("3.5e38", None), ("16777217", Some("16777216.0"))]);
    assert_csv(
        &DataType::Float64,
        &[("NaN", Some("NaN")), ("inf", None), (".5", None), ("5.", None), ("1e5", Some("100000.0"))],
    );
}

#[test]
fn decimals() {
    assert_json(
        &DataType::Decimal128(10, 2),
        &[
            ("0.1", Some("0.10")),
            ("99999999.99", Some("99999999.99")),
            ("100000000", None),
            ("0.001", None),
            ("0.1000", Some("0.10")),
            ("1.25e1", Some("12.50")),
            ("\"1.5\"", None),
        ],
    );
    let digits = "12345678901234567890123456789012345678";
    assert_json(&DataType::Decimal128(38, 0), &[(digits, Some(digits))]);
    let digits = "1234567890123456789012345678901234567890123456789012345678901234567890.123456";
    assert_json(&DataType::Decimal256(76, 6), &[(digits, Some(digits)), ("1e70", None), ("0.0000001", None)]);
    assert_json(&DataType::Decimal32(5, 1), &[("1234.5", Some("1234.5")), ("12345", None)]);
    assert_json(&DataType::Decimal64(18, 0), &[("999999999999999999", Some("999999999999999999"))]);
    assert_json(&DataType::Decimal128(5, -2), &[("1200", Some("1200")), ("1250", None)]);
    assert_csv(&DataType::Decimal128(10, 2), &[("1.5", Some("1.50")), ("1.555", None), ("1,5", None)]);
}

#[test]
fn times() {
    let utc = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    assert_json(
        &utc,
        &[
            ("\"2024-02-29T12:34:56.123456789Z\"", Some("2024-02-29T12:34:56.123456789Z")),
            ("\"2024-02-29T12:34:56+02:00\"", Some("2024-02-29T10:34:56Z")),
            ("\"2024-02-29 12:34:56\"", Some("2024-02-29T12:34:56Z")),
            ("\"2024-02-30T12:34:56Z\"", None),
            ("\"2024-02-29\"", None),
            ("1709210096", None),
        ],
    );
    let milliseconds = DataType::Timestamp(TimeUnit::Millisecond, None);
    assert_json(
        &milliseconds,
        &[
            ("\"2024-02-29T12:34:56.123\"", Some("2024-02-29T12:34:56.123")),
            ("\"2024-02-29T12:34:56.1230\"", Some("2024-02-29T12:34:56.123")),
            ("\"2024-02-29T12:34:56.1234\"", None),
            ("\"2024-02-29T12:34:56.123Z\"", None),
        ],
    );
    assert_json(
        &DataType::Date32,
        &[("\"2024-02-29\"", Some("2024-02-29")), ("\"2024-02-29T00:00\"", None), ("1", None)],
    );
    assert_json(&DataType::Date64, &[("\"2024-02-29\"", Some("2024-02-29T00:00:00"))]);
    assert_json(
        &DataType::Time64(TimeUnit::Microsecond),
        &[("\"12:34:56.000001\"", Some("12:34:56.000001")), ("\"12\"", None)],
    );
    assert_json(&DataType::Time32(TimeUnit::Second), &[("\"12:34:56\"", Some("12:34:56")), ("\"12:34:56.5\"", None)]);
}

#[test]
fn epochs_need_a_declared_unit() {
    let table = schema(&[("v", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))]);
    for format in [BodyFormat::Ndjson, BodyFormat::Csv] {
        let mut options = row_options(format);
        options.epoch_units.insert("v".to_owned(), TimeUnit::Millisecond);
        let values = ["1709210096123", "1709210096123.456", "1709210096123.4567", "1e300", "-1"];
        let mut body = if format == BodyFormat::Csv { "v\n".to_owned() } else { String::new() };
        for value in values {
            body += &if format == BodyFormat::Csv { format!("{value}\n") } else { format!("{{\"v\":{value}}}\n") };
        }
        body += if format == BodyFormat::Csv { "2024-02-29T12:34:56Z\n" } else { "{\"v\":\"2024-02-29T12:34:56Z\"}\n" };
        let decoded = decode(&table, &options, &body).unwrap();
        let expected = [
            "2024-02-29T12:34:56.123Z",
            "2024-02-29T12:34:56.123456Z",
            "1969-12-31T23:59:59.999Z",
            "2024-02-29T12:34:56Z",
        ];
        assert_eq!(decoded.text(), expected);
        assert_eq!(decoded.rejected.len(), 2);
    }
    let mut options = BodyOptions::new(BodyFormat::Csv);
    options.epoch_units.insert("w".to_owned(), TimeUnit::Millisecond);
    let error = decode(&table, &options, "").unwrap_err().to_string();
    assert_eq!(error, "a unit of epochs is declared, but there is no column \"w\"; there are: v");
}

#[test]
fn booleans_and_bytes() {
    assert_json(&DataType::Boolean, &[("true", Some("true")), ("\"true\"", None), ("1", None), ("0", None)]);
    assert_csv(&DataType::Boolean, &[("TRUE", Some("true")), ("f", Some("false")), ("yes", None), ("1", None)]);
    assert_json(&DataType::Binary, &[("\"AP8=\"", Some("00ff")), ("\"A\"", None), ("\"\"", Some("")), ("[0]", None)]);
    assert_json(&DataType::FixedSizeBinary(2), &[("\"AP8=\"", Some("00ff")), ("\"AA==\"", None)]);
    let options = BodyOptions { binary_text: BinaryText::Hex, ..row_options(BodyFormat::Csv) };
    let decoded = decode(&schema(&[("v", DataType::BinaryView)]), &options, "v\n\\x00FF\n0\n").unwrap();
    assert_eq!((decoded.text(), decoded.rejected.len()), (vec!["00ff".to_owned()], 1));
}

#[test]
fn texts() {
    let cases = [
        ("\"a\\u00e4\\ud83d\\ude00\\n\\u0000\"", Some("aä😀\n\0")),
        ("\"\\ud800\"", None),
        ("1", None),
        ("true", None),
        ("[]", None),
    ];
    for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
        assert_json(&data_type, &cases);
    }
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    assert_json(&dictionary, &cases);
    assert_csv(&DataType::Utf8, &[("007", Some("007")), (" x ", Some(" x ")), ("", Some("")), ("null", Some("null"))]);
}

#[test]
fn nested_values() {
    let list = list_of(DataType::Int64);
    let cases = [
        ("[9007199254740993, null]", Some("[9007199254740993, ·]")),
        ("[]", Some("[]")),
        ("[1.5]", None),
        ("[1,]", None),
        ("1", None),
        ("null", Some("·")),
    ];
    assert_json(&list, &cases);
    assert_csv(&list, &[("[1,2]", Some("[1, 2]")), ("1,2", None), ("[1]]", None)]);
    let fixed = DataType::FixedSizeList(Arc::new(Field::new_list_field(DataType::Int64, true)), 2);
    assert_json(&fixed, &[("[1,2]", Some("[1, 2]")), ("[1]", None), ("null", Some("·"))]);
    let members = vec![Field::new("x", DataType::Decimal128(5, 2), false), Field::new("y", DataType::Utf8, true)];
    let object = DataType::Struct(members.into());
    let cases = [
        ("{\"x\":0.1}", Some("{x: 0.10, y: ·}")),
        ("{\"y\":\"b\",\"x\":1}", Some("{x: 1.00, y: b}")),
        ("{\"y\":\"b\"}", None),
        ("{\"x\":1,\"z\":1}", None),
        ("{\"x\":1,\"x\":1}", None),
        ("null", Some("·")),
    ];
    assert_json(&object, &cases);
    let map = map_of(DataType::Utf8, DataType::Int64);
    let cases = [("{\"a\":1,\"b\":null}", Some("{a: 1, b: ·}")), ("{\"a\":1,\"a\":2}", None), ("{\"a\":\"b\"}", None)];
    assert_json(&map, &cases);
    let map = map_of(DataType::Int32, DataType::Utf8);
    assert_json(&map, &[("{\"1\":\"x\"}", Some("{1: x}")), ("{\"01\":\"x\"}", None), ("{\"a\":\"x\"}", None)]);
    assert_json(&list_of(list.clone()), &[("[[1],null,[]]", Some("[[1], ·, []]"))]);
}

#[test]
fn paths_lead_to_nested_values() {
    let members = vec![Field::new("tags", list_of(DataType::Int64), true)];
    let table = schema(&[("v", DataType::Struct(members.into()))]);
    let decoded = decode(&table, &row_options(BodyFormat::Ndjson), "{\"v\":{\"tags\":[1,2.5]}}\n").unwrap();
    assert_eq!(
        decoded.reasons(),
        [
            "line 1, column \"v.tags[1]\": 2.5 has digits that the column does not hold; the column is an integer of 64 bits"
        ]
    );
}

#[test]
fn json_text_is_kept_as_it_was_written() {
    let metadata = [("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into();
    let field = Field::new("v", DataType::Utf8, true).with_metadata(metadata);
    let table = Schema::new(vec![field]);
    let values = ["{\"b\": 1.50, \"a\":[9007199254740993,\"\\u00e4\"]}", "\"text\"", "1e400", "null", "[1,]"];
    let body = values.map(|value| format!("{{\"v\": {value} }}\n")).concat();
    let decoded = decode(&table, &row_options(BodyFormat::Ndjson), &body).unwrap();
    assert_eq!(decoded.text(), [values[0], values[1], values[2], "·"]);
    assert_eq!(decoded.rejected.len(), 1);
}
