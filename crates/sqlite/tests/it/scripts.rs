//! The scripts of `tests/slt`, replayed on the same data in a SQLite file. What it has not, or has otherwise, is said
//! in them.

use std::time::Duration;

use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};

use crate::support::{SqliteFixture, open_database};
use tidegate_core::Format;
use tidegate_testkit::sql_logic_test::{self, Failure};

#[derive(Clone)]
struct Replay(SqliteFixture);

#[async_trait::async_trait]
impl AsyncDB for Replay {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let text = self.0.answer(sql, Format::Ndjson).await?;
        let row = |line: &str| {
            let row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
            let value = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            row.values().map(value).collect::<Vec<String>>()
        };
        let rows: Vec<Vec<String>> = text.lines().map(row).collect();
        let types = vec![DefaultColumnType::Any; rows.first().map_or(0, Vec::len)];
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "sqlite"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[tokio::test]
async fn all_scripts_are_replayed() {
    let (_folder, node) = open_database(&sql_logic_test::tables());
    sql_logic_test::run_all(|| Replay(node.clone())).await;
}
