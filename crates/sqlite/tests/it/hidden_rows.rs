//! Random queries under row policies, compared with the same queries over a copy without the hidden rows.
//!
//! Two copies have the rows that are shown alone, masked beforehand; the same condition stands over them, so that the
//! plans can be compared. One was analysed by itself: plans are the same, whatever the statistics say of hidden rows.
//! The other has the statistics of all rows, since the order in which rows come may follow these, and with it which of
//! several errors comes first, or whether one comes before the first row of an EXISTS: rows and errors are the same.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::{Connection, params};
use tidegate_query::{HashKey, Mask, RowPolicies};
use tidegate_sql::{SqlDialect, Statement};
use tidegate_sqlite::SqliteOptions;

use super::policies::{caller_of_tenant, lines, policy};
use super::support::{Folder, SqliteFixture};

const TABLES: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT, amount INTEGER, email TEXT, phone TEXT, ssn TEXT, note TEXT);
    CREATE INDEX by_tenant ON orders (tenant, amount);
    CREATE INDEX by_amount ON orders (amount);
    CREATE INDEX by_email ON orders (email);
    CREATE INDEX by_digest ON orders (abs(amount)) WHERE amount > 0;
    CREATE TABLE lines (\"order\" INTEGER, line INTEGER, what TEXT, PRIMARY KEY (\"order\", line)) WITHOUT ROWID;
    CREATE TABLE colours (name TEXT, amount INTEGER);
    CREATE VIEW big AS SELECT id, email, amount, abs(amount) AS size FROM orders WHERE amount > 1;
    INSERT INTO colours VALUES ('red', 1), ('blue', 3), ('a', -9223372036854775808);";

/// A row: tenant, amount, email, phone, ssn, note.
type Row = (Option<&'static str>, Option<i64>, Option<&'static str>, Option<&'static str>, &'static str);

fn row() -> impl Strategy<Value = Row> {
    let amount = select(vec![None, Some(0), Some(1), Some(3), Some(-2), Some(i64::MAX), Some(i64::MIN)]);
    let note = select(vec!["a", "{\"a\": 1}", "{not json", "%", "", "3"]);
    let tenant = select(vec![None, Some("north"), Some("north"), Some("south"), Some("North")]);
    (tenant, amount, select(vec![None, Some("ann@x"), Some("bob")]), select(vec![None, Some("1234"), Some("7")]), note)
}

/// An expression over the columns of `o`, which fails for some rows.
fn expression() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "o.id",
        "o.tenant",
        "o.amount",
        "o.email",
        "o.phone",
        "o.note",
        "o.amount",
        "1",
        "'a'",
        "NULL",
        "'north'",
        "-9223372036854775808",
        "o.ssn",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        let one = (
            select(vec![
                "abs({})",
                "json_extract({}, '$.a')",
                "length({})",
                "-{}",
                "upper({})",
                "hex({})",
                "typeof({})",
                "json({})",
                "zeroblob({} * 1000000000)",
                "CAST({} AS INTEGER)",
                "({}) IS NULL",
                "likely({})",
                "printf('%d', {})",
            ]),
            inner.clone(),
        )
            .prop_map(|(shape, a): (&str, String)| shape.replace("{}", &a));
        let two = (
            select(vec![
                "({a} + {b})",
                "({a} / {b})",
                "({a} || {b})",
                "({a} = {b})",
                "({a} < {b})",
                "({a} AND {b})",
                "({a} OR {b})",
                "coalesce({a}, {b})",
                "CASE WHEN {a} THEN {b} ELSE 0 END",
                "nullif({a}, {b})",
                "({a} LIKE {b})",
                "({a} IN ({b}, 1))",
                "({a} -> '$.a' = {b})",
            ]),
            inner.clone(),
            inner,
        )
            .prop_map(|(shape, a, b): (&str, String, String)| shape.replace("{a}", &a).replace("{b}", &b));
        prop_oneof![one, two]
    })
}

fn random_query() -> impl Strategy<Value = String> {
    let from = select(vec![
        "orders o",
        "main.orders o",
        "orders AS o, colours c",
        "colours c LEFT JOIN orders o ON o.amount = c.amount",
        "colours c LEFT JOIN orders o ON {e}",
        "orders o JOIN lines l ON l.\"order\" = o.id",
        "orders o JOIN orders p ON p.id = o.id",
        "(SELECT * FROM orders) o",
        "lines l CROSS JOIN orders o",
        "orders o JOIN orders p USING (id)",
        "orders o NATURAL JOIN colours",
    ]);
    let shape = select(vec![
        "SELECT {e} FROM {f} WHERE {e2}",
        "SELECT o.id FROM {f} WHERE {e}",
        "SELECT o.id FROM {f} WHERE {e} AND {e2}",
        "SELECT count(*) FROM {f} WHERE {e}",
        "SELECT o.id FROM {f} WHERE o.tenant = 'south' AND {e}",
        "SELECT o.id FROM {f} WHERE o.id = 2 AND {e}",
        "SELECT max({e}) FROM {f}",
        "SELECT o.tenant, count({e}), min({e2}) FROM {f} GROUP BY o.tenant",
        "SELECT o.tenant FROM {f} GROUP BY o.tenant, o.amount HAVING {e}",
        "SELECT DISTINCT {e} FROM {f}",
        "SELECT o.id FROM {f} ORDER BY {e}",
        "SELECT o.* FROM {f} WHERE o.amount > 0 AND {e}",
        "SELECT o.id, sum(1) OVER (PARTITION BY {e}) FROM {f}",
        "SELECT name FROM colours WHERE EXISTS (SELECT 1 FROM {f} WHERE {e})",
        "SELECT name FROM colours k WHERE k.amount IN (SELECT o.amount FROM {f} WHERE {e})",
        "SELECT o.id FROM {f} UNION ALL SELECT {e} FROM orders o",
        "WITH w AS (SELECT * FROM {f} WHERE {e}) SELECT count(*) FROM w",
        "SELECT big.size FROM big, {f} WHERE {e}",
        "SELECT size FROM big o WHERE {e}",
        "SELECT (SELECT {e} FROM orders o ORDER BY o.id LIMIT 1)",
        "SELECT o.email, count(*) FROM {f} WHERE o.email > 'a' GROUP BY 1",
        "SELECT * FROM orders o WHERE o.amount = 1",
        "SELECT {e} FROM orders o WHERE o.amount > 0 AND o.tenant <> 'south'",
        "SELECT o.id, {e} FROM orders o WHERE o.id BETWEEN 1 AND 5 ORDER BY o.id LIMIT 3",
    ]);
    (shape, from, expression(), expression())
        .prop_map(|(shape, from, one, two)| shape.replace("{f}", from).replace("{e2}", &two).replace("{e}", &one))
}

/// A file with `rows`, each converted by `shown`.
fn fill_copy(
    connection: &Connection,
    rows: &[Row],
    visible: impl Fn(&Row) -> Option<(Option<String>, Option<String>, Option<String>)>,
) {
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN").unwrap();
    connection.execute_batch(TABLES).unwrap();
    for (id, row) in (1_i64..).zip(rows) {
        let Some((email, phone, ssn)) = visible(row) else { continue };
        let sql = "INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        connection.execute(sql, params![id, row.0, row.1, email, phone, ssn, row.4]).unwrap();
        connection.execute("INSERT INTO lines VALUES (?1, 1, ?2)", params![id, row.4]).unwrap();
    }
    connection.execute_batch("COMMIT; ANALYZE").unwrap();
}

/// A condition, and whether it lets a row through.
type RowVisibility = (&'static str, fn(&Row) -> bool);

const VISIBILITY_RULES: &[RowVisibility] = &[
    ("tenant = :claims.tenant AND amount IS NOT NULL", |row| row.0 == Some("north") && row.1.is_some()),
    ("amount > 0 OR tenant = :claims.tenant", |row| row.1.is_some_and(|amount| amount > 0) || row.0 == Some("north")),
    ("NOT tenant = 'north' AND note LIKE '{%'", |row| {
        row.0.is_some_and(|tenant| tenant != "north") && row.4.starts_with('{')
    }),
    ("tenant IN ('north', 'south') AND amount <= 3", |row| {
        matches!(row.0, Some("north" | "south")) && row.1.is_some_and(|amount| amount <= 3)
    }),
    ("tenant = :claims.nothing OR amount = 1", |_| false),
    ("", |_| true),
];

struct PolicyCopies {
    #[allow(dead_code, reason = "the files are removed with it")]
    folder: Folder,
    filtered: SqliteFixture,
    /// With statistics of its own.
    copy: SqliteFixture,
    /// With the statistics of what is filtered.
    with_shared_statistics: SqliteFixture,
}

fn make_copies(rows: &[Row], (mine, shows): RowVisibility) -> PolicyCopies {
    let key = HashKey::from_secret(b"key");
    let masks = [("email", Mask::Hash), ("phone", Mask::KeepFirst(2)), ("ssn", Mask::Deny)];
    let options = |columns: &[(&str, Mask)]| SqliteOptions {
        row_policies: RowPolicies::new(
            vec![policy("orders", mine, columns), policy("lines", "", &[])],
            HashKey::from_secret(b"key"),
        ),
        ..SqliteOptions::default()
    };
    let folder = Folder::new();
    let text = |text: Option<&str>| text.map(str::to_owned);
    fill_copy(&folder.write("all.db", ""), rows, |row| Some((text(row.2), text(row.3), Some("secret".to_owned()))));
    let masked = |text: Option<&str>, mask: Mask| text.and_then(|text| mask.mask_text(text, &key));
    std::fs::copy(folder.join("all.db"), folder.join("likeness.db")).unwrap();
    let connection = folder.write("likeness.db", "PRAGMA synchronous = OFF; BEGIN");
    for (id, row) in (1_i64..).zip(rows) {
        let (email, phone) = (masked(row.2, Mask::Hash), masked(row.3, Mask::KeepFirst(2)));
        match shows(row) {
            true => connection.execute(
                "UPDATE orders SET email = ?1, phone = ?2, ssn = NULL WHERE id = ?3",
                params![email, phone, id],
            ),
            false => connection.execute("DELETE FROM orders WHERE id = ?1", params![id]),
        }
        .unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    // Lines have no condition: all of them are shown.
    let copy = folder.write("copy.db", "");
    fill_copy(&copy, rows, |row| {
        shows(row).then(|| (masked(row.2, Mask::Hash), masked(row.3, Mask::KeepFirst(2)), None))
    });
    for (id, row) in (1_i64..).zip(rows) {
        copy.execute("INSERT OR IGNORE INTO lines VALUES (?1, 1, ?2)", params![id, row.4]).unwrap();
    }
    let filtered = folder.open(&["all.db"], options(&masks)).with_principal(caller_of_tenant("north"));
    let [copy, sqlite_fixture] = ["copy.db", "likeness.db"]
        .map(|name| folder.open(&[name], options(&masks[2..])).with_principal(caller_of_tenant("north")));
    PolicyCopies { folder, filtered, copy, with_shared_statistics: sqlite_fixture }
}

impl PolicyCopies {
    async fn check(&self, sql: &str) {
        assert_eq!(outcome(&self.filtered, sql).await, outcome(&self.with_shared_statistics, sql).await, "{sql}");
        assert_eq!(self.filtered.explain_to_text(sql).await, self.copy.explain_to_text(sql).await, "{sql}");
    }
}

/// Rows in an order of their own, or the error.
async fn outcome(node: &SqliteFixture, sql: &str) -> Result<Vec<String>, String> {
    match node.batches(sql, Vec::new()).await {
        Ok(batches) => {
            let mut lines = lines(&batches);
            lines.sort();
            Ok(lines)
        }
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn results_match_a_copy_without_hidden_rows() {
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());
    let every = Config::default().cases;
    let mut runner =
        TestRunner::new(Config { cases: every.div_ceil(32), failure_persistence: None, ..Config::default() });
    let questions = proptest::collection::vec(random_query(), 40);
    let outcome = runner.run(
        &(proptest::collection::vec(row(), 0..30), select(VISIBILITY_RULES), questions),
        |(rows, shows, questions)| {
            let copies = make_copies(&rows, shows);
            runtime.block_on(async {
                for sql in &questions {
                    // What no parser takes is the same for everybody.
                    if Statement::parse(sql, SqlDialect::Sqlite).is_ok() {
                        copies.check(sql).await;
                    }
                }
            });
            Ok(())
        },
    );
    outcome.unwrap();
}

/// What is not hidden: the index that a filter is asked by follows the statistics of all rows, and the order of the
/// rows the index.
#[tokio::test]
async fn first_failing_row_may_depend_on_statistics() {
    let rows: &[Row] = &[
        (Some("north"), Some(1), None, None, "a"),
        (Some("south"), None, None, None, "a"),
        (Some("north"), Some(i64::MIN), Some("bob"), Some("1234"), "{\"a\": 1}"),
        (Some("south"), Some(i64::MAX), Some("ann@x"), None, "{not json"),
    ];
    let copies = make_copies(rows, VISIBILITY_RULES[0]);
    let sql = "SELECT name FROM colours WHERE EXISTS (SELECT 1 FROM orders o WHERE abs(o.amount))";
    copies.check(sql).await;
    assert_eq!(outcome(&copies.filtered, sql).await, Err("integer overflow".to_owned()));
    assert_eq!(outcome(&copies.copy, sql).await.map(|rows| rows.len()), Ok(3));
}
