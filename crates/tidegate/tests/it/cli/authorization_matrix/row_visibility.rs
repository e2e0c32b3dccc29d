//! Which rows and columns of a table a role sees: the same over every transport of one node, and by every way to the
//! table.

use std::fmt::Write as _;

use serde_json::json;

use super::client_connection::Attempt;
use super::target::{answer_text, call};
use super::{Matrix, MatrixNode, ROLES, TRANSPORTS};

/// Of `both`, the tables are those of its members.
const TABLES: [(&str, &str); 6] = [
    ("shop", "orders"),
    ("other", "orders"),
    ("sales", "orders"),
    ("crm", "people"),
    ("both", "sales.orders"),
    ("both", "crm.people"),
];

/// What each role sees of each table, as it was reviewed.
pub(super) async fn visible_rows(matrix_node: &MatrixNode, matrix: &mut Matrix) -> String {
    let mut text = String::new();
    for (database, table) in TABLES {
        let _ = writeln!(text, "rows of {database}.{table}");
        for role in ROLES {
            // The user of the process has no tenant.
            let (mut there, mut at_home): (Option<String>, Option<String>) = (None, None);
            for (transport, letter) in TRANSPORTS {
                let mut line = matrix_node.connect(role, transport, None).await.unwrap();
                let sql = format!("SELECT * FROM {table}");
                let by_sql = json!({"database": database, "sql": sql, "format": "csv"});
                let by_query = json!({"database": database, "table": table, "format": "csv"});
                let declared = (database == "sales").then(|| ("orders_sales", json!({"format": "csv"})));
                for (tool, arguments) in [("sql", by_sql), ("query", by_query)].into_iter().chain(declared) {
                    // The visitor has no tool `query`.
                    if (role, tool) == ("visitor", "query") {
                        continue;
                    }
                    let seen = if transport.reaches_the_server() { &mut there } else { &mut at_home };
                    // A declared tool carries the right to its database, and so is not had by the same.
                    if tool == "orders_sales" && seen.as_deref() == Some("-") {
                        continue;
                    }
                    let answer = call(&mut line, tool, arguments).await;
                    let rows = joined_rows(&answer);
                    let first = seen.get_or_insert_with(|| rows.clone());
                    if *first != rows {
                        let at = format!("{database}.{table} for {role} over {letter} by {tool}");
                        matrix.violations.push(format!("{at}: {rows:?} instead of {first:?}"));
                    }
                }
            }
            let (there, at_home) = (there.unwrap_or_default(), at_home.unwrap_or_default());
            let _ = writeln!(text, "  {role:<8} {there}");
            if at_home != there {
                let _ = writeln!(text, "  {:<8} of a process: {at_home}", "");
            }
        }
    }
    text.trim_end().to_owned()
}

/// The rows in one line; nothing where none are to be had.
fn joined_rows(answer: &Attempt) -> String {
    match answer {
        Attempt::Refused(_) => "-".to_owned(),
        Attempt::Done(_) => answer_text(answer).lines().map(str::trim_end).collect::<Vec<_>>().join(" | "),
    }
}
