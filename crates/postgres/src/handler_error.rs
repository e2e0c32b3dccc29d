//! Errors of handlers in the database, as far as they are the same for every handler, in words for the caller.
//!
//! An error message of a handler may contain data of any user. Therefore the caller receives an id, under which the log
//! has the detail. Messages for the caller are raised with `mcp_refuse`.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::error::DbError;

use crate::error;

/// The SQLSTATE of `mcp_refuse`, whose message is for the caller.
const MCP_REFUSE_CODE: &str = "MCP01";

/// The error of a handler while its rows are read. It runs in a read-only transaction.
pub fn rows_error(error: &tokio_postgres::Error, database: &str) -> Error {
    let Some(server) = error.as_db_error() else { return error::internal_statement_error(error, database) };
    if is_function_missing(server) {
        return Error::new(ErrorKind::NotFound, "the tool no longer exists");
    }
    common_error(error, server, "tool", database)
        .unwrap_or_else(|| Error::internal(log_detail(server, "a handler with rows", database)))
}

/// The error of a handler of a `kind`, if it does not depend on the handler.
pub fn common_error(error: &tokio_postgres::Error, server: &DbError, kind: &str, database: &str) -> Option<Error> {
    let detail = || log_detail(server, &format!("a handler of a {kind}"), database);
    Some(match server.code().code() {
        MCP_REFUSE_CODE => Error::new(ErrorKind::Failed, server.message()),
        "57014" => Error::new(ErrorKind::TimedOut, format!("the {kind} exceeded its time limit and was cancelled"))
            .with_detail(detail()),
        "40001" | "40P01" => {
            let message = format!("the {kind} failed after repeated conflicts with concurrent changes");
            Error::new(ErrorKind::Unavailable, message).with_hint("Try again.").with_detail(detail())
        }
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            error::internal_statement_error(error, database)
        }
        _ => return None,
    })
}

/// The detail of an error of `subject`, which only the log may contain.
pub fn log_detail(server: &DbError, subject: &str, database: &str) -> String {
    let context = server.where_().unwrap_or_default();
    format!("database {database}: {subject} failed: {}: {}\n{context}", server.code().code(), server.message())
}

/// Whether the function does not exist or the role may not execute it. Only the outermost call has no context.
pub fn is_function_missing(server: &DbError) -> bool {
    server.where_().is_none() && matches!(server.code().code(), "42501" | "42883" | "3F000")
}
