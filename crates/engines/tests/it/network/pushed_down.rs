//! What nodes with our engine compute: conditions, keys, orders and aggregates over expressions, and digests.

use tidegate_engines::PartialAnswers;

use super::local_node::LocalNetwork;

const HEADER: &str = "id,machine,temperature,n,small,flag,day\n";
const OSLO: &str = "1,press,41.5,1,2,true,2026-11-01\n2,Oven,180.5,,4,false,2026-11-02\n3,,-0.0,5,0,,2026-11-02\n";
const ROME: &str =
    "4,oven,176.0,7,1,true,2026-11-02\n5,oven,,9223372036854775807,3,,2026-11-03\n6,press,0.0,0,,true,2026-11-03\n";

fn two_nodes() -> LocalNetwork {
    let (oslo, rome) = (format!("{HEADER}{OSLO}"), format!("{HEADER}{ROME}"));
    LocalNetwork::new(PartialAnswers::Forbid, &[&[("readings.csv", &oslo)], &[("readings.csv", &rome)]])
}

fn one_node() -> LocalNetwork {
    let whole = format!("{HEADER}{OSLO}{ROME}");
    LocalNetwork::new(PartialAnswers::Forbid, &[&[("readings.csv", &whole)]])
}

/// The rows of `sql`, which are those of one node with all rows, and the statements that the nodes received.
async fn compare(sql: &str) -> (String, Vec<String>, usize) {
    let (network, whole) = (two_nodes(), one_node());
    let rows = network.rows(sql).await;
    assert_eq!(rows, whole.rows(sql).await, "{sql}");
    let sent = network.take_rows_sent();
    (rows, network.take_statements(), sent)
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_applied_by_the_nodes() {
    for (condition, ids) in [
        ("temperature > 100", "2\n4"),
        ("temperature BETWEEN 0.0 AND 100.5", "1\n3\n6"),
        ("machine LIKE 'ov%'", "4\n5"),
        ("machine NOT ILIKE '%PRESS'", "2\n4\n5"),
        ("lower(machine) = 'oven'", "2\n4\n5"),
        ("upper(left(machine, 1)) IN ('P', 'X')", "1\n6"),
        ("flag IS NOT TRUE", "2\n3\n5"),
        ("(n IS DISTINCT FROM 1) AND machine IS NOT NULL", "2\n4\n5\n6"),
        ("coalesce(machine, 'none') = 'none'", "3"),
        ("CASE WHEN flag THEN small ELSE 3 END = 3", "2\n3\n5"),
        ("date_trunc('month', day) = date '2026-11-01' AND day >= '2026-11-03'", "5\n6"),
        ("length(machine) > 4", "1\n6"),
    ] {
        let sql = format!("SELECT id FROM readings WHERE {condition} ORDER BY id");
        let (rows, statements, sent) = compare(&sql).await;
        assert_eq!(rows, ids, "{condition}");
        assert!(statements.iter().all(|statement| statement.contains(" WHERE ")), "{statements:#?}");
        assert_eq!(sent, ids.lines().count(), "{statements:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_may_fail_is_sent_with_those_that_exclude_its_rows() {
    let sql = "SELECT COUNT(*) FROM readings WHERE small <> 0 AND 12 / small > 3";
    let (rows, statements, _) = compare(sql).await;
    assert_eq!(rows, "3");
    assert!(statements.iter().all(|statement| statement.contains("<>") && statement.contains('/')), "{statements:#?}");
    // Of a scan, only conditions that cannot fail are sent one by one.
    let (_, statements, _) = compare("SELECT id FROM readings WHERE small <> 0 AND 12 / small > 3 ORDER BY id").await;
    assert!(statements.iter().all(|statement| statement.contains("<>")), "{statements:#?}");
    compare("SELECT MAX(round(sqrt(small), 1)), COUNT(*) FILTER (WHERE round(temperature::numeric(10, 4), 2) > 10.5) FROM readings").await;
    let network = two_nodes();
    let error = network.try_rows("SELECT COUNT(*) FROM readings WHERE 12 / small > 3").await.unwrap_err();
    assert_eq!(error.message(), "division by zero");
    let error = network.try_rows("SELECT MAX(n + 1) FROM readings").await.unwrap_err();
    assert_eq!(error.message(), "bigint out of range");
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_of_expressions_are_computed_on_the_nodes() {
    for (sql, expected) in [
        (
            "SELECT SUM(CASE WHEN flag THEN 1 ELSE 0 END), MAX(small - 1), SUM(temperature * 2) FROM readings",
            "3|3|796.0",
        ),
        (
            "SELECT bit_xor(small), bit_or(small), bit_and(small), bool_or(flag), bool_and(flag) FROM readings",
            "4|7|0|true|false",
        ),
        ("SELECT AVG(temperature) FILTER (WHERE temperature > 100), COUNT(*) FROM readings", "178.25|6"),
        ("SELECT COUNT(nullif(small, 0)), MIN(abs(temperature)) FROM readings WHERE temperature > 0", "3|41.5"),
    ] {
        let (rows, statements, sent) = compare(sql).await;
        assert_eq!(rows, expected);
        assert_eq!(sent, 2, "{statements:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_expressions_are_computed_on_the_nodes() {
    for (key, groups) in [
        ("date_bin('2 days', day::timestamp, timestamp '2026-11-01')", 3),
        ("small % 2", 3),
        ("coalesce(machine, '-')", 5),
        ("CASE WHEN small > 1 THEN 'high' END", 4),
        ("(temperature > 100)", 5),
    ] {
        let sql = format!("SELECT {key} AS k, COUNT(*) FROM readings GROUP BY 1 ORDER BY 1");
        let (_, statements, sent) = compare(&sql).await;
        assert!(statements.iter().all(|statement| statement.contains("GROUP BY")), "{statements:#?}");
        assert_eq!(sent, groups, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_by_an_expression_are_those_of_each_node() {
    for order in ["temperature DESC NULLS LAST", "temperature", "lower(machine), id DESC", "-small, id"] {
        let sql = format!("SELECT id FROM readings ORDER BY {order} LIMIT 1");
        let (_, statements, sent) = compare(&sql).await;
        assert!(statements.iter().all(|statement| statement.ends_with("LIMIT 1")), "{statements:#?}");
        assert_eq!(sent, 2, "{order}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_period_is_found_before_its_rows_are_read() {
    let sql = "SELECT id FROM readings WHERE day = (SELECT max(day) FROM readings) ORDER BY id";
    let (rows, statements, sent) = compare(sql).await;
    assert_eq!(rows, "5\n6");
    // The greatest day of each node, and then the rows of that day.
    assert_eq!((statements.len(), sent), (4, 4), "{statements:#?}");
    assert_eq!(statements.iter().filter(|statement| statement.contains(" WHERE ")).count(), 2, "{statements:#?}");
    let none = "SELECT COUNT(*) FROM readings WHERE day > (SELECT max(day) FROM readings WHERE id > 6)";
    assert_eq!(compare(none).await.0, "0");
    let several = two_nodes().try_rows("SELECT id FROM readings WHERE day = (SELECT day FROM readings)").await;
    assert_eq!(several.unwrap_err().message(), "Scalar subquery returned more than one row");
    for within in [
        "SELECT SUM(small - (SELECT min(small) FROM readings)) FROM readings",
        "SELECT id, rank() OVER (ORDER BY small - (SELECT max(small) FROM readings)) FROM readings ORDER BY id",
        "SELECT small - (SELECT max(small) FROM readings), COUNT(*) FROM readings GROUP BY 1 ORDER BY 1",
    ] {
        compare(within).await;
    }
    let plan = two_nodes().plan(sql).await.unwrap().explain().await.unwrap();
    assert!(plan.contains("Their value replaces a subquery"), "{plan}");
}

/// Values that are spread unevenly over the nodes: small ones in one, great ones in the other.
fn uneven(rows: std::ops::Range<u32>) -> String {
    let value = |row: u32| f64::from(row * row % 9_973) + f64::from(row) / 10.0;
    let lines = rows.map(|row| format!("{},{}\n", if row % 3 == 0 { "a" } else { "b" }, value(row)));
    format!("g,x\n{}", lines.collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn approximate_percentiles_are_merged_from_digests() {
    let network = LocalNetwork::new(
        PartialAnswers::Forbid,
        &[&[("t.csv", &uneven(0..500))], &[("t.csv", &uneven(500..9_001))], &[("t.csv", &uneven(9_001..9_002))]],
    );
    let whole = LocalNetwork::new(PartialAnswers::Forbid, &[&[("t.csv", &uneven(0..9_002))]]);
    let numbers = |rows: &str| -> Vec<f64> { rows.split(['|', '\n']).filter_map(|cell| cell.parse().ok()).collect() };
    for (approximate, exact) in [
        ("approx_median(x)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"),
        ("approx_percentile_cont(x, 0.99)", "percentile_cont(0.99) WITHIN GROUP (ORDER BY x)"),
        ("approx_percentile_cont(x, 0.05, 500)", "percentile_cont(0.05) WITHIN GROUP (ORDER BY x)"),
        (
            "approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC)",
            "percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC)",
        ),
    ] {
        let sql = |function: &str| format!("SELECT g, {function}, count(*) FROM t GROUP BY g ORDER BY g");
        let merged = numbers(&network.rows(&sql(approximate)).await);
        let (statements, sent) = (network.take_statements(), network.take_rows_sent());
        assert!(statements.iter().all(|statement| statement.contains("tdigest(")), "{statements:#?}");
        assert_eq!(sent, 5, "{statements:#?}");
        let expected = numbers(&whole.rows(&sql(exact)).await);
        assert_eq!(merged.len(), 4);
        for (merged, expected) in merged.iter().zip(&expected) {
            // Of values from 0 to 10,873.
            assert!((merged - expected).abs() < 150.0, "{approximate}: {merged} is not about {expected}");
        }
    }
    let nothing = "SELECT approx_median(x), approx_percentile_cont(x, 0.5) FILTER (WHERE g = 'c') FROM t WHERE x < 0";
    assert_eq!(network.rows(nothing).await, "null|null");
    let error = network.try_rows("SELECT approx_percentile_cont(x, 0.5, 100000000000) FROM t").await.unwrap_err();
    assert!(error.message().contains("must be a constant between 1 and 10000"), "{error:?}");
}
