//! Which functions a statement may call.
//!
//! Table functions must be on the list of their dialect, because functions in FROM may access files and networks. Other
//! functions are allowed unless they are known to do more than compute; the restrictions of the database itself are the
//! next defence layer.

mod deterministic;
mod embedded;
mod postgres;
mod rules;
mod sqlite;

use self::rules::{find_reason, matches_pattern};
use crate::dialect::SqlDialect;

pub use deterministic::is_deterministic_function;

/// The table functions of `dialect` that only compute; `*` matches any suffix.
pub(crate) fn table_functions(dialect: SqlDialect) -> &'static [&'static str] {
    match dialect {
        SqlDialect::DataFusion => embedded::TABLE_FUNCTIONS,
        SqlDialect::Postgres => postgres::TABLE_FUNCTIONS,
        SqlDialect::Sqlite => sqlite::TABLE_FUNCTIONS,
    }
}

/// Whether the table function of that name (its parts folded) only computes.
pub(crate) fn is_known_table_function(name: &[String], dialect: SqlDialect) -> bool {
    let is_known = |last: &str| table_functions(dialect).iter().any(|pattern| matches_pattern(pattern, last));
    match (name, dialect) {
        ([only], SqlDialect::DataFusion) => {
            is_known(only)
                || is_deterministic_function(only)
                || embedded::OTHER_FUNCTIONS_IN_FROM.contains(&only.as_str())
        }
        ([only], _) => is_known(only),
        ([schema, last], SqlDialect::Postgres) => is_known(last) && (schema == "pg_catalog" || last.starts_with("st_")),
        ([schema, last], SqlDialect::DataFusion) => is_known(last) && schema == "pg_catalog",
        _ => false,
    }
}

/// The reason for refusing the function `name` (in lower case), with its schema if given.
pub(crate) fn function_refusal(schema: Option<&str>, name: &str, dialect: SqlDialect) -> Option<&'static str> {
    if !name.chars().all(|character| character.is_alphanumeric() || character == '_' || character == '$') {
        return Some("a function's name is made of letters, digits and underscores");
    }
    match dialect {
        SqlDialect::DataFusion => postgres::function_refusal(schema, name)
            .or_else(|| find_reason(sqlite::REFUSED_FUNCTIONS, name))
            .or_else(|| find_reason(embedded::REFUSED_FUNCTIONS, name)),
        SqlDialect::Postgres => postgres::function_refusal(schema, name),
        SqlDialect::Sqlite => find_reason(sqlite::REFUSED_FUNCTIONS, name),
    }
}

/// The reason for refusing the table `name` (in lower case): some tables are functions.
pub(crate) fn table_refusal(name: &str, dialect: SqlDialect) -> Option<&'static str> {
    match dialect {
        SqlDialect::DataFusion => None,
        SqlDialect::Postgres => postgres::table_refusal(name),
        SqlDialect::Sqlite => sqlite::table_refusal(name),
    }
}
