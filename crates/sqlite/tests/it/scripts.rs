//! The scripts of `tests/slt`, replayed on the same data in a SQLite file. What it has not, or has otherwise, is said in
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tidegate_query::Format;

use crate::support::{Node, of};

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
        let answer = self.0.answer(sql, Format::Ndjson).await;
        let text = answer.map_err(|error| Failure(error.to_string().replace('\n', " ")))?;
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt");
    let tables = fs::read_to_string(folder.join("tables.sql")).unwrap();
    let (_folder, node) = of(&format!("{tables} {}", rows(&folder.join("data"))));
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
