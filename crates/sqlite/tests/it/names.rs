//! Names of denied columns: no message of SQLite reveals them to the callers that may not read them.

use tidegate_query::{HashKey, Mask, RowPolicies};
use tidegate_sqlite::SqliteOptions;

use super::policies::{caller_of_tenant, policy};
use super::support::{Folder, SqliteFixture};

const SHOP: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT, amount INTEGER, ssn TEXT UNIQUE, email TEXT,
        ssn_end AS (substr(ssn, -2)), twice AS (amount * 2),
        CONSTRAINT ssn_is_long CHECK (length(ssn) > 2), FOREIGN KEY (ssn) REFERENCES people (ssn));
    CREATE TABLE people (ssn TEXT PRIMARY KEY, tenant TEXT);
    CREATE TABLE cards (number TEXT REFERENCES orders (ssn), tenant TEXT);
    CREATE TABLE plain (a INTEGER, doc TEXT);
    CREATE INDEX by_ssn ON orders (ssn);
    CREATE INDEX by_part ON orders (amount) WHERE ssn IS NOT NULL;
    INSERT INTO people VALUES ('111', 'north'), ('222', 'south');
    INSERT INTO orders (id, tenant, amount, ssn, email) VALUES (1, 'north', 10, '111', 'a@x'), (2, 'south', 20, '222', 'b@x');
    INSERT INTO cards VALUES ('111', 'north'), ('222', 'south');
    INSERT INTO plain VALUES (1, '{');
    CREATE VIEW v AS SELECT id, tenant, amount, ssn, email FROM orders;
    CREATE VIEW v_on_v AS SELECT id FROM v;
    CREATE VIEW v_where AS SELECT id FROM orders WHERE ssn > '';
    CREATE VIEW v_order AS SELECT id FROM orders ORDER BY ssn;
    CREATE VIEW v_named (a, b, c, d, e, f, g) AS SELECT * FROM orders;
    CREATE VIEW v_gen AS SELECT ssn_end FROM orders;
    CREATE VIEW v_main AS SELECT main.orders.ssn FROM main.orders;
    CREATE VIEW v_index AS SELECT id FROM orders INDEXED BY by_ssn;
    CREATE VIEW v_using AS SELECT id FROM orders JOIN people USING (ssn);
    CREATE VIEW v_natural AS SELECT * FROM orders NATURAL JOIN people;
    CREATE VIEW v_amb AS SELECT id FROM orders JOIN people ON ssn > '';
    CREATE VIEW v_union AS SELECT * FROM orders UNION SELECT 1, 2, 3, 4, 5, 6, 7;
    CREATE VIEW v_all AS SELECT * FROM orders;
    CREATE VIEW v_sub AS SELECT a FROM plain WHERE (SELECT ssn FROM orders LIMIT 1) > '';
    CREATE VIEW v_quoted AS SELECT id, \"ssn\" FROM orders;
    CREATE VIEW v_path AS SELECT json_extract(doc, '$.ssn[') AS x FROM plain;
    CREATE VIEW v_fts AS SELECT note FROM found WHERE found MATCH 'ssn: x';
    CREATE VIEW v_kept AS SELECT * FROM found_content;
    CREATE VIEW v_schema AS SELECT sql FROM sqlite_schema;
    CREATE VIRTUAL TABLE found USING fts5(note, ssn, tenant);
    CREATE VIRTUAL TABLE of_orders USING fts5(email, ssn, tenant, content='orders', content_rowid='id');
    CREATE VIRTUAL TABLE of_plain USING fts5(a, ssn, tenant, content='plain');
    INSERT INTO of_orders (of_orders) VALUES ('rebuild');
    CREATE TRIGGER v_trigger INSTEAD OF INSERT ON v BEGIN DELETE FROM orders WHERE ssn = NEW.ssn; END;
    CREATE TRIGGER kept AFTER INSERT ON orders BEGIN INSERT INTO people (ssn) VALUES (NEW.ssn); END;
    ANALYZE;";

fn shop() -> (Folder, SqliteFixture) {
    let folder = Folder::new();
    drop(folder.write("data.db", SHOP));
    let mine = "tenant = :claims.tenant";
    let denied = &[("ssn", Mask::Deny)];
    let policies = ["orders", "people", "found", "of_orders", "of_plain"].map(|table| policy(table, mine, denied));
    let row_policies = RowPolicies::new(policies.to_vec(), HashKey::process_key());
    let options = SqliteOptions { connections_max: 1, row_policies, ..SqliteOptions::default() };
    let node = folder.open(&["data.db"], options).with_principal(caller_of_tenant("north"));
    (folder, node)
}

/// What nobody of the tenant north may read anywhere.
const DENIED_NAMES: &[&str] = &["ssn", "found_content", "found_data", "sqlite_", "c0"];

#[tokio::test]
async fn no_message_names_denied_columns() {
    let (_folder, node) = shop();
    let catalog = node.tables().await.unwrap();
    let mut text = format!("{catalog}\n");
    for line in catalog.lines() {
        let (name, _) = line.split_once(':').unwrap();
        let columns = node.columns(name).await.unwrap_or_else(|error| error.to_string());
        let sql = format!("SELECT * FROM {name}");
        let (read, plan) = (node.run_to_text(&sql).await, node.explain_to_text(&sql).await);
        text.push_str(&format!("\n{name}\n{columns}\n> {read}\n{plan}\n"));
        for sql in [
            format!("SELECT count(*) FROM {name}"),
            format!("SELECT nothing FROM main.{name} AS one"),
            format!("SELECT a.amount FROM orders a JOIN {name} b ON a.id = b.id"),
            format!("WITH one AS (SELECT * FROM {name}) SELECT * FROM one NATURAL JOIN plain"),
            format!("SELECT * FROM {name} WHERE {name} MATCH 'x'"),
        ] {
            let message = [node.run_to_text(&sql).await, node.run_owner_sql(&sql).await].join("\n");
            for hidden in DENIED_NAMES {
                assert!(!message.contains(hidden), "{hidden}: {sql}\n{message}");
            }
        }
    }
    for hidden in DENIED_NAMES {
        assert!(!text.contains(hidden), "{hidden}\n{text}");
    }
    insta::assert_snapshot!("names", text);
}

#[tokio::test]
async fn guessed_denied_column_reads_as_missing() {
    let (_folder, node) = shop();
    for sql in [
        "SELECT COLUMN FROM orders",
        "SELECT orders.COLUMN FROM main.orders",
        "SELECT COLUMN FROM v",
        "SELECT id FROM v -- COLUMN",
        "SELECT COLUMN FROM v_all",
        "SELECT COLUMN FROM orders, people",
        "SELECT id FROM orders JOIN people USING (COLUMN)",
        "SELECT id FROM orders ORDER BY COLUMN",
        "SELECT COLUMN FROM of_plain",
        "SELECT a FROM of_plain -- COLUMN",
    ] {
        let of = async |column: &str| node.run_to_text(&sql.replace("COLUMN", column)).await.replace(column, "COLUMN");
        assert_eq!(of("ssn").await, of("zzn").await, "{sql}");
    }
}

#[tokio::test]
async fn errors_in_owner_sql_reveal_no_denied_names() {
    let (_folder, node) = shop();
    for sql in ["SELECT ssn FROM orders", "SELECT id FROM orders WHERE [ssn] ISNULL", "SELECT sql FROM sqlite_schema"] {
        assert_eq!(node.run_owner_sql(sql).await, "this statement cannot run where row policies apply");
    }
}

#[tokio::test]
async fn callers_without_policies_receive_sqlite_messages() {
    let folder = Folder::new();
    drop(folder.write("data.db", "CREATE TABLE t (a); CREATE VIEW v AS SELECT gone FROM t"));
    let node = folder.open(&["data.db"], SqliteOptions::default());
    assert_eq!(node.tables().await.unwrap(), "t: readable\nv: unreadable, no such column: gone");
    assert_eq!(node.run_to_text("SELECT * FROM v").await, "no such column: gone");
    assert_eq!(node.run_owner_sql("SELECT missing FROM t").await, "there is no column \"missing\"");
}
