//! NDJSON: lines, and what is wrong with them.

use arrow::datatypes::{DataType, Field, Schema};
use tidegate_ingest_formats::{BodyError, BodyFormat, BodyLimits, BodyOptions, RowPosition, UnknownColumns};

use super::fixture::{decode, decode_pieces, row_options, schema, sensors};

fn rejected(body: &str) -> Vec<String> {
    decode(&sensors(), &row_options(BodyFormat::Ndjson), body).unwrap().reasons()
}

#[test]
fn lines_become_rows() {
    let body = "\u{feff}{\"device\":\"a\",\"value\":1.5,\"time\":\"2024-02-29T12:34:56Z\"}\r\n\n  \n{\"value\":null,\"device\":\"b\"}";
    let decoded = decode(&sensors(), &BodyOptions::new(BodyFormat::Ndjson), body).unwrap();
    assert_eq!(decoded.text(), ["2024-02-29T12:34:56Z|a|1.5", "·|b|·"]);
    assert_eq!(decoded.positions, [RowPosition::Line(1), RowPosition::Line(4)]);
    let empty = decode(&sensors(), &BodyOptions::new(BodyFormat::Ndjson), "").unwrap();
    assert_eq!(empty.rows(), 0);
}

#[test]
fn rows_that_do_not_fit_have_line_column_and_reason() {
    let body = [
        r#"{"device":"a"}"#,
        r#"{"device":"a","valu":1}"#,
        r#"{"value":1}"#,
        r#"{"device":null}"#,
        r#"{"device":"a","value":"1"}"#,
        r#"{"device":"a","value":1,"value":2}"#,
        r#"{"device":"a","time":1700000000}"#,
        r#"{"device":"a","time":"yesterday"}"#,
        r#"{"device":7}"#,
        r#"{"device":"a","value":1"#,
        r#"[1]"#,
        r#"{"device":"a","value":01}"#,
        r#"{"device":"a"} {}"#,
        r#"{"devise":"a","x":[1,2],"value":1,"y":null}"#,
    ];
    let expected = [
        r#"line 2, column "valu": there is no column "valu"; did you mean "value"?"#,
        r#"line 3, column "device": it is missing, and the column takes no nulls"#,
        r#"line 4, column "device": it is null, and the column takes no nulls"#,
        r#"line 5, column "value": "1" is a string, and the column is a double; send a number without quotes"#,
        r#"line 6, column "value": it occurs twice"#,
        r#"line 7, column "time": 1700000000 is a number, and the column declares no unit since 1970; send text such as "2024-02-29T12:34:56Z""#,
        r#"line 8, column "time": "yesterday" does not have the form "2024-02-29T12:34:56Z""#,
        r#"line 9, column "device": 7 does not fit; the column is text"#,
        r#"line 10: the JSON is malformed at byte 24 of the row: an object needs a comma or its end here"#,
        r#"line 11: a row is an object with the names of the columns"#,
        r#"line 12: the JSON is malformed at byte 24 of the row: a number does not have the form of JSON"#,
        r#"line 13: the JSON is malformed at byte 16 of the row: there is more text after the value"#,
        r#"line 14, column "devise": there is no column "devise"; did you mean "device"?; nor are there: "x", "y""#,
    ];
    assert_eq!(rejected(&(body.join("\n") + "\n")), expected);
    let error = decode(&sensors(), &BodyOptions::new(BodyFormat::Ndjson), &(body.join("\n") + "\n")).unwrap_err();
    let BodyError::Rejected { rows, count } = error else { panic!("{error}") };
    assert_eq!(rows.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    assert_eq!((count, rows[0].text.as_str()), (13, body[1]));
}

#[test]
fn bytes_that_are_no_text_are_rejected() {
    let mut body = b"{\"device\":\"a\"}\n{\"device\":\"".to_vec();
    body.extend(b"\xff\"}\n{\"device\":\"b\"}\n");
    let decoded = decode_pieces(&sensors(), &row_options(BodyFormat::Ndjson), &body, 5).unwrap();
    assert_eq!(decoded.reasons(), ["line 2: the text is not UTF-8 at byte 12 of the row"]);
    assert_eq!(decoded.rows(), 2);
}

#[test]
fn line_that_is_too_long_is_rejected_without_being_stored() {
    let limits = BodyLimits { row_bytes_max: 30, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..row_options(BodyFormat::Ndjson) };
    let body = format!("{{\"device\":\"a\"}}\n{{\"device\":\"{}\"}}\n{{\"device\":\"b\"}}\n", "x".repeat(100));
    let decoded = decode(&sensors(), &options, &body).unwrap();
    assert_eq!(decoded.reasons(), ["line 2: the line has more than 30 bytes"]);
    assert_eq!(decoded.text(), ["·|a|·", "·|b|·"]);
}

#[test]
fn body_that_breaks_off_is_an_error() {
    let body = "{\"device\":\"a\"}\n{\"device\":\"b\",\"value\":1";
    for options in [BodyOptions::new(BodyFormat::Ndjson), row_options(BodyFormat::Ndjson)] {
        let error = decode(&sensors(), &options, body).unwrap_err();
        assert_eq!(
            error,
            BodyError::Incomplete(
                "the body ends in line 2, which has neither a line break nor a whole object".to_owned()
            )
        );
    }
}

#[test]
fn only_a_hundred_rejected_rows_are_reported() {
    let body = "{\"no\":1}\n".repeat(1_000);
    let error = decode(&sensors(), &BodyOptions::new(BodyFormat::Ndjson), &body).unwrap_err();
    let BodyError::Rejected { rows, count } = error else { panic!("{error}") };
    assert_eq!((rows.len(), count), (100, 1_000));
    let decoded = decode(&sensors(), &row_options(BodyFormat::Ndjson), &body).unwrap();
    assert_eq!(decoded.reasons().len(), 1_000);
}

#[test]
fn batches_are_bounded() {
    let limits = BodyLimits { batch_rows_max: 10, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..BodyOptions::new(BodyFormat::Ndjson) };
    let decoded = decode(&sensors(), &options, &"{\"device\":\"a\"}\n".repeat(25)).unwrap();
    assert_eq!(decoded.batches.iter().map(|batch| batch.num_rows()).collect::<Vec<_>>(), [10, 10, 5]);
}

#[test]
fn members_become_columns_where_that_is_allowed() {
    let options = BodyOptions { unknown_columns: UnknownColumns::Add, ..row_options(BodyFormat::Ndjson) };
    let body = "{\"device\":\"a\",\"none\":null}\n{\"device\":\"b\",\"count\":1,\"site\":{\"x\":1}}\n{\"device\":\"c\",\"count\":2.5}\n";
    let decoded = decode(&sensors(), &options, body).unwrap();
    assert_eq!(decoded.text(), ["·|a|·|·|·", "·|b|·|1.0|{x: 1}", "·|c|·|2.5|·"]);
    assert_eq!(decoded.schema.field(3), &Field::new("count", DataType::Float64, true));
    // Names that differ in case only are the same in some tables.
    let decoded = decode(&sensors(), &options, "{\"device\":\"a\",\"Value\":1}\n{\"device\":\"b\",\"x\":1}\n").unwrap();
    assert_eq!(decoded.reasons(), [r#"line 1, column "Value": there is no column "Value"; did you mean "value"?"#]);
    assert_eq!(decoded.text(), ["·|b|·|1"]);
    // After the sample, the first value decides.
    let body =
        "{\"device\":\"a\"}\n".repeat(20_000) + "{\"device\":\"b\",\"late\":7}\n{\"device\":\"c\",\"late\":\"x\"}\n";
    let decoded = decode_pieces(&sensors(), &options, body.as_bytes(), 1 << 16).unwrap();
    assert_eq!(
        decoded.reasons(),
        [r#"line 20002, column "late": "x" does not fit; the column is an integer of 64 bits"#]
    );
    assert_eq!(decoded.text().last().unwrap(), "·|b|·|7");
    // A row that is rejected adds nothing.
    let body = "{\"device\":\"a\"}\n".repeat(20_000) + "{\"late\":7}\n";
    let decoded = decode_pieces(&sensors(), &options, body.as_bytes(), 1 << 16).unwrap();
    assert_eq!(decoded.schema.fields().len(), 3);
}

#[test]
fn columns_are_bounded() {
    let limits = BodyLimits { columns_max: 4, ..BodyLimits::default() };
    let options = BodyOptions { limits, unknown_columns: UnknownColumns::Add, ..row_options(BodyFormat::Ndjson) };
    let body = "{\"device\":\"a\"}\n".repeat(20_000) + "{\"device\":\"b\",\"x\":1,\"y\":2}\n";
    let decoded = decode_pieces(&sensors(), &options, body.as_bytes(), 1 << 16).unwrap();
    assert_eq!(decoded.reasons().len(), 1);
    assert!(decoded.reasons()[0].contains("one too many; at most 4"), "{:?}", decoded.reasons());
}

#[test]
fn names_may_have_escapes_and_any_characters() {
    let table = schema(&[("größe \"x\"", DataType::Int64)]);
    let decoded = decode(&table, &BodyOptions::new(BodyFormat::Ndjson), "{\"gr\\u00f6ße \\\"x\\\"\":1}").unwrap();
    assert_eq!(decoded.text(), ["1"]);
}

#[test]
fn types_without_text_are_refused() {
    let table = Schema::new(vec![Field::new("span", DataType::Duration(arrow::datatypes::TimeUnit::Second), true)]);
    let error = decode(&table, &BodyOptions::new(BodyFormat::Ndjson), "{}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "column \"span\": JSON and CSV have no values of type Duration(s); send Arrow or Parquet"
    );
}
