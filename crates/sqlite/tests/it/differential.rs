//! The statements of SQLite's own documentation, answered as the library itself answers them:
//! `tests/differential/sqlite/*.sql`, on the tables of `tables.sql` there.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value, json};
use tidegate_core::{ErrorKind, Format};

use crate::support::{SqliteFixture, open_database};

/// The minimum number of answered statements out of ten; the others are refused, because they do what no caller may.
const ANSWERED_OF_TEN_MIN: usize = 9;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/differential/sqlite").canonicalize().unwrap()
}

/// The statements of the files: each ends with a semicolon at the end of a line.
fn statements() -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name != "tables.sql"));
    paths.sort();
    let mut statements = Vec::new();
    for path in paths {
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("--") && !line.is_empty()).collect();
        let text = lines.join("\n") + "\n";
        statements.extend(text.split(";\n").filter(|sql| !sql.is_empty()).map(str::to_owned));
    }
    statements
}

/// The library's own answer, as rows of JSON.
fn query_sqlite(connection: &Connection, sql: &str) -> Result<Value, rusqlite::Error> {
    let mut statement = connection.prepare(sql)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([])?;
    let mut answer = Vec::new();
    while let Some(row) = rows.next()? {
        let value = |(index, name): (usize, &String)| (name.clone(), value_to_json(row.get_ref(index).unwrap()));
        answer.push(Value::Object(names.iter().enumerate().map(value).collect::<Map<_, _>>()));
    }
    Ok(Value::Array(answer))
}

fn value_to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!(BASE64_STANDARD.encode(bytes)),
    }
}

/// Whether the values are the same; a number may be written in another way.
fn is_same_answer(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| is_same_answer(theirs, ours))
        }
        (Value::Object(theirs), Value::Object(ours)) => {
            let member =
                |(name, value): (&String, &Value)| ours.get(name).is_some_and(|ours| is_same_answer(value, ours));
            theirs.len() == ours.len() && theirs.iter().all(member)
        }
        (Value::Number(theirs), Value::Number(ours)) if theirs.is_i64() && ours.is_i64() => theirs == ours,
        (Value::Number(theirs), Value::Number(ours)) => theirs.as_f64() == ours.as_f64(),
        (theirs, ours) => theirs == ours,
    }
}

/// What is wrong with the answer to `sql`; `Ok(false)` where it is refused.
async fn compare(node: &SqliteFixture, connection: &Connection, sql: &str) -> Result<bool, String> {
    let ours = node.answer(sql, Format::Mcp).await;
    match (query_sqlite(connection, sql), ours) {
        (Err(error), Err(_)) => Err(format!("{sql}\n  SQLite has no such statement: {error}")),
        (_, Err(error)) if error.kind() == ErrorKind::Internal => Err(format!("{sql}\n  internal: {error}")),
        (Ok(_), Err(_)) => Ok(false),
        (Err(error), Ok(ours)) => Err(format!("{sql}\n  SQLite: {error}\n  here: {ours}")),
        (Ok(theirs), Ok(ours)) => {
            let read: Value = serde_json::from_str(&ours).map_err(|error| format!("{sql}\n  {error}: {ours}"))?;
            if is_same_answer(&theirs, &read) {
                Ok(true)
            } else {
                Err(format!("{sql}\n  SQLite: {theirs}\n  here: {ours}"))
            }
        }
    }
}

#[tokio::test]
async fn answers_match_sqlite() {
    let (tables, statements) = (fs::read_to_string(folder().join("tables.sql")).unwrap(), statements());
    let (_folder, node) = open_database(&tables);
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&tables).unwrap();
    let (mut failures, mut refused) = (Vec::new(), Vec::new());
    for sql in &statements {
        match compare(&node, &connection, sql).await {
            Ok(true) => {}
            Ok(false) => refused.push(sql.as_str()),
            Err(failure) => failures.push(failure),
        }
    }
    let count = statements.len();
    assert!(count >= 100, "only {count} statements were found");
    assert!(failures.is_empty(), "{} of {count} statements fail:\n{}", failures.len(), failures.join("\n"));
    let answered = count - refused.len();
    assert!(
        answered * 10 >= count * ANSWERED_OF_TEN_MIN,
        "{answered} of {count} are answered, not:\n{}",
        refused.join("\n")
    );
}
