//! Bodies that are cut, changed, nested or larger than they look.

use proptest::prelude::*;
use tidegate_telemetry::formats::{
    BulkRequest, FormatError, OtlpEncoding, RemoteWriteVersion, TelemetryLimits, decode_logs, decode_metrics,
    decode_remote_write,
};

use super::encoders::{OTLP, REMOTE_WRITE};

/// A field with a message or text.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut message = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        message.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    message.push(length as u8);
    message.extend_from_slice(content);
    message
}

#[test]
fn bodies_that_are_cut_never_have_all_of_their_rows() {
    for (decode, bodies) in OTLP {
        for (body, encoding) in bodies.into_iter().zip([OtlpEncoding::Protobuf, OtlpEncoding::Json]) {
            let limits = TelemetryLimits::default();
            let whole = decode(body, encoding, &limits).unwrap().row_count();
            let end = body.len() - usize::from(body.ends_with(b"\n"));
            // An empty body of Protocol Buffers is an empty request, and so is one that ends between two resources.
            for length in 1..end {
                match decode(&body[..length], encoding, &limits) {
                    Ok(decoded) => assert!(encoding == OtlpEncoding::Protobuf && decoded.row_count() < whole),
                    Err(error) => assert!(matches!(error, FormatError::Malformed(_)), "{error}"),
                }
            }
        }
    }
    for (body, version) in REMOTE_WRITE {
        for length in 0..body.len() {
            let decoded = decode_remote_write(&body[..length], version, &TelemetryLimits::default());
            assert!(decoded.is_err(), "{length}");
        }
    }
}

#[test]
fn deep_values_are_refused() {
    let value = (0..10_000).fold(vec![0x18, 1], |value, _| field(5, &field(1, &value)));
    let body = field(1, &field(2, &field(2, &field(5, &value))));
    let decoded = decode_logs(&body, OtlpEncoding::Protobuf, &TelemetryLimits::default());
    assert!(matches!(decoded, Err(FormatError::Malformed(_))), "{decoded:?}");

    let value = format!("{}{}", r#"{"arrayValue":{"values":["#.repeat(10_000), "]}}".repeat(10_000));
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{value}}}]}}]}}]}}"#);
    let decoded = decode_logs(body.as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default());
    assert!(matches!(decoded, Err(FormatError::Malformed(_))), "{decoded:?}");
    let body = format!(r#"{{"unknown":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    _ = decode_logs(body.as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default());
}

#[test]
fn empty_messages_are_measured_before_they_are_decoded() {
    let limits = TelemetryLimits { decoded_bytes_max: 1 << 20, ..TelemetryLimits::default() };
    let empty = [0x12, 0].repeat(100_000);
    let body = field(1, &field(2, &empty));
    let decoded = decode_logs(&body, OtlpEncoding::Protobuf, &limits);
    assert!(matches!(decoded, Err(FormatError::OutOfMemory(_))), "{decoded:?}");
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{}{{}}]}}]}}]}}"#, "{},".repeat(100_000));
    let decoded = decode_logs(body.as_bytes(), OtlpEncoding::Json, &limits);
    assert!(matches!(decoded, Err(FormatError::OutOfMemory(_))), "{decoded:?}");

    // Bucket counts of one byte each.
    let point = field(8, &field(2, &vec![1; 1 << 20]));
    let body = field(1, &field(2, &field(2, &field(10, &field(1, &point)))));
    let decoded = decode_metrics(&body, OtlpEncoding::Protobuf, &limits);
    assert!(matches!(decoded, Err(FormatError::OutOfMemory(_))), "{decoded:?}");

    let symbols = [0x22, 0].repeat(100_000);
    let body = snap::raw::Encoder::new().compress_vec(&symbols).unwrap();
    let decoded = decode_remote_write(&body, RemoteWriteVersion::V2, &limits);
    let bound = "the messages of the body take more than 1048576 bytes of memory";
    assert!(matches!(&decoded, Err(FormatError::OutOfMemory(message)) if message == bound), "{decoded:?}");
}

#[test]
fn a_compressed_body_does_not_choose_its_memory() {
    // It announces 4 GiB, and 60 MiB with nothing in them.
    for body in [&b"\xff\xff\xff\xff\x0f"[..], b"\x80\x80\x80\x1e\x00"] {
        let decoded = decode_remote_write(body, RemoteWriteVersion::V1, &TelemetryLimits::default());
        assert!(decoded.is_err());
    }
}

#[test]
fn labels_that_share_a_long_text_are_counted_for_each() {
    let names = (0..50).map(|number| format!("a{number}"));
    let symbols = ["", "__name__", "m", &"x".repeat(100_000)].map(str::to_owned).into_iter().chain(names);
    let mut message: Vec<u8> = symbols.flat_map(|symbol| field(4, symbol.as_bytes())).collect();
    let references: Vec<u8> = [1, 2].into_iter().chain((0..50).flat_map(|number| [4 + number, 3])).collect();
    let sample = [&[0x09][..], &1.0_f64.to_le_bytes(), &[0x10, 1]].concat();
    message.extend(field(5, &[field(1, &references), field(2, &sample)].concat()));
    let body = snap::raw::Encoder::new().compress_vec(&message).unwrap();
    let limits = TelemetryLimits { record_bytes_max: 1 << 20, ..TelemetryLimits::default() };
    let decoded = decode_remote_write(&body, RemoteWriteVersion::V2, &limits).unwrap();
    assert!(format!("{decoded:?}").contains("its labels have 5000149 bytes"), "{decoded:?}");
}

proptest! {
    #[test]
    fn changed_bodies_never_panic(
        fixture in 0_usize..8,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let limits = TelemetryLimits::default();
        let change = |body: &[u8]| {
            let mut body = body.to_vec();
            for (index, byte) in &changes {
                let index = index.index(body.len());
                body[index] = *byte;
            }
            body
        };
        if let Some((decode, bodies)) = OTLP.get(fixture / 2) {
            let encoding = [OtlpEncoding::Protobuf, OtlpEncoding::Json][fixture % 2];
            _ = decode(&change(bodies[fixture % 2]), encoding, &limits);
        } else {
            let (body, version) = REMOTE_WRITE[fixture % 2];
            _ = decode_remote_write(&change(body), version, &limits);
            // The message itself, without the checks of snappy.
            let message = snap::raw::Decoder::new().decompress_vec(body).unwrap();
            let body = snap::raw::Encoder::new().compress_vec(&change(&message)).unwrap();
            _ = decode_remote_write(&body, version, &limits);
        }
    }

    #[test]
    fn any_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let limits = TelemetryLimits::default();
        for (decode, _) in OTLP {
            _ = decode(&body, OtlpEncoding::Protobuf, &limits);
            _ = decode(&body, OtlpEncoding::Json, &limits);
        }
        for (_, version) in REMOTE_WRITE {
            _ = decode_remote_write(&body, version, &limits);
        }
        _ = BulkRequest::decode(&body, Some("logs"), &limits).map(|request| request.answer(0));
    }
}
