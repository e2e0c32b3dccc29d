//! One handler as described by its database.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};
use tidegate_sql::{Isolation, Transaction};
use tokio_postgres::Row;

use crate::install::SchemaName;

/// The configuration of the handlers that callers may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerOptions {
    /// The schema that contains them.
    pub schema: SchemaName,
    /// Whether they may write. Otherwise each runs in a read-only transaction, whatever its metadata says.
    pub writes: bool,
    /// Whether each call is recorded in the call log of the database, even if the log is switched off there.
    pub records_calls: bool,
    /// Whose errors and ids calls have.
    pub compatibility: Compatibility,
}

/// Whose errors and ids calls of handlers have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compatibility {
    /// Errors of tools are results, details of other errors stay in the log, and ids are as the client sent them.
    #[default]
    None,
    /// Errors are JSON-RPC errors with the message of PostgreSQL, and ids are strings, as the dispatcher of pgmi has them.
    Pgmi,
}

/// The kind of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandlerKind {
    /// Calls of a tool.
    Tool,
    /// Reads of a resource, or of all resources of a template.
    Resource,
    /// Requests for a prompt.
    Prompt,
}

impl HandlerKind {
    /// The name of the kind in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }
}

/// One handler as described by its database.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerRecord {
    /// The kind.
    pub kind: HandlerKind,
    /// The name.
    pub name: String,
    /// The definition for lists.
    pub definition: Map<String, Value>,
    /// Whether the caller must be authenticated.
    pub requires_auth: bool,
    /// Whether it is declared read-only.
    pub read_only: bool,
    /// Whether it returns rows.
    pub returns_rows: bool,
    /// The columns of its rows, as in SQL after AS; `None` if each row is only JSON.
    pub(crate) columns: Option<String>,
    /// Whether its changes are committed when it reports an error.
    pub commits_on_error: bool,
    /// The beginning of its transaction and the number of retries.
    pub(crate) transaction: Transaction,
    pub(crate) timeout: Option<Duration>,
    /// The qualified name of the function, as SQL.
    pub(crate) function: String,
    /// The roles that may execute it; `None` is the login role.
    pub(crate) roles: BTreeSet<Option<String>>,
}

/// Reads the handlers that are visible to a role. `{schema}` is a placeholder.
pub(crate) const HANDLERS_SQL: &str =
    "SELECT handler.type, handler.name, handler.definition::text, handler.requires_auth, handler.read_only,
    handler.columns, handler.returns_rows, handler.commits_on_error, handler.function_signature,
    policy ->> 'isolation', (policy ->> 'retries')::integer, (policy ->> 'statementTimeoutMs')::integer
FROM {schema}.handler, LATERAL {schema}.mcp_transaction_policy(handler.type, handler.name) AS policy
ORDER BY handler.type, handler.name COLLATE \"C\"";

#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Row(#[from] tokio_postgres::Error),
    #[error("{0}")]
    Invalid(&'static str),
}

impl HandlerRecord {
    /// Parses a row of [`HANDLERS_SQL`], which was read as `role`.
    pub(crate) fn from_row(row: &Row, options: &HandlerOptions, role: Option<&str>) -> Result<Self, RecordError> {
        let kind = match row.try_get::<_, &str>(0)? {
            "tool" => HandlerKind::Tool,
            "resource" => HandlerKind::Resource,
            "prompt" => HandlerKind::Prompt,
            _ => return Err(RecordError::Invalid("this version does not support its type")),
        };
        let definition = serde_json::from_str(row.try_get(2)?);
        let definition = definition.map_err(|_| RecordError::Invalid("its definition is not an object"))?;
        let read_only: bool = row.try_get(4)?;
        let retries: i32 = row.try_get(10)?;
        let timeout_ms: Option<i32> = row.try_get(11)?;
        let isolation = match row.try_get::<_, &str>(9)? {
            "serializable" => Isolation::Serializable,
            "repeatable read" => Isolation::RepeatableRead,
            _ => Isolation::ReadCommitted,
        };
        let writes = options.writes && !read_only;
        Ok(Self {
            kind,
            name: row.try_get(1)?,
            definition,
            requires_auth: row.try_get(3)?,
            read_only,
            columns: row.try_get(5)?,
            returns_rows: row.try_get(6)?,
            commits_on_error: row.try_get(7)?,
            transaction: Transaction {
                isolation,
                writes,
                deferrable: isolation == Isolation::Serializable && !writes,
                retries_max: u32::try_from(retries).unwrap_or(0),
                ..Transaction::default()
            },
            timeout: timeout_ms.and_then(|time| u64::try_from(time).ok()).map(Duration::from_millis),
            function: function_name(row.try_get(8)?, options)?,
            roles: [role.map(str::to_owned)].into(),
        })
    }
}

/// The name in `signature`. It becomes part of SQL unchanged, so it must have the form that the registration creates.
fn function_name(signature: &str, options: &HandlerOptions) -> Result<String, RecordError> {
    let schema = options.schema.as_str();
    let name = signature.strip_prefix(&format!("{schema}."));
    let name = name.and_then(|rest| rest.strip_suffix(&format!("({schema}.mcp_request)")));
    let is_plain = |name: &&str| name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_');
    let name = name.filter(|name| name.starts_with("mcp_")).filter(is_plain);
    name.map(|name| format!("{schema}.{name}"))
        .ok_or(RecordError::Invalid("its function was not created by the registration"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemaName;

    #[test]
    fn only_registered_functions_are_accepted() {
        let schema = SchemaName::parse("api").unwrap();
        let options =
            HandlerOptions { schema, writes: false, records_calls: false, compatibility: Compatibility::None };
        assert_eq!(function_name("api.mcp_tool_x_1f(api.mcp_request)", &options).unwrap(), "api.mcp_tool_x_1f");
        for invalid in [
            "pg_sleep(1)",
            "api.mcp_tool_x_1f(integer)",
            "other.mcp_tool_x_1f(api.mcp_request)",
            "api.secret(api.mcp_request)",
            "api.mcp_tool_x(1), pg_sleep(1)(api.mcp_request)",
            "",
        ] {
            assert!(function_name(invalid, &options).is_err(), "{invalid}");
        }
    }
}
