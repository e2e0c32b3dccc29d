//! What is sent to the nodes, and what is answered.

use std::collections::BTreeMap;

use tidegate_core::Principal;
use tidegate_engines::{HeldRows, HeldValues, PartialAnswers};
use tidegate_query::{Database, Network, PartRange, TablePart};

use super::local_node::{Failure, LocalNetwork, LocalNode};
use crate::support::TestJob;

const OSLO: &str =
    "time,site,value,count\n2026-01-01T00:00:00Z,a,1.5,1\n2026-01-02T00:00:00Z,b,2.5,2\n2026-01-02T10:00:00Z,a,4.0,3\n";
const ROME: &str = "time,site,value,count\n2026-02-01T00:00:00Z,a,10.0,10\n2026-02-02T00:00:00Z,c,,20\n";

fn two_nodes() -> LocalNetwork {
    LocalNetwork::new(PartialAnswers::Forbid, &[&[("readings.csv", OSLO)], &[("readings.csv", ROME)]])
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_the_same_name_are_one_table() {
    let network = two_nodes();
    assert_eq!(
        network.rows("SELECT _node, COUNT(*) FROM readings GROUP BY _node ORDER BY 1").await,
        "bergen|3\nmilan|2"
    );
    assert_eq!(
        network.rows("SELECT site, value, _node FROM readings ORDER BY time LIMIT 2").await,
        "a|1.5|bergen\nb|2.5|bergen"
    );
    let columns = network.database.columns("readings", &Principal::anonymous()).await.unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["time", "site", "value", "count", "_node"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_a_node_has_just_got_is_found() {
    let network = two_nodes();
    let principal = Principal::anonymous();
    for name in ["statement", "columns", "storage"] {
        network.nodes[0].keep_tables().await;
        network.nodes[1].keep_tables().await;
        network.nodes[1].write(&format!("{name}.csv"), "id\n7\n");
        match name {
            "statement" => assert_eq!(network.rows("SELECT id, _node FROM statement").await, "7|milan"),
            "columns" => assert_eq!(network.database.columns("columns", &principal).await.unwrap().len(), 2),
            _ => assert!(network.database.table_storage("storage", &principal).await.unwrap().bytes.is_some()),
        }
    }
    let refusal = network.try_rows("SELECT id FROM absent").await.unwrap_err();
    assert!(refusal.to_string().contains("there is no table \"absent\""), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_are_computed_on_the_nodes() {
    let network = two_nodes();
    let sql = "SELECT site, COUNT(*), SUM(count), AVG(count), MIN(time), COUNT(value), AVG(value), COUNT(DISTINCT count) \
               FROM readings WHERE count > 1 GROUP BY site ORDER BY site";
    let plan = network.plan(sql).await.unwrap().explain().await.unwrap();
    let answer = network.rows(sql).await;
    assert_eq!(
        answer,
        "a|2|13|6.5000000000000000000|2026-01-02T10:00:00Z|2|7.0|2\nb|1|2|2.0000000000000000000|2026-01-02T00:00:00Z|1|2.5|1\n\
         c|1|20|20.0000000000000000000|2026-02-02T00:00:00Z|0|null|1",
        "{plan}"
    );
    let statements = network.take_statements();
    assert_eq!(statements.len(), 2, "{statements:#?}");
    for statement in statements {
        assert!(statement.contains("GROUP BY"), "{statement}\n{plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_be_counted_too() {
    let network = two_nodes();
    let sql = "SELECT site, COUNT(DISTINCT site), COUNT(*), COUNT(*) + 1 FROM readings GROUP BY site ORDER BY site";
    assert_eq!(network.rows(sql).await, "a|1|3|4\nb|1|1|2\nc|1|1|2");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_by_time_and_node_are_computed_on_the_nodes() {
    let network = two_nodes();
    let sql = "SELECT date_trunc('day', time) AS day, _node, SUM(count) FROM readings GROUP BY 1, 2 ORDER BY 1, 2";
    let plan = network.plan(sql).await.unwrap().explain().await.unwrap();
    assert_eq!(
        network.rows(sql).await,
        "2026-01-01T00:00:00Z|bergen|1\n2026-01-02T00:00:00Z|bergen|5\n2026-02-01T00:00:00Z|milan|10\n2026-02-02T00:00:00Z|milan|20"
    );
    for statement in network.take_statements() {
        assert!(statement.contains("GROUP BY"), "{statement}\n{plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sorts_with_a_limit_are_computed_on_the_nodes() {
    let network = two_nodes();
    assert_eq!(
        network.rows("SELECT site, count, _node FROM readings ORDER BY count DESC LIMIT 2").await,
        "c|20|milan\na|10|milan"
    );
    for statement in network.take_statements() {
        assert!(statement.ends_with("LIMIT 2") && statement.contains("ORDER BY"), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_on_the_node_asks_this_node_only() {
    let network = two_nodes();
    assert_eq!(network.rows("SELECT COUNT(*) FROM readings WHERE _node = 'milan'").await, "2");
    let statements = network.take_statements();
    assert!(matches!(statements.as_slice(), [one] if one.starts_with("milan: ")), "{statements:#?}");
    assert_eq!(network.rows("SELECT COUNT(*) FROM readings WHERE _node = 'paris'").await, "0");
    assert!(network.take_statements().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_without_matching_rows_receive_no_statement() {
    let holds = |from: Option<&str>, before: Option<&str>| {
        let values =
            HeldValues { from: from.map(str::to_owned), before: before.map(str::to_owned), values: Vec::new() };
        HeldRows { columns: BTreeMap::from([("time".to_owned(), values)]) }
    };
    let network = LocalNetwork::of(
        PartialAnswers::Forbid,
        vec![
            (LocalNode::new("oslo", &[("readings.csv", OSLO)]), Some(holds(None, Some("2026-01-02T05:00:00Z")))),
            (LocalNode::new("rome", &[("readings.csv", ROME)]), Some(holds(Some("2026-02-01T00:00:00Z"), None))),
        ],
    );
    // A row of oslo is not part of the network.
    assert_eq!(network.rows("SELECT COUNT(*) FROM readings").await, "4");
    network.take_statements();
    assert_eq!(network.rows("SELECT SUM(count) FROM readings WHERE time >= '2026-01-15'").await, "30");
    let statements = network.take_statements();
    assert!(matches!(statements.as_slice(), [one] if one.starts_with("rome: ")), "{statements:#?}");
    let parts = network.database.locate("readings", &TestJob::start().await.job).await.unwrap();
    assert_eq!(parts[1].holds.as_deref(), Some("time >= 2026-02-01T00:00:00Z"));
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_rows_that_no_row_can_be_are_an_error() {
    let values = HeldValues { from: Some("next spring".to_owned()), ..HeldValues::default() };
    let holds = HeldRows { columns: BTreeMap::from([("time".to_owned(), values)]) };
    let oslo = LocalNode::new("oslo", &[("readings.csv", OSLO)]);
    let network = LocalNetwork::of(PartialAnswers::Allow, vec![(oslo, Some(holds))]);
    let error = network.try_rows("SELECT COUNT(*) FROM readings").await.unwrap_err();
    assert!(error.message().contains("next spring") && error.message().contains("oslo"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_differ_are_united_or_named() {
    let network = LocalNetwork::new(
        PartialAnswers::Forbid,
        &[&[("t.csv", "id,amount,kind,only\n1,2,x,7\n")], &[("t.csv", "id,amount,kind\n2,2.5,2026-01-01\n")]],
    );
    let columns = network.database.columns("t", &Principal::anonymous()).await.unwrap();
    let columns: Vec<String> = columns.iter().map(|column| format!("{} {}", column.name, column.type_name)).collect();
    let notes: Vec<String> = network
        .database
        .locate("t", &TestJob::start().await.job)
        .await
        .unwrap()
        .into_iter()
        .flat_map(|part| part.notes.into_iter().map(move |note| format!("{}: {note}", part.node)))
        .collect();
    insta::assert_snapshot!(format!("{}\n{}", columns.join(", "), notes.join("\n")), @"
    id bigint, only bigint, _node text
    milan: the column amount is left out of the network: it is bigint on bergen and double on milan, which have no common type
    milan: the column kind is left out of the network: it is text on bergen and date on milan, which have no common type
    milan: the column only is absent, and null
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_have_sizes_and_ranges_which_are_kept_while_a_node_is_away() {
    let network = two_nodes();
    let located = async || {
        let parts = network.database.locate("readings", &TestJob::start().await.job).await.unwrap();
        let of_part = |part: &TablePart| {
            let range = |range: &PartRange| format!("{} {}..{}", range.column, range.smallest, range.largest);
            let ranges: Vec<String> = part.ranges.iter().map(range).collect();
            format!("{} {:?} {}", part.node, part.bytes, ranges.join(" "))
        };
        (parts.iter().map(of_part).collect::<Vec<_>>().join("\n"), parts)
    };
    let sizes = [OSLO, ROME].map(str::len);
    let (first, parts) = located().await;
    assert_eq!(
        first,
        format!(
            "bergen Some({}) time 2026-01-01T00:00:00Z..2026-01-02T10:00:00Z site a..b\n\
             milan Some({}) time 2026-02-01T00:00:00Z..2026-02-02T00:00:00Z site a..c",
            sizes[0], sizes[1]
        )
    );
    assert!(parts.iter().all(|part| part.notes.is_empty()), "{parts:?}");
    *network.nodes[1].failure.lock() = Some(Failure::Away);
    let (later, parts) = located().await;
    assert_eq!(later, first);
    assert!(parts[0].notes.is_empty(), "{parts:?}");
    assert!(parts[1].notes[0].starts_with("size and ranges are those of 20"), "{parts:?}");
    let storage = network.database.table_storage("readings", &Principal::anonymous()).await;
    assert!(storage.is_err(), "a sum without a node would look whole");
    *network.nodes[1].failure.lock() = None;
    let storage = network.database.table_storage("readings", &Principal::anonymous()).await.unwrap();
    assert_eq!(storage.bytes, Some((sizes[0] + sizes[1]) as u64));
}
