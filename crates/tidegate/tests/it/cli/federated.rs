//! A database of other databases: PostgreSQL joined with files, with a real server.

use insta::assert_snapshot;
use reqwest::Client;
use serde_json::json;

use super::postgres::{psql, server};
use super::server::Server;
use super::{CommandOutput, ConfiguredFolder, tidegate};

/// A database of PostgreSQL with one table of many types, and a role that may read some of it.
fn stock(name: &str) -> (String, String) {
    let name = format!("{name}_{}", std::process::id());
    psql("postgres", &format!("CREATE DATABASE {name}"));
    psql(
        &name,
        &format!(
            "CREATE TABLE stock (id int PRIMARY KEY, name text, code char(4), price numeric(10,2), big bigint, ok boolean,
                 seen timestamptz, day date, tag uuid, weight float8, note varchar(20), kind text COLLATE \"C\");
             INSERT INTO stock SELECT i, (ARRAY['Ann','ann','Ben','Zoë',NULL])[i % 5 + 1], 'c' || i % 3,
                 i * 1.25, i * 10000000000, i % 2 = 0, timestamptz '2024-01-01 00:00Z' + i * interval '1 hour',
                 CASE WHEN i = 7 THEN 'infinity' ELSE date '2024-01-01' + i END,
                 ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid,
                 CASE WHEN i = 3 THEN 'NaN' ELSE i / 3.0 END, 'n' || i % 4, chr(64 + i)
               FROM generate_series(1, 20) i;
             CREATE TABLE sold (stock int, amount int); INSERT INTO sold SELECT i % 6, i FROM generate_series(1, 30) i;
             INSERT INTO sold VALUES (NULL, 1);
             CREATE ROLE {name}_reader; GRANT SELECT (id, name) ON stock TO {name}_reader"
        ),
    );
    (format!("{} dbname={name}", server()), format!("{name}_reader"))
}

fn configured(target: &str, further: &str) -> ConfiguredFolder {
    ConfiguredFolder::new(&format!(
        "databases:
  - {{name: all, federated: [sales, shop]}}
  - {{name: sales, files: shop}}
  - {{name: shop, postgres: '{target}'{further}}}
"
    ))
}

fn sql(configured: &ConfiguredFolder, database: &str, sql: &str) -> String {
    let ran: CommandOutput =
        configured.run(&["call", "sql", &format!("database={database}"), &format!("sql={sql}"), "format=csv"]);
    let stderr: Vec<&str> = ran.stderr.lines().filter(|line| !line.contains("WARN")).collect();
    format!("{}{}", ran.stdout, stderr.join("\n"))
}

#[test]
fn postgres_and_files_are_joined() {
    let configured = configured(&stock("joined").0, "");
    let join =
        "SELECT s.name, o.amount, s.price FROM sales.orders o JOIN shop.stock s ON s.id = o.id WHERE s.price > 2";
    assert_snapshot!(sql(&configured, "all", join), @r"
    name,amount,price
    Ben,7.0,2.50
    Zoë,,3.75
    ");
    let explained = configured.run(&["call", "explain", "database=all", &format!("sql={join}")]).stdout;
    let requested: Vec<&str> = explained.lines().skip_while(|line| !line.starts_with("Queries sent")).take(3).collect();
    assert_snapshot!(requested.join("\n"), @r#"
    Queries sent to the databases:
      sales: SELECT t1."id" AS c0, t1."amount" AS c1 FROM "orders" AS t1
      shop: SELECT t1."id" AS c0, t1."name" AS c1, t1."price" AS c2 FROM "stock" AS t1 WHERE (t1."price" > $1)
    "#);
    let ran = configured.run(&["call", "list_databases", "format=csv"]);
    assert_snapshot!(ran.stdout, @r"
    name,kind,dialect,tables,status
    all,federated,PostgreSQL (embedded engine),4,ok
    sales,files,PostgreSQL (embedded engine),2,ok
    shop,postgres,PostgreSQL,2,ok
    ");
}

/// Every question has the same answer when PostgreSQL is asked by itself and when it is asked through all. One server answers them, because
/// a process for each takes longer than its answer.
#[tokio::test]
async fn push_down_does_not_change_answers() {
    let configured = configured(&stock("same").0, "");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
    let (server, client) = (Server::start(tidegate().current_dir(configured.folder()).args(serve)), Client::new());
    let answer = async |database: &str, sql: String| {
        let arguments = json!({"database": database, "sql": sql, "format": "csv"});
        let request = client.post(server.url.replace("/mcp", "/rest/sql")).json(&arguments);
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{sql}: {status} {text}");
        text
    };
    let mut differing = Vec::new();
    for condition in [
        "id BETWEEN 3 AND 9",
        "id NOT IN (1, 2, 3)",
        "big > 50000000000",
        "NOT ok",
        "ok AND id < 9",
        "name = 'Ann'",
        "name <> 'Ann'",
        "name > 'B'",
        "name LIKE 'A%'",
        "name IS NULL OR id = 4",
        "code = 'c1'",
        "code NOT IN ('c1', 'c2')",
        "tag = '00000000-0000-0000-0000-000000000004'",
        "price >= 5.00",
        "price = 1.25",
        "seen > '2024-01-01T05:00:00Z'",
        "day <= '2024-01-06'",
        "day > '2024-01-10'",
        "weight > 3",
        "weight < 1.0",
        "note IN ('n1', 'n3')",
        "kind BETWEEN 'B' AND 'E'",
        "id + 1 = 4",
        "name || 'x' = 'Benx'",
        "(id = 1 OR name = 'Ben') AND NOT (price > 20)",
        "1 = 1",
        "id = NULL",
    ] {
        for (columns, rest) in [
            ("id, name, price", ""),
            ("count(*) AS n, min(id) AS low, max(seen) AS late, sum(big) AS total, count(name) AS names", ""),
            ("note, count(*) AS n, sum(id) AS total, count(DISTINCT name) AS names", " GROUP BY note"),
        ] {
            let of = |table: &str| format!("SELECT {columns} FROM {table} WHERE {condition}{rest} ORDER BY 1");
            let alone = answer("shop", of("stock")).await;
            let together = answer("all", of("shop.stock")).await;
            if alone != together {
                differing.push(format!("{}\n{alone}---\n{together}", of("stock")));
            }
        }
    }
    for (alone, together) in [
        ("stock s JOIN sold x ON x.stock = s.id", "shop.stock s JOIN shop.sold x ON x.stock = s.id"),
        (
            "stock s LEFT JOIN sold x ON x.stock = s.id AND x.amount > 9",
            "shop.stock s LEFT JOIN shop.sold x ON x.stock = s.id AND x.amount > 9",
        ),
        ("sold x LEFT JOIN stock s ON x.stock = s.id", "shop.sold x LEFT JOIN shop.stock s ON x.stock = s.id"),
    ] {
        for select in ["s.id, x.amount", "s.note, x.amount"] {
            let of = |from: &str| format!("SELECT {select} FROM {from} ORDER BY 1, 2 NULLS FIRST LIMIT 20");
            let (alone, together) = (answer("shop", of(alone)).await, answer("all", of(together)).await);
            if alone != together {
                differing.push(format!("{select}\n{alone}---\n{together}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

#[test]
fn padding_is_no_part_of_a_text() {
    let configured = configured(&stock("padded").0, "");
    psql(
        &format!("padded_{}", std::process::id()),
        "CREATE DOMAIN country AS char(3); CREATE TYPE state AS ENUM ('new', 'paid');
         CREATE TABLE places (id int, country country, codes char(3)[], state state);
         INSERT INTO places VALUES (1, 'DE', '{DE,F}', 'paid'), (2, 'F', '{F,DE}', 'paid'), (3, 'DE', '{DE,F}', 'new')",
    );
    let read = |text: &str| sql(&configured, "all", text);
    assert_snapshot!(read("SELECT count(*) AS n, max(length(code)) AS longest FROM shop.stock WHERE code = 'c1'"), @r"
    n,longest
    7,2
    ");
    let join = "SELECT s.code, count(*) AS n FROM shop.stock s JOIN (VALUES ('c1')) AS v(code) ON v.code = s.code
                GROUP BY s.code";
    assert_snapshot!(read(join), @r"
    code,n
    c1,7
    ");
    let places = "SELECT id FROM shop.places WHERE country = 'DE' AND codes[2] = 'F' AND state = 'paid'";
    assert_snapshot!(read(places), @r"
    id
    1
    ");
}

#[test]
fn numbers_that_are_texts_are_not_compared() {
    let configured = configured(&stock("digits").0, "");
    psql(
        &format!("digits_{}", std::process::id()),
        "CREATE VIEW totals AS SELECT stock, sum(amount * 1.5) AS revenue FROM sold GROUP BY stock",
    );
    let read = |text: &str| sql(&configured, "all", text);
    assert_snapshot!(read("SELECT max(revenue) AS best FROM shop.totals"), @r#"
    error: column "revenue" is numeric without a scale, which is a text here: it cannot be compared, ordered or grouped
    Cast it: "revenue"::numeric(38,6), or "revenue"::double precision.
    "#);
    let refused = "column \"revenue\" is numeric without a scale";
    for statement in [
        "SELECT stock FROM shop.totals WHERE revenue > '900'",
        "SELECT stock FROM shop.totals WHERE revenue BETWEEN '1' AND '9'",
        "SELECT stock FROM shop.totals WHERE revenue IN ('105.0')",
        "SELECT stock FROM shop.totals ORDER BY revenue",
        "SELECT revenue FROM shop.totals GROUP BY revenue",
        "SELECT DISTINCT revenue FROM shop.totals",
        "SELECT count(DISTINCT revenue) FROM shop.totals",
        "SELECT rank() OVER (ORDER BY revenue) FROM shop.totals",
        "SELECT greatest(revenue, '9') FROM shop.totals",
        "SELECT o.stock FROM shop.totals o JOIN shop.totals t ON t.revenue = o.revenue",
        "SELECT stock FROM (SELECT stock, revenue FROM shop.totals) t WHERE revenue = '1.5'",
    ] {
        let answer = read(statement);
        assert!(answer.contains(refused), "{statement}: {answer}");
    }
    assert_snapshot!(read("SELECT revenue FROM shop.totals WHERE stock = 2"), @r"
    revenue
    105.0
    ");
    let cast = "SELECT count(*) AS n, max(revenue) AS best
                FROM (SELECT \"revenue\"::numeric(38,6) AS revenue FROM shop.totals) t WHERE revenue > 100";
    assert_snapshot!(read(cast), @r"
    n,best
    5,135.000000
    ");
}

#[test]
fn enums_have_no_order_as_texts() {
    let configured = configured(&stock("states").0, "");
    psql(
        &format!("states_{}", std::process::id()),
        "CREATE TYPE state AS ENUM ('new', 'paid', 'cancelled');
         CREATE TABLE orders (id int, state state); INSERT INTO orders VALUES (1, 'new'), (2, 'paid'), (3, 'cancelled')",
    );
    let read = |text: &str| sql(&configured, "all", text);
    assert_snapshot!(read("SELECT id FROM shop.orders ORDER BY state"), @r#"
    error: column "state" is state in its database, and a text here, with another order
    For the order of its texts, cast it: "state"::text. For its own, query its database directly.
    "#);
    for statement in ["SELECT max(state) FROM shop.orders", "SELECT id FROM shop.orders WHERE state > 'paid'"] {
        let answer = read(statement);
        assert!(answer.contains("with another order"), "{statement}: {answer}");
    }
    assert_snapshot!(read("SELECT state, count(*) AS n FROM shop.orders WHERE state <> 'new' GROUP BY state \
                           ORDER BY \"state\"::text"), @r"
    state,n
    cancelled,1
    paid,1
    ");
}

#[test]
fn domains_are_compared_as_their_base_types() {
    let configured = configured(&stock("domains").0, "");
    psql(
        &format!("domains_{}", std::process::id()),
        "CREATE TYPE state AS ENUM ('new', 'paid'); CREATE DOMAIN open_state AS state;
         CREATE DOMAIN label AS text; CREATE DOMAIN short_label AS label CHECK (length(VALUE) < 9);
         CREATE DOMAIN amount AS numeric(9,2);
         CREATE TABLE tags (id int, tag short_label, state open_state, price amount);
         INSERT INTO tags VALUES (1, 'b', 'paid', 9), (2, 'a', 'new', 10.5), (3, 'c', 'new', 2)",
    );
    let read = |text: &str| sql(&configured, "all", text);
    assert_snapshot!(read("SELECT id, tag FROM shop.tags WHERE tag > 'a' ORDER BY tag DESC"), @r"
    id,tag
    3,c
    1,b
    ");
    assert_snapshot!(read("SELECT min(tag) AS first, max(tag) AS last, max(price) AS most FROM shop.tags"), @r"
    first,last,most
    a,c,10.50
    ");
    assert_snapshot!(read("SELECT id FROM shop.tags ORDER BY state"), @r#"
    error: column "state" is state in its database, and a text here, with another order
    For the order of its texts, cast it: "state"::text. For its own, query its database directly.
    "#);
}

#[test]
fn member_restrictions_apply_in_federated_queries() {
    let (target, reader) = stock("walls");
    let limited = configured(&target, &format!(", role: {reader}"));
    assert_snapshot!(sql(&limited, "all", "SELECT * FROM shop.stock WHERE id = 3"), @r"
    id,name
    3,Zoë
    ");
    assert_snapshot!(sql(&limited, "all", "SELECT price FROM shop.stock"), @r#"
    error: there is no column "price"
    Valid choices: id, name
    "#);
    assert_snapshot!(sql(&limited, "all", "SELECT * FROM shop.sold"), @r#"
    error: there is no table "sold"
    Valid choices: stock
    "#);
    let separated = configured(&target, ", settings: {app.tenant: tenant}, tenancy: settings");
    assert_snapshot!(sql(&separated, "all", "SELECT id FROM shop.stock"), @r"
    error: the database shop takes no SQL of callers: only settings keep its tenants apart, and SQL could change one
    Use the tools that its owner declared.
    ");
}

#[test]
fn reports_invalid_federated_entries() {
    let wrong = ConfiguredFolder::new(
        "databases:
  - {name: sales, files: shop}
  - {name: a, federated: [sale, b]}
  - {name: b, federated: [sales], files: shop}
  - {name: c, federated: [sales], strict: true, connections: 3}
",
    );
    assert_snapshot!(wrong.usage_error(&["config", "check"]), @r"
    error: the configuration cannot be used
    tidegate.yaml:3:27: databases[1].federated[0]: sale is no database of another kind than federated; sales is
    tidegate.yaml:3:33: databases[1].federated[1]: b is no database of another kind than federated
    tidegate.yaml:4:15: databases[2].federated: is for a database of its own; this one has files
    tidegate.yaml:5:35: databases[3].strict: is for a database with postgres or mysql; this one has federated
    tidegate.yaml:5:49: databases[3].connections: is for a database with sqlite, postgres or mysql; this one has federated
    ");
}
