//! Rules and answers of Prometheus remote write.

use serde_json::{Value, json};
use tidegate_telemetry::formats::{
    FormatError, RemoteWriteRows, RemoteWriteVersion, TelemetryLimits, TelemetryTable, decode_remote_write,
};

use super::rows::{rows, table};

/// A field with a message or text of less than 128 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

fn sample(value: f64, milliseconds: u8) -> Vec<u8> {
    [&[0x09][..], &value.to_le_bytes(), &[0x10, milliseconds]].concat()
}

fn decode(message: &[u8], version: RemoteWriteVersion) -> Result<RemoteWriteRows, FormatError> {
    let body = snap::raw::Encoder::new().compress_vec(message).unwrap();
    decode_remote_write(&body, version, &TelemetryLimits::default())
}

fn series_v1(labels: &[(&str, &str)]) -> Vec<u8> {
    let labels =
        labels.iter().map(|(name, value)| field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat()));
    let labels: Vec<u8> = labels.flatten().collect();
    field(1, &[labels, field(2, &sample(2.5, 7))].concat())
}

#[test]
fn labels_are_sorted() {
    let decoded = decode(&series_v1(&[("z", "1"), ("__name__", "up"), ("a", "\"")]), RemoteWriteVersion::V1).unwrap();
    let batch = table(&decoded.tables, TelemetryTable::PrometheusSamples);
    let labels = batch.column_by_name("labels").unwrap();
    assert_eq!(arrow::array::AsArray::as_string::<i32>(labels).value(0), r#"{"a":"\"","z":"1"}"#);
    let sample = &rows(&batch)[0];
    assert_eq!((&sample["metric"], &sample["value"], &sample["time"]), (&json!("up"), &json!(2.5), &json!(7)));
    assert_eq!(sample["type"], Value::Null);
}

#[test]
fn wrong_series_are_rejected() {
    let wrong: [(&[(&str, &str)], &str); 4] = [
        (&[("a", "1")], "it has no label __name__"),
        (&[("__name__", "up"), ("a", "1"), ("a", "2")], "the label \"a\" occurs twice"),
        (&[("__name__", "up"), ("", "1")], "a label has no name"),
        (&[("__name__", "")], "the label \"__name__\" has no value"),
    ];
    for (labels, reason) in wrong {
        let body = [series_v1(labels), series_v1(&[("__name__", "up")])].concat();
        let decoded = decode(&body, RemoteWriteVersion::V1).unwrap();
        assert_eq!((decoded.tables.row_count(), decoded.tables.rejected.count), (1, 1));
        let rejected = &decoded.tables.rejected.reasons[0];
        assert!(rejected.starts_with("series 0, sample: ") && rejected.contains(reason), "{rejected}");
        assert!(decoded.rejection_message().contains(reason));
    }
}

#[test]
fn symbols_are_checked() {
    let symbols = |texts: &[&str]| -> Vec<u8> { texts.iter().flat_map(|text| field(4, text.as_bytes())).collect() };
    let series = |references: &[u8], metadata: &[u8]| {
        field(5, &[field(1, references), field(2, &sample(1.0, 7)), field(5, metadata)].concat())
    };
    let texts = symbols(&["", "__name__", "up"]);
    for (references, metadata, reason) in [
        (&[1, 3][..], &[][..], "it refers to symbol 3; there are 3"),
        (&[1], &[], "a label has a name and no value"),
        (&[1, 2, 0, 2], &[], "a label has no name"),
        (&[1, 2], &[0x18, 9], "it refers to symbol 9; there are 3"),
    ] {
        let decoded = decode(&[texts.clone(), series(references, metadata)].concat(), RemoteWriteVersion::V2).unwrap();
        assert!(decoded.tables.rejected.reasons[0].contains(reason), "{:?}", decoded.tables.rejected);
        assert_eq!(decoded.tables.row_count(), 0);
    }
    let decoded = decode(&[texts, series(&[1, 2], &[0x08, 9])].concat(), RemoteWriteVersion::V2).unwrap();
    assert_eq!(rows(&table(&decoded.tables, TelemetryTable::PrometheusSamples))[0]["type"], json!("9"));
    let decoded = decode(&symbols(&["__name__", "up"]), RemoteWriteVersion::V2);
    assert!(matches!(decoded, Err(FormatError::Malformed(_))));
}

#[test]
fn times_that_no_calendar_has_are_rejected() {
    let far = [&[0x09][..], &1.0_f64.to_le_bytes(), &[0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]];
    let name = field(1, &[field(1, b"__name__"), field(2, b"up")].concat());
    let decoded = decode(&field(1, &[name, field(2, &far.concat())].concat()), RemoteWriteVersion::V1).unwrap();
    assert!(decoded.tables.rejected.reasons[0].contains("is out of range"));
}
