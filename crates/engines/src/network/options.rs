//! What the owner declares about a network.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_query::NodeDatabase;

/// How a network is queried.
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// What happens when a node does not answer.
    pub partial: PartialAnswers,
    /// How long a node may take for its first rows.
    pub timeout: Duration,
    /// The columns whose smallest and largest values `locate` shows.
    pub ranges: Vec<String>,
}

/// What happens when a node does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialAnswers {
    /// The statement fails, and the error names the nodes.
    Forbid,
    /// The answer lacks the rows of these nodes, and names them.
    Allow,
}

/// A node of a network.
pub struct NetworkNode {
    /// Its database. The name of the database is the name of the node.
    pub database: Arc<dyn NodeDatabase>,
    /// Which of its rows are part of the tables of the network; `None`: all.
    pub holds: Option<HeldRows>,
}

impl fmt::Debug for NetworkNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkNode").field("name", &self.database.name()).field("holds", &self.holds).finish()
    }
}

/// The rows of a node that are part of the tables of a network: those whose columns have these values. A table without
/// one of the columns is not restricted by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldRows {
    /// Values by column.
    pub columns: BTreeMap<String, HeldValues>,
}

/// Values of a column, as text that its type reads. Null is not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldValues {
    /// The smallest value.
    pub from: Option<String>,
    /// The value that all are below.
    pub before: Option<String>,
    /// The values; empty: no list.
    pub values: Vec<String>,
}

impl fmt::Display for HeldRows {
    /// As a condition: `time >= 2026-01-01 and site in (oslo, bergen)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut conditions = Vec::new();
        for (column, values) in &self.columns {
            conditions.extend(values.from.as_ref().map(|from| format!("{column} >= {from}")));
            conditions.extend(values.before.as_ref().map(|before| format!("{column} < {before}")));
            if !values.values.is_empty() {
                conditions.push(format!("{column} in ({})", values.values.join(", ")));
            }
        }
        f.write_str(&conditions.join(" and "))
    }
}
