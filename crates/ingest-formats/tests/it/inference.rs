//! Columns that no table describes.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use tidegate_ingest_formats::{BodyCoding, BodyError, BodyFormat, BodyOptions, INFERENCE_BYTES, infer_schema};

use super::fixture::{decode, gzip, list_of};

/// The type of `v` in rows of these values, which the rows then fit into.
fn json_type(values: &[&str]) -> Field {
    let body: String = values.iter().map(|value| format!("{{\"v\":{value}}}\n")).collect();
    let options = BodyOptions::new(BodyFormat::Ndjson);
    let inferred = infer_schema(body.as_bytes(), &options).unwrap();
    assert_eq!(inferred.rows, values.len() as u64);
    let decoded = decode(&inferred.schema, &options, &body).unwrap();
    assert_eq!(decoded.rows(), values.len());
    inferred.schema.field(0).clone()
}

fn csv_type(values: &[&str]) -> DataType {
    let body = format!("v,w\n{}", values.iter().map(|value| format!("{value},x\n")).collect::<String>());
    let options = BodyOptions::new(BodyFormat::Csv);
    let inferred = infer_schema(body.as_bytes(), &options).unwrap();
    assert_eq!(decode(&inferred.schema, &options, &body).unwrap().rows(), values.len());
    inferred.schema.field(0).data_type().clone()
}

#[test]
fn types_of_json() {
    let utc = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let cases: [(&[&str], DataType); 14] = [
        (&["1", "null", "-5"], DataType::Int64),
        (&["1", "2.5"], DataType::Float64),
        (&["9223372036854775808"], DataType::Decimal128(38, 0)),
        (&["9007199254740993", "0.5"], DataType::Decimal128(38, 1)),
        (&["0.12345678901234567890123"], DataType::Decimal128(38, 23)),
        (&["1e5", "1"], DataType::Float64),
        (&["true", "false"], DataType::Boolean),
        (&["\"a\"", "\"2024-02-29\""], DataType::Utf8),
        (&["\"2024-02-29\"", "null"], DataType::Date32),
        (&["\"2024-02-29T00:00:00Z\"", "\"2024-02-29 00:00:00.123456+02:00\""], utc(TimeUnit::Microsecond)),
        (&["\"2024-02-29T00:00:00Z\"", "\"2024-02-29T00:00:00.123456789Z\""], utc(TimeUnit::Nanosecond)),
        (&["\"2024-02-29T00:00:00\""], DataType::Timestamp(TimeUnit::Microsecond, None)),
        (&["[]", "[1]", "[2.5,null]"], list_of(DataType::Float64)),
        (&["null"], DataType::Utf8),
    ];
    for (values, expected) in cases {
        assert_eq!(json_type(values).data_type(), &expected, "{values:?}");
    }
    let members = vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)];
    assert_eq!(json_type(&["{\"a\":1}", "{\"b\":\"x\"}"]).data_type(), &DataType::Struct(members.into()));
}

#[test]
fn values_of_several_kinds_are_text_that_is_json() {
    let many: String = (0..300).map(|index| format!("\"k{index}\":1,")).collect();
    let many = format!("{{{}}}", many.trim_end_matches(','));
    let wide = "1".repeat(80);
    for values in [&["1", "\"a\""][..], &["[1]", "{}"], &["{}"], &["1", "true"], &[&wide], &["1e999"]] {
        let field = json_type(values);
        assert_eq!(field.data_type(), &DataType::Utf8, "{values:?}");
        assert_eq!(field.metadata().get("ARROW:extension:name").map(String::as_str), Some("arrow.json"), "{values:?}");
    }
    // Objects and lists are columns up to a depth; what is within that is text.
    let deep = "[".repeat(20) + &"]".repeat(20);
    assert!(json_type(&[&deep]).data_type().is_nested());
    let body = format!("{{\"v\":{many}}}\n{{\"v\":{{}}}}\n");
    let inferred = infer_schema(body.as_bytes(), &BodyOptions::new(BodyFormat::Ndjson)).unwrap();
    assert_eq!(inferred.schema.field(0).data_type(), &DataType::Utf8);
    assert_eq!((inferred.schema.fields().len(), inferred.rows), (1, 2));
}

#[test]
fn types_of_csv() {
    let cases: [(&[&str], DataType); 10] = [
        (&["1", "", "-5"], DataType::Int64),
        (&["007", "1"], DataType::Utf8),
        (&["+1"], DataType::Utf8),
        (&["1", "x"], DataType::Utf8),
        (&["1.50", "2"], DataType::Float64),
        (&["12345678901234567890"], DataType::Decimal128(38, 0)),
        (&["true", "False"], DataType::Boolean),
        (&["2024-02-29"], DataType::Date32),
        (&["2024-02-29", "5"], DataType::Utf8),
        (&["", ""], DataType::Utf8),
    ];
    for (values, expected) in cases {
        assert_eq!(csv_type(values), expected, "{values:?}");
    }
}

#[test]
fn columns_have_the_order_in_which_they_appear() {
    let body = "[{\"b\":1,\"a\":2},{\"c\":true}]";
    let inferred = infer_schema(body.as_bytes(), &BodyOptions::new(BodyFormat::Json)).unwrap();
    let names: Vec<&String> = inferred.schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert!(inferred.schema.fields().iter().all(|field| field.is_nullable()));
    let mut options = BodyOptions::new(BodyFormat::Csv);
    options.csv.has_header = false;
    let inferred = infer_schema(b"1,x\n2,y\n", &options).unwrap();
    assert_eq!(inferred.schema.field(1), &Field::new("column_2", DataType::Utf8, true));
}

#[test]
fn beginning_of_a_body_is_enough() {
    let body: String = (0..200_000).map(|row| format!("{{\"v\":{row}}}\n")).collect();
    assert!(body.len() > INFERENCE_BYTES);
    let options = BodyOptions { coding: BodyCoding::Gzip, ..BodyOptions::new(BodyFormat::Ndjson) };
    let compressed = gzip(body.as_bytes());
    for head in [&compressed[..], &compressed[..compressed.len() / 2]] {
        let inferred = infer_schema(head, &options).unwrap();
        assert_eq!(inferred.schema.fields().as_ref(), [Arc::new(Field::new("v", DataType::Int64, true))]);
        assert!(inferred.rows > 1_000);
    }
    let cut = infer_schema(b"{\"v\":1}\n{\"v\":\"te", &BodyOptions::new(BodyFormat::Ndjson)).unwrap();
    assert_eq!((cut.rows, cut.schema.field(0).data_type()), (1, &DataType::Int64));
    let nothing = infer_schema(b"", &BodyOptions::new(BodyFormat::Ndjson));
    assert!(matches!(nothing, Err(BodyError::Columns(_))));
}
