//! Random tables, split over one to five nodes, answer random statements as one node that holds all rows.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use tidegate_engines::PartialAnswers;
use tokio::runtime::Runtime;

use super::local_node::{LocalNetwork, LocalNode, NODE_NAMES};
use crate::support::Folder;

/// A row, and the node that holds it.
#[derive(Debug, Clone)]
struct Row {
    node: usize,
    label: Option<&'static str>,
    small: Option<i32>,
    number: Option<i64>,
    /// A multiple of a quarter, so that sums are exact in any order.
    double: Option<f64>,
    amount: Option<i128>,
    flag: Option<bool>,
    day: Option<i32>,
    time: Option<i64>,
}

fn row(nodes: usize) -> impl Strategy<Value = Row> {
    let maybe = |of: BoxedStrategy<i64>| prop::option::weighted(0.85, of);
    let label = prop::option::weighted(0.85, prop::sample::select(vec!["a", "b", "B", "ä", ""]));
    let numbers = (maybe((-3_i64..4).boxed()), maybe(prop_oneof![-5_i64..6, Just(i64::MAX), Just(i64::MIN)].boxed()));
    let others =
        (maybe((-8_i64..9).boxed()), maybe((-999_i64..1000).boxed()), prop::option::weighted(0.85, any::<bool>()));
    // Four days, at any time of day.
    let times = (maybe((20_000_i64..20_004).boxed()), maybe((0_i64..4 * 86_400).boxed()));
    (0..nodes, label, numbers, others, times).prop_map(
        |(node, label, (small, number), (double, amount, flag), (day, time))| {
            let to_i32 = |value: i64| i32::try_from(value).unwrap();
            Row {
                node,
                label,
                small: small.map(to_i32),
                number,
                double: double.map(|quarters| quarters as f64 / 4.0),
                amount: amount.map(i128::from),
                flag,
                day: day.map(to_i32),
                time: time.map(|seconds| (20_000 * 86_400 + seconds) * 1_000_000),
            }
        },
    )
}

/// The rows as a Parquet file; with the name of the node if `with_node`.
fn file(rows: &[(usize, Row)], with_node: bool) -> Vec<u8> {
    fn column<T, A: FromIterator<T> + 'static + arrow::array::Array>(
        rows: &[(usize, Row)],
        value: impl Fn(&Row) -> T,
    ) -> ArrayRef {
        Arc::new(rows.iter().map(|(_, row)| value(row)).collect::<A>())
    }
    let amounts: Decimal128Array = rows.iter().map(|(_, row)| row.amount).collect();
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(rows.iter().map(|(id, _)| Some(*id as i64)).collect::<Int64Array>()), true),
        ("label", column::<_, StringArray>(rows, |row| row.label), true),
        ("small", column::<_, Int32Array>(rows, |row| row.small), true),
        ("number", column::<_, Int64Array>(rows, |row| row.number), true),
        ("double", column::<_, Float64Array>(rows, |row| row.double), true),
        ("amount", Arc::new(amounts.with_precision_and_scale(12, 2).unwrap()), true),
        ("flag", column::<_, BooleanArray>(rows, |row| row.flag), true),
        ("day", column::<_, Date32Array>(rows, |row| row.day), true),
        ("time", column::<_, TimestampMicrosecondArray>(rows, |row| row.time), true),
    ];
    if with_node {
        columns.push(("_node", column::<_, StringArray>(rows, |row| Some(NODE_NAMES[row.node])), true));
    }
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

const AGGREGATES: &[&str] = &[
    "COUNT(*)",
    "COUNT(number)",
    "COUNT(label)",
    "SUM(small)",
    "SUM(number::numeric)",
    "SUM(double)",
    "SUM(amount)",
    "AVG(small)",
    "AVG(double)",
    "AVG(amount)",
    "MIN(number)",
    "MAX(number)",
    "MIN(double)",
    "MAX(amount)",
    "MIN(label)",
    "MAX(day)",
    "MIN(time)",
    "bool_and(flag)",
    "bool_or(flag)",
    "bit_and(small)",
    "bit_or(number)",
    "COUNT(*) FILTER (WHERE flag)",
    "SUM(small) FILTER (WHERE number > 0)",
    "MAX(number + 1) FILTER (WHERE number < 100)",
    "stddev(small)",
    "var_pop(amount)",
    "variance(small + 1)",
    "var_samp(number)",
    "stddev_pop(number) FILTER (WHERE abs(small) < 2)",
    "stddev_samp(amount) FILTER (WHERE flag)",
    "array_agg(id ORDER BY id)",
    "string_agg(label, ',' ORDER BY id)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY number)",
    "COUNT(DISTINCT day)",
];
/// Aggregates whose last digits depend on the order of the rows.
const ROUNDED_AGGREGATES: &[&str] = &[
    "var_samp(double)",
    "var_pop(double)",
    "stddev(double)",
    "stddev_pop(double) FILTER (WHERE flag)",
    "var_pop(double / 3)",
    "covar_samp(small, double)",
    "covar_pop(double, amount)",
    "covar_pop(number, small) FILTER (WHERE number < 100 AND number > -100)",
    "corr(small, double)",
    "corr(double, small) FILTER (WHERE day IS NOT NULL)",
    "regr_slope(double, small)",
    "regr_intercept(double, small)",
    "regr_r2(double, small)",
    "regr_count(double, small)",
    "regr_avgx(double, small)",
    "regr_syy(double, small)",
    "COUNT(*)",
    "SUM(amount)",
];
const KEYS: &[&str] = &[
    "label",
    "small",
    "number",
    "flag",
    "amount",
    "day",
    "_node",
    "date_trunc('day', time)",
    "date_trunc('hour', time)",
    "extract(hour from time)",
    "date_bin('6 hours', time, timestamp '2000-01-01')",
    "small % 2",
    "upper(label)",
    "coalesce(label, '-')",
    "CASE WHEN small > 0 THEN 'up' ELSE 'down' END",
    "(number IS NULL)",
];
const CONDITIONS: &[&str] = &[
    "small > 0",
    "number <= 2",
    "label = 'a'",
    "label <> 'b'",
    "label IN ('a', 'ä')",
    "label LIKE 'a%'",
    "label IS NOT NULL",
    "flag",
    "NOT flag",
    "amount BETWEEN -100 AND 100",
    "double < 1.5",
    "time >= '2024-10-05'",
    "day = date '2024-10-05'",
    "_node = 'oslo'",
    "_node IN ('bergen', 'rome')",
    "_node <> 'milan'",
    "(small = 1 OR _node = 'pisa')",
    "small + number > 3",
    "date_trunc('day', time) = '2024-10-05'",
    "id IN (SELECT max(id) FROM t GROUP BY label)",
    "EXISTS (SELECT 1 FROM t AS u WHERE u.small = t.small AND u.id > t.id)",
];

fn picked(from: &'static [&'static str], count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(from, count)
}

fn where_clause(conditions: &[&str]) -> String {
    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

/// How the rows of two answers are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Ordered,
    Unordered,
    /// Unordered, and numbers are equal that differ in their last digits.
    Rounded,
}

fn grouped(aggregates: &'static [&'static str], comparison: Comparison) -> impl Strategy<Value = (String, Comparison)> {
    let grouped = (picked(aggregates, 1..5), picked(KEYS, 0..3), picked(CONDITIONS, 0..3), 0_usize..4);
    grouped.prop_map(move |(aggregates, keys, conditions, having)| {
        let columns = [keys.clone(), aggregates].concat().join(", ");
        let mut sql = format!("SELECT {columns} FROM t{}", where_clause(&conditions));
        if !keys.is_empty() {
            sql.push_str(&format!(" GROUP BY {}", keys.join(", ")));
            sql.push_str(["", "", " HAVING COUNT(*) > 1", " HAVING SUM(small) > 0"][having]);
        }
        (sql, comparison)
    })
}

/// A statement, and how its rows are compared.
fn statement() -> impl Strategy<Value = (String, Comparison)> {
    let distinct = (prop::sample::select(vec!["label", "small", "number", "amount", "day"]), picked(AGGREGATES, 0..3));
    let distinct = (distinct, picked(KEYS, 0..2), picked(CONDITIONS, 0..2));
    let distinct = distinct.prop_map(|((column, aggregates), keys, conditions)| {
        let counted = format!("COUNT(DISTINCT {column})");
        let columns = [keys.clone(), vec![counted.as_str()], aggregates].concat().join(", ");
        let groups = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
        (format!("SELECT {columns} FROM t{}{groups}", where_clause(&conditions)), Comparison::Unordered)
    });
    let order = prop::sample::select(vec![
        "id",
        "id DESC",
        "label, id",
        "label DESC NULLS LAST, id",
        "amount DESC, id",
        "_node, id",
        "time NULLS FIRST, id",
        "small + 1, id",
        "double, id",
    ]);
    let page = (order, picked(CONDITIONS, 0..3), 0_usize..6, 0_usize..8);
    let page = page.prop_map(|(order, conditions, offset, limit)| {
        let rows = format!("SELECT id, label, number, _node FROM t{}", where_clause(&conditions));
        (format!("{rows} ORDER BY {order} LIMIT {limit} OFFSET {offset}"), Comparison::Ordered)
    });
    let fixed = prop::sample::select(vec![
        "SELECT DISTINCT label, flag FROM t",
        "SELECT * FROM t",
        "SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.small = b.small AND a.id < b.id WHERE a.flag",
        "SELECT a.label, COUNT(*), SUM(b.small) FROM t AS a LEFT JOIN t AS b ON a.id = b.id + 1 GROUP BY a.label",
        "SELECT label, COUNT(*) FROM (SELECT label FROM t UNION ALL SELECT upper(label) FROM t) AS u GROUP BY label",
        "SELECT label, n FROM (SELECT label, COUNT(*) AS n FROM t GROUP BY label) AS g WHERE n > 1",
        "SELECT id, SUM(small) OVER (ORDER BY id) FROM t",
        "SELECT id, row_number() OVER (PARTITION BY label ORDER BY id DESC) FROM t",
        "SELECT MAX(day) FROM t",
        "SELECT label, COUNT(*) FROM t WHERE day = (SELECT MAX(day) FROM t) GROUP BY label",
        "SELECT label, flag, COUNT(*) FROM t GROUP BY ROLLUP (label, flag)",
        "WITH g AS (SELECT small, SUM(amount) AS s FROM t GROUP BY small) SELECT a.small, b.s FROM g AS a JOIN g AS b ON a.small = b.small",
        "SELECT id FROM t WHERE label IN (SELECT label FROM t WHERE flag)",
        "SELECT id FROM t WHERE label NOT IN (SELECT label FROM t WHERE flag)",
        "SELECT id, _node FROM t WHERE _node IN (SELECT _node FROM t WHERE small = 1)",
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t AS u WHERE u.small = t.small AND u.flag)",
        "SELECT id, day IN (SELECT day FROM t WHERE small = 2) FROM t",
        "SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.amount = b.amount WHERE b.small = 1",
        "SELECT a.id, b.id FROM t AS a LEFT JOIN t AS b ON a.time = b.time AND b.flag WHERE a.small > 0",
        "SELECT a.id, b.id FROM t AS a RIGHT JOIN t AS b ON a.day = b.day WHERE b.label = 'a'",
        "SELECT a.id, b.id FROM t AS a FULL JOIN t AS b ON a.id = b.small AND b.flag",
        "SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.number = b.small WHERE b.flag",
        "SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.day = b.day AND a.label = b.label WHERE NOT b.flag",
        "SELECT label, COUNT(*), SUM(amount) FROM t WHERE day IN (SELECT day FROM t WHERE flag) GROUP BY label",
        "SELECT g.label, g.n FROM (SELECT label, COUNT(*) AS n FROM t GROUP BY label) AS g JOIN t ON t.label = g.label WHERE t.id < 3",
        "SELECT a.id, v.k FROM t AS a JOIN (VALUES (1), (2), (NULL)) AS v(k) ON a.small = v.k",
        "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM t GROUP BY _node, label) AS g",
    ]);
    let fixed = fixed.prop_map(|sql| (sql.to_owned(), Comparison::Unordered));
    let (exact, rounded) =
        (grouped(AGGREGATES, Comparison::Unordered), grouped(ROUNDED_AGGREGATES, Comparison::Rounded));
    prop_oneof![5 => exact, 3 => rounded, 2 => distinct, 3 => page, 4 => fixed]
}

/// Whether the texts are equal, or numbers that differ in their last digits.
fn is_about_equal(left: &str, right: &str) -> bool {
    let numbers = (left.parse::<f64>(), right.parse::<f64>());
    let (Ok(one), Ok(other)) = numbers else { return left == right };
    left == right || (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

fn assert_same(answer: &str, expected: &str, comparison: Comparison, context: &str) {
    if comparison != Comparison::Rounded {
        assert_eq!(answer, expected, "{context}");
        return;
    }
    let cells =
        |rows: &str| rows.lines().map(|row| row.split('|').map(str::to_owned).collect()).collect::<Vec<Vec<_>>>();
    let (answered, whole) = (cells(answer), cells(expected));
    let is_row_equal = |(left, right): (&Vec<String>, &Vec<String>)| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_about_equal(left, right))
    };
    let is_equal = answered.len() == whole.len() && answered.iter().zip(&whole).all(is_row_equal);
    assert!(is_equal, "{context}\n{answer}\nnot\n{expected}");
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

fn check(nodes: usize, hides_rows: bool, rows: &[Row], statements: &[(String, Comparison)]) {
    let rows: Vec<(usize, Row)> = rows.iter().cloned().enumerate().collect();
    let whole = Folder::new();
    whole.write("t.parquet", file(&rows, true));
    let of_node = |index: usize| {
        let folder = Folder::new();
        let own: Vec<(usize, Row)> = rows.iter().filter(|(_, row)| row.node == index).cloned().collect();
        folder.write("t.parquet", file(&own, false));
        let node = LocalNode::on(NODE_NAMES[index], folder);
        // Without a known number of rows, a table may have so many that it is worth to send keys first.
        node.hides_rows.store(hides_rows, Ordering::Relaxed);
        (node, None)
    };
    RUNTIME.block_on(async {
        let whole = whole.database();
        let network = LocalNetwork::of(PartialAnswers::Forbid, (0..nodes).map(of_node).collect());
        for (sql, comparison) in statements {
            let mut expected = whole.try_rows(sql).await;
            let mut answer = network.try_rows(sql).await;
            if *comparison != Comparison::Ordered {
                for rows in [&mut expected, &mut answer].into_iter().flatten() {
                    let mut sorted: Vec<&str> = rows.lines().collect();
                    sorted.sort_unstable();
                    *rows = sorted.join("\n");
                }
            }
            let plan = match network.plan(sql).await {
                Ok(plan) => plan.explain().await.unwrap(),
                Err(error) => error.to_string(),
            };
            match (expected, answer) {
                (Ok(expected), Ok(answer)) => assert_same(&answer, &expected, *comparison, &format!("{sql}\n{plan}")),
                (Err(expected), Err(answer)) => {
                    assert_eq!(answer.kind(), expected.kind(), "{sql}: {answer}, not {expected}");
                }
                (expected, answer) => {
                    let detail = answer.as_ref().err().and_then(|error| error.detail());
                    panic!("{sql}: {answer:?} {detail:?}, not {expected:?}\n{plan}")
                }
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(64), max_shrink_iters: 30, ..ProptestConfig::default() })]

    #[test]
    fn a_network_answers_as_one_node(
        (nodes, rows) in (1_usize..=5).prop_flat_map(|nodes| (Just(nodes), prop::collection::vec(row(nodes), 0..40))),
        hides_rows in any::<bool>(),
        statements in prop::collection::vec(statement(), 25),
    ) {
        check(nodes, hides_rows, &rows, &statements);
    }
}
