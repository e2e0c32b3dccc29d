//! Plans and estimates before execution.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Int32Array, RecordBatch, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray,
};
use insta::assert_snapshot;

use crate::support::{Folder, TestNode, numbers, numbers_csv, write_parquet};

fn database() -> (Folder, TestNode) {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(10_000), 1_000);
    folder.write("t.csv", numbers_csv(10_000));
    let node = folder.database();
    (folder, node)
}

#[tokio::test]
async fn plan_reports_columns_and_estimates() {
    let (folder, node) = database();
    let plan = node.plan("SELECT id, upper(name) AS loud FROM n").await.unwrap();
    let names: Vec<String> = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["id", "loud"]);
    assert_eq!(plan.estimated_rows(), Some(10_000));
    let bytes = std::fs::metadata(folder.join("n.parquet")).unwrap().len();
    assert_eq!(plan.estimated_bytes(), Some(bytes));

    let plan = node.plan("SELECT * FROM t").await.unwrap();
    let rows = plan.estimated_rows().unwrap();
    assert!((8_000..12_000).contains(&rows), "{rows} rows are guessed");
    assert_eq!(node.plan("SELECT 1").await.unwrap().estimated_bytes(), None);
}

#[tokio::test]
async fn plan_reports_whether_it_is_blocking() {
    let (_folder, node) = database();
    let blocking = async |sql: &str| node.plan(sql).await.unwrap().is_pipeline_breaking().unwrap();
    for sql in [
        "SELECT * FROM n ORDER BY name",
        "SELECT * FROM n ORDER BY name LIMIT 5",
        "SELECT name, count(*) FROM n GROUP BY name",
        "SELECT count(DISTINCT name) FROM n",
        "SELECT sum(id) FROM t WHERE id > 5",
    ] {
        assert!(blocking(sql).await, "{sql}");
    }
    for sql in [
        "SELECT * FROM n",
        "SELECT upper(name) FROM t WHERE id > 5",
        "SELECT * FROM n LIMIT 5",
        "SELECT * FROM n JOIN t ON n.id = t.id",
        "SELECT * FROM n UNION ALL SELECT * FROM t",
    ] {
        assert!(!blocking(sql).await, "{sql}");
    }
}

#[tokio::test]
async fn plans_contain_no_local_paths() {
    let (folder, node) = database();
    let text =
        node.plan("SELECT name FROM t WHERE id > 9990 ORDER BY name LIMIT 3").await.unwrap().explain().await.unwrap();
    assert!(!text.contains(&folder.path().display().to_string()), "{text}");
    assert_snapshot!(text, @r"
    Logical plan:
    Sort: t.name ASC NULLS LAST, fetch=3
      Projection: t.name
        Filter: t.id > Int64(9990)
          TableScan: t projection=[id, name], partial_filters=[t.id > Int64(9990)]

    Physical plan:
    SortPreservingMergeExec: [name@0 ASC NULLS LAST], fetch=3
      SortExec: TopK(fetch=3), expr=[name@0 ASC NULLS LAST], preserve_partitioning=[true]
        FilterExec: id@0 > 9990, projection=[name@1]
          RepartitionExec: partitioning=RoundRobinBatch(2), input_partitions=1
            DataSourceExec: file_groups={1 group: [[t.csv]]}, projection=[id, name], file_type=csv
    ");
    assert_snapshot!(node.plan("SELECT * FROM n WHERE id < 5").await.unwrap().explain().await.unwrap(), @r"
    Logical plan:
    Filter: n.id < Int64(5)
      TableScan: n projection=[id, name], partial_filters=[n.id < Int64(5)]

    Physical plan:
    FilterExec: id@0 < 5
      DataSourceExec: file_groups={1 group: [[n.parquet]]}, projection=[id, name], file_type=parquet, predicate=id@0 < 5, pruning_predicate=id_null_count@1 != row_count@2 AND id_min@0 < 5, required_guarantees=[]
    ");
}

#[tokio::test]
async fn plan_has_the_parentheses_of_conditions() {
    let (_folder, node) = database();
    let sql = "SELECT id FROM n WHERE (id < 5 OR id > 90) AND name <> 'a'";
    let text = node.plan(sql).await.unwrap().explain().await.unwrap();
    assert!(text.contains("predicate=(id@0 < 5 OR id@0 > 90) AND name@1 != a, "), "{text}");
}

/// Both tables have the columns `id` and `name`. The larger table becomes the right side of the join.
#[tokio::test]
async fn conditions_on_outer_joins_are_those_of_their_table() {
    let folder = Folder::new();
    write_parquet(&folder.join("large.parquet"), &numbers(10_000), 1_000);
    write_parquet(&folder.join("small.parquet"), &numbers(50), 50);
    let node = folder.database();
    for (join, condition, count) in [
        ("large AS l RIGHT JOIN small AS s ON l.id = s.id * 1000", "l.id IS NULL", "40"),
        ("small AS s LEFT JOIN large AS l ON l.id = s.id * 1000", "l.id IS NULL", "40"),
        ("large AS l LEFT JOIN small AS s ON l.id = s.id * 1000", "s.id IS NULL", "9990"),
        ("small AS s RIGHT JOIN large AS l ON l.id = s.id * 1000", "s.name IS NULL", "9990"),
        ("large AS l FULL JOIN small AS s ON l.id = s.id * 1000", "l.id IS NULL OR s.id IS NULL", "10030"),
        ("large AS l RIGHT JOIN small AS s ON l.id = s.id * 1000", "l.name IS NULL AND s.id > 45", "4"),
    ] {
        let sql =
            format!("SELECT count(*) FROM (SELECT l.id, s.id AS other, l.name FROM {join} WHERE {condition}) AS t");
        assert_eq!(node.rows(&sql).await, count, "{sql}");
        let sql = format!("SELECT s.id, l.id AS other, l.name FROM {join} WHERE {condition}");
        assert_eq!(node.rows(&sql).await.lines().count().to_string(), count, "{sql}");
    }
}

/// Each branch has one value of the first key, and the partitions of the sort share a limit.
#[tokio::test(flavor = "multi_thread")]
async fn constants_of_branches_are_keys_of_a_sort() {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(10_000), 1_000);
    let node = folder.database();
    let branches = "SELECT 'a' AS k, id FROM n UNION ALL SELECT 'b', id + 20000 FROM n";
    for _ in 0..20 {
        let last = node.rows(&format!("SELECT k, id FROM ({branches}) AS t ORDER BY k DESC, id LIMIT 2")).await;
        assert_eq!(last, "b|20000\nb|20001");
        let ties = format!("SELECT k, id % 2 FROM ({branches}) AS t ORDER BY id % 2 DESC, k DESC LIMIT 1");
        assert_eq!(node.rows(&ties).await, "b|1");
    }
}

/// A column is compared with a constant of its own type, so that it needs no cast.
#[tokio::test]
async fn constants_get_the_types_of_their_columns() {
    let folder = Folder::new();
    let times = TimestampMillisecondArray::from(vec![Some(0), Some(1), Some(-1), None]);
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4]))),
        // 1970-01-01, 9999-12-31 and 0001-01-01.
        ("d", Arc::new(Date32Array::from(vec![Some(0), Some(2_932_896), Some(-719_162), None]))),
        ("z", Arc::new(times.clone().with_timezone("UTC"))),
        ("t", Arc::new(times)),
    ];
    write_parquet(&folder.join("x.parquet"), &RecordBatch::try_from_iter(columns).unwrap(), 4);
    let node = folder.database();
    for (condition, filter, ids) in [
        ("d < date '1994-01-01' + interval '1 year'", r#"x.d < Date32("1995-01-01")"#, "1\n3"),
        ("d < timestamp '1970-01-01 12:00'", r#"x.d <= Date32("1970-01-01")"#, "1\n3"),
        ("timestamp '1970-01-01 12:00' < d", r#"x.d > Date32("1970-01-01")"#, "2"),
        ("d < timestamp '9999-12-31' AND d >= now() - interval '100 years'", r#"x.d < Date32("9999-12-31")"#, "1"),
        ("t < timestamp '1970-01-01 00:00:00.0005'", "x.t <= TimestampMillisecond(0, None)", "1\n3"),
        ("z::timestamp < timestamp '1970-01-01 00:00:00.0005'", "x.z <= TimestampMillisecond(0, ", "1\n3"),
        ("t < date '2500-01-01'", "x.t < TimestampMillisecond(16725225600000, None)", "1\n2\n3"),
        ("id < 2.5", "x.id <= Int32(2)", "1\n2"),
        ("id BETWEEN 1.5::float8 AND 3", "x.id > Int32(1)", "2\n3"),
        ("id IN (1.5, 2.0, 4)", "x.id = Int32(2)", "2\n4"),
        ("id > 3000000000", "", ""),
    ] {
        let sql = format!("SELECT id FROM x WHERE {condition} ORDER BY id");
        let plan = node.plan(&sql).await.unwrap().explain().await.unwrap();
        assert!(!plan.contains("CAST(") && !plan.contains("cast*("), "{condition}: {plan}");
        assert!(plan.contains(filter), "{condition}: {plan}");
        assert_eq!(node.rows(&sql).await, ids, "{condition}");
    }
}

/// A file whose times have a coarser unit than another file of its table keeps its rows.
#[tokio::test]
async fn files_with_times_of_several_units_keep_their_rows() {
    let folder = Folder::new();
    let write = |name: &str, id: i32, t: ArrayRef| {
        let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(Int32Array::from(vec![id]))), ("t", t)];
        write_parquet(&folder.join(name), &RecordBatch::try_from_iter(columns).unwrap(), 1);
    };
    write("x/1.parquet", 1, Arc::new(TimestampMillisecondArray::from(vec![0])));
    write("x/2.parquet", 2, Arc::new(TimestampMicrosecondArray::from(vec![400])));
    let node = folder.database();
    for (condition, ids) in [
        ("t < timestamp '1970-01-01 00:00:00.0005'", "1\n2"),
        ("t <= timestamp '1970-01-01 00:00:00.0003'", "1"),
        ("t > timestamp '1969-12-31 23:59:59.9995'", "1\n2"),
        ("t = timestamp '1970-01-01 00:00:00.0004'", "2"),
        ("t <> timestamp '1970-01-01 00:00:00.0004'", "1"),
        ("t IN (timestamp '1970-01-01 00:00:00.0004', timestamp '1970-01-01 00:00:00.0006')", "2"),
        ("t = timestamp '1970-01-01'", "1"),
    ] {
        assert_eq!(node.rows(&format!("SELECT id FROM x WHERE {condition} ORDER BY id")).await, ids, "{condition}");
    }
}

#[tokio::test]
async fn times_beyond_the_unit_of_their_table_are_refused() {
    let folder = Folder::new();
    let late: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![i64::MAX / 100]));
    let cases: [(&str, ArrayRef, &str); 2] = [
        ("micros", Arc::new(TimestampMicrosecondArray::from(vec![400])), "has a time beyond 64 bits of its unit"),
        (
            "nanos",
            Arc::new(TimestampNanosecondArray::from(vec![400])),
            "has times with nanoseconds, and others outside of the years 1677 to 2262",
        ),
    ];
    for (table, finer, refusal) in cases {
        for (file, t) in [("1", &late), ("2", &finer)] {
            let batch = RecordBatch::try_from_iter([("t", t.clone())]).unwrap();
            write_parquet(&folder.join(&format!("{table}/{file}.parquet")), &batch, 1);
        }
        let refused = folder.database().refusal(&format!("SELECT t FROM {table}")).await;
        assert!(refused.contains(&format!("column \"t\" of the table {table:?} {refusal}")), "{refused}");
    }
}
