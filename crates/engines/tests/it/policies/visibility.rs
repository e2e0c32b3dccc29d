//! What is visible of tables of each kind: rows, masks, catalog, schema; and when nothing is visible.

use serde_json::json;
use tidegate_core::Principal;
use tidegate_engines::Engine;
use tidegate_query::{Database, Freshness, Mask};
use tidegate_sql::{SqlDialect, Statement};

use super::{RestrictedDatabase, key, policy, test_principal};
use crate::support::{Folder, numbers, two_thread_options, write_arrow, write_parquet};

const ORDERS: &str = "id,tenant,phone,price,at\n1,north,+41 79 111,10.5,2024-01-01\n2,south,+41 79 222,20.5,2024-01-02\n\
                      3,north,,30.5,2024-01-03\n4,,+41 79 444,,2024-01-04\n";

fn orders(rows: &str, columns: &[(&str, Mask)]) -> (Folder, RestrictedDatabase) {
    let folder = Folder::with(&[("orders.csv", ORDERS), ("free.csv", "a,b\n1,2\n")]);
    let engine = Engine::start(two_thread_options()).unwrap();
    let principal = test_principal(&json!({"tenant": "north", "ids": [1, "4"]}));
    let limited = RestrictedDatabase::open(&folder.path(), &engine, vec![policy("orders", rows, columns)], principal);
    (folder, limited)
}

#[tokio::test]
async fn rows_are_those_of_the_condition() {
    for (condition, ids) in [
        ("tenant = :claims.tenant", "1\n3"),
        ("tenant <> :claims.tenant", "2"),
        ("NOT tenant = :claims.tenant", "2"),
        ("tenant = :claims.tenant OR tenant IS NULL", "1\n3\n4"),
        ("id IN (:claims.ids)", "1\n4"),
        ("id NOT IN (:claims.ids)", "2\n3"),
        ("tenant LIKE 'n%' AND phone IS NOT NULL", "1"),
        ("tenant NOT LIKE 'n%'", "2"),
        ("tenant LIKE 'N%'", ""),
        ("price BETWEEN 20 AND 30.5", "2\n3"),
        ("at >= '2024-01-03'", "3\n4"),
        ("at < DATE '2024-01-02'", "1"),
        ("price > id", "1\n2\n3"),
        ("tenant = :claims.nobody OR id > 0", ""),
        ("TRUE", "1\n2\n3\n4"),
        ("FALSE", ""),
    ] {
        let (_folder, limited) = orders(condition, &[]);
        assert_eq!(limited.rows("SELECT id FROM orders").await, ids, "{condition}");
        let count = ids.lines().count().to_string();
        assert_eq!(limited.rows("SELECT count(*) FROM orders").await, count, "{condition}");
    }
}

/// The size of a table depends on the rows that are hidden.
#[tokio::test]
async fn size_is_unknown_where_rows_may_be_hidden() {
    let (_folder, limited) = orders("tenant = :claims.tenant", &[]);
    let bytes = async |table: &str| limited.database.table_storage(table, &limited.principal).await.unwrap().bytes;
    assert_eq!((bytes("orders").await, bytes("free").await), (None, Some("a,b\n1,2\n".len() as u64)));
}

#[tokio::test]
async fn expressions_compute_with_masked_values() {
    let masks = [("phone", Mask::KeepLast(3)), ("TENANT", Mask::Hash), ("price", Mask::Null), ("at", Mask::Deny)];
    let (_folder, limited) = orders("TRUE", &masks);
    assert_eq!(limited.columns("orders").await, "id bigint, tenant text, phone text, price double");
    let (north, south) = (key().hash("north"), key().hash("south"));
    let expected =
        format!("1|{north}|*******111|null\n2|{south}|*******222|null\n3|{north}|null|null\n4|null|*******444|null");
    assert_eq!(limited.rows("SELECT * FROM orders").await, expected);
    assert_eq!(limited.rows("SELECT id FROM orders WHERE phone LIKE '+41%' OR tenant = 'north'").await, "");
    assert_eq!(limited.rows(&format!("SELECT id FROM orders WHERE tenant = '{north}'")).await, "1\n3");
    assert_eq!(limited.rows("SELECT count(*) FROM orders WHERE price > 0 OR price <= 0").await, "0");
    assert_eq!(limited.rows("SELECT count(DISTINCT tenant), max(phone) FROM orders").await, "2|*******444");
    let row = format!(r#"{{"id":1,"tenant":"{north}","phone":"*******111","price":null}}"#);
    assert_eq!(limited.rows("SELECT to_json(orders) FROM orders WHERE id = 1").await, row);
    assert_eq!(limited.rows("SELECT to_json(o.*) FROM orders o WHERE id = 1").await, row);
    let mut hashes = [(north, "1,3"), (south, "2")];
    hashes.sort();
    let sorted = hashes.iter().map(|(_, ids)| *ids).collect::<Vec<_>>().join("\n");
    let by_tenant = "SELECT string_agg(id::text, ',' ORDER BY id) FROM orders WHERE tenant IS NOT NULL GROUP BY tenant ORDER BY tenant";
    assert_eq!(limited.rows(by_tenant).await, sorted);
    let refusal = limited.refusal("SELECT at FROM orders").await;
    assert!(refusal.contains("there is no column \"at\"") && !refusal.contains("choices: at"), "{refusal}");
}

#[tokio::test]
async fn policy_may_filter_by_hidden_columns() {
    let (_folder, limited) =
        orders("tenant = :claims.tenant AND price > 20", &[("tenant", Mask::Deny), ("price", Mask::Hash)]);
    assert_eq!(limited.rows("SELECT id FROM orders").await, "3");
    assert_eq!(limited.columns("orders").await, "id bigint, phone text, price text, at date");
}

#[tokio::test]
async fn every_format_is_limited() {
    let folder = Folder::new();
    write_parquet(&folder.join("p.parquet"), &numbers(100), 10);
    write_arrow(&folder.join("a.arrow"), &numbers(100), false);
    write_arrow(&folder.join("s.arrows"), &numbers(100), true);
    folder.write("c.csv", crate::support::numbers_csv(100));
    folder.write("j.json", "{\"id\": 1, \"name\": \"a\", \"deep\": {\"x\": 1}}\n{\"id\": 51, \"name\": \"b\"}\n");
    folder.write("h/year=2023/x.csv", "id\n1\n");
    folder.write("h/year=2024/x.csv", "id\n51\n");
    let engine = Engine::start(two_thread_options()).unwrap();
    let all = vec![policy("*", "id > 50 AND id < 53", &[("name", Mask::KeepFirst(1)), ("deep", Mask::Deny)])];
    let limited = RestrictedDatabase::open(&folder.path(), &engine, all, test_principal(&json!({})));
    for table in ["p", "a", "c"] {
        assert_eq!(
            limited.rows(&format!("SELECT * FROM {table} ORDER BY id")).await,
            "51|n******\n52|n******",
            "{table}"
        );
    }
    assert_eq!(limited.rows("SELECT * FROM j").await, "51|*");
    assert_eq!(limited.rows("SELECT * FROM h").await, "51|2024");
    assert_eq!(limited.rows("SELECT count(*) FROM h WHERE year = 2023").await, "0");
    assert_eq!(limited.rows("SELECT count(*), min(id), max(id) FROM p").await, "2|51|52");
    let by_year = vec![policy("h", "year = :claims.year", &[])];
    let of_year = RestrictedDatabase::open(&folder.path(), &engine, by_year, test_principal(&json!({"year": 2023})));
    assert_eq!(of_year.rows("SELECT * FROM h").await, "1|2023");
    assert_eq!(of_year.rows("SELECT DISTINCT year FROM h").await, "2023");
}

#[tokio::test]
async fn the_catalog_tells_nothing_of_rows() {
    let (_folder, limited) = orders("tenant = :claims.tenant", &[]);
    let catalog = limited.database.catalog(&limited.principal).await.unwrap();
    let message: Vec<_> =
        catalog.tables.iter().map(|table| (table.name.as_str(), table.rows, table.comment.as_deref())).collect();
    assert_eq!(message, [("free", Some(1), Some("CSV file")), ("orders", None, Some("restricted by a row policy"))]);
    let statement = |sql: &str| Statement::parse(sql, SqlDialect::DataFusion).unwrap();
    let fresh = limited.database.freshness(&statement("SELECT * FROM orders"), &limited.principal).await;
    assert_eq!(fresh, Freshness::Never);
    let before = limited.database.version_tag(Some("orders"), &limited.principal).await.unwrap();
    _folder.write("orders.csv", format!("{ORDERS}5,south,+41 79 555,1.5,2024-01-05\n"));
    assert_eq!(limited.database.version_tag(Some("orders"), &limited.principal).await.unwrap(), before);
    assert_eq!(limited.rows("SELECT count(*) FROM orders").await, "2");
    let mut auditor = limited.principal.clone();
    auditor.roles.insert("auditor".to_owned());
    let auditing = RestrictedDatabase { database: limited.database, principal: auditor };
    assert_eq!(auditing.rows("SELECT count(*) FROM orders").await, "5");
}

#[tokio::test]
async fn policy_follows_a_renamed_table() {
    let folder = Folder::with(&[("orders.csv", ORDERS)]);
    let engine = Engine::start(two_thread_options()).unwrap();
    let of_orders = vec![policy("Orders", "tenant = :claims.tenant", &[])];
    let limited =
        RestrictedDatabase::open(&folder.path(), &engine, of_orders, test_principal(&json!({"tenant": "south"})));
    for name in ["orders", "ORDERS", "db.orders", "\"orders\"", "tidegate.db.orders", "\"db\".\"ORDERS\""] {
        assert_eq!(limited.rows(&format!("SELECT id FROM {name}")).await, "2", "{name}");
    }
    // Another file with that name: both get suffixes.
    folder.write("orders.json", "{\"id\": 7, \"tenant\": \"south\"}\n{\"id\": 8, \"tenant\": \"north\"}\n");
    assert_eq!(limited.rows("SELECT id FROM orders_csv").await, "2");
    assert_eq!(limited.rows("SELECT id FROM orders_json").await, "7");
    folder.remove("orders.csv");
    folder.remove("orders.json");
    // A folder whose files are incompatible is split into separate tables.
    folder.write("orders/a.csv", "id,tenant\n1,south\n2,north\n");
    folder.write("orders/b.csv", "id,tenant\n3,south\n4,north\n");
    assert_eq!(limited.rows("SELECT id FROM orders ORDER BY id").await, "1\n3");
    folder.write("orders/c.json", "{\"id\": {\"deep\": 1}, \"tenant\": \"south\"}\n");
    for table in &limited.database.catalog(&Principal::anonymous()).await.unwrap().tables {
        if table.name.starts_with("orders") && table.name.ends_with('a') {
            assert_eq!(limited.rows(&format!("SELECT id FROM \"{}\"", table.name)).await, "1", "{}", table.name);
        }
        assert_eq!(table.comment.as_deref(), Some("restricted by a row policy"), "{}", table.name);
    }
}

#[tokio::test]
async fn policy_errors_use_one_message() {
    let (folder, limited) = orders("nobody = 1", &[]);
    let refusal = limited.refusal("SELECT count(*) FROM orders").await;
    assert_eq!(
        refusal,
        "forbidden: the table \"orders\" cannot be read: its row policy does not fit it\n\
         The owner of the server corrects the policy: its log, tidegate doctor and tidegate config check name the policy and \
         the column."
    );
    assert_eq!(limited.rows("SELECT a FROM free").await, "1");
    limited.database.columns("orders", &limited.principal).await.unwrap_err();
    folder.write("orders.csv", "id,nobody\n1,1\n");
    assert_eq!(limited.rows("SELECT id FROM orders").await, "1");
    folder.write("orders.csv", b"id,nobody\n\xff\xfe secret,1\n2,1,3,4\n");
    let refusal = limited.refusal("SELECT id FROM orders").await;
    assert!(refusal.starts_with("unavailable: the table \"orders\" cannot be read now\n"), "{refusal}");
    // A value that does not fit its column, in a hidden row, far beyond the sample.
    let mut text = "id,nobody\n".to_owned();
    (0..200_000).for_each(|id| text.push_str(&format!("{id},2\n")));
    text.push_str("a secret,2\n7,1\n");
    folder.write("orders.csv", text);
    let refusal = limited.refusal("SELECT id FROM orders").await;
    assert!(refusal.starts_with("unavailable: the table \"orders\" cannot be read now\n"), "{refusal}");
    assert_eq!(limited.rows("SELECT id FROM orders").await, "7");
}
