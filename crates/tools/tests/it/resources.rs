//! Databases and tables as resources.

use std::sync::Arc;

use serde_json::Value;
use tidegate_core::{Principal, Reference, Registry, Target};

use crate::fake::{call, complete, gather, node, owner, shop, unreachable};

const TABLE: &str = "tidegate://databases/{database}/tables/{table}";

async fn read(registry: &Arc<Registry>, uri: &str) -> Result<Vec<Value>, String> {
    let reply =
        registry.call(call(Target::Resource(uri.to_owned()), Value::Null)).map_err(|error| error.to_string())?;
    let texts = gather(reply).await.map_err(|error| error.to_string())?.texts;
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
async fn what_can_be_read_is_listed() {
    let registry = node([shop(), unreachable()]);
    let snapshot = registry.snapshot();
    let mut uris = Vec::new();
    for template in snapshot.templates(&owner()) {
        let resources = template.lister.as_ref().unwrap().list(&Principal::owner()).await.unwrap();
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
    let table = || Reference::Resource(TABLE.to_owned());
    assert_eq!(complete(&registry, table(), "database", "S", &[]).await, ["shop"]);
    assert_eq!(
        complete(&registry, table(), "table", "o", &[("database", "shop")]).await,
        ["odd \"name\", 2024", "orders"]
    );
    assert_eq!(complete(&registry, table(), "table", "cust", &[]).await, ["customers"]);
    assert!(complete(&registry, table(), "table", "", &[("database", "warehouse")]).await.is_empty());
    assert_eq!(complete(&registry, Reference::Prompt("explore".into()), "database", "ware", &[]).await, ["warehouse"]);
}
