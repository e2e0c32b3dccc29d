//! One handler as its database describes it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};
use tidegate_query::{Isolation, Transaction};
use tokio_postgres::Row;

use super::options::HandlerOptions;

/// What a handler answers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandlerKind {
    /// Calls of a tool.
    Tool,
    /// Reads of a resource, or of all that a template names.
    Resource,
    /// Requests for a prompt.
    Prompt,
}

impl HandlerKind {
    /// The word that the database has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }
}

/// One handler as its database describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerRecord {
    /// What it answers for.
    pub kind: HandlerKind,
    /// Its name.
    pub name: String,
    /// As it is listed.
    pub definition: Map<String, Value>,
    /// Whether its caller must have shown who it is.
    pub requires_auth: bool,
    /// Whether it says of itself that it only reads.
    pub read_only: bool,
    /// Whether it answers with rows.
    pub returns_rows: bool,
    /// The columns of its rows, as SQL has them behind AS; none where each row is JSON and no more.
    pub(crate) columns: Option<String>,
    /// Whether what it wrote stays when it reports an error.
    pub commits_on_error: bool,
    /// How its transaction begins and how often it is tried again.
    pub(crate) transaction: Transaction,
    /// How long its statement may take, where that is bounded.
    pub(crate) timeout: Option<Duration>,
    /// The function's name, with its schema, as SQL.
    pub(crate) function: String,
    /// The roles that may execute it; none is the login's.
    pub(crate) roles: BTreeSet<Option<String>>,
}

/// Reads what a role sees of the handlers. `{schema}` is filled in.
pub(crate) const HANDLERS_SQL: &str =
    "SELECT handler.type, handler.name, handler.definition::text, handler.requires_auth, handler.read_only,
    handler.columns, handler.returns_rows, handler.commits_on_error, handler.function_signature,
    policy ->> 'isolation', (policy ->> 'retries')::integer, (policy ->> 'statementTimeoutMs')::integer
FROM {schema}.handler, LATERAL {schema}.mcp_transaction_policy(handler.type, handler.name) AS policy
ORDER BY handler.type, handler.name COLLATE \"C\"
LIMIT $1";

/// Why a row is no handler that can be called.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The server did not give what was asked for.
    #[error(transparent)]
    Row(#[from] tokio_postgres::Error),
    /// A member is not what it must be.
    #[error("{0}")]
    Invalid(&'static str),
}

impl HandlerRecord {
    /// Reads a row of [`HANDLERS_SQL`] that `role` saw.
    pub(crate) fn from_row(row: &Row, options: &HandlerOptions, role: Option<&str>) -> Result<Self, RecordError> {
        let kind = match row.try_get::<_, &str>(0)? {
            "tool" => HandlerKind::Tool,
            "resource" => HandlerKind::Resource,
            "prompt" => HandlerKind::Prompt,
            _ => return Err(RecordError::Invalid("its type is none that this version knows")),
        };
        let definition = serde_json::from_str(row.try_get(2)?);
        let definition = definition.map_err(|_| RecordError::Invalid("its definition is no object"))?;
        let only_reads: bool = row.try_get(4)?;
        let retries: i32 = row.try_get(10)?;
        let timeout_ms: Option<i32> = row.try_get(11)?;
        let isolation = match row.try_get::<_, &str>(9)? {
            "serializable" => Isolation::Serializable,
            "repeatable read" => Isolation::RepeatableRead,
            _ => Isolation::ReadCommitted,
        };
        let writes = options.writes && !only_reads;
        Ok(Self {
            kind,
            name: row.try_get(1)?,
            definition,
            requires_auth: row.try_get(3)?,
            read_only: only_reads,
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

/// The name in `signature`, which is put into SQL as it is and so must be one that the registration makes.
fn function_name(signature: &str, options: &HandlerOptions) -> Result<String, RecordError> {
    let broken = RecordError::Invalid("its function is none that the registration makes");
    let schema = options.schema.as_str();
    let arguments = format!("({schema}.mcp_request)");
    let name = signature.strip_prefix(schema).and_then(|rest| rest.strip_prefix('.'));
    let Some(name) = name.and_then(|rest| rest.strip_suffix(arguments.as_str())) else { return Err(broken) };
    let is_ours = name.starts_with("mcp_")
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_');
    if is_ours { Ok(format!("{schema}.{name}")) } else { Err(broken) }
}

#[cfg(test)]
mod tests {
    use super::super::SchemaName;
    use super::*;

    #[test]
    fn only_registered_functions_are_accepted() {
        let schema = SchemaName::parse("api").unwrap();
        let options = HandlerOptions { schema, writes: false, audit: false };
        assert_eq!(function_name("api.mcp_tool_x_1f(api.mcp_request)", &options).unwrap(), "api.mcp_tool_x_1f");
        for wrong in [
            "pg_sleep(1)",
            "api.mcp_tool_x_1f(integer)",
            "other.mcp_tool_x_1f(api.mcp_request)",
            "api.secret(api.mcp_request)",
            "api.mcp_tool_x(1), pg_sleep(1)(api.mcp_request)",
            "",
        ] {
            assert!(function_name(wrong, &options).is_err(), "{wrong}");
        }
    }
}
