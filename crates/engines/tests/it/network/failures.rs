//! Nodes that fail: their names are in the error, or in the mark of a partial answer.

use std::time::Duration;

use futures::StreamExt;
use tidegate_core::ErrorKind;
use tidegate_engines::PartialAnswers;

use super::local_node::{Failure, LocalNetwork};
use crate::support::{TestJob, lines};

const FILES: [&[(&str, &str)]; 3] = [&[("t.csv", "a\n1\n2\n")], &[("t.csv", "a\n3\n")], &[("t.csv", "a\n4\n5\n6\n")]];
/// How long a network waits for a silent node. The other nodes must answer in this time.
const SILENCE_MAX: Duration = Duration::from_secs(5);

fn network(partial: PartialAnswers) -> LocalNetwork {
    LocalNetwork::new(partial, &FILES)
}

/// A network whose second node fails.
fn failing_network(partial: PartialAnswers, failure: Failure) -> LocalNetwork {
    let network = if failure == Failure::Silent {
        LocalNetwork::with_timeout(SILENCE_MAX, partial, &FILES)
    } else {
        network(partial)
    };
    *network.nodes[1].failure.lock() = Some(failure);
    network
}

/// The rows of `sql`, the names of the missing nodes, and the share of the rows that they hold.
async fn partial_rows(network: &LocalNetwork, sql: &str) -> (String, String, Option<f64>) {
    let job = TestJob::start().await;
    let answer = network.plan(sql).await.unwrap().run(&job.job).await.unwrap();
    let missing = answer.missing.clone();
    let batches: Vec<_> = answer.batches.map(Result::unwrap).collect().await;
    let names = missing.as_ref().map(|missing| missing.names()).unwrap_or_default();
    (lines(&batches), names, missing.and_then(|missing| missing.share()))
}

const FAILURES: [Failure; 5] =
    [Failure::NeverReachable, Failure::Away, Failure::Silent, Failure::Refusing, Failure::WithoutTools];

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_fails_with_the_names_of_the_nodes() {
    for failure in FAILURES {
        let network = failing_network(PartialAnswers::Forbid, failure);
        let error = network.try_rows("SELECT SUM(a) FROM t").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{failure:?}: {error}");
        assert!(error.message().contains("milan"), "{failure:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_answer_names_the_nodes_and_their_share() {
    for failure in FAILURES {
        let network = failing_network(PartialAnswers::Allow, failure);
        let (rows, missing, share) = partial_rows(&network, "SELECT SUM(a), COUNT(*) FROM t").await;
        assert_eq!((rows.as_str(), missing.as_str()), ("18|5", "milan"), "{failure:?}");
        // Of two, one and three rows. The number of rows of CSV files is known once they were read.
        assert!(share.is_none_or(|share| (share - 1.0 / 6.0).abs() < 1e-9), "{failure:?}: {share:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_fails_is_left_out_of_all_parts_of_a_statement() {
    let network = network(PartialAnswers::Allow);
    *network.nodes[0].failure.lock() = Some(Failure::Away);
    let sql = "SELECT x.a FROM t AS x JOIN t AS y ON x.a = y.a ORDER BY 1";
    assert_eq!(partial_rows(&network, sql).await.0, "3\n4\n5\n6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_does_not_need_the_node_is_whole() {
    let network = network(PartialAnswers::Forbid);
    *network.nodes[1].failure.lock() = Some(Failure::Away);
    assert_eq!(network.rows("SELECT SUM(a) FROM t WHERE _node <> 'milan'").await, "18");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_a_statement_is_not_a_failure_of_a_node() {
    let network = network(PartialAnswers::Allow);
    let error = network.try_rows("SELECT nothing FROM t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    let error = network.try_rows("SELECT * FROM nothing").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_read_one_table_fails_for_this_table_only() {
    let (whole, broken) =
        ([("t.csv", "a\n1\n"), ("u.csv", "a\n2\n")], [("t.parquet", "no Parquet"), ("u.csv", "a\n3\n")]);
    let network = LocalNetwork::new(PartialAnswers::Forbid, &[&whole, &broken]);
    assert_eq!(network.rows("SELECT SUM(a) FROM u").await, "5");
    let error = network.try_rows("SELECT SUM(a) FROM t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("milan") && error.message().contains("\"t\""), "{error}");
    let network = LocalNetwork::new(PartialAnswers::Allow, &[&whole, &broken]);
    let (rows, missing, _) = partial_rows(&network, "SELECT SUM(a) FROM t").await;
    assert_eq!((rows.as_str(), missing.as_str()), ("1", "milan"));
}
