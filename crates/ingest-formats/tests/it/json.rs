//! JSON documents.

use arrow::datatypes::DataType;
use tidegate_ingest_formats::{BodyError, BodyFormat, BodyLimits, BodyOptions, RowPosition};

use super::fixture::{decode, row_options, schema, sensors};

fn options() -> BodyOptions {
    row_options(BodyFormat::Json)
}

#[test]
fn array_or_object_becomes_rows() {
    let body = "\u{feff} [\n{\"device\":\"a\\\"]\\\\\"} ,{\"device\":\"{[\",\"value\":2}\n]\n";
    let decoded = decode(&sensors(), &options(), body).unwrap();
    assert_eq!(decoded.text(), ["·|a\"]\\|·", "·|{[|2.0"]);
    assert_eq!(decoded.positions, [RowPosition::Index(0), RowPosition::Index(1)]);
    assert_eq!(decode(&sensors(), &options(), "{\"device\":\"a\"}").unwrap().rows(), 1);
    assert_eq!(decode(&sensors(), &options(), " [ ] ").unwrap().rows(), 0);
}

#[test]
fn strings_for_numbers_and_booleans_name_their_quotes() {
    let number = "send a number without quotes";
    let cases = [
        (DataType::Decimal128(10, 2), "1.10", "decimal(10,2)", number),
        (DataType::Decimal256(40, 2), "-1e1", "decimal(40,2)", number),
        (DataType::Float64, "1.5", "a double", number),
        (DataType::Float32, "2", "a float of 32 bits", number),
        (DataType::Int64, "5", "an integer of 64 bits", number),
        (DataType::UInt64, "5", "an unsigned integer of 64 bits", number),
        (DataType::Boolean, "true", "a boolean", "send a boolean without quotes"),
    ];
    for (data_type, text, description, advice) in cases {
        let table = schema(&[("v", data_type)]);
        let decoded =
            decode(&table, &options(), &format!("[{{\"v\":\"{text}\"}},{{\"v\":{text}}},{{\"v\":\"x\"}}]")).unwrap();
        let expected = [
            format!("row 0, column \"v\": \"{text}\" is a string, and the column is {description}; {advice}"),
            format!("row 2, column \"v\": \"x\" does not fit; the column is {description}"),
        ];
        assert_eq!(decoded.reasons(), expected);
        assert_eq!(decoded.rows(), 1);
    }
}

#[test]
fn values_that_do_not_fit_reject_their_row_only() {
    let body = r#"[{"device":"a"},1,"x",[{}],null,{"device":1},{"device":"b"}]"#;
    let decoded = decode(&sensors(), &options(), body).unwrap();
    let row = "a row is an object with the names of the columns";
    let expected = [
        format!("row 1: {row}"),
        format!("row 2: {row}"),
        format!("row 3: {row}"),
        format!("row 4: {row}"),
        "row 5, column \"device\": 1 does not fit; the column is text".to_owned(),
    ];
    assert_eq!(decoded.reasons(), expected);
    assert_eq!(decoded.rows(), 2);
}

#[test]
fn broken_documents_are_refused() {
    let cases = [
        ("", "the body is empty; without rows, a JSON body is []"),
        ("[", "the body ends before its array is closed, after 0 rows (line 1)"),
        ("[{\"device\":\"a\"},\n", "the body ends before its array is closed, after 1 rows (line 2)"),
        ("[{\"device\":\"a\"", "the body ends in row 0 (line 1)"),
        ("{\"device\":\"a\"", "the body ends in row 0 (line 1)"),
        ("[1", "the body ends in row 0 (line 1)"),
        ("7", "line 1, before row 0: a JSON body is an array of objects or one object"),
        ("[{\"device\":\"a\"}]x", "line 1, before row 1: there is more text after the document"),
        ("{\"device\":\"a\"}{}", "line 1, before row 1: there is more text after the document"),
        ("[{\"device\":\"a\"} {}]", "line 1, before row 1: a comma or the end of the array is expected"),
        ("[,]", "line 1, before row 0: a row is expected"),
        ("[{\"device\":\"a\"},\n]", "line 2, before row 1: a row is expected"),
        (
            "[\n{\"device\":\"a\"],{}]",
            "row 0 (line 2): the JSON is malformed at byte 14 of the row: an object needs a comma or its end here",
        ),
        ("[nul]", "row 0 (line 1): the JSON is malformed at byte 1 of the row: a value is expected"),
    ];
    for (body, expected) in cases {
        assert_eq!(decode(&sensors(), &options(), body).unwrap_err().to_string(), expected, "{body}");
    }
}

#[test]
fn row_that_is_too_large_is_refused() {
    let limits = BodyLimits { row_bytes_max: 100, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..options() };
    let body = format!("[{{\"device\":\"{}\"}}]", "x".repeat(200));
    let error = decode(&sensors(), &options, &body).unwrap_err();
    assert_eq!(error, BodyError::TooLarge("row 0 has more than 100 bytes".to_owned()));
}
