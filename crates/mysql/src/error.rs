//! Converts errors of the server to errors for callers.
//!
//! A message about the caller's SQL goes to the caller. One about the server may contain paths and names of others, so it
//! stays in the log.
//!
//! [MySQL, Server Error Message Reference](https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html),
//! [MariaDB Error Code Reference](https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference)

use mysql_async::{Error as MySqlError, ServerError};
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{SqlDialect, equivalent_function};

/// A table does not exist.
pub(crate) const NO_SUCH_TABLE: u16 = 1146;
/// A column does not exist.
pub(crate) const NO_SUCH_COLUMN: u16 = 1054;
/// The server does not read the text.
pub(crate) const SYNTAX_ERROR: u16 = 1064;
const NO_SUCH_ROUTINE: u16 = 1305;
const NO_SUCH_FUNCTION: u16 = 1630;
/// A routine may not be run, or does not exist: an account without rights for routines does not learn which.
const NO_RIGHT_FOR_ROUTINE: u16 = 1370;
/// The statement was ended by KILL QUERY.
const INTERRUPTED: u16 = 1317;

/// The error of a caller's statement.
pub(crate) fn statement_error(error: &MySqlError, database: &str) -> Error {
    match error {
        MySqlError::Server(error) => server_error(error, database),
        // The driver reports it by its text only.
        other if other.to_string().contains("max_allowed_packet") => {
            Error::new(ErrorKind::TooLarge, "a row of the answer exceeds the maximum size of a message")
                .with_hint("Select fewer or shorter columns, such as LEFT(column, 1000).")
        }
        other => connection_lost_error(other, database),
    }
}

/// The error of an internal statement.
pub(crate) fn internal_statement_error(error: &MySqlError, database: &str) -> Error {
    match error {
        MySqlError::Server(server) if error_kind(server) != ErrorKind::Unavailable => {
            Error::internal(format!("database {database}: {server}"))
        }
        other => statement_error(other, database),
    }
}

/// The error of setting `role`: it does not exist, or the account does not have it.
pub(crate) fn role_error(error: &MySqlError, database: &str, role: &str) -> Error {
    match error {
        MySqlError::Server(server) if error_kind(server) != ErrorKind::Unavailable => {
            let message =
                format!("the database {database} refuses the role that the configuration has for your identity");
            Error::new(ErrorKind::Internal, message)
                .with_detail(format!("database {database}: cannot run as the role {role}: {}", server.message))
                .with_hint("The owner of the node finds the reason in its log and with tidegate doctor.")
        }
        other => internal_statement_error(other, database),
    }
}

fn connection_lost_error(error: &MySqlError, database: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the connection to the database {database} was lost; try again"))
        .with_detail(error.to_string())
}

fn server_error(error: &ServerError, database: &str) -> Error {
    let kind = error_kind(error);
    let detail = format!("database {database}: {error}");
    let message = match kind {
        ErrorKind::Internal => return Error::internal(detail),
        ErrorKind::Unavailable => format!("the database {database} is not available: {}", unavailable_reason(error)),
        ErrorKind::Cancelled => "the query was cancelled".to_owned(),
        ErrorKind::TimedOut => {
            format!("the query exceeded the time limit that the database {database} has for its statements")
        }
        ErrorKind::Forbidden if is_read_only(error.code) => format!("only reading is allowed: {}", error.message),
        _ => error.message.clone(),
    };
    let error_for_caller = Error::new(kind, message).with_detail(detail);
    match hint(error) {
        Some(hint) => error_for_caller.with_hint(hint),
        None => error_for_caller,
    }
}

fn unavailable_reason(error: &ServerError) -> &str {
    match error.code {
        1044 | 1045 | 1698 => "it refuses the login of the node",
        1049 => "it has no database of that name",
        1021 => "its disk is full",
        _ => &error.message,
    }
}

fn is_read_only(code: u16) -> bool {
    // A transaction or a server that only reads.
    matches!(code, 1290 | 1792 | 1836)
}

/// The kind of an error: by its code, else by the class of its SQLSTATE. The general class HY000 has errors of the server as
/// well as of statements, so only listed ones go to the caller.
pub(crate) fn error_kind(error: &ServerError) -> ErrorKind {
    match error.code {
        NO_SUCH_TABLE => ErrorKind::NotFound,
        INTERRUPTED => ErrorKind::Cancelled,
        // max_statement_time of MariaDB, max_execution_time of MySQL.
        1969 | 3024 => ErrorKind::TimedOut,
        code if is_read_only(code) => ErrorKind::Forbidden,
        // Rights for tables, columns, routines and what only administrators may.
        1142 | 1143 | 1227 | NO_RIGHT_FOR_ROUTINE => ErrorKind::Forbidden,
        // Memory, sizes of messages, regular expressions and recursions beyond their limits.
        1037 | 1038 | 1041 | 1104 | 1114 | 1153 | 1301 | 3636 | 3699 => ErrorKind::TooLarge,
        // The login, the number of connections, locks, and a server that ends.
        1021
        | 1040
        | 1044
        | 1045
        | 1049
        | 1053
        | 1077
        | 1129
        | 1130
        | 1158..=1161
        | 1184
        | 1203
        | 1205
        | 1213
        | 1226
        | 1615
        | 1698
        | 1927
        | 4031 => ErrorKind::Unavailable,
        // Groups, arguments, collations, regular expressions, window functions, and JSON of MariaDB.
        1111
        | 1210
        | 1221
        | 1267
        | 1270
        | 1271
        | 1300
        | 1411
        | 1525
        | 3047
        | 3577..=3600
        | 3685..=3698
        | 4003..=4026
        | 4035..=4051 => ErrorKind::InvalidArguments,
        _ => match error.state.get(..2) {
            Some("21" | "22" | "23" | "42" | "0A") => ErrorKind::InvalidArguments,
            Some("08" | "28") => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        },
    }
}

fn hint(error: &ServerError) -> Option<String> {
    let advice = match error.code {
        NO_SUCH_TABLE => "Use the tool list_tables to list the readable tables.",
        NO_SUCH_COLUMN => "Use the tool get_schema to list the columns of a table.",
        NO_SUCH_ROUTINE | NO_SUCH_FUNCTION | NO_RIGHT_FOR_ROUTINE => return equivalent_hint(&error.message),
        1142 | 1143 => "The account of the node has no privilege for it; list_tables lists what it may read.",
        1205 | 1213 => "Another transaction holds a lock; try again.",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// The equivalent of a function of other databases. Only the message has the name: `FUNCTION shop.to_char does not exist`,
/// or `execute command denied to user 'ann'@'%' for routine 'shop.to_char'`.
fn equivalent_hint(message: &str) -> Option<String> {
    let name = match message.strip_prefix("FUNCTION ") {
        Some(rest) => rest.split(' ').next()?,
        None => message.rsplit('\'').nth(1)?,
    };
    let name = name.rsplit('.').next()?;
    equivalent_function(name, SqlDialect::MySql).map(|equivalent| format!("Write {equivalent}."))
}

/// The name in single quotes that comes first in the message of `error`: that of the table or column that does not exist.
/// The name of a table has that of its database before it.
pub(crate) fn quoted_name(error: &ServerError) -> Option<&str> {
    let name = error.message.split('\'').nth(1)?;
    name.rsplit('.').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16, state: &str, message: &str) -> ServerError {
        ServerError { code, state: state.to_owned(), message: message.to_owned() }
    }

    #[test]
    fn errors_of_statements_are_the_callers() {
        let kinds = [
            (1064, "42000", ErrorKind::InvalidArguments),
            (1054, "42S22", ErrorKind::InvalidArguments),
            (1146, "42S02", ErrorKind::NotFound),
            (1365, "22012", ErrorKind::InvalidArguments),
            (1267, "HY000", ErrorKind::InvalidArguments),
            (1792, "25006", ErrorKind::Forbidden),
            (1142, "42000", ErrorKind::Forbidden),
            (1317, "70100", ErrorKind::Cancelled),
            (1969, "70100", ErrorKind::TimedOut),
            (1045, "28000", ErrorKind::Unavailable),
            (1030, "HY000", ErrorKind::Internal),
        ];
        for (code, state, kind) in kinds {
            assert_eq!(error_kind(&error(code, state, "")), kind, "{code}");
        }
    }

    #[test]
    fn messages_of_the_server_stay_in_the_log() {
        let inner = error(1030, "HY000", "Got error 5 from storage engine /var/lib/mysql/shop");
        let outer = statement_error(&MySqlError::Server(inner), "shop");
        assert!(!outer.message().contains("/var"), "{outer}");
    }

    #[test]
    fn functions_of_other_databases_have_an_equivalent() {
        let outer = server_error(&error(1305, "42000", "FUNCTION shop.to_char does not exist"), "shop");
        assert!(outer.hint().is_some_and(|hint| hint.contains("DATE_FORMAT")), "{outer}");
        let denied = "execute command denied to user 'ann'@'%' for routine 'shop.nvl'";
        let outer = server_error(&error(1370, "42000", denied), "shop");
        assert!(outer.hint().is_some_and(|hint| hint.contains("IFNULL")), "{outer}");
        assert_eq!(quoted_name(&error(1146, "42S02", "Table 'shop.ordrs' doesn't exist")), Some("ordrs"));
        assert_eq!(quoted_name(&error(1054, "42S22", "Unknown column 'o.totl' in 'field list'")), Some("totl"));
    }
}
