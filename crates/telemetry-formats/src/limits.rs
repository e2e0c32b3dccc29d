//! The bounds of one body.

/// The largest value of [`TelemetryLimits::decoded_bytes_max`]: offsets of text columns have 32 bits.
const DECODED_BYTES_CEILING: usize = 1 << 30;

/// The bounds of one body. What exceeds one is refused or rejected, never cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryLimits {
    /// The largest body, in bytes, after decompression. A larger one is refused.
    pub body_bytes_max: usize,
    /// What the decoded messages, and the rows that are made of them, may take in memory, each in bytes. At most 1 GiB.
    /// A body that needs more is refused.
    pub decoded_bytes_max: usize,
    /// The maximum number of records of a body. A body with more is refused.
    pub records_max: usize,
    /// The largest record as a row, in bytes of its text and lists. A larger one is rejected.
    pub record_bytes_max: usize,
    /// The maximum number of attributes or labels of one set, and of members of one value. A record with more is rejected.
    pub attributes_max: usize,
    /// How deeply values of attributes may be nested. A record with a deeper one is rejected.
    pub nesting_max: usize,
    /// The maximum number of events, links, exemplars, buckets or quantiles of one record. A record with more is rejected.
    pub items_max: usize,
    /// The maximum number of actions of a request of the bulk API. A request with more is refused.
    pub bulk_items_max: usize,
    /// The maximum number of spans of a trace as a tree.
    pub tree_spans_max: usize,
    /// How deeply spans of a trace as a tree may be nested.
    pub tree_depth_max: usize,
}

impl Default for TelemetryLimits {
    /// Bodies of 64 MiB, 512 MiB in memory, 1,000,000 records of 4 MiB, 1,000 attributes, 16 levels, 10,000 items;
    /// 200,000 actions of the bulk API; trees of 10,000 spans and 200 levels.
    fn default() -> Self {
        Self {
            body_bytes_max: 64 << 20,
            decoded_bytes_max: 512 << 20,
            records_max: 1_000_000,
            record_bytes_max: 4 << 20,
            attributes_max: 1_000,
            nesting_max: 16,
            items_max: 10_000,
            bulk_items_max: 200_000,
            tree_spans_max: 10_000,
            tree_depth_max: 200,
        }
    }
}

impl TelemetryLimits {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.decoded_bytes_max.min(DECODED_BYTES_CEILING)
    }

    pub(crate) fn check_body(&self, bytes: usize) -> Result<(), crate::FormatError> {
        if bytes <= self.body_bytes_max {
            return Ok(());
        }
        let most = self.body_bytes_max;
        Err(crate::FormatError::TooLarge(format!("the body has {bytes} bytes; at most {most} are accepted")))
    }
}
