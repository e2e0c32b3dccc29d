//! The levels and quantities of limits, with their texts for callers, log and metrics.

/// The level of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitLevel {
    /// One principal.
    Principal,
    /// All principals of one tenant together.
    Tenant,
    /// The callers of one tool: all of them, or those of one tenant.
    Tool,
    /// All callers together.
    Node,
}

/// The limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitMeasure {
    /// Requests per time.
    Requests,
    /// Calls at the same time.
    Calls,
    /// Rows per day.
    Rows,
    /// Bytes per day.
    Bytes,
    /// The run time of calls per day.
    Time,
}

impl LimitLevel {
    /// The name, as used in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Principal => "principal",
            Self::Tenant => "tenant",
            Self::Tool => "tool",
            Self::Node => "node",
        }
    }

    /// Whose limit it is, as a text for the caller.
    pub fn possessive(self) -> &'static str {
        match self {
            Self::Principal => "your",
            Self::Tenant => "your tenant's",
            Self::Tool => "this tool's",
            Self::Node => "the node's",
        }
    }
}

impl LimitMeasure {
    /// The name, as used in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Calls => "calls",
            Self::Rows => "rows",
            Self::Bytes => "bytes",
            Self::Time => "query_seconds",
        }
    }
}
