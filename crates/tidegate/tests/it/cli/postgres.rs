//! PostgreSQL from the command line and through a configuration, with a real server.

mod activity;
mod changed_rows;
mod logs;

use std::process::Command;

use insta::assert_snapshot;
use serde_json::json;

use super::ConfiguredFolder;

/// Connection string of the superuser of the tests' server.
pub(super) fn server() -> String {
    std::env::var("TIDEGATE_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("TIDEGATE_TEST_POSTGRES is not set; run the tests as scripts/postgres run -- cargo nextest run")
    })
}

pub(super) fn psql(database: &str, sql: &str) {
    let programs = std::env::var("TIDEGATE_TEST_POSTGRES_BIN").unwrap();
    let target = format!("{} dbname={database}", server());
    let ran = Command::new(format!("{programs}/psql"))
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", sql, &target])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A shop in a database of its own, whose name is given.
pub(super) fn shop(name: &str) -> String {
    let name = format!("{name}_{}", std::process::id());
    psql("postgres", &format!("CREATE DATABASE {name}"));
    psql(
        &name,
        "CREATE TABLE orders (id int PRIMARY KEY, customer text NOT NULL, total numeric(10,2), state text DEFAULT 'new');
         INSERT INTO orders VALUES (1, 'Ann', 9.50), (2, 'Ben', 20), (3, 'Ann', 0.99)",
    );
    format!("{} dbname={name}", server())
}

fn configured(target: &str) -> ConfiguredFolder {
    ConfiguredFolder::new(&format!(
        "databases:
  - {{name: shop, postgres: '{target}'}}
tools:
  - name: orders_of
    description: Orders of one customer.
    sql: SELECT id, total FROM orders WHERE customer = :customer AND (:least IS NULL OR total >= :least) ORDER BY id
    input: {{customer: {{type: string}}, least: {{type: number, required: false}}}}
  - name: cancel_order
    description: Cancels an order.
    sql: UPDATE orders SET state = 'cancelled' WHERE id = :id RETURNING id, state
    input: {{id: {{type: integer}}}}
    transaction: {{writes: true}}
"
    ))
}

#[test]
fn declared_tools_read_and_write_postgres() {
    let configured = configured(&shop("declared"));
    let call = |arguments: &[&str]| {
        let ran = configured.run(&[&["call"], arguments].concat());
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let without_warnings =
        |output: String| output.lines().filter(|line| !line.contains("WARN")).collect::<Vec<_>>().join("\n");
    let call = |arguments: &[&str]| without_warnings(call(arguments));
    assert_snapshot!(call(&["orders_of", "customer=Ann"]), @r#"[{"id":1,"total":9.50},{"id":3,"total":0.99}]"#);
    assert_snapshot!(call(&["orders_of", "customer=Ann", "least=5"]), @r#"[{"id":1,"total":9.50}]"#);
    assert_snapshot!(call(&["cancel_order", "id=2"]), @r#"[{"id":2,"state":"cancelled"}]"#);
    assert_snapshot!(call(&["sql", "sql=SELECT state, count(*) FROM orders GROUP BY 1 ORDER BY 1"]), @r#"[{"state":"cancelled","count":1},{"state":"new","count":2}]"#);
    assert_snapshot!(call(&["query", "table=orders", r#"select=[{"function":"median","column":"total"}]"#]), @r#"[{"median_total":9.5}]"#);
    let months = r#"select=[{"expression": "date_trunc('month', date '2024-05-31')::date", "as": "month"}, {"function": "count"}]"#;
    assert_snapshot!(call(&["query", "table=shop.orders", months, "group_by=month"]), @r#"[{"month":"2024-05-01","count":3}]"#);
    assert_snapshot!(call(&["query", "table=orders", r#"select={"expression": "lower(shop.orders.customer)", "as": "name"}"#, "distinct=true", "order_by=name", "offset=1"]), @r#"[{"name":"ben"}]"#);
    assert_snapshot!(call(&["sql", "sql=SELECT count(shop.orders.id) FROM shop.orders"]), @r#"[{"count":3}]"#);
    let slept = call(&["query", "table=orders", r#"select={"expression": "pg_sleep(1)"}"#]);
    assert!(slept.contains("the function pg_sleep is refused"), "{slept}");
    assert_snapshot!(call(&["get_schema", "table=orders", "samples=2", "format=csv"]), @r#"
    name,type,nullable,comment,samples
    id,integer,false,primary key,"[""1"",""3""]"
    customer,text,false,,"[""Ann"",""Ben""]"
    total,"numeric(10,2)",true,,"[""9.50"",""0.99""]"
    state,text,true,,"[""new"",""cancelled""]"
    "#);
    assert_snapshot!(call(&["sql", "sql=SELECT pg_read_file('/etc/passwd')"]), @r"
    error: the function pg_read_file is refused: it accesses files, and only the tables of the catalog can be read
    Leave it out.
    ");
    assert_snapshot!(call(&["explain", "sql=SELECT * FROM orders WHERE id = 1"]), @r"
    Statement: SELECT * FROM orders WHERE id = 1
    Estimated rows: 1
    Estimated bytes read: unknown
    First row: at once

    Index Scan on orders using orders_pkey where (id = 1) (rows 1, cost 8)
    ");
    assert_snapshot!(call(&["list_databases"]), @r#"[{"name":"shop","kind":"postgres","dialect":"PostgreSQL","tables":1,"status":"ok"}]"#);
}

#[test]
fn doctor_says_how_long_the_first_statement_waits() {
    let ran = configured(&shop("waits")).run(&["doctor"]);
    let line = ran.lines().into_iter().find(|line| line.contains("the first SQL of a role waits"));
    let seconds = line.and_then(|line| line.split("waits ").nth(1)?.split(' ').next()?.parse::<f64>().ok());
    assert!(seconds.is_some(), "{ran:?}");
}

#[test]
fn mistakes_of_callers_are_not_logged_as_faults() {
    let target = shop("mistakes");
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: shop, postgres: '{target}'}}]
tools:
  - {{name: next_day, description: N, sql: 'SELECT CAST(:day AS date) + 1 AS next', input: {{day: {{type: string}}}}}}
"
    ));
    for (arguments, message) in [
        (["next_day", "day=soon"], r#"invalid input syntax for type date: "soon""#),
        (["sql", "sql=SELECT substring('a' FROM 1 FOR -1)"], "negative substring length not allowed"),
    ] {
        let ran = configured.run(&[&["call"], &arguments[..]].concat());
        assert!(ran.stderr.contains(message), "{ran:?}");
        assert!(!ran.stderr.contains("ERROR") && !ran.stderr.contains("internal error"), "{ran:?}");
        let ran = configured.run(&[&["call", "--log", "debug"], &arguments[..]].concat());
        assert!(ran.stderr.contains("detail of a caller's error"), "{ran:?}");
    }
}

/// SQL of callers, with functions and rows that need a setting.
#[test]
fn configuration_allows_functions_and_bounds_rows() {
    let target = shop("functions");
    psql(
        target.rsplit_once('=').unwrap().1,
        "CREATE FUNCTION count_orders() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM orders';
         CREATE FUNCTION totals(minimum integer) RETURNS TABLE (customer text, total numeric) LANGUAGE sql STABLE AS
             'SELECT o.customer, sum(o.total) FROM orders o WHERE o.total >= minimum GROUP BY 1'",
    );
    let call = |more: &str, sql: &str| {
        let configured =
            ConfiguredFolder::new(&format!("databases:\n  - {{name: shop, postgres: '{target}'{more}}}\n"));
        let ran = configured.run(&["call", "sql", &format!("sql={sql}"), "format=csv"]);
        let output = format!("{}{}", ran.stdout, ran.stderr);
        let is_logged = |line: &str| line.contains(" WARN ") || line.contains(" ERROR ");
        output.lines().filter(|line| !is_logged(line)).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(call("", "SELECT count_orders()"), @r"
    error: the function public.count_orders is refused: it is VOLATILE, so it may have side effects
    Leave it out, or ask the owner of the node to list the function in allow_functions of the database.
    ");
    assert_snapshot!(call(", allow_functions: [count_orders]", "SELECT count_orders()"), @r"
    count_orders
    3
    ");
    assert_snapshot!(call("", "SELECT * FROM totals(5) ORDER BY 1"), @r"
    customer,total
    Ann,9.50
    Ben,20.00
    ");
    assert_snapshot!(call(", max_message_bytes: 64KiB", "SELECT repeat('x', 100000) AS long"), @r"
    error: the server sent a row of 100010 bytes; the limit is 65536 bytes (max_message_bytes)
    Select less of long values, such as left(column, 10000), or fewer columns.
    ");
    assert_snapshot!(call(", max_message_bytes: 64KiB", "SELECT length(repeat('x', 100000)) AS length"), @r"
    length
    100000
    ");
}

#[test]
fn tool_annotations_reflect_writes() {
    let configured = configured(&shop("annotated"));
    let ran = configured.run(&["tools", "--json"]);
    let tools: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"].clone()
    };
    assert_eq!(of("cancel_order"), json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false}));
    assert_eq!(of("orders_of")["readOnlyHint"], json!(true));
}

#[test]
fn unreachable_server_is_a_warning() {
    let configured = configured("host=127.0.0.1 port=1 user=nobody dbname=shop sslmode=disable");
    let ran = configured.run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.ends_with("1 databases and 2 tools, no errors; 3 warnings above\n"), "{}", ran.stdout);
    let ran = configured.run(&["call", "orders_of", "customer=Ann"]);
    assert!(ran.stderr.contains("the database shop cannot be reached"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("nobody"), "{}", ran.stdout);
}

/// To wait does not help, unlike where the server is away. A server with other databases starts all the same.
#[test]
fn refused_login_is_an_error_of_config_check() {
    let network = std::env::var("TIDEGATE_TEST_POSTGRES_TCP").unwrap();
    for (target, reason) in [
        (format!("{network} user=nobody_at_all password=s3cret dbname=postgres"), "the password was not accepted"),
        (format!("{} dbname=nowhere_at_all", server()), "the server has no such database"),
    ] {
        let configured = configured(&format!("{target} sslmode=disable"));
        let ran = configured.run(&["config", "check"]);
        let problem = format!("tidegate.yaml:2:5: databases[0]: the database shop cannot be reached: {reason}\n");
        assert!(ran.code == Some(2) && ran.stderr.ends_with(&problem), "{ran:?}");
        assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
        let ran = configured.run(&["tools"]);
        assert!(ran.code == Some(0) && ran.stdout.contains("orders_of"), "{ran:?}");
    }
}

#[test]
fn reports_invalid_postgres_entries() {
    let wrong = ConfiguredFolder::new(
        "databases:
  - {name: a, postgres: 'postgres://db/x?sslmod=require'}
  - {name: b, files: ., strict: true}
  - {name: c, postgres: host=db, role: {claim: db_role}}
  - {name: d, postgres: host=db, settings: {role: tenant}}
  - {name: e, postgres: host=db, sqlite: e.db}
  - {name: f, postgres: host=db, role: {by_role: {boss: reader}}}
  - {name: g, postgres: host=db, max_message_bytes: 1KiB}
  - {name: h, files: ., allow_functions: [f]}
",
    );
    assert_snapshot!(wrong.usage_error(&["config", "check"]), @r#"
    error: the configuration cannot be used
    tidegate.yaml:2:15: databases[0].postgres: the connection string has an unknown keyword "sslmod"; did you mean sslmode?
    tidegate.yaml:3:25: databases[1].strict: is for a database with postgres or mysql; this one has files
    tidegate.yaml:4:34: databases[2].role: a claim needs allow: the roles that it may name
    tidegate.yaml:5:34: databases[3].settings: role is no setting of one's own; it needs a prefix and a dot, as app.tenant
    tidegate.yaml:6:15: databases[4].postgres: is for a database of its own; this one has sqlite
    tidegate.yaml:7:34: databases[5].role: there is no role boss under roles
    tidegate.yaml:8:34: databases[6].max_message_bytes: must be at least 64KiB
    tidegate.yaml:9:25: databases[7].allow_functions: is for a database with postgres; this one has files
    "#);
}

#[test]
fn lists_are_bound_as_arrays() {
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: shop, postgres: '{}'}}]
tools:
  - name: orders_of
    description: O
    sql: SELECT id FROM orders WHERE customer = ANY (:customers) AND (:ids IS NULL OR id = ANY(:ids)) ORDER BY id
    input:
      customers: {{type: list}}
      ids: {{type: list, items: integer, required: false}}
  - name: numbers
    description: N
    sql: SELECT n FROM unnest(:numbers::int[]) AS n
    input: {{numbers: {{type: list, items: integer}}}}
",
        shop("arrays")
    ));
    let call = |arguments: &[&str]| configured.run(&[&["call"], arguments].concat()).stdout.trim().to_owned();
    assert_eq!(call(&["orders_of", r#"customers=["Ann","x,\"y\"\\"]"#]), "[{\"id\":1},{\"id\":3}]");
    assert_eq!(call(&["orders_of", r#"customers=["Ann","Ben"]"#, "ids=[2,3]"]), "[{\"id\":2},{\"id\":3}]");
    assert_eq!(call(&["numbers", "numbers=[3,1]"]), "[{\"n\":3},{\"n\":1}]");
}

#[test]
fn writes_without_returning_answer_with_the_number_of_rows() {
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: shop, postgres: '{}'}}]
tools:
  - name: rename
    description: R
    sql: UPDATE orders SET customer = :to WHERE customer = :from
    input: {{from: {{type: string}}, to: {{type: string}}}}
    transaction: {{writes: true}}
",
        shop("counted")
    ));
    let call = |arguments: &[&str]| configured.run(&[&["call"], arguments].concat()).stdout.trim().to_owned();
    assert_eq!(call(&["rename", "from=Ann", "to=Anna"]), "[{\"changed_rows\":2}]");
    assert_eq!(call(&["rename", "from=Ann", "to=Anna"]), "[{\"changed_rows\":0}]");
    assert_eq!(call(&["sql", "sql=SELECT count(*) AS n FROM orders WHERE customer = 'Anna'"]), "[{\"n\":2}]");
}
