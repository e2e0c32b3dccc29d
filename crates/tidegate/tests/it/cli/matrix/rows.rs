//! Which rows and columns of a table a role sees: the same over every transport, and by every way to the table.

use std::fmt::Write as _;

use serde_json::json;

use super::line::Answer;
use super::target::{call, text_of};
use super::{House, Matrix, ROLES, TRANSPORTS};

const TABLES: [(&str, &str); 2] = [("shop", "orders"), ("other", "orders")];

/// What each role sees of each table, as it was reviewed.
pub(super) async fn seen(house: &House, matrix: &mut Matrix) -> String {
    let mut text = String::new();
    for (database, table) in TABLES {
        let _ = writeln!(text, "rows of {database}.{table}");
        for role in ROLES {
            let mut whole: Option<String> = None;
            for (transport, letter) in TRANSPORTS {
                let mut line = house.line(role, transport, None).await.unwrap();
                let sql = format!("SELECT * FROM {table}");
                let by_sql = json!({"database": database, "sql": sql, "format": "csv"});
                let by_query = json!({"database": database, "table": table, "format": "csv"});
                for (tool, arguments) in [("sql", by_sql), ("query", by_query)] {
                    // The visitor has no tool `query`.
                    if (role, tool) == ("visitor", "query") {
                        continue;
                    }
                    let answer = call(&mut line, tool, arguments).await;
                    let rows = rows_of(&answer);
                    let first = whole.get_or_insert_with(|| rows.clone());
                    if *first != rows {
                        let at = format!("{database}.{table} for {role} over {letter} by {tool}");
                        matrix.broken.push(format!("{at}: {rows:?} instead of {first:?}"));
                    }
                }
            }
            let _ = writeln!(text, "  {role:<8} {}", whole.unwrap_or_default());
        }
    }
    text.trim_end().to_owned()
}

/// The rows in one line; nothing where none are to be had.
fn rows_of(answer: &Answer) -> String {
    match answer {
        Answer::Refused(_) => "-".to_owned(),
        Answer::Done(_) => text_of(answer).lines().map(str::trim_end).collect::<Vec<_>>().join(" | "),
    }
}
