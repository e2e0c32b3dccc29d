//! Which rows and columns of a table a role sees: the same over every transport of one node, and by every way to the
//! table.

use std::fmt::Write as _;

use serde_json::json;

use super::client_connection::{Attempt, ClientConnection};
use super::target::{answer_text, call};
use super::{Matrix, ROLES};

/// Of `both`, the tables are those of its members.
const TABLES: [(&str, &str); 6] = [
    ("shop", "orders"),
    ("other", "orders"),
    ("sales", "orders"),
    ("crm", "people"),
    ("both", "sales.orders"),
    ("both", "crm.people"),
];

/// What each role sees of each table, over transports of one node.
#[derive(Default)]
pub(super) struct VisibleRows([[Option<String>; ROLES.len()]; TABLES.len()]);

impl VisibleRows {
    /// Reads each table over one more transport, and compares the rows with those that the others gave.
    pub(super) async fn read(
        &mut self,
        line: &mut ClientConnection<'_>,
        matrix: &mut Matrix,
        role: usize,
        letter: char,
    ) {
        let name = ROLES[role];
        for ((database, table), seen) in TABLES.into_iter().zip(&mut self.0) {
            let seen = &mut seen[role];
            let sql = format!("SELECT * FROM {table}");
            let by_sql = json!({"database": database, "sql": sql, "format": "csv"});
            let by_query = json!({"database": database, "table": table, "format": "csv"});
            let declared = (database == "sales").then(|| ("orders_sales", json!({"format": "csv"})));
            for (tool, arguments) in [("sql", by_sql), ("query", by_query)].into_iter().chain(declared) {
                // The visitor has no tool `query`.
                if (name, tool) == ("visitor", "query") {
                    continue;
                }
                // A declared tool carries the right to its database, and so is not had by the same.
                if tool == "orders_sales" && seen.as_deref() == Some("-") {
                    continue;
                }
                let rows = joined_rows(&call(line, tool, arguments).await);
                let first = seen.get_or_insert_with(|| rows.clone());
                if *first != rows {
                    let at = format!("{database}.{table} for {name} over {letter} by {tool}");
                    matrix.violations.push(format!("{at}: {rows:?} instead of {first:?}"));
                }
            }
        }
    }

    /// Adds the rows of other roles.
    pub(super) fn append(&mut self, other: Self) {
        let pairs = self.0.iter_mut().flatten().zip(other.0.into_iter().flatten());
        pairs.for_each(|(own, other)| *own = own.take().or(other));
    }
}

/// What each role sees of each table, as it was reviewed. The user of a process has no tenant.
pub(super) fn render(over_server: &VisibleRows, of_processes: &VisibleRows) -> String {
    let mut text = String::new();
    for ((database, table), (there, at_home)) in TABLES.into_iter().zip(over_server.0.iter().zip(&of_processes.0)) {
        let _ = writeln!(text, "rows of {database}.{table}");
        for (role, (there, at_home)) in ROLES.into_iter().zip(there.iter().zip(at_home)) {
            let (there, at_home) = (there.as_deref().unwrap_or_default(), at_home.as_deref().unwrap_or_default());
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
