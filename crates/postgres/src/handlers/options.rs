//! The configuration of the handlers in a database.

use super::schema_name::SchemaName;

/// The configuration of the handlers that callers may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerOptions {
    /// The schema that contains them.
    pub schema: SchemaName,
    /// Whether they may write. Otherwise each runs in a read-only transaction, whatever its metadata says.
    pub writes: bool,
    /// Whether each call is recorded in the exchange log of the database, even if the log is switched off there.
    pub audit: bool,
}
