//! Statements that DataFusion alone, without our rules and scans, answers wrongly or not at all.
//!
//! `docs/decisions/upstream/README.md` names the issues, and the code that works around each of them. If a test here
//! fails with another version of DataFusion, a problem is solved: the code that it requires goes, with its statement.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::common::Result;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::support::{Folder, lines, numbers, write_parquet};

/// DataFusion with two partitions over the Parquet files of `folder`.
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
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    for table in ["large", "small", "reals", "integers"] {
        let path = folder.join(&format!("{table}.parquet"));
        context.sql(&format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'", path.display())).await?;
    }
    Ok(context)
}

async fn rows(context: &SessionContext, sql: &str) -> Result<String> {
    Ok(lines(&context.sql(sql).await?.collect().await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_wrong() {
    let folder = Folder::new();
    let context = open(&folder).await.unwrap();
    for (workaround, sql, wrong, right) in [
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
            "engines/src/embedded/plan/union_constants.rs",
            "SELECT k, id FROM (SELECT 'a' AS k, id FROM (VALUES (0), (1)) AS t (id)
             UNION ALL SELECT 'b', id FROM (VALUES (10), (11)) AS u (id)) AS t ORDER BY k DESC, id LIMIT 2",
            "a|0\na|1",
            "b|10\nb|11",
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
            "pgsql/src/correlated/nullable.rs",
            "SELECT (SELECT 1 AS one FROM (VALUES (1)) AS t (x) WHERE x > 5) IS NULL",
            "false",
            "true",
        ),
        ("engines/src/embedded/scan/footer.rs", "SELECT count(*) FROM reals WHERE d > 2", "0", "1"),
    ] {
        let answer = rows(&context, sql).await;
        let is_wrong = answer.as_ref().is_ok_and(|rows| rows == wrong);
        assert!(is_wrong, "{workaround}: the answer to {sql} is {answer:?}; {right:?} is right");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_refused() {
    let folder = Folder::new();
    let context = open(&folder).await.unwrap();
    let no_plan = "Physical plan does not support logical expression";
    for (workaround, sql, expected) in [
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
            "pgsql/src/filter_order, conditions",
            "SELECT y FROM (VALUES (1), (0)) AS t (y) WHERE y <> 0 AND 1 / y > 0",
            "Divide by zero",
        ),
        (
            "pgsql/src/filter_order, projections",
            "SELECT name, 1 / (n * bit) AS r FROM integers WHERE name = 'one'",
            "Divide by zero",
        ),
        (
            "pgsql/src/aggregate/cast_names.rs",
            "SELECT max(x), max(x::bigint) FROM (VALUES (1::int), (2)) AS t (x)",
            "have the same name",
        ),
        (
            "pgsql/src/statement/cte_names.rs",
            "WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS x) SELECT * FROM a) AS b",
            "specified more than once",
        ),
        ("pgsql/src/number/estimated_range.rs", "SELECT n FROM integers WHERE n > d", "Selectivity is out of limit"),
    ] {
        let answer = rows(&context, sql).await;
        let is_refused = answer.as_ref().is_err_and(|error| error.to_string().contains(expected));
        assert!(is_refused, "{workaround}: the answer to {sql} is {answer:?}");
    }
}

/// `sorter_pool.rs`, `plan/spilling_sort.rs`: one partition sorts these rows in the same memory.
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
