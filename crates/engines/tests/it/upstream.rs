//! Statements that DataFusion alone, without our rules and scans, answers wrongly or not at all.
//!
//! `docs/decisions/upstream/README.md` names the issues, and the code that works around each of them. If a test here
//! fails with another version of DataFusion, a problem is solved: the code that it requires goes, with its statement.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::Result;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Union, col, grouping_set, lit};
use datafusion::prelude::{SessionConfig, SessionContext};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::data_type::Int96Type;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use crate::parquet::{time, write_column, write_empty_groups};
use crate::support::{Folder, lines, numbers, write_parquet};

/// DataFusion with two partitions over the Parquet files of `folder`. Its planner keeps the sorts of subqueries, as ours does.
async fn open(folder: &Folder) -> Result<SessionContext> {
    write_parquet(&folder.join("large.parquet"), &numbers(10_000), 1_000);
    write_parquet(&folder.join("small.parquet"), &numbers(50), 50);
    let reals: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN]));
    write_parquet(&folder.join("reals.parquet"), &RecordBatch::try_from_iter([("d", reals)])?, 2);
    // Integers that no double equals, beside doubles without bounds.
    let integers: ArrayRef = Arc::new(Int64Array::from(vec![(1_i64 << 53) + 1, (1_i64 << 53) + 3]));
    let bits: ArrayRef = Arc::new(Int64Array::from(vec![0, 1]));
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::NAN]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["zero", "one"]));
    let columns = [("n", integers), ("bit", bits), ("d", doubles), ("name", names)];
    write_parquet(&folder.join("integers.parquet"), &RecordBatch::try_from_iter(columns)?, 2);
    write_empty_groups(&folder.join("groups.parquet"));
    // 1501-10-27.
    write_column::<Int96Type>(&folder.join("times.parquet"), "int96 v", &[Some(time(-171_000, 0))]);
    let config = SessionConfig::new().with_target_partitions(2).with_enable_subquery_sort_elimination(false);
    let context = SessionContext::new_with_config(config);
    for table in ["large", "small", "reals", "integers", "groups", "times"] {
        let path = folder.join(&format!("{table}.parquet"));
        context.sql(&format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'", path.display())).await?;
    }
    Ok(context)
}

async fn rows(context: &SessionContext, sql: &str) -> Result<String> {
    Ok(lines(&context.sql(sql).await?.collect().await?))
}

/// Checks the wrong answers of statements. Each is given as workaround, statement, wrong answer and right answer.
async fn check_answers(statements: &[(&str, &str, &str, &str)]) {
    let folder = Folder::new();
    let context = open(&folder).await.unwrap();
    for (workaround, sql, wrong, right) in statements {
        let answer = rows(&context, sql).await;
        let is_wrong = answer.as_ref().is_ok_and(|rows| rows == wrong);
        assert!(is_wrong, "{workaround}: the answer to {sql} is {answer:?}; {right:?} is right");
    }
}

/// Checks that statements are refused. Each is given as workaround, statement and a part of the error.
async fn check_refusals(statements: &[(&str, &str, &str)]) {
    let folder = Folder::new();
    let context = open(&folder).await.unwrap();
    for (workaround, sql, expected) in statements {
        let answer = rows(&context, sql).await;
        let is_refused = answer.as_ref().is_err_and(|error| error.to_string().contains(expected));
        assert!(is_refused, "{workaround}: the answer to {sql} is {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_joins_and_subqueries_are_wrong() {
    check_answers(&[
        (
            "pgsql/src/outer_join.rs, constants",
            "SELECT a.x, b.y FROM (SELECT 1 AS x) AS a FULL JOIN (SELECT 2 AS y) AS b ON a.x = b.y ORDER BY a.x",
            "null|2\n1|null",
            "1|null\nnull|2",
        ),
        (
            "pgsql/src/outer_join.rs, columns of the same name",
            "SELECT count(*) FROM (SELECT l.id, s.id AS other, l.name FROM large AS l
             RIGHT JOIN small AS s ON l.id = s.id * 1000 WHERE l.id IS NULL) AS t",
            "0",
            "40",
        ),
        (
            "pgsql/src/correlated, EXISTS over an aggregate",
            "SELECT x FROM (VALUES (1), (2)) AS t (x) WHERE EXISTS (SELECT count(*) FROM (VALUES (1)) AS u (k) WHERE k = x)",
            "1",
            "1\n2",
        ),
        (
            "pgsql/src/correlated, EXISTS over grouping sets",
            "SELECT x FROM (VALUES (1), (2)) AS t (x)
             WHERE EXISTS (SELECT 1 FROM (VALUES (1)) AS u (k) WHERE k = x GROUP BY ROLLUP (k))",
            "1",
            "1\n2",
        ),
        (
            "pgsql/src/correlated/subquery_value.rs",
            "SELECT (SELECT 1 AS one FROM (VALUES (1)) AS t (x) WHERE x > 5) IS NULL",
            "false",
            "true",
        ),
        (
            "pgsql/src/optimizer.rs, keys of joins",
            "SELECT a.x FROM (VALUES (1, NULL)) AS a (x, y)
             JOIN (VALUES (1, NULL)) AS b (x, y) ON a.x IS NOT DISTINCT FROM b.x WHERE a.y = b.y",
            "1",
            "",
        ),
        (
            "pgsql/src/optimizer.rs, several joins",
            "SELECT count(*) FROM (VALUES (1), (NULL)) AS a (x)
             JOIN (VALUES (1), (NULL)) AS b (x) ON a.x IS NOT DISTINCT FROM b.x
             CROSS JOIN (VALUES (1)) AS c (x) WHERE c.x = 1",
            "1",
            "2",
        ),
        (
            "pgsql/src/optimizer.rs, conditions without columns",
            "SELECT count(*) FROM (VALUES (1)) AS t (x) HAVING (SELECT false)",
            "0",
            "",
        ),
        (
            "pgsql/src/subquery_order.rs",
            "SELECT array_agg(x) FROM (SELECT x FROM (VALUES (2), (1)) AS t (x) ORDER BY x) AS s",
            "[2, 1]",
            "[1, 2]",
        ),
    ])
    .await;
}

/// On one thread, because the answer depends on the partition that is sorted first.
#[tokio::test]
async fn answers_of_sorted_unions_are_wrong() {
    check_answers(&[(
        "engines/src/embedded/plan/union_constants.rs",
        "SELECT k, id FROM (SELECT 'a' AS k, id FROM (VALUES (0), (1)) AS t (id)
             UNION ALL SELECT 'b', id FROM (VALUES (10), (11)) AS u (id)) AS t ORDER BY k DESC, id LIMIT 2",
        "a|0\na|1",
        "b|10\nb|11",
    )])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_aggregates_and_windows_are_wrong() {
    check_answers(&[
        (
            "pgsql/src/aggregate/variance.rs, groups",
            "SELECT g, var_pop(x) FROM (VALUES (1, 1e200), (2, 3.0)) AS t (g, x) GROUP BY g ORDER BY g",
            "1|NaN\n2|0.0",
            "1|0.0\n2|0.0",
        ),
        (
            "pgsql/src/aggregate/regression.rs, `regr_r2`",
            "SELECT regr_r2(y, x) FROM (VALUES (1, 1), (1, 2)) AS t (y, x)",
            "null",
            "1.0",
        ),
        (
            "pgsql/src/aggregate/named_window.rs",
            "SELECT sum(x) OVER (w ORDER BY x) FROM (VALUES (1, 1), (2, 2)) AS t (g, x)
             WINDOW w AS (PARTITION BY g) ORDER BY x",
            "1\n3",
            "1\n2",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_expressions_and_scans_are_wrong() {
    check_answers(&[
        (
            "pgsql/src/in_list.rs, CASE",
            "SELECT x FROM (VALUES (2)) AS t (x) WHERE x + 0 IN (1, CASE WHEN x > 3 THEN 2 END)",
            "2",
            "",
        ),
        (
            "pgsql/src/in_list.rs, lists of one operand",
            "SELECT a FROM (VALUES (1, 1, 1)) AS t (a, b, c) WHERE a IN (b, 5) AND a IN (c, 6)",
            "",
            "1",
        ),
        (
            "pgsql/src/in_list.rs, lists beside NULL",
            "SELECT x IN (1, 2) AND x IN (3, 4) AS y FROM (VALUES (1), (NULL)) AS t (x) ORDER BY x",
            "false\nfalse",
            "false\nnull",
        ),
        (
            "pgsql/src/time/comparison.rs",
            r#"SELECT date_part('hour', CASE WHEN x THEN arrow_cast(0, 'Timestamp(Second, None)') END) AS a,
             date_part('hour', CASE WHEN x THEN arrow_cast(0, 'Timestamp(Second, Some("Europe/Berlin"))') END) AS b
             FROM (VALUES (true)) AS t (x)"#,
            "0|0",
            "0|1",
        ),
        (
            "pgsql/src/cast/compared_constant.rs, timestamps",
            "SELECT count(*) FROM (SELECT arrow_cast(0, 'Timestamp(Millisecond, None)') AS t) AS s
             WHERE t < arrow_cast(500, 'Timestamp(Microsecond, None)')",
            "0",
            "1",
        ),
        ("pgsql/src/time/mod.rs, signs of intervals", "SELECT date_part('hour', -interval '1 day 2 hours')", "2", "-2"),
        (
            "pgsql/src/number/mod.rs, `x # x`",
            "SELECT x ^ x FROM (VALUES (1), (NULL)) AS t (x) ORDER BY x",
            "0\n0",
            "0\nnull",
        ),
        ("pgsql/src/number/literal.rs", "SELECT arrow_typeof(1)", "Int64", "Int32"),
        ("engines/src/embedded/scan/footer.rs", "SELECT count(*) FROM reals WHERE d > 2", "0", "1"),
        ("engines/src/embedded/files/empty_groups.rs", "SELECT b FROM groups", "1", "2"),
        (
            "engines/src/embedded/scan/parquet_values.rs, times",
            "SELECT date_part('year', v) FROM times",
            "2086",
            "1501",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subqueries_are_refused() {
    let no_plan = "Physical plan does not support logical expression";
    check_refusals(&[
        (
            "pgsql/src/correlated, scalar subqueries",
            "SELECT x, (SELECT k FROM (VALUES (1, 5), (1, 7)) AS u (g, k) WHERE g = x ORDER BY k LIMIT 1)
             FROM (VALUES (1)) AS t (x)",
            no_plan,
        ),
        (
            "pgsql/src/correlated, EXISTS in outputs",
            "SELECT EXISTS (SELECT 1 FROM (VALUES (1)) AS u (k) WHERE k = x) FROM (VALUES (1)) AS t (x)",
            no_plan,
        ),
        (
            "pgsql/src/correlated, IN in outputs",
            "SELECT x IN (SELECT k FROM (VALUES (1)) AS u (k)) FROM (VALUES (1)) AS t (x)",
            no_plan,
        ),
        (
            "pgsql/src/correlated, LATERAL",
            "SELECT x, k FROM (VALUES (1)) AS t (x), LATERAL (SELECT k FROM (VALUES (1, 5), (1, 7)) AS u (g, k)
             WHERE g = x ORDER BY k LIMIT 1) AS s",
            no_plan,
        ),
        (
            "pgsql/src/correlated, NOT IN",
            "SELECT x FROM (VALUES (1), (2)) AS t (x)
             WHERE x NOT IN (SELECT k FROM (VALUES (3, 1), (NULL, 2)) AS u (k, g) WHERE g = x)",
            "only supports single column join key",
        ),
        (
            "pgsql/src/correlated/outer_aggregates.rs",
            "SELECT (SELECT count(a)) FROM (VALUES (1), (2)) AS t (a)",
            no_plan,
        ),
        (
            "pgsql/src/correlated, `check_recursion` and `check_scan`",
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL
             SELECT u.n FROM (VALUES (2)) AS u (n) WHERE u.n NOT IN (SELECT n FROM t)) SELECT n FROM t",
            "Unexpected empty work table",
        ),
        ("pgsql/src/statement/mod.rs", "SELECT (SELECT ARRAY[x]) FROM (VALUES (1)) AS t (x)", "No field named x"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_statements_are_refused() {
    check_refusals(&[
        (
            "pgsql/src/filter_order.rs, conditions",
            "SELECT y FROM (VALUES (1), (0)) AS t (y) WHERE y <> 0 AND 1 / y > 0",
            "Divide by zero",
        ),
        (
            "pgsql/src/filter_order.rs, projections",
            "SELECT name, 1 / (n * bit) AS r FROM integers WHERE name = 'one'",
            "Divide by zero",
        ),
        (
            "pgsql/src/aggregate/cast_names.rs",
            "SELECT max(x), max(x::bigint) FROM (VALUES (1::int), (2)) AS t (x)",
            "have the same name",
        ),
        (
            "pgsql/src/statement/aliases.rs",
            "WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS x) SELECT * FROM a) AS b",
            "specified more than once",
        ),
        ("pgsql/src/cast/mod.rs", "SELECT n FROM integers WHERE n > d", "Selectivity is out of limit"),
        (
            "pgsql/src/truth_test.rs",
            "SELECT max(b) FROM (SELECT x IS TRUE AS b FROM (VALUES (true), (NULL)) AS t (x)) AS s",
            "field nullability at index 0",
        ),
        (
            "pgsql/src/aggregate/planner.rs, offsets",
            "SELECT lag(x, n) OVER (ORDER BY x) FROM (VALUES (1, 1)) AS t (x, n)",
            "only support Literal types",
        ),
        (
            "pgsql/src/aggregate/planner.rs, delimiters",
            "SELECT string_agg(x, d) FROM (VALUES ('a', ',')) AS t (x, d)",
            "string_agg delimiter must be a string literal",
        ),
        (
            "pgsql/src/aggregate/named_window.rs, offsets",
            "SELECT sum(x) OVER (ORDER BY x ROWS 1 + 1 PRECEDING) FROM (VALUES (1)) AS t (x)",
            "frame offsets for ROWS / GROUPS must be non negative integers",
        ),
        (
            "pgsql/src/statement/sorted_rows.rs, ORDER BY",
            "SELECT x FROM (VALUES (1)) AS t (x) ORDER BY unnest([1, 2])",
            "Unnest should be rewritten",
        ),
        (
            "pgsql/src/statement/sorted_rows.rs, DISTINCT ON",
            "SELECT DISTINCT ON (x) x, unnest([1, 2]) FROM (VALUES (1)) AS t (x)",
            "Unnest should be rewritten",
        ),
        (
            "engines/src/embedded/files/logical_types.rs, structures without members",
            "SELECT arrow_cast(NULL, 'Struct()') AS s, count(*) FROM (VALUES (1), (2)) AS t (x) GROUP BY s",
            "create a struct array with no fields",
        ),
    ])
    .await;
}

/// `pgsql/src/analyzer.rs`, `recompute_schema`.
#[test]
fn unions_keep_the_columns_of_their_former_inputs() {
    let inputs = |value: Expr| {
        let input = LogicalPlanBuilder::empty(true).project([value.alias("x")]).unwrap().build().unwrap();
        vec![Arc::new(input.clone()), Arc::new(input)]
    };
    let union = Union::try_new_with_loose_types(inputs(lit(1_i64))).unwrap();
    let changed = LogicalPlan::Union(Union { inputs: inputs(lit("a")), ..union });
    let recomputed = changed.recompute_schema().unwrap();
    assert_eq!(recomputed.schema().field(0).data_type(), &DataType::Int64, "Utf8 is right");
}

/// `pgsql/src/aggregate/mod.rs`: grouping sets with an alias have no plan.
#[test]
fn rewritten_grouping_sets_get_an_alias() {
    let sets = |key: &str| grouping_set(vec![vec![col(key)]]);
    let name = NamePreserver::new_for_projection().save(&sets("a"));
    assert!(matches!(name.restore(sets("b")), Expr::Alias(_)));
}

/// `engines/src/embedded/scan/parquet_values.rs`, intervals.
#[test]
fn intervals_of_parquet_have_no_months() {
    let message = parse_message_type("message m { required fixed_len_byte_array(12) span (INTERVAL); }").unwrap();
    let schema = parquet_to_arrow_schema(&SchemaDescriptor::new(Arc::new(message)), None).unwrap();
    assert_eq!(schema.field(0).data_type(), &DataType::Interval(IntervalUnit::DayTime), "MonthDayNano is right");
}

/// `plan/spilling_sort.rs`: one partition sorts these rows in the same memory.
#[tokio::test(flavor = "multi_thread")]
async fn sorts_of_two_partitions_fail_with_their_first_batch() {
    let sort = async |partitions| {
        let memory = Arc::new(FairSpillPool::new(16 << 20));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory).build_arc()?;
        let config = SessionConfig::new().with_target_partitions(partitions);
        let config = config.with_sort_spill_reservation_bytes(1 << 20);
        let context = SessionContext::new_with_config_rt(config, runtime);
        let sql = "SELECT value, repeat(value::text, 60) AS t FROM generate_series(1, 60000) ORDER BY t";
        let batches = context.sql(sql).await?.collect().await?;
        Ok::<usize, datafusion::error::DataFusionError>(batches.iter().map(RecordBatch::num_rows).sum())
    };
    assert_eq!(sort(1).await.unwrap(), 60_000);
    let error = sort(2).await.unwrap_err().to_string();
    assert!(error.contains("with 0.0 B already allocated"), "{error}");
}
