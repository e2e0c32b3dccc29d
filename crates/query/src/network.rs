//! Networks of nodes: nodes as databases, and their tables as last known.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_runtime::Job;
use tidegate_sql::Statement;

use crate::database::{Database, QueryRows};
use crate::ingest::RowWriter;

pub use tidegate_core::{MissingNode, MissingNodes};

/// The database of another node. Its name is the name of the node in its network.
///
/// An error that [`is_node_failure`] is about the node, not about the statement. Before the first row of an answer, it
/// means that no replica of the node answered.
#[async_trait]
pub trait NodeDatabase: Database {
    /// The URL of the replica that is in use, or would be tried first. It has no credentials.
    fn url(&self) -> String;

    /// The tables that `principal` may read, as last known: a list that is older than a few seconds is fetched again, and
    /// the old one is returned while the node does not answer.
    ///
    /// # Errors
    /// Those of the node, when its tables were never known.
    async fn tables(&self, principal: &Principal) -> Result<Arc<NodeTables>, Error>;

    /// As [`NodeDatabase::tables`], but a list that is older than a second is fetched again first: a caller names a table
    /// that is in none.
    ///
    /// # Errors
    /// As [`NodeDatabase::tables`].
    async fn newer_tables(&self, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        self.tables(principal).await
    }

    /// Asks the node for its version and its clock: one round trip, never from memory.
    ///
    /// # Errors
    /// `Unavailable` or `TimedOut` when no replica answers; `Unauthenticated` and `Forbidden` when the node refuses.
    async fn check(&self, principal: &Principal) -> Result<NodeCheck, Error>;

    /// Runs `statement` without planning it first: one round trip. It returns when the first batch or the end of the
    /// answer has arrived. The stream ends early, with an error, when `job` is cancelled; dropping it ends the call at
    /// the node.
    ///
    /// # Errors
    /// Those of [`Database::plan`] and [`Plan::run`](crate::Plan::run), and those of the node before its first row.
    async fn run(&self, statement: &Statement, principal: &Principal, job: &Arc<Job>) -> Result<QueryRows, Error>;

    /// Begins to send rows to a table of the node, as `principal`. The node itself stores them, all or none. Replicas get
    /// no copy. Nothing is stored before the commit, and nothing if the writer is dropped.
    ///
    /// # Errors
    /// `InvalidArguments` if the server takes no rows; those of the node, also of the writer.
    async fn begin_write(&self, _write: NodeWrite, _principal: &Principal) -> Result<Box<dyn RowWriter>, Error> {
        let message = format!("rows cannot be sent to the server {:?}", self.name());
        Err(Error::new(ErrorKind::InvalidArguments, message))
    }

    /// What was observed of the node so far, without a request.
    fn observed(&self) -> NodeObservation;
}

/// Rows for a table of a node.
#[derive(Debug, Clone)]
pub struct NodeWrite {
    /// The name of the table, which exists.
    pub table: String,
    /// The columns of the batches.
    pub schema: SchemaRef,
    /// Makes a repeat safe: a second write of the caller with the same key stores nothing.
    pub key: Option<String>,
}

/// Whether `error` is about a node that is away, slow, of another version, or refuses; not about a statement.
pub fn is_node_failure(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Unauthenticated | ErrorKind::Forbidden
    )
}

/// The tables of a node at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeTables {
    /// The tables, ordered by name.
    pub tables: Vec<NodeTable>,
    /// When the node listed them, by the clock of this process.
    pub known_since: SystemTime,
}

/// A table of a node, with the columns that the caller may read.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeTable {
    /// The name, unquoted.
    pub name: String,
    /// The columns.
    pub schema: SchemaRef,
    /// The number of rows, where the node knows it without reading the table.
    pub rows: Option<u64>,
    /// The comment from the database.
    pub comment: Option<String>,
    /// Why it cannot be read. It has no columns then.
    pub unreadable: Option<String>,
}

/// The answer of a node to a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCheck {
    /// The version of its program.
    pub version: String,
    /// The URL of the replica that answered.
    pub url: String,
    /// The time of the round trip.
    pub latency: Duration,
    /// Its clock minus the clock of this process, in milliseconds, accurate to half of the round trip.
    pub clock_offset_ms: i64,
    /// The number of calls that run there.
    pub running_calls: u64,
    /// The subject as which the node knows the caller.
    pub subject: String,
}

/// What a process has observed of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeObservation {
    /// The last answer of the node, whatever it was.
    pub last_seen: Option<SystemTime>,
    /// The failure since then, if the last request failed.
    pub failure: Option<String>,
    /// The version of its program, if it was reported.
    pub version: Option<String>,
    /// The time of the last round trip.
    pub latency: Option<Duration>,
}

/// The nodes of a network database, for the tools that show them.
#[async_trait]
pub trait Network: Send + Sync {
    /// The nodes, in the order of the configuration.
    fn nodes(&self) -> &[Arc<dyn NodeDatabase>];

    /// Which nodes hold which part of `table`, for the caller of `job`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, when no node has the table; `Cancelled`.
    async fn locate(&self, table: &str, job: &Arc<Job>) -> Result<Vec<TablePart>, Error>;
}

/// The part of a network table that one node holds.
#[derive(Debug, Clone, PartialEq)]
pub struct TablePart {
    /// The name of the node.
    pub node: String,
    /// The number of rows, if known.
    pub rows: Option<u64>,
    /// The size on disk, with indexes, if known.
    pub bytes: Option<u64>,
    /// The ranges of the columns for which the network keeps them.
    pub ranges: Vec<PartRange>,
    /// When the part was last known to be like this.
    pub known_since: Option<SystemTime>,
    /// What the configuration declares about the rows, as a condition, if it does.
    pub holds: Option<String>,
    /// Notes: columns that are absent or have another type, or why the node does not answer.
    pub notes: Vec<String>,
}

/// The smallest and the largest value of a column in a part of a table, as texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRange {
    /// The name of the column.
    pub column: String,
    /// The smallest value.
    pub smallest: String,
    /// The largest value.
    pub largest: String,
}
