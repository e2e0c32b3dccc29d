//! What the owner of a node says of a PostgreSQL database.

use std::time::Duration;

use crate::identity::{ClaimSettings, RunAs};

/// What the owner of a node says of a PostgreSQL database.
#[derive(Debug, Clone, PartialEq)]
pub struct PostgresOptions {
    /// The role that calls run as.
    pub run_as: RunAs,
    /// The settings that say who calls.
    pub claims: ClaimSettings,
    /// What keeps tenants apart.
    pub tenancy: TenantIsolation,
    /// The schemas whose tables are shown; all that the role may use unless said.
    pub schemas: Option<Vec<String>>,
    /// Whether a login role that could do more than read is refused instead of warned about.
    pub strict: bool,
    /// Whether a pooler in transaction mode (PgBouncer) stands between: then nothing is left in a session.
    pub is_behind_pooler: bool,
    /// The most that the planner may expect a caller's own statement to cost, in the planner's units.
    pub max_cost: Option<f64>,
    /// Connections at most.
    pub connections_max: usize,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
    /// How long a statement waits for a lock.
    pub lock_timeout: Duration,
    /// How long the server keeps a transaction that nobody speaks in.
    pub idle_timeout: Duration,
    /// How old an answer may be that is given again; none is ever, unless said.
    pub cached_answer_max_age: Option<Duration>,
}

/// What keeps tenants apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TenantIsolation {
    /// Nothing has to, or roles do: callers may write SQL.
    #[default]
    Roles,
    /// Only the settings that say who calls: callers may not write SQL, which could change a setting.
    Settings,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            run_as: RunAs::default(),
            claims: ClaimSettings::default(),
            tenancy: TenantIsolation::default(),
            schemas: None,
            strict: false,
            is_behind_pooler: false,
            max_cost: None,
            connections_max: 10,
            acquire_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            cached_answer_max_age: None,
        }
    }
}
