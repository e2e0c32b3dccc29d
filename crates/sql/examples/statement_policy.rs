//! What the statement policy says of PostgreSQL statements, for `tests/differential/foreign/policy_oracle.py`.
//!
//! Each line of the input is a statement as a JSON string. Each line of the output is an object with the text that the
//! database would receive, and with the tables and functions of the statement; or with the refusal.

#![allow(clippy::print_stdout, reason = "the output is for another program")]

use std::io::{self, BufRead};

use serde_json::json;
use tidegate_sql::{SqlDialect, Statement};

fn main() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let sql: String = serde_json::from_str(&line?)?;
        let result = match Statement::parse(&sql, SqlDialect::Postgres) {
            Ok(statement) => json!({
                "text": statement.text(),
                "tables": statement.tables(),
                "functions": statement.functions(),
            }),
            Err(error) => json!({ "refusal": error.to_string() }),
        };
        println!("{result}");
    }
    Ok(())
}
