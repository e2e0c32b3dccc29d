//! Operators that repeat values: the result of a long value is limited, and everything else passes.

use crate::support::{Folder, TestNode, numbers, two_thread_options, with_timeout, write_parquet};

fn node() -> (Folder, TestNode) {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(20_000), 1_000);
    let node = folder.database_with(two_thread_options());
    (folder, node)
}

#[tokio::test]
async fn values_of_a_window_are_part_of_the_memory_of_the_query() {
    let (_folder, node) = node();
    let long = "(SELECT id, CASE WHEN id < 2 THEN repeat(name, 150000) ELSE name END AS t FROM n)";
    for sql in [
        "SELECT max(length(t)) FROM (SELECT string_agg(name, ',') OVER (ORDER BY id) AS t FROM n)".to_owned(),
        "SELECT max(cardinality(t)) FROM (SELECT array_agg(name) OVER (ORDER BY id) AS t FROM n)".to_owned(),
        "SELECT max(cardinality(t)) FROM (SELECT array_agg(id) OVER (ORDER BY id DESC ROWS BETWEEN CURRENT ROW AND \
         UNBOUNDED FOLLOWING) AS t FROM n)"
            .to_owned(),
        format!("SELECT max(length(t)) FROM (SELECT min(t) OVER () AS t FROM {long})"),
        format!("SELECT max(length(t)) FROM (SELECT max(t) FILTER (WHERE id < 2) OVER () AS t FROM {long})"),
        "SELECT max(cardinality(t)) FROM (SELECT array_agg(name) OVER (PARTITION BY id % 20) AS t FROM n)".to_owned(),
        format!("SELECT max(length(t)) FROM (SELECT first_value(t) OVER (ORDER BY id) AS t FROM {long})"),
        format!("SELECT max(length(t)) FROM (SELECT nth_value(t, 1) OVER (ORDER BY id) AS t FROM {long})"),
    ] {
        let refusal = with_timeout(&sql, node.refusal(&sql)).await;
        assert!(refusal.starts_with("too_large: the query exceeds the memory limit of one query"), "{sql}: {refusal}");
        node.wait_until_idle().await;
    }
}

#[tokio::test]
async fn ordinary_windows_are_not_refused() {
    let (_folder, node) = node();
    let sql = "SELECT count(DISTINCT t), max(length(t)) FROM (SELECT string_agg(name, ',') OVER (PARTITION BY id % 5000 \
               ORDER BY id) AS t FROM n)";
    assert_eq!(with_timeout(sql, node.rows(sql)).await, "20000|41");
    let sql = "SELECT sum(s), max(l), min(r) FROM (SELECT sum(id) OVER (ORDER BY id) AS s, lead(name) OVER (ORDER BY id) \
               AS l, row_number() OVER (ORDER BY id DESC) AS r FROM n)";
    assert_eq!(with_timeout(sql, node.rows(sql)).await, "1333333330000|name 9999|1");
}

/// A row that is too wide for batches of thousands of rows passes in shorter ones.
#[tokio::test]
async fn wide_rows_are_joined_in_short_batches() {
    let (_folder, node) = node();
    let wide = "(SELECT id, repeat(name, 5000) AS t FROM n WHERE id = 7)";
    for (sql, expected) in [
        (format!("SELECT count(t), min(length(t)) FROM {wide} a CROSS JOIN n"), "20000|30000"),
        (format!("SELECT count(t), min(length(t)) FROM {wide} a JOIN n b ON a.id < b.id"), "19992|30000"),
        (format!("SELECT count(t), min(length(t)) FROM {wide} a JOIN n b ON a.id = b.id % 10"), "2000|30000"),
        (format!("SELECT count(t), min(length(t)) FROM (SELECT t, unnest(range(0, 1000)) FROM {wide})"), "1000|30000"),
        (
            format!("SELECT count(*), max(length(CASE WHEN id > 5 THEN (SELECT t FROM {wide}) ELSE name END)) FROM n"),
            "20000|30000",
        ),
    ] {
        assert_eq!(with_timeout(&sql, node.rows(&sql)).await, expected, "{sql}");
    }
}

/// A row that is found to be wide only late counts against the memory of the query, as long as there is some.
#[tokio::test]
async fn late_wide_row_counts_against_memory() {
    let (_folder, node) = node();
    let late = "(SELECT id, CASE WHEN id = 19000 THEN repeat(name, 2000) ELSE name END AS t FROM n)";
    for (sql, rows) in [
        (format!("SELECT a.id, a.t FROM {late} a JOIN n b ON a.id = b.id"), 20_000),
        (format!("SELECT id, t FROM {late} a WHERE id >= (SELECT min(id) FROM n)"), 20_000),
        (format!("SELECT id, t FROM {late} a WHERE id IN (SELECT id FROM n WHERE id % 2 = 0)"), 10_000),
    ] {
        assert_eq!(with_timeout(&sql, node.rows(&sql)).await.lines().count(), rows, "{sql}");
    }
}

#[tokio::test]
async fn lists_are_joined_and_unnested_and_too_many_elements_of_a_wide_row_are_refused() {
    let (_folder, node) = node();
    let lists = "(SELECT id, range(0, id % 50) AS l, [name, name] AS m FROM n)";
    for (sql, expected) in [
        (format!("SELECT count(*), max(cardinality(l)) FROM {lists} a JOIN n b ON a.id = b.id"), "20000|49"),
        (format!("SELECT count(e), max(e) FROM (SELECT unnest(l) AS e, id FROM {lists})"), "490000|48"),
        (format!("SELECT count(*), count(s) FROM (SELECT lag(m) OVER (ORDER BY id) AS s FROM {lists})"), "20000|19999"),
    ] {
        assert_eq!(with_timeout(&sql, node.rows(&sql)).await, expected, "{sql}");
    }
    let sql = "SELECT max(length(t)) FROM (SELECT t, unnest(range(0, 60000)) FROM (SELECT repeat(name, 5000) AS t FROM n \
               WHERE id = 7))";
    insta::assert_snapshot!(with_timeout(sql, node.refusal(sql)).await, @r"
    too_large: a join or unnest would copy a very large value into too many rows
    Leave the value out, or use a part of it, such as left(x, 1000).
    ");
}
