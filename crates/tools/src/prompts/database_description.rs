//! The tables of a database with their columns, as text.

use std::fmt::Write as _;

use futures::StreamExt;
use tidegate_core::Error;
use tidegate_query::{ColumnEntry, Database, TableStatus};
use tidegate_runtime::Job;

/// Described tables at most; only the number of the others is given.
const TABLES_MAX: usize = 40;
const COLUMNS_MAX: usize = 60;
const TABLES_AT_ONCE: usize = 4;

/// One line for each table: name, number of rows if known, columns with types.
pub(crate) async fn describe_database(database: &dyn Database, job: &Job) -> Result<String, Error> {
    let catalog = database.catalog(job.principal()).await?;
    let readable = catalog.tables.iter().filter(|table| table.status == TableStatus::Readable);
    let readable: Vec<_> = readable.map(|table| (table.name.as_str(), table.rows)).collect();
    describe_tables_with_rows(database, &readable, job).await
}

/// As above, for the tables `names` only.
pub(crate) async fn describe_tables(database: &dyn Database, names: &[String], job: &Job) -> Result<String, Error> {
    let catalog = database.catalog(job.principal()).await?;
    let rows = |name: &str| catalog.tables.iter().find(|table| table.name == name).and_then(|table| table.rows);
    let named: Vec<_> = names.iter().map(|name| (name.as_str(), rows(name))).collect();
    describe_tables_with_rows(database, &named, job).await
}

async fn describe_tables_with_rows(
    database: &dyn Database,
    tables: &[(&str, Option<u64>)],
    job: &Job,
) -> Result<String, Error> {
    let questions: Vec<_> =
        tables.iter().take(TABLES_MAX).map(|(table, _)| database.columns(table, job.principal())).collect();
    let answers = futures::stream::iter(questions).buffered(TABLES_AT_ONCE);
    let mut described = futures::stream::iter(tables).zip(answers);
    let mut text = String::new();
    while let Some(((table, rows), columns)) = described.next().await {
        let rows = rows.map(|rows| format!(", {rows} rows")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = match columns {
            Ok(columns) => writeln!(text, "- {table:?}{rows}: {}", list_columns(&columns)),
            Err(error) => writeln!(text, "- {table:?} cannot be read: {}", error.message()),
        };
    }
    if tables.len() > TABLES_MAX {
        let _ = writeln!(text, "- and {} more tables; see list_tables", tables.len() - TABLES_MAX);
    }
    Ok(text)
}

fn list_columns(columns: &[ColumnEntry]) -> String {
    let mut names: Vec<String> =
        columns.iter().take(COLUMNS_MAX).map(|column| format!("{:?} {}", column.name, column.type_name)).collect();
    if columns.len() > COLUMNS_MAX {
        names.push(format!("and {} more", columns.len() - COLUMNS_MAX));
    }
    names.join(", ")
}
