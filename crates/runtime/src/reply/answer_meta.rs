//! What is known of an answer at its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tidegate_core::MissingNodes;

/// What is known of an answer at its end. A handler fills what applies to its answer; adapters translate it to their
/// protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerMeta {
    /// Whether the text of the rows was sent as a whole, and not as they were read.
    pub was_buffered: Option<bool>,
    /// The number of rows: in the answer, or stored by a write.
    pub rows: Option<u64>,
    /// The size of the content in bytes, without notes.
    pub bytes: Option<u64>,
    /// The time from the start of the query to the end of the answer.
    pub elapsed: Option<Duration>,
    /// Whether more exists than the answer contains.
    pub is_truncated: Option<bool>,
    /// The position of the next row, to continue from.
    pub cursor: Option<String>,
    /// Whether an earlier answer was used again.
    pub is_cached: bool,
    /// The URI of the stored result that contains the whole content.
    pub result_uri: Option<String>,
    /// The nodes whose rows the answer lacks. It comes from the job; what a handler sets is replaced.
    pub missing_nodes: Option<Arc<MissingNodes>>,
    /// What a write reports beside the number of rows.
    pub write: Option<Box<WriteSummary>>,
    /// What is meant for the adapter that made the call. Clients do not receive it as metadata.
    pub adapter: Option<Box<AdapterDetail>>,
    /// Further members, under names of the handler.
    pub other: Map<String, Value>,
}

/// What a write reports beside the number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteSummary {
    /// The number of rows that were rejected.
    pub rejected: u64,
    /// The position of the write in the log of its database.
    pub sequence: u64,
    /// Whether the write created the table.
    pub is_created: bool,
    /// The number of rows that an earlier write with the same key has stored, if it can be compared with the rows sent.
    pub repeated_rows: Option<u64>,
}

/// What an adapter needs of the answer to a call that it made for a request of its own protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdapterDetail {
    /// The only database whose tables are listed.
    Database {
        /// The name.
        name: String,
        /// The key of its SQL dialect.
        dialect: &'static str,
    },
    /// The only table that is described.
    Table {
        /// The size on disk in bytes, if it is known.
        bytes: Option<u64>,
        /// The columns that are indexed.
        indexed_columns: Vec<String>,
    },
    /// The outcome of a request of a telemetry sender.
    Receiver(ReceiverOutcome),
}

/// The outcome of a request of a telemetry sender that was accepted. The body of the answer has the details.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverOutcome {
    /// The media type of the body.
    pub media_type: &'static str,
    /// The number of records that were rejected. Those that the sender may repeat do not count.
    pub rejected: u64,
    /// The records of remote write that were stored, if its version reports them.
    pub written: Option<WrittenRecords>,
}

/// The numbers of records of remote write that were stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenRecords {
    /// Samples, with those that mark the end of a series.
    pub samples: u64,
    /// Exemplars.
    pub exemplars: u64,
}
