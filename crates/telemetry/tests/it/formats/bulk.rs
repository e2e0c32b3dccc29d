//! The bulk API of Elasticsearch.

use serde_json::{Value, json};
use tidegate_ingest_formats::{BodyDecoder, BodyFormat, BodyOptions, RejectMode, RowPosition, infer_schema};
use tidegate_telemetry::formats::{
    BulkAction, BulkRequest, ELASTIC_VERSION, FormatError, TelemetryLimits, cluster_health, cluster_info,
    cluster_license,
};

fn decode(body: &str) -> Result<BulkRequest, FormatError> {
    BulkRequest::decode(body.as_bytes(), Some("default-index"), &TelemetryLimits::default())
}

fn answer(request: &BulkRequest) -> Value {
    serde_json::from_str(&request.answer(30)).unwrap()
}

#[test]
fn documents_of_shippers_are_split_by_table() {
    // As Vector, Fluent Bit and Filebeat write them.
    let body = concat!(
        "{\"index\":{\"_index\":\"vector-2024.01.15\"}}\n{\"message\":\"a\",\"@timestamp\":\"2024-01-15T00:00:00Z\"}\n",
        "{\"create\":{\"_index\":\"fluent-bit\",\"_type\":\"_doc\"}}\n{\"log\":\"b\"}\n",
        "{\"create\":{\"_index\":\"filebeat-8.13.0\"}}\r\n{\"message\":\"c\"}\r\n",
        "{\"index\":{\"_index\":\"vector-2024.01.16\"}}\n {\"message\":\"d\"}\n",
        "{\"create\":{}}\n{\"e\":1}\n",
        "\n",
    );
    let request = decode(body).unwrap();
    let tables: Vec<(&str, &[u8])> =
        request.tables().iter().map(|table| (table.table.as_str(), table.documents.as_slice())).collect();
    assert_eq!(
        tables,
        [
            ("vector", &b"{\"message\":\"a\",\"@timestamp\":\"2024-01-15T00:00:00Z\"}\n {\"message\":\"d\"}\n"[..]),
            ("fluent_bit", b"{\"log\":\"b\"}\n"),
            ("filebeat_8_13_0", b"{\"message\":\"c\"}\n"),
            ("default_index", b"{\"e\":1}\n"),
        ]
    );
    assert_eq!(request.tables()[0].document_count(), 2);
    let lines: Vec<u64> = request.items().iter().map(|item| item.line).collect();
    assert_eq!(lines, [1, 3, 5, 7, 9]);
    let answer = answer(&request);
    assert_eq!((&answer["took"], &answer["errors"]), (&json!(30), &json!(false)));
    assert_eq!(answer["items"][0]["index"]["status"], json!(201));
    assert_eq!(answer["items"][1]["create"]["_index"], json!("fluent-bit"));
    assert_eq!(answer["items"].as_array().unwrap().len(), 5);
}

#[test]
fn rejected_rows_of_the_decoder_are_items() {
    let body = concat!(
        "{\"delete\":{\"_index\":\"a\",\"_id\":\"1\"}}\n",
        "{\"create\":{\"_index\":\"a\"}}\n{\"n\":1,\"@timestamp\":\"2024-01-15T00:00:00Z\"}\n",
        "{\"create\":{\"_index\":\"b\"}}\n{\"n\":1}\n",
        "{\"create\":{\"_index\":\"a\"}}\n{\"n\":\"x\"}\n",
        "{\"create\":{\"_index\":\"a\"}}\n{\"n\":2\n",
        "{\"create\":{\"_index\":\"a\"}}\n{\"n\":3}\n",
    );
    let mut request = decode(body).unwrap();
    let options = BodyOptions { reject_mode: RejectMode::Row, ..BodyOptions::new(BodyFormat::Ndjson) };
    let head = request.tables()[0].documents.split_inclusive(|byte| *byte == b'\n').next().unwrap().to_vec();
    let schema = infer_schema(&head, &options).unwrap().schema;
    assert_eq!(schema.field_with_name("@timestamp").unwrap().data_type().to_string(), "Timestamp(µs, \"UTC\")");
    let mut decoder = BodyDecoder::new(&schema, options).unwrap();
    decoder.push(&request.tables()[0].documents);
    decoder.finish();
    let mut rejected = Vec::new();
    let mut rows = 0;
    while let Some(decoded) = decoder.next_rows().unwrap() {
        rows += decoded.batch.num_rows();
        rejected.extend(decoded.rejected);
    }
    assert_eq!(rows, 2);
    for row in rejected {
        let RowPosition::Line(line) = row.position else { panic!("{row}") };
        assert!(request.reject_document(0, line, &row.reason));
    }
    request.fail_table(1, 503, "unavailable_shards_exception", "the disk is full");
    let answer = answer(&request);
    let statuses: Vec<&Value> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item.as_object().unwrap().values().next().unwrap()["status"])
        .collect();
    assert_eq!(statuses, [400, 201, 503, 400, 400, 201]);
    assert_eq!(answer["errors"], json!(true));
    assert_eq!(answer["items"][3]["create"]["error"]["type"], json!("document_parsing_exception"));
    assert!(
        !request.reject_document(0, 0, "") && !request.reject_document(0, 9, "") && !request.reject_document(7, 1, "")
    );
}

#[test]
fn actions_that_do_not_add_are_rejected() {
    for (action, document, reason) in [
        (r#"{"update":{"_index":"a","_id":"1"}}"#, "{\"doc\":{}}\n", "\"update\" is not supported"),
        (r#"{"delete":{"_index":"a","_id":"1"}}"#, "", "\"delete\" is not supported"),
        (r#"{"index":{"_index":"a","_id":"1"}}"#, "{}\n", "\"_id\" is not supported"),
        (r#"{"index":{"_index":"a","version":2}}"#, "{}\n", "versions of documents are not supported"),
        (r#"{"index":{"_index":"a","pipeline":"p"}}"#, "{}\n", "the pipeline \"p\" does not exist"),
        (r#"{"index":{"_index":"a","require_alias":true}}"#, "{}\n", "aliases are not supported"),
        (r#"{"index":{"_index":"A"}}"#, "{}\n", "capital letters"),
        (r#"{"index":{"_index":"a/../b"}}"#, "{}\n", "contains one of"),
        (r#"{"index":{"_index":""}}"#, "{}\n", "is empty"),
        (r#"{"index":{"_index":"a"}}"#, "[]\n", "is not an object of JSON"),
        (r#"{"index":{"_index":"a"}}"#, "\n", "is not an object of JSON"),
    ] {
        let request = decode(&format!("{action}\n{document}{}\n{{}}\n", r#"{"index":{}}"#)).unwrap();
        let [first, second] = request.items() else { panic!("{action}") };
        let failure = first.failure.as_ref().unwrap();
        assert_eq!((failure.status, &second.failure), (400, &None), "{action}");
        assert!(failure.reason.contains(reason), "{action}: {}", failure.reason);
        assert_eq!(second.action, BulkAction::Index);
        assert_eq!(request.tables().iter().map(|table| table.document_count()).sum::<usize>(), 1);
    }
    for accepted in [
        r#"{"index":{"_index":"a","routing":"x","pipeline":"_none","require_alias":false,"_id":null}}"#,
        r#"{"create":{"_index":"a","dynamic_templates":{"b":"c"},"require_data_stream":true}}"#,
    ] {
        assert_eq!(decode(&format!("{accepted}\n{{}}\n")).unwrap().items()[0].failure, None, "{accepted}");
    }
}

#[test]
fn malformed_bodies_are_refused() {
    for (body, reason) in [
        ("", "the body is empty"),
        ("{\"index\":{}}\n{}", "does not end with a line break"),
        ("{\"index\":{}}\n", "the action of line 1 has no document"),
        ("{}\n{}\n", "line 1 is no action: it has no action"),
        ("{\"index\":{},\"create\":{}}\n{}\n", "more than one action"),
        ("{\"index\":{},\"index\":{}}\n{}\n", "duplicate field"),
        ("{\"index\":{\"other\":1}}\n{}\n", "unknown field `other`"),
        ("{\"insert\":{}}\n{}\n", "unknown field `insert`"),
        ("\n\n[]\n{}\n", "line 3 is no action"),
    ] {
        let Err(FormatError::Malformed(message)) = decode(body) else { panic!("{body:?}") };
        assert!(message.contains(reason), "{body:?}: {message}");
    }
    let limits = TelemetryLimits { bulk_items_max: 1, ..TelemetryLimits::default() };
    let body = "{\"index\":{}}\n{}\n".repeat(2);
    assert!(matches!(BulkRequest::decode(body.as_bytes(), Some("a"), &limits), Err(FormatError::TooLarge(_))));
}

#[test]
fn an_index_is_required() {
    let request = BulkRequest::decode(b"{\"index\":{}}\n{}\n", None, &TelemetryLimits::default()).unwrap();
    assert!(request.items()[0].failure.as_ref().unwrap().reason.contains("is empty"));
}

#[test]
fn tables_of_a_request_are_bounded() {
    let letters =
        |number: usize| number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect::<String>();
    let body: String =
        (0..1_001).map(|number| format!("{{\"index\":{{\"_index\":\"i{}\"}}}}\n{{}}\n", letters(number))).collect();
    let request = decode(&body).unwrap();
    assert_eq!(request.tables().len(), 1_000);
    assert!(request.items()[999].failure.is_none() && request.items()[1_000].failure.is_some());
}

#[test]
fn probes_have_what_shippers_read() {
    let info = cluster_info("node");
    assert_eq!(
        (&info["version"]["number"], &info["tagline"]),
        (&json!(ELASTIC_VERSION), &json!("You Know, for Search"))
    );
    assert_eq!(cluster_license()["license"]["status"], json!("active"));
    assert_eq!(cluster_health("node")["status"], json!("green"));
}
