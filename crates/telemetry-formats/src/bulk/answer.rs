//! The answer of the bulk API.

use std::fmt::Write;

use super::{BulkFailure, BulkItem, BulkRequest};
use crate::text::write_string;

/// An answer with one item of average size, in bytes.
const ITEM_BYTES: usize = 200;

impl BulkRequest {
    /// The answer with status 200, in JSON: an item for each action, in their order. Items without a failure are stored.
    #[must_use]
    pub fn answer(&self, took_ms: u64) -> String {
        let has_errors = self.items.iter().any(|item| item.failure.is_some());
        let mut output = String::with_capacity(self.items.len() * ITEM_BYTES);
        // Writing to a text does not fail.
        _ = write!(output, "{{\"took\":{took_ms},\"errors\":{has_errors},\"items\":[");
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                output.push(',');
            }
            write_item(&mut output, item);
        }
        output.push_str("]}");
        output
    }
}

fn write_item(output: &mut String, item: &BulkItem) {
    // Writing to a text does not fail.
    _ = write!(output, "{{\"{}\":{{\"_index\":", item.action.name());
    write_string(output, &item.index);
    match &item.failure {
        None => output.push_str(
            ",\"_version\":1,\"result\":\"created\",\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},\"status\":201",
        ),
        Some(BulkFailure { status, error_type, reason }) => {
            _ = write!(output, ",\"status\":{status},\"error\":{{\"type\":");
            write_string(output, error_type);
            output.push_str(",\"reason\":");
            write_string(output, reason);
            output.push('}');
        }
    }
    output.push_str("}}");
}
