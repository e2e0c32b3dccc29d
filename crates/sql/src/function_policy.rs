//! Which functions a statement may call.
//!
//! Functions are allowed unless they are known to do more than compute; the restrictions of the database itself are the
//! next defence layer. In FROM, a function must be on the list of its dialect, because it may access files and networks.
//! PostgreSQL has no such list: there, each function may be called in FROM and elsewhere alike.

mod deterministic;
mod embedded;
mod postgres;
mod rules;
mod sqlite;

use self::rules::find_reason;
use crate::dialect::SqlDialect;

pub use deterministic::is_deterministic_function;

/// The list of the functions that `dialect` allows in FROM.
pub(crate) fn table_functions(dialect: SqlDialect) -> &'static [&'static str] {
    dialect.choose(embedded::TABLE_FUNCTIONS, &[], sqlite::TABLE_FUNCTIONS)
}

/// Whether `dialect` allows the function of that name (its parts folded) in FROM.
pub(crate) fn is_known_table_function(name: &[String], dialect: SqlDialect) -> bool {
    let is_known = |last: &str| table_functions(dialect).contains(&last);
    match (name, dialect) {
        (_, SqlDialect::Postgres) => true,
        ([only], SqlDialect::DataFusion) => {
            is_known(only)
                || is_deterministic_function(only)
                || embedded::OTHER_FUNCTIONS_IN_FROM.contains(&only.as_str())
        }
        ([only], _) => is_known(only),
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

/// The reason for refusing the field `name` (in lower case) of a value, which may be a call of a function.
pub(crate) fn field_refusal(name: &str, dialect: SqlDialect) -> Option<&'static str> {
    if dialect.is_postgres() { postgres::field_refusal(name) } else { None }
}

/// The reason for refusing the table `name` (in lower case): some tables are functions.
pub(crate) fn table_refusal(name: &str, dialect: SqlDialect) -> Option<&'static str> {
    match dialect {
        SqlDialect::DataFusion => None,
        SqlDialect::Postgres => postgres::table_refusal(name),
        SqlDialect::Sqlite => sqlite::table_refusal(name),
    }
}
