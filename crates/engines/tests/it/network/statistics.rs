//! Variances, covariances and correlations are merged from results of the nodes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use tidegate_engines::PartialAnswers;

use super::local_node::{LocalNetwork, LocalNode, NODE_NAMES};
use crate::support::Folder;

/// Three nodes; the mean of `x` is large, so that sums of squares would cancel. The last node has one row.
fn three_nodes() -> LocalNetwork {
    LocalNetwork::new(
        PartialAnswers::Forbid,
        &[
            &[("t.csv", "site,n,x,y\na,1,1000000004.5,1.5\na,2,1000000007.5,\nb,9223372036854775807,,2.5\n")],
            &[("t.csv", "site,n,x,y\na,4,1000000013.5,3.5\na,,1000000016.5,4.5\nb,-9223372036854775807,,0.5\n")],
            &[("t.csv", "site,n,x,y\nc,7,2.5,0.5\n")],
        ],
    )
}

fn assert_partial(network: &LocalNetwork, plan: &str) {
    let statements = network.take_statements();
    assert_eq!(statements.len(), 3, "{statements:#?}\n{plan}");
    for statement in statements {
        let is_aggregate = statement.contains("SUM(") || statement.contains("regr_");
        assert!(is_aggregate, "{statement}\n{plan}");
        // A variance and a deviation need the same moments.
        assert!(statement.matches("regr_sxx(t1.\"x\", t1.\"x\") AS").count() <= 1, "{statement}");
    }
}

async fn check(sql: &str, expected: &str) {
    let network = three_nodes();
    let plan = network.plan(sql).await.unwrap().explain().await.unwrap();
    assert_eq!(network.rows(sql).await, expected, "{plan}");
    assert_partial(&network, &plan);
}

#[tokio::test(flavor = "multi_thread")]
async fn variances_of_floats_are_merged_without_cancellation() {
    check(
        "SELECT site, var_samp(x), var_pop(x), variance(x), stddev_pop(y), stddev(x) FILTER (WHERE n > 100) FROM t \
         GROUP BY site ORDER BY site",
        "a|30.0|22.5|30.0|1.247219128924647|null\nb|null|null|null|1.0|null\nc|null|0.0|null|0.0|null",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn variances_of_whole_numbers_are_exact() {
    check("SELECT var_pop(n) FROM t WHERE site = 'a'", "1.5555555555555556").await;
    check("SELECT round(stddev_pop(n)) FROM t WHERE site = 'b'", "9223372036854775807").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn covariances_and_correlations_are_merged() {
    check("SELECT covar_pop(x, y), corr(x, x), regr_count(x, y) FROM t WHERE site = 'a'", "6.333333333333333|1.0|3")
        .await;
    check("SELECT corr(x, y), covar_samp(x, y) FROM t WHERE site = 'c'", "null|null").await;
    check("SELECT corr(x, y), covar_samp(x, y), stddev(n) FROM t WHERE site = 'nowhere'", "null|null|null").await;
}

/// The sum of three times 0.1 is rounded, so that a third of it would differ from 0.1.
#[tokio::test(flavor = "multi_thread")]
async fn equal_floats_have_no_variance() {
    let network = LocalNetwork::new(
        PartialAnswers::Forbid,
        &[&[("t.csv", "x,y\n0.1,1.5\n0.1,2.5\n0.1,4.5\n")], &[("t.csv", "x,y\n0.1,8.5\n")]],
    );
    let sql = "SELECT var_pop(x), stddev(x), corr(x, y), regr_slope(y, x), regr_r2(x, y), regr_avgx(y, x) FROM t";
    let plan = network.plan(sql).await.unwrap().explain().await.unwrap();
    assert_eq!(network.rows(sql).await, "0.0|0.0|null|null|1.0|0.1", "{plan}");
    assert!(network.take_statements().iter().all(|statement| statement.contains("regr_sxx(")), "{plan}");
}

/// Rows with a site, a float and two numerics, as a Parquet file.
fn parquet(rows: &[(&str, Option<f64>, Option<i128>)]) -> Vec<u8> {
    let numeric = |precision| {
        let values: Decimal128Array = rows.iter().map(|(_, _, value)| *value).collect();
        Arc::new(values.with_precision_and_scale(precision, 2).unwrap()) as ArrayRef
    };
    let columns: [(&str, ArrayRef); 4] = [
        ("site", Arc::new(rows.iter().map(|(site, ..)| Some(*site)).collect::<StringArray>())),
        ("x", Arc::new(rows.iter().map(|(_, x, _)| *x).collect::<Float64Array>())),
        ("amount", numeric(12)),
        ("wide", numeric(38)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn folder(rows: &[(&str, Option<f64>, Option<i128>)]) -> Folder {
    let folder = Folder::new();
    folder.write("t.parquet", parquet(rows));
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn numerics_and_special_floats_are_as_on_one_node() {
    let parts: [&[_]; 3] = [
        &[("a", Some(0.1), Some(100)), ("nan", Some(f64::NAN), None), ("inf", Some(1.0), Some(9_999_999_999))],
        &[("a", Some(0.1), Some(333)), ("nan", Some(1.0), None), ("inf", Some(f64::INFINITY), Some(-9_999_999_999))],
        &[("a", Some(0.1), Some(7)), ("one", Some(f64::NAN), Some(5)), ("none", None, None)],
    ];
    let nodes = parts.iter().zip(NODE_NAMES).map(|(rows, name)| (LocalNode::on(name, folder(rows)), None));
    let network = LocalNetwork::of(PartialAnswers::Forbid, nodes.collect());
    let whole = folder(&parts.concat());
    let whole = whole.database();
    let check = async |functions: &str, is_partial: bool| {
        let sql = format!("SELECT site, {functions} FROM t GROUP BY site ORDER BY site");
        let plan = network.plan(&sql).await.unwrap().explain().await.unwrap();
        assert_eq!(network.rows(&sql).await, whole.try_rows(&sql).await.unwrap(), "{plan}");
        let statements = network.take_statements();
        let is_aggregate = |statement: &String| statement.contains("SUM(") || statement.contains("regr_");
        assert_eq!(statements.iter().all(is_aggregate), is_partial, "{statements:#?}");
    };
    check("var_pop(amount), stddev(amount), variance(amount)", true).await;
    check("var_samp(x), var_pop(x), stddev(x), stddev_pop(x), covar_pop(x, x), covar_samp(x, x)", true).await;
    // A sum of its squares could have too many digits.
    check("var_pop(wide), stddev(wide)", false).await;
    check("corr(x, x)", true).await;
    let correlation = network.rows("SELECT site, corr(x, x) FROM t GROUP BY site ORDER BY site").await;
    assert_eq!(correlation, "a|null\ninf|NaN\nnan|NaN\nnone|null\none|NaN");
    let correlation =
        network.rows("SELECT site, corr(x, amount::float8) FROM t WHERE site = 'inf' GROUP BY site").await;
    assert_eq!(correlation, "inf|NaN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_node_computes_the_whole_statistic() {
    let network = LocalNetwork::new(PartialAnswers::Forbid, &[&[("t.csv", "n,x,y\n1,1.5,2.5\n2,2.5,4.5\n4,,1.0\n")]]);
    let sql = "SELECT var_pop(n), variance(x), corr(x, y), regr_slope(y, n) FROM t";
    let plan = network.plan(sql).await.unwrap().explain().await.unwrap();
    assert_eq!(network.rows(sql).await, "1.5555555555555556|0.5|1.0|-0.6785714285714285", "{plan}");
    let statements = network.take_statements();
    assert!(matches!(statements.as_slice(), [one] if one.contains("var_samp(") && one.contains("corr(")), "{plan}");
}
