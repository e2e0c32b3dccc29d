//! Rows, errors, catalogs and plans.

use std::sync::Arc;

use insta::assert_snapshot;
use tidegate_core::Principal;
use tidegate_postgres::{PostgresOptions, RoleRequest, RunAs, TenantIsolation};
use tidegate_query::{Database, TableStorage};
use tidegate_sql::{Isolation, Parameter, Transaction};

use crate::test_database::{
    OpenDatabase as _, OpenedDatabase, TestDatabase, caller_statement, owner_statement, wait_until,
};

const SHOP: &str = "
    CREATE TYPE mood AS ENUM ('glad', 'sad');
    CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, mood mood, range int4range);
    COMMENT ON TABLE customers IS 'Who buys';
    COMMENT ON COLUMN customers.name IS 'As on the invoice';
    INSERT INTO customers VALUES (1, 'Ann', 'glad', '[1,5)'), (2, 'Ben', 'sad', NULL);
    CREATE TABLE orders (id bigint PRIMARY KEY, customer int REFERENCES customers, total numeric(10,2));
    INSERT INTO orders SELECT i, 1 + i % 2, i * 1.5 FROM generate_series(1, 1000) i;
    CREATE VIEW glad AS SELECT * FROM customers WHERE mood = 'glad';
    CREATE SCHEMA stock; CREATE TABLE stock.items (sku text PRIMARY KEY); CREATE TABLE stock.secret (x int);
    CREATE TABLE events (at date, what text) PARTITION BY RANGE (at);
    CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    ANALYZE;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO {login}; GRANT USAGE ON SCHEMA stock TO {login};
    GRANT SELECT ON stock.items TO {login};";

async fn shop() -> (TestDatabase, OpenedDatabase) {
    let scene = TestDatabase::new(SHOP).await;
    let node = scene.open(PostgresOptions::default());
    (scene, node)
}

#[tokio::test]
async fn rows_come_with_their_types() {
    let (_scene, node) = shop().await;
    assert_snapshot!(node.run_to_text("SELECT * FROM customers ORDER BY id").await, @r"
    1|Ann|glad|[1,5)
    2|Ben|sad|null
    ");
    assert_snapshot!(node.run_to_text("SELECT count(*), sum(total) FROM orders").await, @"1000|750750.00");
    assert_snapshot!(node.run_to_text("SELECT id FROM orders WHERE false").await, @"");
    assert_snapshot!(node.run_to_text("SELECT 1 AS a, 2 AS a, 3, 4, range, lower(range) FROM customers WHERE id = 1").await, @"1|2|3|4|[1,5)|1");
    node.wait_until_idle().await;
}

/// From the second time on, its transaction begins in the same message.
#[tokio::test]
async fn owner_statement_runs_in_a_new_transaction_each_time() {
    let (scene, _) = shop().await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let transaction = Transaction { isolation: Isolation::RepeatableRead, ..Transaction::default() };
    let sql = "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only'), 10 / $1::int";
    let requested =
        |divisor| owner_statement(sql, vec![Parameter::Integer(divisor)]).in_transaction(Arc::new(transaction.clone()));
    for divisor in [5, 2, 0, 1, 0, 10] {
        let message = node.lines(&requested(divisor)).await.unwrap_or_else(|error| error.to_string());
        let expected = match divisor {
            0 => "division by zero".to_owned(),
            _ => format!("repeatable read|on|{}", 10 / divisor),
        };
        assert!(message.contains(&expected), "{divisor}: {message}");
    }
    node.wait_until_idle().await;
    assert_eq!(scene.value("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database()").await, "0");
}

#[tokio::test]
async fn many_rows_arrive_complete_and_in_order() {
    let (_scene, node) = shop().await;
    let lines = node.run_to_text("SELECT i FROM generate_series(1, 100000) i").await;
    assert!(lines.lines().map(|line| line.parse::<i32>().unwrap()).eq(1..=100_000));
    node.wait_until_idle().await;
}

#[tokio::test]
async fn parameters_take_the_inferred_types() {
    let (_scene, node) = shop().await;
    let text = |text: &str| Parameter::Text(text.to_owned());
    let statement = owner_statement(
        "SELECT name FROM customers WHERE id = $1 AND mood = $2",
        vec![Parameter::Integer(1), text("glad")],
    );
    assert_eq!(node.lines(&statement).await.unwrap(), "Ann");
    let wrong = owner_statement("SELECT name FROM customers WHERE id = $1", vec![text("one")]);
    assert_snapshot!(node.lines(&wrong).await.unwrap_err(), @r#"invalid input syntax for type integer: "one""#);
    let few = owner_statement("SELECT $1::int + $2::int", vec![Parameter::Integer(1)]);
    assert_snapshot!(node.lines(&few).await.unwrap_err(), @"the statement has 2 placeholders, but 1 values came");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn errors_suggest_a_correction() {
    let (_scene, node) = shop().await;
    assert_snapshot!(node.run_to_text("SELECT * FROM custmers").await, @r#"
    not_found: relation "custmers" does not exist at line 1, column 15
    Valid choices: customers, stock.items
    Use the tool list_tables to list the readable tables.
    "#);
    assert_snapshot!(node.run_to_text("SELECT nam FROM customers").await, @r#"
    invalid_arguments: column "nam" does not exist at line 1, column 8
    Valid choices: name, id, mood, range
    Perhaps you meant to reference the column "customers.name".
    "#);
    assert_snapshot!(node.run_to_text("SELECT o.xyz FROM orders o JOIN customers c ON c.id = o.customer").await, @r#"
    invalid_arguments: column o.xyz does not exist at line 1, column 8
    Valid choices: id, customer, total, name, mood, range
    Use the tool get_schema to list the columns of a table.
    "#);
    assert_snapshot!(node.run_to_text("SELECT year(now())").await, @r"
    invalid_arguments: function year(timestamp with time zone) does not exist at line 1, column 8
    Write extract(year FROM x) or date_part('year', x).
    ");
    assert_snapshot!(node.run_to_text("SELECT left('a', 'b'::int)").await, @r#"invalid_arguments: invalid input syntax for type integer: "b" at line 1, column 18"#);
    assert_snapshot!(node.run_to_text("SELECT substring('a' FROM 1 FOR -1)").await, @"invalid_arguments: negative substring length not allowed");
    assert_snapshot!(node.run_to_text("SELECT to_char(now(), repeat('x', 90000000))").await, @"too_large: a value of the query exceeds the size that PostgreSQL can allocate, 1 GB");
    assert_snapshot!(node.run_to_text("SELECT *\nFROM customers WHERE id ~ 'x'").await, @r"
    invalid_arguments: operator does not exist: integer ~ unknown at line 1, column 34
    No operator matches the given name and argument types. You might need to add explicit type casts.
    ");
    assert_snapshot!(node.run_to_text("SELECT 1 / (id - 1) FROM customers").await, @"invalid_arguments: division by zero");
    assert_snapshot!(node.run_to_text("SELECT * FROM stock.secret").await, @r"
    forbidden: permission denied for table secret
    The role of the call has no privilege for it; list_tables lists what the role may read.
    ");
    assert_snapshot!(node.run_to_text("DELETE FROM customers").await, @r"
    invalid_arguments: DELETE is refused: it would change data, and only reading is allowed
    Only SELECT statements are allowed, including those with WITH, UNION or VALUES.
    ");
    assert_eq!(node.run_to_text("SELECT 1").await, "1");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn statement_timeout_of_the_database_is_a_time_limit() {
    let scene = TestDatabase::new("ALTER ROLE {login} SET statement_timeout = 100").await;
    let node = scene.open(PostgresOptions::default());
    assert_snapshot!(node.run_to_text("SELECT count(*) FROM generate_series(1, 1000000000000) i").await, @"timed_out: the query exceeded the time limit that the database shop sets for its statements");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn catalog_lists_only_readable_tables() {
    let (_scene, node) = shop().await;
    let catalog = node.database.catalog(&Principal::process_user()).await.unwrap();
    let tables: Vec<String> = catalog
        .tables
        .iter()
        .map(|table| format!("{} {:?} {}", table.name, table.rows, table.comment.as_deref().unwrap_or("-")))
        .collect();
    assert_snapshot!(tables.join("\n"), @r"
    customers Some(2) Who buys
    events Some(0) 1 partitions
    glad None view
    orders Some(1000) -
    stock.items Some(0) -
    ");
    assert_snapshot!(columns(&node, "customers").await, @r"
    id integer not null primary key
    name text not null As on the invoice
    mood mood null one of glad, sad
    range int4range null -
    ");
    assert_snapshot!(columns(&node, "orders").await, @r"
    id bigint not null primary key
    customer integer null references customers(id)
    total numeric(10,2) null -
    ");
    assert_snapshot!(columns(&node, "stock.items").await, @"sku text not null primary key");
    for hidden in ["stock.secret", "nothing", "pg_authid", "custmers"] {
        let refusal = node.database.columns(hidden, &Principal::process_user()).await.unwrap_err();
        assert_eq!(refusal.message(), format!("there is no table {hidden:?}"));
    }
    node.wait_until_idle().await;
}

/// The estimate of the server counts the rows of all tenants.
#[tokio::test]
async fn catalog_counts_no_rows_under_row_level_security() {
    let scene = TestDatabase::new(
        "CREATE TABLE notes (tenant text, body text); CREATE TABLE plain (a int);
         INSERT INTO notes SELECT 'other', 'x' FROM generate_series(1, 100); INSERT INTO plain VALUES (1), (2);
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON notes USING (tenant = 'mine'); ANALYZE;
         GRANT SELECT ON notes, plain TO {login}",
    )
    .await;
    let rows = || async {
        let node = scene.open(PostgresOptions::default());
        let catalog = node.database.catalog(&Principal::process_user()).await.unwrap();
        catalog.tables.iter().map(|table| format!("{} {:?}", table.name, table.rows)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(rows().await, "notes None, plain Some(2)");
    scene.run("ALTER ROLE {login} BYPASSRLS").await;
    assert_eq!(rows().await, "notes Some(100), plain Some(2)");
}

#[tokio::test]
async fn storage_has_the_size_and_the_indexes_of_a_table() {
    let scene = TestDatabase::new(
        "CREATE TABLE plain (id int PRIMARY KEY, at timestamptz, level text, host text, body text);
         CREATE INDEX ON plain (at, level); CREATE INDEX ON plain (host) WHERE level = 'error';
         CREATE INDEX ON plain (lower(body)); INSERT INTO plain SELECT i, now(), 'info', 'a', repeat(i::text, 50)
         FROM generate_series(1, 5000) i;
         CREATE TABLE parts (at date, what text) PARTITION BY RANGE (at); CREATE INDEX ON parts (what);
         CREATE TABLE parts_2024 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
         INSERT INTO parts SELECT '2024-02-01', repeat('x', 100) FROM generate_series(1, 1000);
         CREATE TABLE notes (tenant text PRIMARY KEY); ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
         CREATE TABLE people (id int PRIMARY KEY, salary int UNIQUE); GRANT SELECT (id) ON people TO {login};
         CREATE VIEW shown AS SELECT * FROM plain; CREATE TABLE secret (id int PRIMARY KEY);
         GRANT SELECT ON plain, parts, notes, shown TO {login}",
    )
    .await;
    let node = scene.open(PostgresOptions::default());
    let storage = async |table: &str| node.database.table_storage(table, &Principal::process_user()).await.unwrap();
    let size = async |table: &str| {
        let sql = format!("SELECT pg_total_relation_size('{table}')::text AS bytes");
        let text = node.lines(&owner_statement(&sql, Vec::new())).await.unwrap();
        text.lines().last().unwrap().parse::<u64>().unwrap()
    };
    let plain = storage("plain").await;
    assert_eq!((plain.bytes, plain.indexed_columns.join(" ")), (Some(size("plain").await), "at id".to_owned()));
    let parts = storage("public.parts").await;
    assert_eq!((parts.bytes, parts.indexed_columns.join(" ")), (Some(size("parts_2024").await), "what".to_owned()));
    let notes = storage("notes").await;
    assert_eq!((notes.bytes, notes.indexed_columns.join(" ")), (None, "tenant".to_owned()));
    assert_eq!(storage("people").await.indexed_columns, ["id"], "the role may not read the other column");
    for without_storage in ["shown", "secret", "nothing"] {
        assert_eq!(storage(without_storage).await, TableStorage::default(), "{without_storage}");
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn version_tag_depends_on_columns_not_rows() {
    let (scene, node) = shop().await;
    let version_tag = async |node: &OpenedDatabase, table| {
        node.database.version_tag(table, &Principal::process_user()).await.unwrap()
    };
    let (of_orders, of_all) = (version_tag(&node, Some("orders")).await, version_tag(&node, None).await);
    assert!(of_orders.is_some() && of_all.is_some() && of_orders != of_all);
    assert_eq!(version_tag(&node, Some("stock.secret")).await, None, "the role may not read it");
    scene.run("DELETE FROM orders; ANALYZE orders").await;
    // Another database has cached nothing yet.
    let fresh = scene.open(PostgresOptions::default());
    assert_eq!(
        (version_tag(&fresh, Some("orders")).await, version_tag(&fresh, None).await),
        (of_orders.clone(), of_all)
    );
    scene.run("ALTER TABLE orders ADD COLUMN remark text").await;
    wait_until("the new column is told of", async || version_tag(&node, Some("orders")).await != of_orders).await;
    node.wait_until_idle().await;
}

async fn columns(node: &OpenedDatabase, table: &str) -> String {
    let columns = node.database.columns(table, &Principal::process_user()).await.unwrap();
    let visible = columns.iter().map(|column| {
        let null = if column.nullable { "null" } else { "not null" };
        format!("{} {} {null} {}", column.name, column.type_name, column.comment.as_deref().unwrap_or("-"))
    });
    visible.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn plan_states_planner_estimates() {
    let (scene, node) = shop().await;
    let plan = node.plan(&caller_statement("SELECT * FROM orders WHERE id = 7").unwrap()).await.unwrap();
    assert_snapshot!(plan.explain().await.unwrap(), @"Index Scan on orders using orders_pkey where (id = 7) (rows 1, cost 8)");
    assert_eq!(plan.estimated_rows(), Some(1));
    drop(plan);
    node.wait_until_idle().await;
    let guarded = scene.open(PostgresOptions { max_cost: Some(1_000.0), ..PostgresOptions::default() });
    assert_snapshot!(guarded.run_to_text("SELECT * FROM orders a, orders b ORDER BY 1").await, @r"
    too_large: the estimated cost of the statement is 12565, and the limit is 1000; most expensive step: Nested Loop (rows 1000000, cost 12565)
    Use conditions on indexed columns, or fewer joins. The tool explain shows the whole plan.
    ");
    assert_eq!(guarded.run_to_text("SELECT id FROM orders WHERE id = 7").await, "7");
}

/// The planner's statistics are of the rows of all tenants, and of columns that a view leaves out.
#[tokio::test]
async fn plan_is_hidden_where_the_role_may_not_read_everything() {
    let scene = TestDatabase::new(
        "CREATE TABLE notes (tenant text, body text); CREATE TABLE plain (a int); CREATE TABLE people (id int, salary int);
         INSERT INTO notes SELECT 'other', 'secret' FROM generate_series(1, 100);
         INSERT INTO notes SELECT 'mine', i::text FROM generate_series(1, 100) i;
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON notes USING (tenant = 'mine');
         CREATE TABLE parts (a int) PARTITION BY RANGE (a); CREATE TABLE few PARTITION OF parts FOR VALUES FROM (0) TO (9);
         CREATE TABLE events (a int) PARTITION BY RANGE (a); CREATE TABLE rest PARTITION OF events DEFAULT;
         ALTER TABLE parts ENABLE ROW LEVEL SECURITY; CREATE POLICY large ON parts USING (a > 3);
         CREATE VIEW own_notes AS SELECT body FROM notes WHERE tenant = 'mine';
         CREATE VIEW names AS SELECT id FROM people WHERE salary < 9; CREATE VIEW all_plain AS SELECT * FROM plain;
         ANALYZE; GRANT SELECT ON notes, plain, parts, events, own_notes, names, all_plain TO {login}",
    )
    .await;
    let node = scene.open(PostgresOptions::default());
    let explain = async |node: &OpenedDatabase, sql: &str| {
        let plan = node.plan(&caller_statement(sql).unwrap()).await.unwrap();
        let text = plan.explain().await.unwrap();
        (text, plan.estimated_rows().is_some(), plan.is_pipeline_breaking().is_some())
    };
    let hidden = "The plan is hidden: it depends on all rows and columns of the tables that the statement reads, and your \
        role may not read all of them.";
    for sql in [
        "SELECT * FROM notes WHERE body = 'secret'",
        "SELECT * FROM notes WHERE body = 'nothing' ORDER BY body",
        "SELECT * FROM plain WHERE a IN (SELECT length(body) FROM notes)",
        "SELECT * FROM own_notes WHERE body = 'secret'",
        "SELECT * FROM names",
        "SELECT * FROM parts WHERE a < 8",
    ] {
        assert_eq!(explain(&node, sql).await, (hidden.to_owned(), false, false), "{sql}");
    }
    for sql in [
        "SELECT * FROM plain",
        "SELECT * FROM all_plain",
        "SELECT * FROM events",
        "SELECT 1",
        "SELECT nspname FROM pg_namespace",
    ] {
        let (text, has_rows, has_pipeline) = explain(&node, sql).await;
        assert!(has_rows && has_pipeline && text.contains("cost"), "{sql}: {text}");
    }
    node.wait_until_idle().await;
    let guarded = scene.open(PostgresOptions { max_cost: Some(300.0), ..PostgresOptions::default() });
    assert_snapshot!(guarded.run_to_text("SELECT * FROM notes a, notes b, notes c").await, @r"
    too_large: the estimated cost of the statement exceeds the limit, which is 300
    Use conditions on indexed columns, or fewer joins.
    ");
    let plan = guarded.plan(&caller_statement("SELECT * FROM notes").unwrap()).await.unwrap();
    assert_eq!(plan.estimated_rows(), None, "progress would count to it");
    drop(plan);
    guarded.wait_until_idle().await;
    scene.run("ALTER ROLE {login} BYPASSRLS").await;
    let (text, ..) = explain(&scene.open(PostgresOptions::default()), "SELECT * FROM notes").await;
    assert!(text.contains("rows 200"), "{text}");
}

#[tokio::test]
async fn caller_sql_is_rejected_where_settings_isolate_tenants() {
    let scene = TestDatabase::new(SHOP).await;
    let node = scene.open(PostgresOptions { tenancy: TenantIsolation::Settings, ..PostgresOptions::default() });
    assert_snapshot!(node.run_to_text("SELECT 1").await, @r"
    forbidden: the database shop takes no SQL of callers: only settings keep its tenants apart, and SQL could change one
    Use the tools that its owner declared.
    ");
    assert_eq!(node.lines(&owner_statement("SELECT 1", Vec::new())).await.unwrap(), "1");
}

#[tokio::test]
async fn changed_table_is_prepared_anew() {
    let (scene, node) = shop().await;
    let statement = owner_statement("SELECT * FROM customers WHERE id = 1", Vec::new());
    assert_eq!(node.lines(&statement).await.unwrap(), "1|Ann|glad|[1,5)");
    scene.run("ALTER TABLE customers DROP COLUMN mood CASCADE").await;
    assert_eq!(node.lines(&statement).await.unwrap(), "1|Ann|[1,5)");
    scene.run("DROP TABLE customers CASCADE").await;
    assert_snapshot!(node.lines(&statement).await.unwrap_err(), @r#"
    relation "customers" does not exist at line 1, column 15
    Valid choices: stock.items
    Use the tool list_tables to list the readable tables.
    "#);
    node.wait_until_idle().await;
}

/// The driver loads a type once; the server does not report that it has changed.
#[tokio::test]
async fn changed_type_is_prepared_anew() {
    let scene = TestDatabase::new(
        "CREATE TYPE part AS (a int, b text); CREATE TABLE parts AS SELECT ROW(1, 'x')::part AS part, ARRAY[ROW(2, 'y')]::part[] AS more;
         GRANT SELECT ON parts TO {login}",
    )
    .await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let statement = owner_statement("SELECT part, more FROM parts", Vec::new());
    assert_eq!(node.lines(&statement).await.unwrap(), "{a: 1, b: x}|[{a: 2, b: y}]");
    for (change, answer) in [
        ("ALTER TYPE part ADD ATTRIBUTE c int", "{a: 1, b: x, c: null}|[{a: 2, b: y, c: null}]"),
        ("ALTER TYPE part RENAME ATTRIBUTE a TO d", "{d: 1, b: x, c: null}|[{d: 2, b: y, c: null}]"),
        ("ALTER TYPE part DROP ATTRIBUTE b", "{d: 1, c: null}|[{d: 2, c: null}]"),
    ] {
        scene.run(change).await;
        assert_eq!(node.lines(&statement).await.unwrap(), answer, "{change}");
        assert_eq!(node.run_to_text("SELECT part, more FROM parts WHERE true").await, answer, "{change}");
    }
    node.wait_until_idle().await;
}

/// What is wrong with the login role, a line each, where these tables take rows.
async fn role_findings(scene: &TestDatabase, ingest_tables: &[&str]) -> String {
    let ingest_tables = ingest_tables.iter().map(|table| (*table).to_owned()).collect();
    let opened = scene.open(PostgresOptions { ingest_tables, ..PostgresOptions::default() });
    let findings = opened.database.inspect().await.unwrap();
    let findings: Vec<String> =
        findings.iter().map(|finding| finding.to_string().replace(&scene.login(), "reader")).collect();
    findings.join("\n")
}

#[tokio::test]
async fn overprivileged_login_is_reported_and_rejected_when_strict() {
    let scene =
        TestDatabase::new("CREATE TABLE t (a int); GRANT ALL ON t TO {login}; ALTER ROLE {login} BYPASSRLS CREATEDB")
            .await;
    assert_snapshot!(role_findings(&scene, &[]).await, @r"
    the role reader bypasses row-level security; ALTER ROLE reader NOBYPASSRLS, or use another role (tidegate pg role)
    the role reader can create databases; ALTER ROLE reader NOCREATEDB, or use another role (tidegate pg role)
    the role reader may write to 1 tables or views; REVOKE INSERT, UPDATE, DELETE, TRUNCATE on them FROM reader
    ");
    let strict = scene.open(PostgresOptions { strict: true, ..PostgresOptions::default() });
    assert_snapshot!(strict.run_to_text("SELECT 1").await, @r"
    unavailable: the database shop is closed: its login role can do more than read
    The owner of the node finds the reasons in its log and with tidegate doctor.
    ");
    scene.run("REVOKE ALL ON t FROM {login}; ALTER ROLE {login} NOBYPASSRLS NOCREATEDB").await;
    for granted in ["UPDATE (a) ON t", "INSERT (a) ON t", "UPDATE ON v"] {
        scene.run(&format!("CREATE OR REPLACE VIEW v AS SELECT a FROM t; GRANT {granted} TO {{login}}")).await;
        let strict = scene.open(PostgresOptions { strict: true, ..PostgresOptions::default() });
        assert!(strict.run_to_text("SELECT 1").await.contains("its login role can do more than read"), "{granted}");
        scene.run("REVOKE ALL ON t, v FROM {login}").await;
    }
    let clean = scene.open(PostgresOptions { strict: true, ..PostgresOptions::default() });
    assert_eq!(clean.run_to_text("SELECT 1").await, "1");
}

/// The advice, followed, must leave a table that is declared to take rows as it is.
#[tokio::test]
async fn rights_that_declared_tables_need_are_no_findings() {
    let scene = TestDatabase::new(
        "CREATE TABLE notes (a int); CREATE TABLE other (a int); CREATE SCHEMA tidegate;
         CREATE TABLE tidegate.ingest_keys (key text PRIMARY KEY, sequence bigint NOT NULL);
         GRANT SELECT, INSERT, DELETE ON notes TO {login}; GRANT USAGE ON SCHEMA tidegate TO {login};
         GRANT SELECT, INSERT, UPDATE, DELETE ON tidegate.ingest_keys TO {login}",
    )
    .await;
    let undeclared = "the role reader may write to 2 tables or views; REVOKE INSERT, UPDATE, DELETE, TRUNCATE on them \
                      FROM reader";
    assert_eq!(role_findings(&scene, &[]).await, undeclared);
    assert_eq!(role_findings(&scene, &["elsewhere.notes"]).await, undeclared);
    for declared in ["notes", "public.notes"] {
        assert_eq!(role_findings(&scene, &[declared]).await, "", "{declared}");
    }
    let ingest_tables = vec!["notes".to_owned()];
    let strict = scene.open(PostgresOptions { strict: true, ingest_tables, ..PostgresOptions::default() });
    assert_eq!(strict.run_to_text("SELECT count(*) FROM notes").await, "0");
    scene.run("GRANT UPDATE (a) ON notes TO {login}; GRANT INSERT ON other TO {login}").await;
    assert_snapshot!(role_findings(&scene, &["notes"]).await, @r"
    the role reader may write to 1 tables or views; REVOKE INSERT, UPDATE, DELETE, TRUNCATE on them FROM reader
    the role reader may change rows of 1 tables that take rows, which needs only INSERT and DELETE; REVOKE UPDATE, TRUNCATE on them FROM reader
    ");
}

#[tokio::test]
async fn proposed_role_has_no_findings() {
    let scene = TestDatabase::new("CREATE TABLE t (a int); INSERT INTO t VALUES (7)").await;
    let login = format!("{}_proposed", scene.name);
    let run_as = vec![format!("{}_seer", scene.name)];
    let request = RoleRequest {
        login: login.clone(),
        schemas: vec!["public".into()],
        run_as: run_as.clone(),
        further_sql: String::new(),
    };
    scene.run(&request.sql()).await;
    scene.run(&format!("ALTER ROLE {login} PASSWORD 'right'")).await;
    let options =
        PostgresOptions { strict: true, run_as: RunAs::Fixed(run_as[0].clone()), ..PostgresOptions::default() };
    let node = scene.open_as(&login, options);
    assert_eq!(node.run_to_text("SELECT a, current_setting('transaction_read_only') FROM t").await, "7|on");
    assert_snapshot!(request.sql().replace(&scene.name, "shop"), @r#"
    -- The role that Tidegate logs in as. It owns nothing, inherits nothing and reads.
    CREATE ROLE shop_proposed LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    ALTER ROLE shop_proposed SET default_transaction_read_only = on;
    ALTER ROLE shop_proposed SET idle_in_transaction_session_timeout = '60s';

    -- The roles that calls run as.
    CREATE ROLE shop_seer NOLOGIN NOINHERIT NOBYPASSRLS;
    GRANT shop_seer TO shop_proposed;

    -- What may be read; grant less where less will do.
    GRANT USAGE ON SCHEMA "public" TO shop_seer;
    GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO shop_seer;
    ALTER DEFAULT PRIVILEGES IN SCHEMA "public" GRANT SELECT ON TABLES TO shop_seer;

    -- Now set its password, in psql: \password shop_proposed
    "#);
}
