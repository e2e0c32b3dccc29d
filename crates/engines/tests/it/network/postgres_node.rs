//! A network of files and a PostgreSQL database, which receives SQL that it understands.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_core::Principal;
use tidegate_engines::{Engine, NetworkDatabase, NetworkNode, NetworkOptions, PartialAnswers};
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};
use tidegate_query::Database as _;
use tidegate_sql::{SqlDialect, Statement};
use tokio_postgres::NoTls;

use super::local_node::LocalNode;
use crate::support::{lines, run_plan, two_thread_options};

const TABLES: &str = "
    CREATE TABLE measured (site text, small integer, number bigint, x double precision, day timestamp);
    INSERT INTO measured VALUES ('a', 1, 9223372036854775807, 0.5, '2026-01-01'), ('a', -2, -9223372036854775808, 1.5,
        '2026-01-02 03:04:05.678901'), ('b', NULL, 7, NULL, NULL), ('it''s', 2147483647, 8, 2.5, '2026-01-03');
    DO $$ BEGIN CREATE ROLE tidegate_network LOGIN PASSWORD 'reader'; EXCEPTION
        WHEN duplicate_object OR unique_violation THEN END $$;
    GRANT SELECT ON measured TO tidegate_network;";
const FILE: &str = "site,small,number,x,day\na,5,9223372036854775807,2.0,2026-01-02T03:04:05.678901\nb,3,,4.0,\n";

async fn execute(database: &str, sql: &[&str]) {
    let server = std::env::var("TIDEGATE_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("TIDEGATE_TEST_POSTGRES is not set; run the tests as scripts/postgres run -- cargo nextest run")
    });
    let (client, connection) = tokio_postgres::connect(&format!("{server} dbname={database}"), NoTls).await.unwrap();
    tokio::spawn(connection);
    for statement in sql {
        client.batch_execute(statement).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_computes_exact_sums_and_selects_keys() {
    let name = format!("tidegate_network_node_{}", std::process::id());
    let (drop, create) = (format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name}"));
    execute("postgres", &[&drop, &create]).await;
    execute(&name, &[TABLES]).await;
    let host = std::env::var("TIDEGATE_TEST_POSTGRES_TCP").unwrap();
    let target = format!("{host} dbname={name} user=tidegate_network password=reader sslmode=disable");
    let target = ConnectTarget::parse(&target, &ConnectEnvironment::from_process()).unwrap();
    let database = PostgresDatabase::open("postgres", target, PostgresOptions::default()).unwrap();
    let postgres = LocalNode::of_database("postgres", Arc::new(database));
    // The server only estimates them.
    postgres.hides_rows.store(true, Ordering::Relaxed);
    let files =
        LocalNode::new("files", &[("measured.csv", FILE), ("keys.csv", "key,day\nit's,\na,2026-01-03T00:00:00\n")]);
    let engine = Engine::start(two_thread_options()).unwrap();
    let nodes =
        vec![NetworkNode { database: postgres.clone(), holds: None }, NetworkNode { database: files, holds: None }];
    let options = NetworkOptions {
        partial: PartialAnswers::Forbid,
        timeout: Duration::from_secs(20),
        ranges: vec!["id".to_owned()],
    };
    let network = NetworkDatabase::new("sites", options, nodes, &engine).unwrap();
    let check = async |sql: &str, expected: &str, sent: &str| {
        let statement = Statement::parse(sql, SqlDialect::DataFusion).unwrap();
        let plan = network.plan(&statement, &Principal::anonymous()).await.unwrap();
        let text = plan.explain().await.unwrap();
        assert_eq!(lines(&run_plan(plan).await.unwrap()), expected, "{text}");
        let statements = std::mem::take(&mut *postgres.statements.lock());
        assert!(statements.iter().any(|statement| statement.contains(sent)), "{statements:#?}\n{text}");
    };
    check(
        "SELECT site, var_pop(small), variance(small) FROM measured GROUP BY site ORDER BY site",
        "a|8.2222222222222222|12.3333333333333333\nb|0.0000000000000000|null\nit's|0.0000000000000000|null",
        "SUM(",
    )
    .await;
    check("SELECT round(stddev_pop(number) / 1000000000000) FROM measured WHERE site = 'a'", "8695879", "SUM(").await;
    check("SELECT COUNT(*), round(var_pop(x)::numeric, 6) FROM measured WHERE site = 'a'", "3|0.388889", "\"x\"").await;
    check(
        "SELECT SUM(small) FROM measured WHERE site IN (SELECT key FROM keys WHERE key <> 'a')",
        "2147483647",
        " IN (",
    )
    .await;
    check("SELECT m.site FROM measured m JOIN keys k ON m.day = k.day WHERE k.key = 'a'", "it's", " IN (").await;
}
