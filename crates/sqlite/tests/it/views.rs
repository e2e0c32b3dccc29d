//! Row policies of the owner's own views, and of all tables at once.

use tidegate_query::{HashKey, Mask, RowPolicies};
use tidegate_sqlite::SqliteOptions;

use super::policies::{caller_of_tenant, policy};
use super::support::{Folder, SqliteFixture};

fn open_with_policies(policies: Vec<tidegate_query::RowPolicy>) -> (Folder, SqliteFixture) {
    let folder = Folder::new();
    let sql = "CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT, amount INTEGER);
        INSERT INTO orders VALUES (1, 'north', 10), (2, 'south', 20), (3, 'north', 30);
        CREATE VIEW \"my \"\"big\"\" one\" (id, size) AS SELECT id, amount FROM orders;
        CREATE VIEW [on it] AS SELECT count(*) AS many, sum(size) AS size FROM \"my \"\"big\"\" one\";
        CREATE TABLE plain (a); INSERT INTO plain VALUES (1)";
    drop(folder.write("data.db", sql));
    let row_policies = RowPolicies::new(policies, HashKey::process_key());
    let node = folder.open(&["data.db"], SqliteOptions { row_policies, ..SqliteOptions::default() });
    (folder, node.with_principal(caller_of_tenant("north")))
}

#[tokio::test]
async fn view_policy_applies_over_table_policies() {
    let view = "my \"big\" one";
    let policies =
        vec![policy("orders", "tenant = :claims.tenant", &[]), policy(view, "id > 1", &[("size", Mask::Null)])];
    let (_folder, node) = open_with_policies(policies);
    assert_eq!(node.run_to_text("SELECT * FROM `my \"big\" one`").await, "3 | -");
    assert_eq!(node.run_to_text("SELECT * FROM main.`my \"big\" one`").await, "3 | -");
    assert_eq!(node.run_to_text("SELECT * FROM `on it`").await, "1 | -");
    assert_eq!(node.run_to_text("SELECT size FROM `my \"big\" one` WHERE abs(id) = 1").await, "");
}

#[tokio::test]
async fn wildcard_policy_denies_tables_it_does_not_fit() {
    let (_folder, node) = open_with_policies(vec![policy("*", "tenant = :claims.tenant", &[])]);
    assert_eq!(node.run_to_text("SELECT count(*) FROM orders").await, "2");
    assert_eq!(
        node.run_to_text("SELECT * FROM plain").await,
        "the table \"plain\" cannot be read: its row policy does not fit it"
    );
    assert_eq!(
        node.run_to_text("SELECT * FROM `on it`").await,
        "the table \"on it\" cannot be read: its row policy does not fit it"
    );
}
