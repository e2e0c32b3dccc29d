//! Row policies: which rows callers see, and attempts to see others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::json;
use tidegate_sqlite::SqliteOptions;

use super::support::{Folder, SqliteFixture, TestJob, within_timeout};
use futures::StreamExt;
use tidegate_core::{AuthMethod, Error, Grants, Principal};
use tidegate_query::{Database, HashKey, Mask, RowCondition, RowPolicies, RowPolicy};
use tidegate_sql::{SqlDialect, Statement};

/// Orders of two tenants, and objects that could reveal those of the other tenant.
pub(crate) const SHOP: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT, email TEXT, phone TEXT, ssn TEXT, amount INTEGER,
        note TEXT COLLATE NOCASE, day DATE, twice INTEGER AS (amount * 2), ssn_end AS (substr(ssn, -2)), ssn_more AS (ssn_end || '!'));
    CREATE INDEX by_tenant ON orders (tenant);
    CREATE INDEX by_amount ON orders (amount);
    CREATE INDEX by_ssn ON orders (ssn);
    INSERT INTO orders VALUES
        (1, 'north', 'ann@x', '+49 30 1234', '111', 10, 'first', '2024-01-01'),
        (2, 'south', 'bob@x', '+49 30 9999', '222', -9223372036854775808, '{not json', '2024-02-02'),
        (3, 'north', 'ann@x', '77', '333', 30, 'Third', '2024-03-03'),
        (4, 'south', 'cyd@x', NULL, '444', 9223372036854775807, 'x', NULL),
        (5, 'North', 'dan@x', '1', '555', 50, 'other case', NULL),
        (6, NULL, 'eve@x', '2', '666', 60, 'nobody', NULL);
    CREATE TABLE lines (\"order\" INTEGER REFERENCES orders(id), line INTEGER, tenant TEXT, what TEXT,
        PRIMARY KEY (\"order\", line)) WITHOUT ROWID;
    INSERT INTO lines VALUES (1, 1, 'north', 'pen'), (2, 1, 'south', 'ink'), (3, 1, 'north', 'cap');
    CREATE TABLE colours (name TEXT);
    INSERT INTO colours VALUES ('red'), ('blue');
    CREATE VIEW big AS SELECT id, email, amount FROM orders WHERE amount > 5;
    CREATE VIEW past AS SELECT id, email FROM main.orders;
    CREATE VIEW counted (many) AS SELECT count(*) FROM orders;
    CREATE VIRTUAL TABLE notes USING fts5(body, tenant);
    INSERT INTO notes VALUES ('the quick fox', 'north'), ('the slow fox', 'south');
    CREATE VIRTUAL TABLE found USING fts5(note, content='orders', content_rowid='id');
    INSERT INTO found (found) VALUES ('rebuild');
    CREATE TRIGGER emptied AFTER INSERT ON orders BEGIN DELETE FROM lines; END;
    ANALYZE;";

pub(crate) fn policy(table: &str, rows: &str, columns: &[(&str, Mask)]) -> RowPolicy {
    RowPolicy {
        table: table.to_owned(),
        rows: (!rows.is_empty()).then(|| RowCondition::parse(rows).unwrap()),
        columns: columns.iter().map(|(name, mask)| ((*name).to_owned(), *mask)).collect::<BTreeMap<_, _>>(),
        except_roles: BTreeSet::from(["auditor".to_owned()]),
    }
}

const MASKS: &[(&str, Mask)] = &[("email", Mask::Hash), ("phone", Mask::KeepLast(2)), ("ssn", Mask::Deny)];

fn policies() -> RowPolicies {
    let mine = "tenant = :claims.tenant";
    RowPolicies::new(
        vec![policy("orders", mine, MASKS), policy("lines", mine, &[]), policy("notes", mine, &[])],
        HashKey::from_secret(b"key"),
    )
}

fn tenant_policies_for(table: &str) -> RowPolicies {
    RowPolicies::new(vec![policy(table, "tenant = :claims.tenant", &[])], HashKey::from_secret(b"key"))
}

pub(crate) fn caller_of_tenant(tenant: &str) -> Arc<Principal> {
    let mut principal = Principal::new(tenant, AuthMethod::Token, Arc::new(Grants::everything()));
    principal.claims.insert("tenant".to_owned(), json!(tenant));
    Arc::new(principal)
}

fn auditor() -> Arc<Principal> {
    let mut principal = Principal::new("auditor", AuthMethod::Token, Arc::new(Grants::everything()));
    principal.roles.insert("auditor".to_owned());
    Arc::new(principal)
}

fn shop() -> (Folder, SqliteFixture) {
    let folder = Folder::new();
    drop(folder.write("data.db", SHOP));
    let options = SqliteOptions { connections_max: 1, row_policies: policies(), ..SqliteOptions::default() };
    let node = folder.open(&["data.db"], options);
    (folder, SqliteFixture { principal: caller_of_tenant("north"), ..node })
}

impl SqliteFixture {
    pub(crate) fn with_principal(&self, principal: Arc<Principal>) -> Self {
        Self { principal, ..self.clone() }
    }

    pub(crate) async fn run_owner_sql(&self, sql: &str) -> String {
        let statement = Statement::from_owner(sql, Vec::new(), SqlDialect::Sqlite);
        outcome_text(self.collect_batches(&statement).await)
    }

    async fn collect_batches(&self, statement: &Statement) -> Result<Vec<RecordBatch>, Error> {
        let plan = self.database.plan(statement, &self.principal).await?;
        let job = TestJob::start().await;
        let rows = plan.run(&job.job).await?;
        let mut batches = Vec::new();
        let mut stream = rows.batches;
        while let Some(batch) = within_timeout("a batch", stream.next()).await {
            batches.push(batch?);
        }
        Ok(batches)
    }

    /// The rows or the error of `sql`, as text.
    pub(crate) async fn run_to_text(&self, sql: &str) -> String {
        match Statement::parse(sql, SqlDialect::Sqlite) {
            Ok(statement) => outcome_text(self.collect_batches(&statement).await),
            Err(error) => outcome_text(Err(error)),
        }
    }

    pub(crate) async fn explain_to_text(&self, sql: &str) -> String {
        match self.plan(sql, Vec::new()).await {
            Ok(plan) => plan.explain().await.unwrap(),
            Err(error) => error.to_string(),
        }
    }
}

fn outcome_text(outcome: Result<Vec<RecordBatch>, Error>) -> String {
    match outcome {
        Ok(batches) => lines(&batches).join("; "),
        Err(error) if error.message().starts_with("internal error") => "internal error".to_owned(),
        Err(error) => error.message().to_owned(),
    }
}

/// A row a line.
pub(crate) fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        lines.extend((0..batch.num_rows()).map(|row| {
            columns.iter().map(|column| strip_union_tag(&column.value(row).to_string())).collect::<Vec<_>>().join(" | ")
        }));
    }
    lines
}

/// A value without the type that it has of its own.
fn strip_union_tag(value: &str) -> String {
    let of_union = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
    of_union.and_then(|value| value.split_once('=')).map_or(value, |(_, value)| value).to_owned()
}

#[tokio::test]
async fn attempted_sql_reveals_no_hidden_rows() {
    let (_folder, node) = shop();
    let mut text = String::new();
    for sql in ATTEMPTED_SQL {
        text.push_str(&format!("{sql}\n    {}\n", node.run_to_text(sql).await));
    }
    let is_secret = |word: &str| word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    assert_eq!(words.filter(|word| is_secret(word)).collect::<Vec<_>>(), [""; 0], "what barriers are called");
    insta::assert_snapshot!("tried", text);
}

/// The attempts of a caller of the tenant north.
const ATTEMPTED_SQL: &[&str] = &[
    "SELECT * FROM orders",
    "SELECT * FROM main.orders",
    "SELECT * FROM \"main\".\"orders\" AS o WHERE o.id = 3",
    "SELECT main.orders.id FROM main.orders",
    "SELECT main.orders.* FROM main.orders WHERE main.orders.amount > 10",
    "SELECT orders.id, ORDERS.note FROM Orders WHERE note = 'FIRST'",
    "SELECT count(*) FROM orders",
    "SELECT count(*) FROM main.orders",
    "SELECT count(*), sum(amount), max(id), min(amount) FROM orders",
    "SELECT ssn FROM orders",
    "SELECT o.ssn FROM orders o",
    "SELECT id FROM orders WHERE ssn = '222'",
    "SELECT id FROM orders ORDER BY ssn",
    "SELECT rowid FROM orders",
    "SELECT _rowid_, oid FROM main.orders",
    "SELECT id FROM orders WHERE rowid = 2",
    "SELECT id FROM orders INDEXED BY by_ssn",
    "SELECT id FROM orders NOT INDEXED",
    "SELECT id FROM orders WHERE abs(amount) > 0",
    "SELECT abs(amount) FROM orders",
    "SELECT id FROM orders WHERE json_extract(note, '$.a') IS NULL AND tenant = 'south'",
    "SELECT id FROM orders WHERE CASE WHEN tenant = 'south' THEN abs(-9223372036854775808) ELSE 1 END",
    "SELECT sum(amount) FROM orders GROUP BY tenant HAVING abs(min(amount)) > 0",
    "SELECT tenant FROM orders GROUP BY tenant, amount HAVING abs(amount) > 0",
    "SELECT id FROM orders ORDER BY abs(amount)",
    "SELECT DISTINCT abs(amount) FROM orders LIMIT 1",
    "SELECT l.what FROM lines l JOIN orders o ON o.id = l.\"order\" AND abs(o.amount) > 0",
    "SELECT c.name, o.id FROM colours c LEFT JOIN orders o ON abs(o.amount) > 20",
    "SELECT name FROM colours WHERE EXISTS (SELECT 1 FROM orders WHERE abs(amount) > 0 AND tenant = 'south')",
    "SELECT name FROM colours WHERE 2 IN (SELECT id FROM orders)",
    "SELECT (SELECT group_concat(id) FROM main.orders)",
    "SELECT id FROM orders UNION SELECT id FROM main.orders",
    "WITH orders AS (SELECT 1 AS x) SELECT * FROM orders",
    "WITH orders AS (SELECT * FROM main.orders) SELECT count(*) FROM orders",
    "WITH orders AS MATERIALIZED (SELECT id, abs(amount) FROM main.orders) SELECT * FROM orders",
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT i, o.id FROM r LEFT JOIN orders o ON o.id = i",
    "SELECT a.id, b.id FROM orders a, orders b WHERE a.id < b.id",
    "SELECT id, row_number() OVER (ORDER BY amount) FROM orders",
    "SELECT id, twice FROM orders",
    "SELECT id, ssn_end FROM orders",
    "SELECT id, ssn_more FROM orders",
    "SELECT id FROM orders WHERE email = 'ann@x'",
    "SELECT email, count(*) FROM orders GROUP BY email",
    "SELECT phone FROM orders",
    "SELECT * FROM lines",
    "SELECT \"order\", line FROM lines WHERE \"order\" = 2",
    "SELECT * FROM big",
    "SELECT * FROM main.big",
    "SELECT * FROM past",
    "SELECT * FROM counted",
    "SELECT many FROM main.counted",
    "SELECT * FROM notes",
    "SELECT * FROM notes WHERE notes MATCH 'slow'",
    "SELECT * FROM notes('slow')",
    "SELECT body FROM notes WHERE body MATCH 'slow'",
    "SELECT * FROM notes_content",
    "SELECT * FROM main.notes_data",
    "SELECT * FROM found WHERE found MATCH 'nobody'",
    "SELECT * FROM found_docsize",
    "SELECT * FROM sqlite_schema",
    "SELECT sql FROM sqlite_master",
    "SELECT sql FROM main.sqlite_schema",
    "SELECT * FROM sqlite_temp_schema",
    "SELECT * FROM temp.sqlite_master",
    "SELECT * FROM sqlite_stat1",
    "SELECT * FROM sqlite_stat4",
    "SELECT * FROM main.sqlite_stat1",
    "SELECT * FROM sqlite_sequence",
    "SELECT * FROM dbstat",
    "SELECT * FROM pragma_table_info('orders')",
    "SELECT * FROM pragma_table_list",
    "SELECT * FROM pragma_index_list('orders')",
    "SELECT * FROM temp.orders",
    "SELECT * FROM \"orders#\"",
    "SELECT tidegate_mask_(1, 1, 1)",
    "SELECT tidegate_mask_00('ann', 3, 0)",
    "SELECT tidegate()",
    "SELECT mask()",
    "SELECT mask FROM orders",
    "SELECT nothing FROM orders",
    "SELECT * FROM ordres",
    "SELECT id FROM orders WHERE note LIKE '%o%'",
    "TABLE orders",
    "SELECT * FROM (SELECT * FROM orders) WHERE abs(amount) > 0",
    "SELECT * FROM colours",
    "SELECT count(*) FROM colours, orders",
    "SELECT total_changes(), last_insert_rowid(), changes()",
];

#[tokio::test]
async fn owner_sql_is_filtered_for_the_caller() {
    let (_folder, node) = shop();
    let requested = [
        "SELECT id FROM orders",
        "SELECT id FROM main.orders",
        "SELECT count(*) FROM orders",
        "SELECT count(*) FROM big",
        "VALUES (1), (2)",
        // Nothing that our parser takes.
        "SELECT id FROM orders WHERE id IS NOT DISTINCT FROM 1 AND note REGEXP 'x' ISNULL",
        "SELECT id ISNULL FROM main.orders WHERE id NOTNULL GLOB 1 AND [id] > 0",
        "SELECT [id] FROM [orders]",
        "SELECT [id] FROM [main].[orders]",
        "SELECT sql FROM sqlite_schema",
    ];
    let mut text = String::new();
    for sql in requested {
        text.push_str(&format!("{sql}\n    {}\n", node.run_owner_sql(sql).await));
    }
    insta::assert_snapshot!("owners", text);
}

#[tokio::test]
async fn connection_reuse_keeps_policy_views_apart() {
    let (_folder, node) = shop();
    let (north, south, auditor) =
        (node.clone(), node.with_principal(caller_of_tenant("south")), node.with_principal(auditor()));
    let stranger =
        node.with_principal(Arc::new(Principal::new("x", AuthMethod::Token, Arc::new(Grants::everything()))));
    for _ in 0..3 {
        assert_eq!(north.run_to_text("SELECT group_concat(id) FROM orders").await, "1,3");
        assert_eq!(auditor.run_to_text("SELECT sum(id) FROM orders").await, "21");
        assert_eq!(auditor.run_to_text("SELECT count(*) FROM sqlite_temp_schema").await, "0");
        assert_eq!(south.run_to_text("SELECT group_concat(id) FROM orders").await, "2,4");
        assert_eq!(south.run_to_text("SELECT group_concat(id) FROM big").await, "4");
        assert_eq!(north.run_to_text("SELECT group_concat(id) FROM big").await, "1,3");
        assert_eq!(stranger.run_to_text("SELECT count(*) FROM orders").await, "0");
        assert_eq!(auditor.run_to_text("SELECT ssn FROM main.orders WHERE rowid = 2").await, "222");
        assert_eq!(auditor.run_to_text("SELECT body FROM notes WHERE notes MATCH 'slow'").await, "the slow fox");
    }
}

#[tokio::test]
async fn column_names_do_not_collide_with_policy_views() {
    let folder = Folder::new();
    let columns = "CREATE TABLE orders (tenant TEXT, x INT, a INT, none INT); INSERT INTO orders VALUES ('north', 1, 2, 3), ('s', 4, 5, 6)";
    drop(folder.write("data.db", columns));
    let options = SqliteOptions { row_policies: tenant_policies_for("orders"), ..SqliteOptions::default() };
    let node = SqliteFixture { principal: caller_of_tenant("north"), ..folder.open(&["data.db"], options) };
    assert_eq!(node.run_to_text("SELECT * FROM orders").await, "north | 1 | 2 | 3");
}

#[tokio::test]
async fn schema_changes_rebuild_policy_views() {
    let (folder, node) = shop();
    assert_eq!(node.run_to_text("SELECT count(*) FROM orders").await, "2");
    let change = "ALTER TABLE orders ADD COLUMN more TEXT DEFAULT 'm';
        CREATE TABLE secrets (tenant TEXT); INSERT INTO secrets VALUES ('s'), ('t'); ALTER TABLE lines RENAME COLUMN tenant TO whose";
    drop(folder.write("data.db", change));
    assert_eq!(node.run_to_text("SELECT id, more FROM orders").await, "1 | m; 3 | m");
    insta::assert_snapshot!(node.run_to_text("SELECT * FROM lines").await, @r#"the table "lines" cannot be read: its row policy does not fit it"#);
    assert_eq!(
        node.run_to_text("SELECT count(*) FROM lines").await,
        node.run_to_text("SELECT * FROM main.lines").await
    );
    drop(
        folder
            .write("data.db", "DROP TABLE lines; CREATE TABLE lines (tenant TEXT); INSERT INTO lines VALUES ('north')"),
    );
    assert_eq!(node.run_to_text("SELECT * FROM lines").await, "north");
}

#[tokio::test]
async fn catalog_lists_only_visible_columns() {
    let (_folder, node) = shop();
    let parts = [
        node.tables().await.unwrap(),
        node.columns("orders").await.unwrap(),
        node.columns("main.big").await.unwrap(),
        node.columns("found").await.unwrap_err().to_string(),
        // What is named nearest is nothing that is hidden.
        node.refusal("SELECT ssm FROM orders").await,
        node.refusal("SELECT ssm FROM main.orders").await,
        "For the auditor".to_owned(),
        node.with_principal(auditor()).tables().await.unwrap(),
        node.with_principal(auditor()).columns("orders").await.unwrap(),
    ];
    let catalog = parts.join("\n\n");
    insta::assert_snapshot!("catalog", catalog);
}

#[tokio::test]
async fn storage_names_only_indexes_of_columns_with_their_own_values() {
    let (_folder, node) = shop();
    let indexed = async |node: &SqliteFixture, table: &str| {
        let mut columns = node.database.table_storage(table, &node.principal).await.unwrap().indexed_columns;
        columns.sort();
        columns.join(" ")
    };
    assert_eq!(indexed(&node, "orders").await, "amount id tenant");
    assert_eq!(indexed(&node.with_principal(auditor()), "orders").await, "amount id ssn tenant");
}

#[tokio::test]
async fn masks_cover_generated_columns() {
    let folder = Folder::new();
    drop(folder.write("data.db", SHOP));
    let masks = [("amount", Mask::Null), ("ssn", Mask::Hash), ("ssn_end", Mask::KeepLast(1))];
    let row_policies = RowPolicies::new(vec![policy("orders", "", &masks)], HashKey::from_secret(b"key"));
    let node = folder.open(&["data.db"], SqliteOptions { row_policies, ..SqliteOptions::default() });
    let node = node.with_principal(caller_of_tenant("north"));
    let first = "SELECT twice IS NULL, ssn_end, ssn_more IS NULL FROM orders WHERE id = 1";
    assert_eq!(node.run_to_text(first).await, "1 | *1 | 1");
    let problems = node.database.check_policies().await.unwrap();
    let message: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
    assert_eq!(
        message,
        [
            "also masks twice of the table orders, from which its values can be read; a mask of its own in this policy \
             overrides that",
            "also masks ssn_more of the table orders, from which its values can be read; a mask of its own in this \
             policy overrides that",
            "also masks ssn_more of the table orders, from which its values can be read; a mask of its own in this \
             policy overrides that",
        ]
    );
}

#[tokio::test]
async fn plan_omits_security_barrier_steps() {
    let (_folder, node) = shop();
    let mut text = String::new();
    for sql in [
        "SELECT * FROM orders WHERE id = 1",
        "SELECT count(*) FROM main.orders o",
        "SELECT a.id FROM orders a JOIN orders b ON a.id = b.id ORDER BY a.note",
        "SELECT c.name FROM colours c LEFT JOIN orders o ON o.note = c.name",
        "SELECT * FROM big",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM orders)",
        "SELECT * FROM notes",
    ] {
        text.push_str(&format!("{sql}\n{}\n\n", node.explain_to_text(sql).await));
    }
    insta::assert_snapshot!("plans", text);
}

#[tokio::test]
async fn version_tags_do_not_reveal_hidden_writes() {
    let (folder, node) = shop();
    let version_tags = async || {
        let of = |node: &SqliteFixture| {
            let (database, principal) = (node.database.clone(), node.principal.clone());
            async move { database.version_tag(Some("orders"), &principal).await.unwrap() }
        };
        (of(&node).await, of(&node.with_principal(Principal::process_user())).await)
    };
    let before = version_tags().await;
    drop(folder.write("data.db", "INSERT INTO orders (tenant) VALUES ('south')"));
    assert_eq!(version_tags().await.0, before.0);
}

#[tokio::test]
async fn policies_apply_per_file() {
    let folder = Folder::new();
    let sql = "CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT); INSERT INTO orders VALUES (1, 'north'), (2, 'south');
        CREATE TABLE own (id, tenant TEXT); INSERT INTO own VALUES (1, 'north'), (2, 'south'); CREATE VIEW seen AS SELECT * FROM orders";
    drop(folder.write("one.db", sql));
    drop(folder.write("two.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT); INSERT INTO orders VALUES (3, 'north'), (4, 'south')"));
    let mine = "tenant = :claims.tenant";
    let policies = vec![policy("one.orders", mine, &[]), policy("own", mine, &[])];
    let row_policies = RowPolicies::new(policies, HashKey::process_key());
    let options = SqliteOptions { row_policies, ..SqliteOptions::default() };
    let node = folder.open(&["one.db", "two.db"], options).with_principal(caller_of_tenant("north"));
    let mut text = String::new();
    for sql in [
        "SELECT id FROM one.orders",
        "SELECT orders.id FROM one.orders WHERE one.orders.id < 5",
        "SELECT one.orders.* FROM one.orders",
        "SELECT o.id FROM one.orders o",
        "SELECT id FROM two.orders",
        "SELECT id FROM orders",
        "SELECT id FROM own",
        "SELECT id FROM one.own",
        "SELECT * FROM one.seen",
        "SELECT a.id, b.id FROM one.orders a JOIN two.orders b ON b.id = a.id + 2",
        "SELECT id FROM \"one.orders\"",
        "SELECT count(*) FROM one.orders",
    ] {
        text.push_str(&format!("{sql}\n    {}\n", node.run_to_text(sql).await));
    }
    insta::assert_snapshot!("several", text);
}

#[tokio::test]
async fn mismatched_policies_are_reported() {
    let folder = Folder::new();
    drop(folder.write("data.db", SHOP));
    let policies = vec![policy("orders", "tenent = 'x'", &[]), policy("nowhere", "", &[]), policy("lines", "", MASKS)];
    let row_policies = RowPolicies::new(policies, HashKey::process_key());
    let node = folder.open(&["data.db"], SqliteOptions { row_policies, ..SqliteOptions::default() });
    let problems = node.database.check_policies().await.unwrap();
    let message: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
    insta::assert_snapshot!("problems", message.join("\n"));
}
