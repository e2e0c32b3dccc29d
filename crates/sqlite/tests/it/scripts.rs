//! The scripts of the embedded engine, replayed on the same data in a SQLite file.

use std::fs;
use std::path::Path;

use sqllogictest::{DefaultColumnType, QueryExpect, Record};
use tidegate_query::Format;

use crate::support::{Node, of};

/// The data of the scripts as far as SQLite has such tables: lists and structs it has not.
const DATA: &str = "
    CREATE TABLE employees (id INTEGER, name TEXT, department TEXT, salary REAL, hired DATE, manager INTEGER);
    INSERT INTO employees VALUES
        (1, 'Ada', 'engineering', 9000.5, '2019-03-01', NULL), (2, 'Ben', 'engineering', 7000, '2020-07-15', 1),
        (3, 'Cem', 'sales', 5000, '2021-01-10', 1), (4, 'Dia', 'sales', NULL, '2021-01-10', 3),
        (5, 'Eva', NULL, 6000, '2022-11-30', 1);
    CREATE TABLE departments (name TEXT, Floor INTEGER, \"Head Count\" INTEGER);
    INSERT INTO departments VALUES ('engineering', 3, 2), ('sales', 1, 2), ('legal', 2, 0);
    CREATE TABLE \"odd name;DROP\" (\"select\" INTEGER, \"from\" INTEGER);
    INSERT INTO \"odd name;DROP\" VALUES (1, 2);
    CREATE TABLE readings (sensor INTEGER, value INTEGER, year INTEGER);
    INSERT INTO readings VALUES (1, 10, 2023), (2, 20, 2023), (1, 30, 2024), (2, NULL, 2024);";

/// The values of an answer as the scripts have them, in order.
async fn values(node: &Node, sql: &str) -> Result<Vec<String>, String> {
    let text = node.answer(sql, Format::Ndjson).await.map_err(|error| error.to_string())?;
    let line = |line: &str| {
        let row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let value = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        row.values().map(value).collect::<Vec<_>>().join(" ")
    };
    Ok(text.lines().map(line).collect())
}

#[tokio::test]
async fn all_scripts_are_replayed_as_far_as_sqlite_has_the_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engines/tests/slt");
    let (_folder, node) = of(DATA);
    let mut scripts: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    scripts.sort();
    let (mut same, mut other) = (0, Vec::new());
    for script in scripts {
        for record in sqllogictest::parse_file::<DefaultColumnType>(script).unwrap() {
            let Record::Query { sql, expected, .. } = record else { continue };
            let found = values(&node, &sql).await;
            let is_same = match (&expected, &found) {
                (QueryExpect::Results { results, sort_mode, .. }, Ok(found)) => {
                    let (mut results, mut found) = (results.clone(), found.clone());
                    if sort_mode.is_some() {
                        results.sort();
                        found.sort();
                    }
                    results == found
                }
                (QueryExpect::Error(expected), Err(found)) => expected.is_match(found, None),
                _ => false,
            };
            if is_same {
                same += 1;
            } else {
                let found = found
                    .map_or_else(|error| error.lines().next().unwrap_or_default().to_owned(), |rows| rows.join("|"));
                other.push(format!("{sql}\n    {found}"));
            }
        }
    }
    assert!(same >= 30, "{same} answers are the same");
    // What is here differs, and must not grow unseen.
    insta::assert_snapshot!(other.join("\n"), @"");
}
