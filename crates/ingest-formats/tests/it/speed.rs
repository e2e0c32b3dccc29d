//! A measurement that runs on request: `cargo nextest run --release -p tidegate-ingest-formats --run-ignored only --no-capture`.

#![allow(clippy::print_stderr, reason = "the figures are for a person")]

use std::fmt::Write;
use std::time::Instant;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use tidegate_ingest_formats::{BodyDecoder, BodyFormat, BodyOptions};

use super::fixture::{decode_pieces, write_arrow};

const ROWS: usize = 1_000_000;
const PIECE_BYTES: usize = 64 << 10;

/// Ten columns as a sensor sends them.
fn table() -> Schema {
    let columns = [
        ("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        ("device", DataType::Utf8),
        ("site", DataType::Utf8),
        ("sequence", DataType::Int64),
        ("temperature", DataType::Float64),
        ("humidity", DataType::Float64),
        ("pressure", DataType::Decimal128(10, 2)),
        ("status", DataType::Int32),
        ("is_valid", DataType::Boolean),
        ("comment", DataType::Utf8),
    ];
    Schema::new(columns.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec())
}

fn ndjson() -> String {
    let mut body = String::new();
    for row in 0..ROWS {
        let (second, device, tenth) = (row % 60, row % 500, row % 10);
        writeln!(
            body,
            "{{\"time\":\"2024-02-29T12:34:{second:02}.{:06}Z\",\"device\":\"device-{device}\",\"site\":\"hall {tenth}\",\"sequence\":{row},\"temperature\":{}.{tenth}5,\"humidity\":0.{device},\"pressure\":1013.{tenth}5,\"status\":{tenth},\"is_valid\":true,\"comment\":{}}}",
            row % 1_000_000,
            row % 90,
            if tenth == 0 { "\"checked by \\\"hand\\\"\"" } else { "null" },
        )
        .unwrap();
    }
    body
}

fn csv() -> String {
    let mut body = "time,device,site,sequence,temperature,humidity,pressure,status,is_valid,comment\n".to_owned();
    for row in 0..ROWS {
        let (second, device, tenth) = (row % 60, row % 500, row % 10);
        writeln!(
            body,
            "2024-02-29T12:34:{second:02}.{:06}Z,device-{device},hall {tenth},{row},{}.{tenth}5,0.{device},1013.{tenth}5,{tenth},true,{}",
            row % 1_000_000,
            row % 90,
            if tenth == 0 { "\"checked by \"\"hand\"\"\"" } else { "" },
        )
        .unwrap();
    }
    body
}

fn measure(format: BodyFormat, body: &[u8]) {
    let start = Instant::now();
    let mut decoder = BodyDecoder::new(&table(), BodyOptions::new(format)).unwrap();
    let mut rows = 0;
    for piece in body.chunks(PIECE_BYTES) {
        decoder.push(piece);
        while let Some(decoded) = decoder.next_rows().unwrap() {
            rows += decoded.batch.num_rows();
        }
    }
    decoder.finish();
    while let Some(decoded) = decoder.next_rows().unwrap() {
        rows += decoded.batch.num_rows();
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(rows, ROWS);
    let (rows_per_second, megabytes) = (ROWS as f64 / seconds, body.len() as f64 / 1e6);
    eprintln!("{:8} {rows_per_second:>10.0} rows/s {:>6.0} MB/s", format.name(), megabytes / seconds);
}

#[test]
#[ignore = "a measurement"]
fn rows_per_second() {
    let lines = ndjson();
    measure(BodyFormat::Ndjson, lines.as_bytes());
    let document = format!("[{}]", lines.trim_end().replace('\n', ","));
    measure(BodyFormat::Json, document.as_bytes());
    measure(BodyFormat::Csv, csv().as_bytes());
    let batches =
        decode_pieces(&table(), &BodyOptions::new(BodyFormat::Ndjson), lines.as_bytes(), PIECE_BYTES).unwrap();
    measure(BodyFormat::Arrow, &write_arrow(&batches.batches));
}
