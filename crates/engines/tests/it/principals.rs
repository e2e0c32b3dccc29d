//! The queries of one principal while another one runs queries.

use std::sync::Arc;

use tidegate_core::{AuthMethod, Grants, Principal};
use tidegate_query::Database;
use tidegate_sql::{SqlDialect, Statement};

use crate::support::{Folder, numbers_csv, two_thread_options, with_timeout};

fn principal(subject: &str) -> Principal {
    Principal::new(subject, AuthMethod::Token, Arc::new(Grants::everything()))
}

/// Each of the statements occupies a thread for about a second while it is planned.
#[tokio::test]
async fn uninterruptible_planning_does_not_block_other_principals() {
    let folder = Folder::with(&[("n.csv", &numbers_csv(10))]);
    let node = folder.database_with(two_thread_options());
    let long = "SELECT levenshtein(repeat('a', 8000), repeat('b', 8000))";
    let long = Statement::parse(long, SqlDialect::DataFusion).unwrap();
    let greedy: Vec<_> = (0..4)
        .map(|_| {
            let (database, statement) = (node.database.clone(), long.clone());
            tokio::spawn(async move { database.plan(&statement, &principal("greedy")).await.is_ok() })
        })
        .collect();
    with_timeout("the greedy one's first query", async {
        while node.engine.running_tasks() < greedy.len() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let short = Statement::parse("SELECT count(*) FROM n", SqlDialect::DataFusion).unwrap();
    with_timeout("the polite one's query", node.database.plan(&short, &principal("polite"))).await.unwrap();
    assert!(greedy.iter().all(|query| !query.is_finished()), "it came behind the greedy one's queries");
    assert!(
        with_timeout("the greedy one's last query", futures::future::join_all(greedy))
            .await
            .into_iter()
            .all(Result::unwrap)
    );
}
