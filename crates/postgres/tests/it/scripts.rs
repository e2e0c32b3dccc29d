//! The scripts of `tests/slt`, replayed on the same data in PostgreSQL. What it has not, or has otherwise, is said in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tidegate_postgres::PostgresOptions;

use crate::scene::{Node, Scene, of_caller};

/// The table that only engines with lists have.
const EVENTS: &str = "CREATE TABLE events (at timestamp, kind text, tags text[], \"where\" jsonb, ok boolean);";

#[derive(Clone)]
struct Replay(Node);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

#[async_trait::async_trait]
impl AsyncDB for Replay {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let answer = async { self.0.lines(&of_caller(sql)?).await };
        let text = answer.await.map_err(|error| Failure(error.to_string().replace('\n', " ")))?;
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt");
    let tables = fs::read_to_string(folder.join("tables.sql")).unwrap();
    let scene = Scene::new(&format!("{tables} {EVENTS} {}", rows(&folder.join("data")))).await;
    for event in fs::read_to_string(folder.join("data/events.ndjson")).unwrap().lines() {
        let event = event.replace('\'', "''");
        scene.run(&format!("INSERT INTO events SELECT * FROM jsonb_populate_record(NULL::events, '{event}')")).await;
    }
    scene.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {login}").await;
    let node = scene.open(PostgresOptions::default());
    let mut scripts: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        let mut runner = Runner::new(|| async { Ok(Replay(node.clone())) });
        if let Err(error) = runner.run_file_async(script).await {
            panic!("{}", error.display(false));
        }
    }
}

/// The rows of the CSV files in `data` as statements.
fn rows(data: &Path) -> String {
    let files = [
        ("employees", "employees.csv", ""),
        ("departments", "departments.csv", ""),
        ("\"odd name;DROP\"", "odd name;DROP.csv", ""),
        ("readings", "readings/year=2023/a.csv", ", 2023"),
        ("readings", "readings/year=2024/a.csv", ", 2024"),
    ];
    let mut statements = String::new();
    for (table, file, rest) in files {
        for line in fs::read_to_string(data.join(file)).unwrap().lines().skip(1) {
            let value = |value: &str| if value.is_empty() { "NULL".to_owned() } else { format!("'{value}'") };
            let values: Vec<String> = line.split(',').map(value).collect();
            statements.push_str(&format!("INSERT INTO {table} VALUES ({}{rest});\n", values.join(", ")));
        }
    }
    statements
}
