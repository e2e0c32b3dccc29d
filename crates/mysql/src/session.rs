//! Sessions: their settings, the server that they are on, and how a transaction begins and ends.
//!
//! Each session of a call only reads, from its start: the server refuses whatever would write, also without a transaction. Texts are
//! UTF-8, times are in UTC, and the modes of SQL that change how text is read are off, so that the server reads the canonical
//! tokens as the statement policy does.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error as MySqlError, Row, Value};
use tidegate_query::ClaimSettings;
use tidegate_sql::{Isolation, SqlDialect, Transaction};

use crate::options::MySqlOptions;

/// The modes that a session keeps from the server. Others change what quotation marks, backslashes and operators mean.
///
/// [MySQL, Server SQL Modes](https://dev.mysql.com/doc/refman/8.4/en/sql-mode.html)
const KEPT_MODES: &[&str] = &[
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_ENGINE_SUBSTITUTION",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "PAD_CHAR_TO_FULL_LENGTH",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TIME_ROUND_FRACTIONAL",
    "TIME_TRUNCATE_FRACTIONAL",
];

const BEGIN: &str = "START TRANSACTION READ ONLY";
const BEGIN_SERIALIZABLE: &str = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION READ ONLY";
const BEGIN_REPEATABLE_READ: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY";
const END: &str = "ROLLBACK";
const END_AND_UNLOCK: &str = "ROLLBACK; DO RELEASE_ALL_LOCKS()";

/// What the statements of a session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionAccess {
    ReadOnly,
    /// Also write, for tables that take rows.
    Writes,
}

/// The identity of a caller on the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SessionIdentity {
    /// `None` leaves the account as it logs in.
    pub(crate) role: Option<String>,
    /// The values of the variables with the caller's claims, in the order of their names.
    pub(crate) claims: Vec<String>,
}

pub(crate) struct MySqlSession {
    pub(crate) connection: Conn,
    pub(crate) is_mariadb: bool,
    /// Counts the sessions that are open.
    _sessions: Arc<()>,
}

impl MySqlSession {
    pub(crate) async fn open(
        mut connection: Conn,
        options: &MySqlOptions,
        access: SessionAccess,
        sessions: Arc<()>,
    ) -> Result<Self, MySqlError> {
        let row: Option<Row> = connection.query_first("SELECT @@version, @@sql_mode").await?;
        let value = |index| row.as_ref().and_then(|row| value_text(row, index)).unwrap_or_default();
        let (is_mariadb, modes) = (value(0).contains("MariaDB"), kept_modes(&value(1)));
        let settings = match access {
            SessionAccess::ReadOnly => settings_sql(&modes, is_mariadb, options),
            SessionAccess::Writes => writing_settings_sql(options),
        };
        connection.query_drop(settings).await?;
        Ok(Self { connection, is_mariadb, _sessions: sessions })
    }

    /// Makes the session one of `identity`, all of it, whatever it was before: a function of the database that was called may
    /// have changed variables. `settings` has their names.
    pub(crate) async fn set_identity(
        &mut self,
        identity: &SessionIdentity,
        settings: &ClaimSettings,
    ) -> Result<(), MySqlError> {
        let sql = identity_sql(identity, settings);
        if sql.is_empty() { Ok(()) } else { self.connection.query_drop(sql).await }
    }

    /// Begins a transaction that only reads.
    pub(crate) async fn begin(&mut self, transaction: &Transaction) -> Result<(), MySqlError> {
        // A statement is a transaction, so that the default of the server is as good as READ COMMITTED.
        let sql = match transaction.isolation {
            Isolation::ReadCommitted => BEGIN,
            Isolation::RepeatableRead => BEGIN_REPEATABLE_READ,
            Isolation::Serializable => BEGIN_SERIALIZABLE,
        };
        self.connection.query_drop(sql).await
    }

    /// Ends the transaction, and releases what a caller may have locked by a view or a function of the database.
    pub(crate) async fn end(&mut self) -> Result<(), MySqlError> {
        let sql = if self.can_release_locks() { END_AND_UNLOCK } else { END };
        self.connection.query_drop(sql).await
    }

    fn can_release_locks(&self) -> bool {
        self.connection.server_version() >= if self.is_mariadb { (10, 5, 2) } else { (5, 7, 5) }
    }
}

/// The text of a value of a statement that was not prepared, or of a number; `None` for NULL.
pub(crate) fn value_text(row: &Row, index: usize) -> Option<String> {
    match row.as_ref(index)? {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(value) => Some(value.to_string()),
        Value::UInt(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The statements that set the role and the variables. Their values are texts that are compared by their characters.
fn identity_sql(identity: &SessionIdentity, settings: &ClaimSettings) -> String {
    let mut sql = identity.role.as_deref().map(role_sql).unwrap_or_default();
    let variables = settings.names().zip(&identity.claims).map(|(name, value)| {
        let name = SqlDialect::MySql.quote_identifier(name);
        format!("@{name} = CONVERT({} USING utf8mb4) COLLATE utf8mb4_bin", byte_literal(value))
    });
    let variables = variables.collect::<Vec<_>>().join(", ");
    if !variables.is_empty() {
        sql = format!("{sql}SET {variables};");
    }
    sql
}

/// The statement that sets the role.
pub(crate) fn role_sql(role: &str) -> String {
    format!("SET ROLE {};", SqlDialect::MySql.quote_identifier(role))
}

/// The bytes of `text` as a literal.
pub(crate) fn byte_literal(text: &str) -> String {
    let mut literal = String::with_capacity(3 + 2 * text.len());
    literal.push_str("x'");
    for byte in text.bytes() {
        for digit in [byte >> 4, byte & 15] {
            literal.extend(char::from_digit(digit.into(), 16));
        }
    }
    literal.push('\'');
    literal
}

/// Those of `modes`, separated by commas, that a session keeps.
fn kept_modes(modes: &str) -> String {
    let kept: Vec<&str> = modes.split(',').filter(|mode| KEPT_MODES.contains(mode)).collect();
    kept.join(",")
}

fn settings_sql(modes: &str, is_mariadb: bool, options: &MySqlOptions) -> String {
    let lock_seconds = options.lock_timeout.as_secs().max(1);
    let limit = match options.statement_timeout {
        None => String::new(),
        Some(limit) if is_mariadb => format!(", max_statement_time = {:.3}", limit.as_secs_f64()),
        Some(limit) => format!(", max_execution_time = {}", limit.as_millis()),
    };
    format!(
        "SET NAMES utf8mb4; \
         SET SESSION autocommit = 1, sql_mode = '{modes}', time_zone = '+00:00', \
         lock_wait_timeout = {lock_seconds}{limit}; \
         SET SESSION TRANSACTION READ ONLY"
    )
}

/// The modes of a session that writes: what does not fit is an error, and zero is no request for a new number.
const WRITING_MODES: &str = "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
                             NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO";

fn writing_settings_sql(options: &MySqlOptions) -> String {
    let lock_seconds = options.lock_timeout.as_secs().max(1);
    format!(
        "SET NAMES utf8mb4; \
         SET SESSION autocommit = 1, sql_mode = '{WRITING_MODES}', time_zone = '+00:00', \
         lock_wait_timeout = {lock_seconds}, innodb_lock_wait_timeout = {lock_seconds}"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn modes_that_change_how_text_is_read_are_off() {
        let modes =
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES";
        assert_eq!(kept_modes(modes), "STRICT_TRANS_TABLES");
        assert_eq!(kept_modes("ORACLE,ONLY_FULL_GROUP_BY,NO_ZERO_DATE"), "ONLY_FULL_GROUP_BY,NO_ZERO_DATE");
        assert_eq!(kept_modes(""), "");
    }

    #[test]
    fn names_and_values_of_an_identity_are_only_data() {
        let settings = ClaimSettings { combined: Some("claims".to_owned()), ..ClaimSettings::default() };
        let identity = SessionIdentity { role: Some("a`; DROP".to_owned()), claims: vec!["'é".to_owned()] };
        let expected = "SET ROLE `a``; DROP`;SET @`claims` = CONVERT(x'27c3a9' USING utf8mb4) COLLATE utf8mb4_bin;";
        assert_eq!(identity_sql(&identity, &settings), expected);
    }

    #[test]
    fn servers_have_their_own_limit_of_statements() {
        let limit = Some(Duration::from_millis(1_500));
        let options = MySqlOptions { statement_timeout: limit, ..MySqlOptions::default() };
        assert!(settings_sql("", true, &options).contains("max_statement_time = 1.500;"));
        assert!(settings_sql("", false, &options).contains("max_execution_time = 1500;"));
        assert!(!settings_sql("", true, &MySqlOptions::default()).contains("max_statement_time"));
    }
}
