//! The plans of the 22 statements of TPC-H (`bench/tpch`): tables are joined by keys, and read without casts of columns.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringViewArray};

use crate::differential::workspace;
use crate::support::{Folder, TestNode, write_parquet};

/// The tables: their numbers of rows and their columns, with the types that the benchmark's files have.
const TABLES: &[(&str, i32, &str)] = &[
    ("region", 5, "r_regionkey int8, r_name text, r_comment text"),
    ("nation", 25, "n_nationkey int8, n_name text, n_regionkey int8, n_comment text"),
    (
        "supplier",
        100,
        "s_suppkey int8, s_name text, s_address text, s_nationkey int8, s_phone text, s_acctbal numeric, s_comment text",
    ),
    (
        "part",
        2_000,
        "p_partkey int8, p_name text, p_mfgr text, p_brand text, p_type text, p_size int4, p_container text, \
         p_retailprice numeric, p_comment text",
    ),
    ("partsupp", 8_000, "ps_partkey int8, ps_suppkey int8, ps_availqty int4, ps_supplycost numeric, ps_comment text"),
    (
        "customer",
        1_500,
        "c_custkey int8, c_name text, c_address text, c_nationkey int8, c_phone text, c_acctbal numeric, \
         c_mktsegment text, c_comment text",
    ),
    (
        "orders",
        15_000,
        "o_orderkey int8, o_custkey int8, o_orderstatus text, o_totalprice numeric, o_orderdate date, \
         o_orderpriority text, o_clerk text, o_shippriority int4, o_comment text",
    ),
    (
        "lineitem",
        60_000,
        "l_orderkey int8, l_partkey int8, l_suppkey int8, l_linenumber int4, l_quantity numeric, \
         l_extendedprice numeric, l_discount numeric, l_tax numeric, l_returnflag text, l_linestatus text, \
         l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text, l_comment text",
    ),
];

fn column(data_type: &str, rows: i32) -> ArrayRef {
    let numbers = 0..rows;
    match data_type {
        "int4" => Arc::new(Int32Array::from_iter_values(numbers)),
        "int8" => Arc::new(Int64Array::from_iter_values(numbers.map(i64::from))),
        "date" => Arc::new(Date32Array::from_iter_values(numbers.map(|number| 8_036 + number % 2_500))),
        "numeric" => {
            let units = Decimal128Array::from_iter_values(numbers.map(i128::from));
            Arc::new(units.with_precision_and_scale(15, 2).unwrap())
        }
        "text" => Arc::new(StringViewArray::from_iter_values(numbers.map(|number| format!("text {number}")))),
        other => panic!("{other}"),
    }
}

fn database() -> (Folder, TestNode) {
    let folder = Folder::new();
    for (table, rows, columns) in TABLES {
        let columns = columns.split(", ").filter_map(|column| column.split_once(' '));
        let columns = columns.map(|(name, data_type)| (name, column(data_type, *rows)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        write_parquet(&folder.join(&format!("{table}.parquet")), &batch, 10_000);
    }
    let node = folder.database();
    (folder, node)
}

/// The names of the statements and their plans.
async fn plans() -> Vec<(String, String)> {
    let (_folder, node) = database();
    let mut plans = Vec::new();
    for file in fs::read_dir(workspace().join("bench/tpch")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let sql = fs::read_to_string(&path).unwrap().replace(":fraction", "0.0001");
        let plan = node.plan(&sql).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        plans.push((name, plan.explain().await.unwrap()));
    }
    assert_eq!(plans.len(), 22);
    plans
}

/// The conditions in `line` of a logical plan that cast a column to compare it with a constant.
fn casts(line: &str) -> Vec<&str> {
    let is_cast = |condition: &&str| condition.contains("CAST(") || condition.contains("cast*(");
    // The value of a subquery is not known yet.
    line.split(" AND ").filter(is_cast).filter(|condition| !condition.contains("<subquery>")).collect()
}

#[tokio::test]
async fn tables_are_joined_by_keys_and_read_without_casts() {
    for (name, plan) in plans().await {
        let (logical, physical) = plan.split_once("Physical plan:").unwrap();
        assert!(!logical.contains("Cross Join"), "{name}: {plan}");
        let has_keys = |line: &str| !line.contains("CrossJoinExec") && !line.contains("NestedLoopJoinExec");
        assert!(physical.lines().all(has_keys), "{name}: {plan}");
        let lines: Vec<&str> = logical.lines().collect();
        for pair in lines.windows(2) {
            let [above, scan] = pair else { continue };
            if scan.trim_start().starts_with("TableScan") {
                let of_filter = if above.trim_start().starts_with("Filter") { casts(above) } else { Vec::new() };
                let found = [of_filter, casts(scan)].concat();
                assert!(found.is_empty(), "{name} casts {found:?}: {plan}");
            }
        }
    }
}

/// The inner subqueries of its IN use columns of `partsupp` only, so that the IN itself is a join by its key.
#[tokio::test]
async fn a_subquery_is_correlated_at_its_own_level_only() {
    let (_, plan) = plans().await.into_iter().find(|(name, _)| name == "q20").unwrap();
    assert!(plan.contains("LeftSemi Join: supplier.s_suppkey = __correlated_sq_2.ps_suppkey\n"), "{plan}");
}
