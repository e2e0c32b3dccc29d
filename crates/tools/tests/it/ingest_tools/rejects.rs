//! Rows that do not fit, and bodies that are refused.

use serde_json::{Value, json};
use tidegate_core::Principal;

use super::memory_target::{MemoryTarget, sensor_columns, stamp, table};
use super::{NDJSON, answer, append, counts, device, no_arguments, registry, rest_call};

const MIXED: &str = "\
{\"time\":\"2024-02-29T12:00:00Z\",\"value\":1}
{\"time\":\"2024-02-29T12:00:01Z\",\"value\":\"warm\"}
{\"time\":null,\"value\":3}
{\"time\":\"2024-02-29T12:00:03Z\",\"valve\":4}
no JSON
{\"time\":\"2024-02-29T12:00:04Z\",\"price\":1.005}
{\"time\":\"2024-02-29T12:00:05Z\"}
";

#[tokio::test]
async fn one_row_that_does_not_fit_refuses_the_body() {
    let plant = MemoryTarget::plant();
    let registry = registry(&[&plant]);
    let error = append(&registry, MIXED, no_arguments()).await.unwrap_err();
    insta::assert_snapshot!(error);
    assert_eq!(plant.rows("sensors"), "no rows");
    // The rest of a long body is read for further reasons, up to a bound.
    let body = format!("{MIXED}{}", "{\"time\":\"2024-02-29T12:00:00Z\"}\n".repeat(30_000));
    let error = append(&registry, &body, no_arguments()).await.unwrap_err();
    assert!(
        error.starts_with("invalid_arguments: 5 rows do not fit; nothing was stored:\n- line 2, column"),
        "{error}"
    );
    let error = append(&registry, &"{\"valve\":1}\n".repeat(5_000), no_arguments()).await.unwrap_err();
    assert_eq!(error.lines().filter(|line| line.starts_with("- ")).count(), 100);
    assert_eq!(plant.row_count("sensors"), 0);
}

#[tokio::test]
async fn rejected_rows_get_a_table_of_their_own() {
    let plant = MemoryTarget::plant();
    let registry = registry(&[&plant]);
    let answer = append(&registry, MIXED, json!({"on_reject": "row"})).await.unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&answer).unwrap());
    assert_eq!(plant.row_count("sensors"), 2);
    let rejects = plant.rows("sensors__rejects");
    // The time is that of the test.
    let lines = rejects.lines().map(|line| match line.split_once(" | ") {
        Some((_, cells)) => cells.to_owned(),
        None => line.to_owned(),
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    let bodies = vec![("application/json", "[{\"time\":1}]"), ("text/csv", "time\nnever\n")];
    for (media_type, body) in bodies {
        let call = rest_call(&device(&["*"]), "append_rows", json!({"on_reject": "row"}), media_type, body);
        let answer = super::answer(&registry, call).await.unwrap();
        assert_eq!(counts(&answer), (0, 1, false, false));
    }
    assert_eq!(plant.row_count("sensors__rejects"), 7);
}

/// A database names a row by its number among those that were written.
#[tokio::test]
async fn a_row_that_the_table_refuses_has_its_position_in_the_body() {
    let plant = MemoryTarget::plant();
    let registry = registry(&[&plant]);
    let time = "2024-02-29T12:00:00Z";
    let lines =
        format!("{{\"time\":\"{time}\"}}\n\n{{\"time\":1}}\n{{\"time\":\"{time}\"}}\n{{\"time\":\"{time}\"}}\n");
    let array = format!("[{{\"time\":\"{time}\"}},{{\"time\":1}},{{\"time\":\"{time}\"}}]");
    let records = format!("time,device\n{time},\"a\nb\"\nnever,c\n{time},d\n");
    for (media_type, body, row, position) in [
        (NDJSON, &lines, 0, "line 1: "),
        (NDJSON, &lines, 1, "line 4: "),
        (NDJSON, &lines, 2, "line 5: "),
        (NDJSON, &lines, 3, ""),
        ("application/json", &array, 1, "row 2: "),
        ("text/csv", &records, 0, "line 2: "),
        ("text/csv", &records, 1, "line 5: "),
    ] {
        *plant.refused_row.lock() = Some(row);
        let call = rest_call(&device(&["*"]), "append_rows", json!({"on_reject": "row"}), media_type, body.clone());
        let error = super::answer(&registry, call).await.unwrap_err();
        assert_eq!(error, format!("invalid_arguments: {position}the row is there already"), "{body}");
    }
}

#[tokio::test]
async fn many_rejected_rows_are_all_kept_and_a_hundred_reported() {
    let plant = MemoryTarget::plant();
    let body = "{\"valve\":1}\n".repeat(2_000);
    let answer = append(&registry(&[&plant]), &body, json!({"on_reject": "row"})).await.unwrap();
    assert_eq!(counts(&answer), (0, 2_000, false, false));
    assert_eq!(answer["rejections"].as_array().map(Vec::len), Some(100));
    assert_eq!(plant.row_count("sensors__rejects"), 2_000);
}

#[tokio::test]
async fn rejected_rows_have_the_tenant_of_their_sender() {
    let mut sensors = table("sensors", sensor_columns());
    sensors.stamps = vec![stamp("tenant", "tenant")];
    let plant = MemoryTarget::with_tables("plant", vec![sensors]);
    let north = Principal { tenant: Some("north".to_owned()), ..device(&["*"]) };
    let call = rest_call(&north, "append_rows", json!({"on_reject": "row"}), NDJSON, "{\"valve\":1}\n");
    answer(&registry(&[&plant]), call).await.unwrap();
    let rows = plant.rows("sensors__rejects");
    assert!(rows.ends_with("{\"valve\":1} | north"), "{rows}");
    assert!(rows.lines().next().unwrap().ends_with("tenant Utf8"), "{rows}");
}

/// What is wrong with a body, in the words that its sender reads.
#[tokio::test]
async fn texts_of_bodies_that_are_refused() {
    let plant = MemoryTarget::plant();
    let registry = registry(&[&plant]);
    let mut text = String::new();
    let long =
        format!("[{{\"time\":\"2024-02-29T12:00:00Z\"}},{}", "{\"time\":\"2024-02-29T12:00:00Z\"},".repeat(40_000));
    for (subject, media_type, body, arguments) in [
        ("empty JSON", "application/json", "", no_arguments()),
        ("cut JSON", "application/json", "[{\"time\":\"2024-02-29T12:00:00Z\"}", no_arguments()),
        ("long cut JSON", "application/json", long.as_str(), no_arguments()),
        ("no objects", "application/json", "[1, 2]", no_arguments()),
        ("a column too many", "text/csv", "time,valve\n2024-02-29T12:00:00Z,1\n", no_arguments()),
        ("open quote", "text/csv", "time,device\n2024-02-29T12:00:00Z,\"a\n", no_arguments()),
        ("no Arrow", "application/vnd.apache.arrow.stream", "hello, this is text", no_arguments()),
        ("no Parquet", "application/vnd.apache.parquet", "hello, this is text", no_arguments()),
        ("delimiter of JSON", NDJSON, "{}", json!({"delimiter": ";"})),
        ("wide delimiter", "text/csv", "time\n", json!({"delimiter": "::"})),
        ("binary of Arrow", "application/vnd.apache.arrow.stream", "", json!({"binary": "hex"})),
        ("another mode", NDJSON, "{}", json!({"on_reject": "some"})),
        ("another media type", "text/plain", "{}", no_arguments()),
    ] {
        let call = rest_call(&device(&["*"]), "append_rows", arguments, media_type, body.to_owned());
        let error = answer(&registry, call).await.unwrap_err();
        text.push_str(&format!("{subject}: {error}\n"));
    }
    insta::assert_snapshot!(text);
    assert_eq!(plant.rows("sensors"), "no rows");
    let _: Value = append(&registry, "{\"time\":\"2024-02-29T12:00:00Z\"}", no_arguments()).await.unwrap();
}
