//! The options of a PostgreSQL database.

use std::time::Duration;

use tidegate_query::{ClaimSettings, RunAs};

use crate::connect::MESSAGE_BYTES_MAX;

/// The options of a [`PostgresDatabase`](crate::PostgresDatabase).
#[derive(Debug, Clone, PartialEq)]
pub struct PostgresOptions {
    /// The role that calls run as.
    pub run_as: RunAs,
    /// The settings with the identity of the caller.
    pub claims: ClaimSettings,
    /// How tenants are isolated.
    pub tenancy: TenantIsolation,
    /// The schemas whose tables are listed; by default all that the role may use.
    pub schemas: Option<Vec<String>>,
    /// The tables that take rows. Their version tag changes when rows are written, that of others with their columns. The
    /// login role may write to them.
    pub ingest_tables: Vec<String>,
    /// Whether a login role with privileges beyond reading, and beyond what `ingest_tables` need, is an error instead of a
    /// warning.
    pub strict: bool,
    /// Whether connections lead to a pooler in transaction mode (PgBouncer). Then a session keeps no state.
    pub is_behind_pooler: bool,
    /// Functions that a caller's own statements may call although they are volatile or run with the rights of their
    /// owner; each with or without its schema.
    pub allowed_functions: Vec<String>,
    /// The maximum size of one message of the server, such as a row, in bytes.
    pub message_bytes_max: usize,
    /// The maximum estimated cost of a caller's own statement, in the planner's units.
    pub max_cost: Option<f64>,
    /// The maximum number of connections.
    pub connections_max: usize,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
    /// How long a statement waits for a lock.
    pub lock_timeout: Duration,
    /// How long the server keeps an idle transaction.
    pub idle_timeout: Duration,
    /// The maximum age of a cached answer; `None` disables the cache.
    pub cached_answer_max_age: Option<Duration>,
}

/// How tenants are isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TenantIsolation {
    /// Not at all, or by roles: callers may write SQL.
    #[default]
    Roles,
    /// Only by the settings with the identity of the caller. Callers may not write SQL, which could change a setting.
    Settings,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            run_as: RunAs::default(),
            claims: ClaimSettings::default(),
            tenancy: TenantIsolation::default(),
            schemas: None,
            ingest_tables: Vec::new(),
            strict: false,
            is_behind_pooler: false,
            allowed_functions: Vec::new(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            max_cost: None,
            connections_max: 10,
            acquire_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            cached_answer_max_age: None,
        }
    }
}
