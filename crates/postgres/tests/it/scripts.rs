//! The scripts of `tests/slt`, replayed on the same data in PostgreSQL. What it has not, or has otherwise, is said in
//! them.

use std::fs;
use std::time::Duration;

use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};
use tidegate_postgres::PostgresOptions;

use crate::test_database::{OpenDatabase as _, OpenedDatabase, TestDatabase, caller_statement};
use tidegate_testkit::sql_logic_test::{self, Failure};

/// The table that only engines with lists have.
const EVENTS: &str = "CREATE TABLE events (at timestamp, kind text, tags text[], \"where\" jsonb, ok boolean);";

#[derive(Clone)]
struct Replay(OpenedDatabase);

#[async_trait::async_trait]
impl AsyncDB for Replay {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let text = self.0.lines(&caller_statement(sql)?).await?;
        let rows: Vec<Vec<String>> = text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect();
        let types = vec![DefaultColumnType::Any; rows.first().map_or(0, Vec::len)];
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "postgres"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[tokio::test]
async fn all_scripts_are_replayed() {
    let scene = TestDatabase::new(&format!("{} {EVENTS}", sql_logic_test::tables())).await;
    for event in fs::read_to_string(sql_logic_test::folder().join("data/events.ndjson")).unwrap().lines() {
        let event = event.replace('\'', "''");
        scene.run(&format!("INSERT INTO events SELECT * FROM jsonb_populate_record(NULL::events, '{event}')")).await;
    }
    scene.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {login}").await;
    let node = scene.open(PostgresOptions::default());
    sql_logic_test::run_all(|| Replay(node.clone())).await;
}
