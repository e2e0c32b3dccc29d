//! Keys, replacing, dropping, creating, stamps, limits, failures.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tidegate_core::{AllowedNames, DailyLimits, Error, ErrorKind, LevelLimits, Limits, Principal};
use tidegate_query::{IngestTable, WriteTarget};
use tidegate_runtime::{Registry, SnapshotBuilder, event::EventDispatcher};
use tidegate_tools::{IngestToolOptions, register_ingest_tools};

use super::memory_target::{MemoryTarget, sensor_columns, stamp, table};
use super::{NDJSON, answer, append, counts, device, no_arguments, registry, rest_call, rest_call_of};

const ROW: &str = "{\"time\":\"2024-02-29T12:00:00Z\"}";

#[tokio::test]
async fn a_key_stores_rows_once_for_each_caller_and_table() {
    let plant =
        MemoryTarget::with_tables("plant", ["sensors", "alarms"].map(|name| table(name, sensor_columns())).into());
    let registry = registry(&[&plant]);
    let send = async |principal: &Principal, tool: &str, table: &str| {
        let call = rest_call(principal, tool, json!({"key": "k", "table": table}), NDJSON, ROW);
        answer(&registry, call).await.unwrap()
    };
    let first = send(&device(&["*"]), "append_rows", "sensors").await;
    assert_eq!((counts(&first), first["sequence"].as_u64()), ((1, 0, false, false), Some(1)));
    let again = send(&device(&["*"]), "append_rows", "sensors").await;
    assert_eq!((counts(&again), again["sequence"].as_u64()), ((1, 0, false, true), Some(1)));
    assert_eq!(counts(&send(&device(&["*"]), "append_rows", "alarms").await), (1, 0, false, false));
    let other = Principal { subject: "sensor-2".to_owned(), ..device(&["*"]) };
    assert_eq!(counts(&send(&other, "append_rows", "sensors").await), (1, 0, false, false));
    let tenant = Principal { tenant: Some("north".to_owned()), ..device(&["*"]) };
    assert_eq!(counts(&send(&tenant, "append_rows", "sensors").await), (1, 0, false, false));
    assert_eq!((plant.row_count("sensors"), plant.row_count("alarms")), (3, 1));
    assert_eq!(counts(&send(&device(&["*"]), "replace_rows", "sensors").await), (1, 0, false, false));
    assert_eq!(plant.row_count("sensors"), 1);
}

#[tokio::test]
async fn tables_are_replaced_and_dropped() {
    let plant = MemoryTarget::creating("plant");
    let registry = registry(&[&plant]);
    append(&registry, "{\"a\":1}\n{\"a\":2}\n", no_arguments()).await.unwrap();
    let replace = rest_call(&device(&["*"]), "replace_rows", no_arguments(), NDJSON, "{\"a\":3}\n");
    assert_eq!(counts(&answer(&registry, replace).await.unwrap()), (1, 0, false, false));
    assert_eq!(plant.rows("sensors"), "a Int64\n3");
    // A body that is refused leaves the rows that are there.
    let replace = rest_call(&device(&["*"]), "replace_rows", no_arguments(), NDJSON, "{\"a\":4}\n{\"a\":\"x\"}\n");
    assert!(answer(&registry, replace).await.is_err());
    assert_eq!(plant.rows("sensors"), "a Int64\n3");
    let drop = || {
        let mut call = rest_call(&device(&["*"]), "drop_table", no_arguments(), NDJSON, "");
        call.request_body = None;
        call
    };
    let dropped = answer(&registry, drop()).await.unwrap();
    assert_eq!(dropped, json!({"database": "plant", "table": "sensors", "dropped": true}));
    let error = answer(&registry, drop()).await.unwrap_err();
    assert!(error.starts_with("not_found: there is no table \"sensors\" of database \"plant\""), "{error}");
    assert!(error.ends_with("and a role may write with its own key ingest."), "{error}");
}

#[tokio::test]
async fn a_new_table_has_the_columns_of_its_first_body() {
    let plant = MemoryTarget::creating("plant");
    let registry = registry(&[&plant]);
    let error = append(&registry, "{\"a\":1}", json!({"create": false})).await.unwrap_err();
    assert!(error.ends_with("create=true creates it."), "{error}");
    let body = "{\"a\":1,\"at\":\"2024-02-29T12:00:00Z\"}\n{\"a\":null,\"b\":\"x\"}\n";
    assert_eq!(counts(&append(&registry, body, no_arguments()).await.unwrap()), (2, 0, true, false));
    let rows = "a Int64, at Timestamp(µs, \"UTC\"), b Utf8\n1 | 2024-02-29T12:00:00Z | null\nnull | null | x";
    assert_eq!(plant.rows("sensors"), rows);
    assert_eq!(counts(&append(&registry, "{\"a\":2}", json!({"create": false})).await.unwrap()), (1, 0, false, false));
    let error = append(&registry, "", json!({"table": "other"})).await.unwrap_err();
    assert!(error.starts_with("invalid_arguments: ") && error.contains("nothing was stored"), "{error}");
}

#[tokio::test]
async fn columns_are_added_where_the_table_allows_it() {
    let sensors = IngestTable { adds_columns: true, ..table("sensors", sensor_columns()) };
    let sensors = IngestTable { stamps: vec![stamp("device", "subject")], ..sensors };
    let plant = MemoryTarget::with_tables("plant", vec![sensors]);
    let body = "{\"time\":\"2024-02-29T12:00:00Z\",\"room\":\"north\",\"device\":{\"any\":[1]}}\n";
    append(&registry(&[&plant]), body, no_arguments()).await.unwrap();
    insta::assert_snapshot!(plant.rows("sensors"), @r#"
    time Timestamp(µs, "UTC"), device Utf8, value Float64, price Decimal128(20, 2), room Utf8
    2024-02-29T12:00:00Z | sensor-1 | null | null | north
    "#);
}

#[tokio::test]
async fn stamps_are_those_of_the_caller_whatever_the_body_has() {
    let mut sensors = table("sensors", sensor_columns());
    sensors.stamps = vec![stamp("device", "claims.https://plant.example/device"), stamp("site", "claims.site.name")];
    let plant = MemoryTarget::with_tables("plant", vec![sensors]);
    let registry = registry(&[&plant]);
    let claims = json!({"https://plant.example/device": 7, "site": {"name": "north"}});
    let caller = Principal { claims: claims.as_object().unwrap().clone(), ..device(&["*"]) };
    let bodies = [
        (
            NDJSON,
            "{\"time\":\"2024-02-29T12:00:00Z\",\"device\":\"forged\"}\n{\"time\":\"2024-02-29T12:00:01Z\",\"site\":5}\n",
        ),
        ("text/csv", "site,time\nforged,2024-02-29T12:00:02Z\n"),
    ];
    for (media_type, body) in bodies {
        let call = rest_call(&caller, "append_rows", no_arguments(), media_type, body);
        answer(&registry, call).await.unwrap();
    }
    insta::assert_snapshot!(plant.rows("sensors"), @r#"
    time Timestamp(µs, "UTC"), device Utf8, value Float64, price Decimal128(20, 2), site Utf8
    2024-02-29T12:00:00Z | 7 | null | null | north
    2024-02-29T12:00:01Z | 7 | null | null | north
    2024-02-29T12:00:02Z | 7 | null | null | north
    "#);
    insta::assert_snapshot!(append(&registry, ROW, no_arguments()).await.unwrap_err(), @r#"
    forbidden: the column "device" of table "sensors" gets the claim https://plant.example/device of the caller, and you have none
    Call with credentials that carry it. It cannot be sent with the rows.
    "#);
    assert_eq!(plant.row_count("sensors"), 3);
}

#[tokio::test]
async fn new_tables_have_the_stamped_column() {
    let mut sensors = table("sensors", sensor_columns());
    (sensors.schema, sensors.stamps) = (None, vec![stamp("tenant", "tenant")]);
    let plant = MemoryTarget::with_tables("plant", vec![sensors]);
    let registry = registry(&[&plant]);
    let caller = Principal { tenant: Some("north".to_owned()), ..device(&["*"]) };
    for body in ["{\"a\":1}", "{\"tenant\":[\"forged\"],\"a\":2}"] {
        answer(&registry, rest_call(&caller, "append_rows", no_arguments(), NDJSON, body)).await.unwrap();
    }
    let batches = plant.rows("sensors");
    assert!(batches.starts_with("a Int64, tenant Utf8\n1 | north\n") && !batches.contains("forged"), "{batches}");
}

#[tokio::test]
async fn a_storage_that_fails_stores_nothing() {
    let plant = MemoryTarget::plant();
    let registry = registry(&[&plant]);
    plant.is_full.store(true, Ordering::SeqCst);
    let error = append(&registry, ROW, json!({"key": "k"})).await.unwrap_err();
    assert_eq!(error, "unavailable: there is no room for rows; nothing was stored");
    plant.is_full.store(false, Ordering::SeqCst);
    assert_eq!(counts(&append(&registry, ROW, json!({"key": "k"})).await.unwrap()), (1, 0, false, false));
    let options = IngestToolOptions { spool_folder: "/no/such/folder".into(), ..IngestToolOptions::default() };
    let registry = super::registry_with(&[&plant], options);
    let parquet = rest_call(&device(&["*"]), "append_rows", no_arguments(), "application/vnd.apache.parquet", "x");
    let error = answer(&registry, parquet).await.unwrap_err();
    assert_eq!(error, "unavailable: the body cannot be stored in a temporary file; nothing was stored");
}

fn limited(plant: &Arc<MemoryTarget>, daily: DailyLimits) -> Arc<Registry> {
    let targets = vec![Arc::clone(plant) as Arc<dyn WriteTarget>];
    let per_principal = LevelLimits { daily, ..LevelLimits::default() };
    let limits = Limits { per_principal, ..Limits::default() };
    let options = IngestToolOptions::default();
    let builder = register_ingest_tools(SnapshotBuilder::new(), targets, options, &AllowedNames::Everything);
    Registry::new(builder.limits(limits).build(), EventDispatcher::default())
}

#[tokio::test]
async fn daily_limits_apply_to_rows_and_bytes_that_are_written() {
    let plant = MemoryTarget::plant();
    let rows = limited(&plant, DailyLimits { rows: Some(3), ..DailyLimits::default() });
    let two = format!("{ROW}\n{ROW}\n");
    append(&rows, &two, no_arguments()).await.unwrap();
    let error = append(&rows, &two, no_arguments()).await.unwrap_err();
    assert_eq!(error, "rate_limited: your daily limit of 3 rows is used up; it resets at 00:00 UTC");
    let bytes = limited(&plant, DailyLimits { bytes: Some(1_000), ..DailyLimits::default() });
    let error = append(&bytes, &two.repeat(20), no_arguments()).await.unwrap_err();
    assert_eq!(error, "rate_limited: your daily limit of 1000 bytes is used up; it resets at 00:00 UTC");
    assert_eq!(plant.row_count("sensors"), 2);
}

#[tokio::test]
async fn a_body_that_breaks_off_or_is_cancelled_stores_nothing() {
    let plant = MemoryTarget::plant();
    let registry = registry(&[&plant]);
    let line = Bytes::from(format!("{ROW}\n").repeat(20_000));
    let broken = Err(Error::new(ErrorKind::InvalidArguments, "the body broke off"));
    let pieces = stream::iter([Ok(line.clone()), Ok(line.clone()), broken]);
    let call = rest_call_of(&device(&["*"]), "append_rows", no_arguments(), NDJSON, None, pieces);
    assert_eq!(answer(&registry, call).await.unwrap_err(), "invalid_arguments: the body broke off");
    let pieces = stream::iter([Ok(line)]).chain(stream::pending());
    let call = rest_call_of(&device(&["*"]), "append_rows", no_arguments(), NDJSON, None, pieces);
    let reply = registry.call(call).unwrap();
    let job = reply.job().clone();
    while job.usage().bytes() == 0 {
        tokio::task::yield_now().await;
    }
    job.cancel();
    drop(reply);
    let answer: Result<Value, String> = append(&registry, ROW, no_arguments()).await;
    assert_eq!(counts(&answer.unwrap()), (1, 0, false, false));
    assert_eq!(plant.row_count("sensors"), 1);
}
