//! Who may write where, and what others learn.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tidegate_core::{DatabaseTenants, Principal};
use tidegate_runtime::Registry;
use tidegate_tools::IngestToolOptions;

use super::memory_target::{MemoryTarget, sensor_columns, table};
use super::{NDJSON, answer, device, over_rest, registry, registry_with, rest_call};

const ROW: &str = "{\"time\":\"2024-02-29T12:00:00Z\"}";

fn plant() -> Arc<MemoryTarget> {
    let tables = ["sensors", "alarms", "secret_table"].map(|name| table(name, sensor_columns()));
    MemoryTarget::with_tables("plant", tables.into())
}

async fn write(registry: &Arc<Registry>, principal: &Principal, database: &str, table: &str) -> String {
    let arguments = json!({"database": database, "table": table});
    match answer(registry, rest_call(principal, "append_rows", arguments, NDJSON, ROW)).await {
        Ok(answer) => format!("{} rows", answer["rows"]),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_table_without_the_right_is_like_one_that_does_not_exist() {
    let target = plant();
    let registry = registry(&[&target]);
    let caller = device(&["plant.sensors", "plant.al*"]);
    assert_eq!(write(&registry, &caller, "plant", "sensors").await, "1 rows");
    assert_eq!(write(&registry, &caller, "plant", "alarms").await, "1 rows");
    let refused = write(&registry, &caller, "plant", "secret_table").await;
    let absent = write(&registry, &caller, "plant", "secrex_table").await;
    assert_eq!(refused.replace("secret_table", "secrex_table"), absent);
    insta::assert_snapshot!(refused, @r#"
    not_found: there is no table "secret_table" of database "plant" that takes rows from you
    Valid choices: alarms, sensors
    A database of the configuration takes rows with its key ingest, and a role may write with its own key ingest.
    "#);
    insta::assert_snapshot!(write(&registry, &caller, "plant", "sensor").await, @r#"
    not_found: there is no table "sensor" of database "plant" that takes rows from you
    Valid choices: sensors
    A database of the configuration takes rows with its key ingest, and a role may write with its own key ingest.
    "#);
    insta::assert_snapshot!(write(&registry, &caller, "plan", "sensors").await, @r#"
    not_found: there is no table "sensors" of database "plan" that takes rows from you
    Valid choices: plant.sensors, plant.alarms
    A database of the configuration takes rows with its key ingest, and a role may write with its own key ingest.
    "#);
    // The names of others stay out of the words of the database.
    let everything = device(&["plant.s*"]);
    insta::assert_snapshot!(write(&registry, &everything, "plant", "serials").await, @r#"
    not_found: there is no table "serials" of database "plant" that takes rows from you
    Valid choices: secret_table, sensors
    Declare it under tables.
    "#);
    assert_eq!(target.row_count("secret_table"), 0);
}

#[tokio::test]
async fn the_name_as_the_table_has_it_decides() {
    let target = plant();
    let registry = registry(&[&target]);
    // The database finds names in any case.
    let caller = device(&["plant.SECRET_TABLE", "plant.sensors"]);
    assert!(write(&registry, &caller, "plant", "SECRET_TABLE").await.starts_with("not_found: "));
    for rejects in ["sensors__rejects", "new__rejects"] {
        assert!(write(&registry, &device(&["*"]), "plant", rejects).await.starts_with("not_found: "), "{rejects}");
    }
    assert_eq!(target.row_count("secret_table"), 0);
}

#[tokio::test]
async fn the_tools_exist_only_for_callers_that_may_write() {
    let target = plant();
    let registry = registry(&[&target]);
    let has_tool = |principal: Principal| {
        let caller = over_rest(principal);
        registry.snapshot().tools(&caller).any(|tool| tool.name == "append_rows")
    };
    assert!(has_tool(device(&["plant.sensors"])) && has_tool(Principal::clone(&Principal::process_user())));
    assert!(!has_tool(device(&["shop.*"])) && !has_tool(device(&[])));
    let reader = device(&[]);
    let refused = write(&registry, &reader, "plant", "sensors").await;
    assert_eq!(refused, "not_found: there is no tool \"append_rows\"");
}

#[tokio::test]
async fn a_database_of_another_tenant_does_not_exist() {
    let (north, south) = (MemoryTarget::creating("north"), MemoryTarget::creating("south"));
    let tenants = ["north", "south"].map(|name| (name.to_owned(), BTreeSet::from([name.to_owned()])));
    let options = IngestToolOptions { tenancy: DatabaseTenants::new(tenants), ..IngestToolOptions::default() };
    let registry = registry_with(&[&north, &south], options);
    let caller = Principal { tenant: Some("north".to_owned()), ..device(&["*"]) };
    assert_eq!(write(&registry, &caller, "north", "events").await, "1 rows");
    let hidden = write(&registry, &caller, "south", "events").await;
    assert_eq!(hidden.replace("south", "nowhere"), write(&registry, &caller, "nowhere", "events").await);
    assert_eq!(south.row_count("events"), 0);
}

#[tokio::test]
async fn removing_needs_the_right_to_the_table_as_well() {
    let target = plant();
    let registry = registry(&[&target]);
    let owner = device(&["*"]);
    write(&registry, &owner, "plant", "secret_table").await;
    for tool in ["drop_table", "replace_rows"] {
        let mut call = rest_call(&device(&["plant.sensors"]), tool, json!({"table": "secret_table"}), NDJSON, ROW);
        if tool == "drop_table" {
            call.request_body = None;
        }
        let error = answer(&registry, call).await.unwrap_err();
        assert!(error.starts_with("not_found: there is no table \"secret_table\" of database \"plant\""), "{error}");
    }
    assert_eq!(target.row_count("secret_table"), 1);
}
