//! CSV: quotes, line breaks, names and nulls.

use arrow::datatypes::DataType;
use tidegate_ingest_formats::{
    BodyError, BodyFormat, BodyLimits, BodyOptions, CsvSyntax, RowPosition, UnknownColumns, infer_schema,
};

use super::fixture::{decode, row_options, schema, sensors};

fn options() -> BodyOptions {
    row_options(BodyFormat::Csv)
}

fn options_with(csv: CsvSyntax) -> BodyOptions {
    BodyOptions { csv, ..options() }
}

#[test]
fn records_become_rows() {
    let body = "\u{feff}device,value,time\r\na,1.5,2024-02-29T12:34:56Z\r\n\n\"x,\"\"y\"\"\n\",,\n\"\",1e3,\"2024-02-29 12:34:56+01\"";
    let decoded = decode(&sensors(), &options(), body).unwrap();
    assert_eq!(decoded.text(), ["2024-02-29T12:34:56Z|a|1.5", "·|x,\"y\"\n|·", "2024-02-29T11:34:56Z||1000.0"]);
    assert_eq!(decoded.positions, [RowPosition::Line(2), RowPosition::Line(4), RowPosition::Line(6)]);
}

#[test]
fn other_delimiters_quotes_and_nulls() {
    let csv = CsvSyntax {
        delimiter: b'\t',
        quote: b'\'',
        null_text: "\\N".to_owned(),
        has_header: false,
        ..CsvSyntax::default()
    };
    let decoded = decode(&sensors(), &options_with(csv), "\\N\t\t\\N\n\\N\t'it''s'\t2\n\\N\t'\\N'\t\\N\n").unwrap();
    assert_eq!(decoded.text(), ["·||·", "·|it's|2.0", "·|\\N|·"]);
    for (delimiter, quote) in [(b'"', b'"'), (b'\n', b'"'), (b',', 0xC3)] {
        let csv = CsvSyntax { delimiter, quote, ..CsvSyntax::default() };
        assert!(matches!(decode(&sensors(), &options_with(csv), ""), Err(BodyError::Options(_))));
    }
}

#[test]
fn records_that_do_not_fit_are_rejected() {
    let body = "device,value\na,1\na\na,1,2\n,1\na\"b,1\n\"a\"b,1\n\"a\"\r,1\na,x\na, 1\na\rb,1\nb,2\n";
    let decoded = decode(&sensors(), &options(), body).unwrap();
    let expected = [
        "line 3: the record has 1 field; the file has 2 columns",
        "line 4: the record has 3 fields; the file has 2 columns",
        "line 5, column \"device\": it is null, and the column takes no nulls",
        "line 6: a quote is within a field that has no quotes around it; enclose the field in quotes and double the one within",
        "line 7: there is text after the closing quote of a field; a quote within quotes is doubled",
        "line 8: there is text after the closing quote of a field; a quote within quotes is doubled",
        "line 9, column \"value\": \"x\" does not fit; the column is a double",
        "line 10, column \"value\": \" 1\" does not fit; the column is a double",
        "line 11: a carriage return without line feed is in a field that has no quotes around it",
    ];
    assert_eq!(decoded.reasons(), expected);
    assert_eq!(decoded.text(), ["·|a|1.0", "·|b|2.0"]);
}

#[test]
fn names_of_columns_are_checked() {
    let cases = [
        ("", "the body is empty; its first line has the names of the columns"),
        ("device,valu\n", "line 1: there is no column \"valu\"; did you mean \"value\"?"),
        (
            "x,device,valu,y\n",
            "line 1: there is no column \"x\"; there are: time, device, value; nor are there: \"valu\", \"y\"",
        ),
        ("device,device\n", "line 1, the names of the columns: \"device\" occurs twice"),
        ("device,\n", "line 1, the names of the columns: one of them is empty"),
        (
            "dev\"ice\n",
            "line 1, the names of the columns: a quote is within a field that has no quotes around it; enclose the field in quotes and double the one within",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(decode(&sensors(), &options(), body).unwrap_err().to_string(), expected, "{body}");
    }
    let table = schema(&[("a\"b", DataType::Int64)]);
    assert_eq!(decode(&table, &options(), "\"a\"\"b\"\n7\n").unwrap().text(), ["7"]);
}

#[test]
fn names_with_another_delimiter_are_refused() {
    let refusal = |result: Result<(), BodyError>| result.unwrap_err().to_string();
    let adding = BodyOptions { unknown_columns: UnknownColumns::Add, ..options() };
    let quotes = ", or enclose the name in quotes";
    for (header, byte, delimiter, alternative) in
        [("id;amount", b';', "\";\"", quotes), ("id\tamount", b'\t', "tab", ""), ("id|amount", b'|', "\"|\"", quotes)]
    {
        let body = format!("{header}\n1\n");
        let expected = format!(
            "line 1, the names of the columns: {header:?} is one name, because the delimiter is \",\"; set delimiter to {delimiter}{alternative}"
        );
        assert_eq!(refusal(infer_schema(body.as_bytes(), &options()).map(drop)), expected);
        for options in [&options(), &adding] {
            assert_eq!(refusal(decode(&sensors(), options, &body).map(drop)), expected);
        }
        // Either advice, followed.
        let csv = CsvSyntax { delimiter: byte, ..CsvSyntax::default() };
        assert_eq!(infer_schema(body.as_bytes(), &options_with(csv)).unwrap().schema.fields().len(), 2);
        if !alternative.is_empty() {
            let in_quotes = format!("\"{header}\"\n1\n");
            assert_eq!(infer_schema(in_quotes.as_bytes(), &options()).unwrap().schema.field(0).name(), header);
        }
    }
    let semicolons = CsvSyntax { delimiter: b';', ..CsvSyntax::default() };
    let error = refusal(infer_schema(b"id,amount\n1,5\n", &options_with(semicolons)).map(drop));
    assert!(
        error.ends_with("the delimiter is \";\"; set delimiter to \",\", or enclose the name in quotes"),
        "{error}"
    );
    // A table may have such a column.
    let table = schema(&[("a;b", DataType::Int64)]);
    assert_eq!(decode(&table, &options(), "a;b\n7\n").unwrap().text(), ["7"]);
}

#[test]
fn body_that_breaks_off_is_an_error() {
    let error = decode(&sensors(), &options(), "device\na\n\"b").unwrap_err();
    assert_eq!(error.to_string(), "the body ends within the quotes of a field of the record of line 3");
    let csv = CsvSyntax { requires_final_line_break: true, ..CsvSyntax::default() };
    let error = decode(&sensors(), &options_with(csv.clone()), "device,value\na,1").unwrap_err();
    assert_eq!(error.to_string(), "the body ends in line 2, which has no line break");
    assert_eq!(decode(&sensors(), &options_with(csv), "device,value\na,1\n").unwrap().rows(), 1);
}

#[test]
fn empty_line_is_a_null_only_where_there_is_one_column() {
    let table = schema(&[("a", DataType::Int64)]);
    assert_eq!(decode(&table, &options(), "a\n1\n\n2\n").unwrap().text(), ["1", "·", "2"]);
}

#[test]
fn record_that_is_too_large_is_refused() {
    let limits = BodyLimits { row_bytes_max: 50, ..BodyLimits::default() };
    let options = BodyOptions { limits, ..options() };
    let error = decode(&sensors(), &options, &format!("device\n\"{}", "x\n".repeat(100))).unwrap_err();
    assert_eq!(error.to_string(), "the record of line 2 has more than 50 bytes; its quotes may not be closed");
}

#[test]
fn columns_are_added_where_that_is_allowed() {
    let options = BodyOptions { unknown_columns: UnknownColumns::Add, ..options() };
    let decoded = decode(&sensors(), &options, "device,count,code,none\na,1,007,\nb,,x,\n").unwrap();
    assert_eq!(decoded.text(), ["·|a|·|1|007|·", "·|b|·|·|x|·"]);
    let error = decode(&sensors(), &options, "device,Value\na,1\n").unwrap_err();
    assert_eq!(error, BodyError::Columns("there is no column \"Value\"; did you mean \"value\"?".to_owned()));
}
