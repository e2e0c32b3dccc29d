//! Replays the scripts of `tests/slt`, for the tests of every engine.

use std::fs;
use std::path::{Path, PathBuf};

use sqllogictest::{AsyncDB, Runner};
use tidegate_core::Error;

/// An error that the runner can print on one line.
#[derive(Debug)]
pub struct Failure(String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string().replace('\n', " "))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// The folder of the scripts, with the rows of their tables under `data`.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt").canonicalize().unwrap()
}

/// Runs each script on a database that `open` returns.
pub async fn run_all<D: AsyncDB>(open: impl Fn() -> D) {
    let mut scripts: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        let mut runner = Runner::new(|| async { Ok(open()) });
        if let Err(error) = runner.run_file_async(script).await {
            panic!("{}", error.display(false));
        }
    }
}

/// The tables as statements, for engines that do not read the files themselves.
pub fn tables() -> String {
    fs::read_to_string(folder().join("tables.sql")).unwrap() + &rows(&folder().join("data"))
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
