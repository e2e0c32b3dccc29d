//! Tables, views, columns, what cannot be read.

use tidegate_query::Database;

use crate::support::open_database;

#[tokio::test]
async fn lists_tables_and_views_but_not_shadow_tables() {
    let (_folder, node) = open_database(
        "
        CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, amount REAL);
        INSERT INTO orders (amount) VALUES (1), (2), (3);
        CREATE TABLE empty (a);
        CREATE INDEX by_amount ON orders (amount);
        ANALYZE;
        CREATE VIEW large AS SELECT * FROM orders WHERE amount > 2;
        CREATE VIEW broken AS SELECT absent FROM orders;
        CREATE VIEW orphan AS SELECT * FROM missing;
        CREATE VIEW asks AS SELECT load_extension('x');
        CREATE VIRTUAL TABLE notes USING fts5(body);
        INSERT INTO notes VALUES ('the quick brown fox'), ('a lazy dog');
        CREATE VIRTUAL TABLE places USING rtree(id, low, high);
        INSERT INTO places VALUES (1, 2, 3);",
    );
    insta::assert_snapshot!(node.tables().await.unwrap(), @r#"
    asks: unreadable, unsafe use of load_extension()
    broken: unreadable, no such column: absent
    empty: readable
    large: readable
    notes: readable
    orders: 3 rows
    orphan: unreadable, no such table: main.missing
    places: readable
    "#);
    insta::assert_snapshot!(node.rows("SELECT id FROM places WHERE low < 5 AND high > 1").await, @"1");
    insta::assert_snapshot!(node.rows("SELECT amount FROM large").await, @"3.0");
    insta::assert_snapshot!(node.rows("SELECT value FROM json_each('[1, \"two\"]')").await, @r#"
    1
    two
    "#);
    insta::assert_snapshot!(node.columns("notes").await.unwrap(), @"body any");
    insta::assert_snapshot!(node.columns("large").await.unwrap(), @r#"
    id INTEGER
    amount REAL
    "#);
}

#[tokio::test]
async fn columns_state_types_and_keys() {
    let (_folder, node) = open_database(
        "
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL);
        CREATE TABLE lines (
            customer INTEGER REFERENCES customers(id), number INT, price DECIMAL(10, 2), total AS (price * 2),
            anything, code TEXT REFERENCES codes, PRIMARY KEY (customer, number));
        CREATE TABLE compact (code TEXT PRIMARY KEY, n) WITHOUT ROWID;",
    );
    insta::assert_snapshot!(node.columns("customers").await.unwrap(), @r#"
    id INTEGER not null -- primary key
    name VARCHAR(20) not null
    "#);
    insta::assert_snapshot!(node.columns("LINES").await.unwrap(), @r#"
    customer INTEGER -- primary key, references customers(id)
    number INT -- primary key
    price DECIMAL(10, 2)
    total any -- generated
    anything any
    code TEXT -- references codes
    "#);
    insta::assert_snapshot!(node.columns("main.compact").await.unwrap(), @r#"
    code TEXT not null -- primary key
    n any
    "#);
    insta::assert_snapshot!(node.columns("customer").await.unwrap_err(), @r#"
    there is no table "customer" in "shop"
    Valid choices: customers, compact
    "#);
}

#[tokio::test]
async fn plan_is_a_tree_and_states_whether_it_blocks() {
    let (_folder, node) = open_database(
        "
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INT, amount REAL);
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);",
    );
    let mut message = String::new();
    for sql in [
        "SELECT * FROM orders",
        "SELECT * FROM orders ORDER BY id LIMIT 7",
        "SELECT * FROM orders ORDER BY amount",
        "SELECT count(*) FROM orders",
        "SELECT name, sum(amount) FROM orders JOIN customers ON customers.id = customer GROUP BY name",
        "SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE amount > $1)",
        "SELECT id FROM orders UNION SELECT id FROM customers",
    ] {
        let parameters = if sql.contains('$') { vec![tidegate_sql::Parameter::Integer(1)] } else { Vec::new() };
        let plan = node.plan(sql, parameters).await.unwrap();
        let (blocking, rows) = (plan.is_pipeline_breaking().unwrap(), plan.estimated_rows());
        message.push_str(&format!("{sql}\nblocking {blocking}, rows {rows:?}\n{}\n\n", plan.explain().await.unwrap()));
    }
    insta::assert_snapshot!(message, @r#"
    SELECT * FROM orders
    blocking false, rows None
    SCAN orders

    SELECT * FROM orders ORDER BY id LIMIT 7
    blocking false, rows Some(7)
    SCAN orders

    SELECT * FROM orders ORDER BY amount
    blocking true, rows None
    SCAN orders
    USE TEMP B-TREE FOR ORDER BY

    SELECT count(*) FROM orders
    blocking true, rows None
    SCAN orders

    SELECT name, sum(amount) FROM orders JOIN customers ON customers.id = customer GROUP BY name
    blocking true, rows None
    SCAN orders
    SEARCH customers USING INTEGER PRIMARY KEY (rowid=?)
    USE TEMP B-TREE FOR GROUP BY

    SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE amount > $1)
    blocking false, rows None
    SEARCH customers USING INTEGER PRIMARY KEY (rowid=?)
    LIST SUBQUERY 1
      SCAN orders

    SELECT id FROM orders UNION SELECT id FROM customers
    blocking false, rows None
    MERGE (UNION)
      LEFT
        SCAN orders
      RIGHT
        SCAN customers
    "#);
    assert_eq!((node.database.name(), node.database.kind().name()), ("shop", "sqlite"));
}
