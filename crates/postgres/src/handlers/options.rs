//! What the owner of a node says of the handlers inside a database.

use super::schema_name::SchemaName;

/// The handlers inside a database that callers may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerOptions {
    /// The schema that holds them.
    pub schema: SchemaName,
    /// Whether they may write. Otherwise each runs in a transaction that only reads, whatever it says of itself.
    pub writes: bool,
    /// Whether each call is written into the database's exchange log, also where its own switch is off.
    pub audit: bool,
}
