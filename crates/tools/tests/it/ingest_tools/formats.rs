//! The same rows in every format and coding, and large bodies.

use std::io::Write;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tidegate_core::{CallTarget, Format};
use tidegate_runtime::ReplyPart;

use super::memory_target::{MemoryTarget, table};
use super::{NDJSON, answer, counts, device, no_arguments, registry, rest_call, rest_call_of};
use crate::fake::{call, node, shop};

const ROWS: &str = "\
time Timestamp(µs, \"UTC\"), device Utf8, value Float64, price Decimal128(20, 2)
2024-02-29T12:00:00Z | a | 0.1 | 12345678901234567.89
2024-02-29T12:00:01Z | said \"hello\" | null | null";

#[tokio::test]
async fn every_text_format_gives_the_same_rows() {
    let json = r#"[{"time":"2024-02-29T12:00:00Z","device":"a","value":0.1,"price":12345678901234567.89},
        {"price":null,"device":"said \"hello\"","time":"2024-02-29 12:00:01Z"}]"#;
    let ndjson = "{\"time\":\"2024-02-29T12:00:00Z\",\"device\":\"a\",\"value\":0.1,\"price\":12345678901234567.89}\n\
        {\"device\":\"said \\\"hello\\\"\",\"time\":\"2024-02-29T12:00:01Z\"}\n";
    let csv = "price,time,device,value\n12345678901234567.89,2024-02-29T12:00:00Z,a,0.1\n\
        ,2024-02-29T12:00:01Z,\"said \"\"hello\"\"\",\n";
    let tabs = csv.replace(',', "\t");
    let semicolons = csv.replace(',', ";").replace(";;", ";NA;").replace("\n;", "\nNA;").replace(";\n", ";NA\n");
    let headless = "2024-02-29T12:00:00Z,a,0.1,12345678901234567.89\n2024-02-29T12:00:01Z,\"said \"\"hello\"\"\",,\n";
    for (media_type, body, arguments) in [
        ("application/json", json, no_arguments()),
        (NDJSON, ndjson, no_arguments()),
        ("text/csv; charset=utf-8", csv, no_arguments()),
        ("text/tab-separated-values", &tabs, no_arguments()),
        ("text/csv", &tabs, json!({"delimiter": "tab"})),
        ("text/csv", &semicolons, json!({"delimiter": ";", "null": "NA"})),
        ("text/csv", headless, json!({"header": false})),
    ] {
        let plant = MemoryTarget::plant();
        let call = rest_call(&device(&["*"]), "append_rows", arguments, media_type, body.to_owned());
        let answer = answer(&registry(&[&plant]), call).await.unwrap_or_else(|error| panic!("{media_type}: {error}"));
        assert_eq!(counts(&answer), (2, 0, false, false), "{media_type}");
        assert_eq!(plant.rows("sensors"), ROWS, "{media_type}");
    }
}

/// The rows of the table `orders` of a database in memory, in a binary format.
async fn orders(format: Format) -> Bytes {
    let mut call = call(CallTarget::Tool("query".to_owned()), json!({"database": "shop", "table": "orders"}));
    call.format = Some(format);
    let registry = node([shop()]);
    let mut reply = registry.call(call).unwrap();
    let mut bytes = Vec::new();
    while let Some(part) = reply.next().await {
        if let ReplyPart::Bytes(piece) = part {
            bytes.extend_from_slice(&piece);
        }
    }
    bytes.into()
}

#[tokio::test]
async fn arrow_and_parquet_create_the_same_table_and_append_to_it() {
    for (format, media_type) in
        [(Format::Arrow, "application/vnd.apache.arrow.stream"), (Format::Parquet, "application/vnd.apache.parquet")]
    {
        let (body, plant) = (orders(format).await, MemoryTarget::creating("plant"));
        let registry = registry(&[&plant]);
        let call = || rest_call(&device(&["*"]), "append_rows", no_arguments(), media_type, body.clone());
        assert_eq!(counts(&answer(&registry, call()).await.unwrap()), (3, 0, true, false), "{media_type}");
        assert_eq!(counts(&answer(&registry, call()).await.unwrap()), (3, 0, false, false), "{media_type}");
        let rows = "1 | Ann | null\n2 | Bob | said \"hello\"\n3 | Ann | plain";
        let expected = format!("id Int64, customer Utf8, note Utf8\n{rows}\n{rows}");
        assert_eq!(plant.rows("sensors"), expected, "{media_type}");
        let cut = body.slice(..body.len() - 20);
        let cut = rest_call(&device(&["*"]), "append_rows", no_arguments(), media_type, cut);
        assert!(answer(&registry, cut).await.unwrap_err().starts_with("invalid_arguments: "));
        assert_eq!(plant.row_count("sensors"), 6);
    }
}

#[tokio::test]
async fn compressed_bodies_are_decompressed() {
    let body = "time,device\n2024-02-29T12:00:00Z,a\n".to_owned() + &"2024-02-29T12:00:01Z,b\n".repeat(50_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(body.as_bytes(), 1).unwrap();
    for (coding, bytes) in [("gzip", gzip), ("zstd", zstd)] {
        let plant = MemoryTarget::plant();
        let registry = registry(&[&plant]);
        let send = |bytes: Vec<u8>| {
            let pieces: Vec<_> = bytes.chunks(700).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let pieces = stream::iter(pieces);
            rest_call_of(&device(&["*"]), "append_rows", no_arguments(), "text/csv", Some(coding), pieces)
        };
        assert_eq!(counts(&answer(&registry, send(bytes.clone())).await.unwrap()), (50_001, 0, false, false));
        let error = answer(&registry, send(bytes[..bytes.len() - 9].to_vec())).await.unwrap_err();
        assert!(error.ends_with("; nothing was stored"), "{error}");
        assert_eq!(plant.row_count("sensors"), 50_001);
    }
}

#[tokio::test]
async fn a_large_body_is_written_in_bounded_batches() {
    let plant = MemoryTarget::with_tables("plant", vec![table("sensors", super::memory_target::sensor_columns())]);
    let line = "{\"time\":\"2024-02-29T12:00:00Z\",\"device\":\"a device with a long name\",\"value\":0.25}\n";
    let piece = Bytes::from(line.repeat(1_000));
    let pieces = stream::iter(0..400).map(move |_| Ok(piece.clone()));
    let call = rest_call_of(&device(&["*"]), "append_rows", no_arguments(), NDJSON, None, pieces);
    let answer: Value = answer(&registry(&[&plant]), call).await.unwrap();
    assert_eq!(counts(&answer), (400_000, 0, false, false));
    assert_eq!(plant.row_count("sensors"), 400_000);
    assert!(plant.largest_batch.load(Ordering::SeqCst) <= 8_192);
}
