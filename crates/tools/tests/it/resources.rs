//! Databases, tables and jobs as resources, and notifications of their changes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::{CallTarget, Caller, CompletionReference, Principal};
use tidegate_runtime::{Registry, Reply};

use crate::fake::{call, call_tool, collect_answer, complete_argument, node, owner, shop, unreachable};

const TABLE: &str = "tidegate://databases/{database}/tables/{table}";

async fn read(registry: &Arc<Registry>, uri: &str) -> Result<Vec<Value>, String> {
    let reply =
        registry.call(call(CallTarget::Resource(uri.to_owned()), Value::Null)).map_err(|error| error.to_string())?;
    let texts = collect_answer(reply).await.map_err(|error| error.to_string())?.texts;
    Ok(texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect())
}

#[tokio::test]
async fn a_database_is_a_resource() {
    let registry = node([shop(), unreachable()]);
    insta::assert_json_snapshot!(read(&registry, "tidegate://databases/shop").await.unwrap());
    insta::assert_snapshot!(read(&registry, "tidegate://databases/warehouse").await.unwrap_err(), @"the disk is away");
    insta::assert_snapshot!(read(&registry, "tidegate://databases/shpo").await.unwrap_err(), @r#"
    there is no database "shpo"
    Valid choices: shop
    "#);
}

#[tokio::test]
async fn a_table_is_a_resource() {
    let registry = node([shop()]);
    insta::assert_json_snapshot!(read(&registry, "tidegate://databases/shop/tables/orders").await.unwrap());
    let odd = read(&registry, "tidegate://databases/shop/tables/odd%20%22name%22%2C%202024").await.unwrap();
    assert_eq!(odd[1][1]["name"], "Bob");
    insta::assert_snapshot!(read(&registry, "tidegate://databases/shop/tables/oders").await.unwrap_err(), @r#"
    there is no table "oders" in database "shop"
    Valid choices: orders
    "#);
}

#[tokio::test]
async fn readable_resources_are_listed() {
    let registry = node([shop(), unreachable()]);
    let snapshot = registry.snapshot();
    let mut uris = Vec::new();
    for template in snapshot.templates(&owner()) {
        let resources = template.lister.as_ref().unwrap().list(&Principal::process_user()).await.unwrap();
        uris.extend(resources.into_iter().map(|resource| resource.uri));
    }
    insta::assert_snapshot!(uris.join("\n"), @"
    tidegate://databases/shop/tables/customers
    tidegate://databases/shop/tables/endless
    tidegate://databases/shop/tables/odd%20%22name%22%2C%202024
    tidegate://databases/shop/tables/orders
    tidegate://databases/shop
    tidegate://databases/warehouse
    ");
}

#[tokio::test]
async fn names_complete() {
    let registry = node([shop(), unreachable()]);
    let table = || CompletionReference::Resource(TABLE.to_owned());
    assert_eq!(complete_argument(&registry, table(), "database", "S", &[]).await, ["shop"]);
    assert_eq!(
        complete_argument(&registry, table(), "table", "o", &[("database", "shop")]).await,
        ["odd \"name\", 2024", "orders"]
    );
    assert_eq!(complete_argument(&registry, table(), "table", "cust", &[]).await, ["customers"]);
    assert!(complete_argument(&registry, table(), "table", "", &[("database", "warehouse")]).await.is_empty());
    assert_eq!(
        complete_argument(&registry, CompletionReference::Prompt("explore".into()), "database", "ware", &[]).await,
        ["warehouse"]
    );
}

#[tokio::test]
async fn completion_prefers_names_the_caller_uses() {
    let registry = node([shop(), unreachable()]);
    let table = || CompletionReference::Resource(TABLE.to_owned());
    let tables = async || complete_argument(&registry, table(), "table", "", &[("database", "shop")]).await;
    let before = tables().await;
    assert_eq!(before[0], "broken");
    for _ in 0..2 {
        call_tool(&registry, "sql", json!({"database": "shop", "sql": "SELECT * FROM orders"})).await;
    }
    call_tool(&registry, "query", json!({"database": "shop", "table": "customers"})).await;
    call_tool(&registry, "sql", json!({"database": "shop", "sql": "SELECT * FROM oders"})).await;
    assert_eq!(tables().await[..3], ["orders", "customers", "broken"]);
    assert_eq!(complete_argument(&registry, table(), "table", "c", &[("database", "shop")]).await, ["customers"]);
    let mut requested =
        call(CallTarget::Tool("sql".into()), json!({"database": "shop", "sql": "SELECT * FROM customers"}));
    requested.caller.principal = Principal::anonymous();
    collect_answer(registry.call(requested).unwrap()).await.unwrap();
    assert_eq!(tables().await[0], "orders", "what others ask changes nothing");
}

fn endless_call(registry: &Arc<Registry>) -> Reply {
    registry
        .call(call(CallTarget::Tool("sql".into()), json!({"database": "shop", "sql": "SELECT * FROM endless"})))
        .unwrap()
}

async fn version_tag(registry: &Arc<Registry>, uri: &str, caller: &Caller) -> Option<String> {
    let (watcher, variables) = registry.snapshot().watcher(uri, caller).unwrap();
    watcher.version_tag(&variables, caller).await.unwrap()
}

#[tokio::test]
async fn job_resource_is_private_to_its_caller() {
    let registry = node([shop()]);
    let reply = endless_call(&registry);
    let uri = format!("tidegate://jobs/{}", reply.job().id());
    let job = &read(&registry, &uri).await.unwrap()[0][0];
    let (target, rows) = (&job["target"], &job["rows"]);
    assert_eq!((&job["id"], target, rows), (&json!(reply.job().id().to_string()), &json!("sql"), &json!(0)));
    assert!(["waiting", "running"].contains(&job["status"].as_str().unwrap()), "{job}");
    let message = read(&registry, "tidegate://jobs/17").await.unwrap_err();
    assert!(message.starts_with("you have no job \"17\""), "{message}");
    let mut foreign = call(CallTarget::Resource(uri.clone()), Value::Null);
    foreign.caller.principal = Principal::anonymous();
    let message = collect_answer(registry.call(foreign).unwrap()).await.unwrap_err();
    let absent = reply.job().id().to_string();
    assert_eq!(message.to_string(), format!("you have no job {absent:?}\nNone of your jobs is running."));
    let template = || CompletionReference::Resource("tidegate://jobs/{id}".to_owned());
    assert_eq!(complete_argument(&registry, template(), "id", &absent[..6], &[]).await, [absent]);
}

#[tokio::test]
async fn open_jobs_are_listed_for_their_caller() {
    let registry = node([shop()]);
    let reply = endless_call(&registry);
    let snapshot = registry.snapshot();
    let template = snapshot.templates(&owner()).find(|template| template.name == "job").unwrap();
    let lister = template.lister.as_ref().unwrap();
    let listed = lister.list(&Principal::process_user()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].uri, format!("tidegate://jobs/{}", reply.job().id()));
    assert_eq!(listed[0].description.as_deref(), Some("A call of the tool sql."));
    assert!(lister.list(&Principal::anonymous()).await.unwrap().is_empty());
    drop(reply);
    poll_until("no ended job is listed", async || lister.list(&Principal::process_user()).await.unwrap().is_empty())
        .await;
}

/// Waits until `condition` holds, within a bound.
async fn poll_until(condition_text: &str, condition: impl AsyncFn() -> bool) {
    for _ in 0..1_000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not reached: {condition_text}");
}

#[tokio::test]
async fn version_tag_changes_with_content() {
    let registry = node([shop(), unreachable()]);
    let me = owner();
    let of_orders = version_tag(&registry, "tidegate://databases/shop/tables/orders", &me).await;
    assert!(of_orders.is_some());
    assert_eq!(version_tag(&registry, "tidegate://databases/shop/tables/orders", &me).await, of_orders);
    assert_ne!(version_tag(&registry, "tidegate://databases/shop/tables/customers", &me).await, of_orders);
    assert!(version_tag(&registry, "tidegate://databases/shop", &me).await.is_some());
    for absent in ["tidegate://databases/shop/tables/oders", "tidegate://databases/shpo", "tidegate://jobs/17"] {
        assert_eq!(version_tag(&registry, absent, &me).await, None, "{absent}");
    }
    let reply = endless_call(&registry);
    let uri = format!("tidegate://jobs/{}", reply.job().id());
    let becomes = async |expected: &str| {
        poll_until(expected, async || version_tag(&registry, &uri, &me).await.as_deref() == Some(expected)).await;
    };
    becomes("running 0 0 false").await;
    let stranger = Caller { principal: Principal::anonymous(), ..me.clone() };
    assert_eq!(version_tag(&registry, &uri, &stranger).await, None, "it is somebody else's");
    drop(reply);
    becomes("cancelled 0 0 false").await;
}
