//! The schema of an answer as the carrier of its missing nodes: every encoder, and every stored result, has the schema.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use tidegate_core::{MissingNode, MissingNodes};
use tidegate_runtime::Job;

/// The key in the metadata of an Arrow schema, and in a Parquet file, for the nodes whose rows are missing: a JSON array
/// of objects with `name`, `reason` and `rows`.
pub const MISSING_NODES_KEY: &str = "tidegate.missing_nodes";
/// The key for the number of rows of the tables of the statement on all nodes, if it is known.
pub const ROWS_ON_ALL_NODES_KEY: &str = "tidegate.rows_on_all_nodes";

/// The nodes whose rows are missing from an answer with this schema, such as that of another Tidegate node. A mark that
/// cannot be read counts: the rows are still missing.
pub fn missing_nodes_of_schema(schema: &Schema) -> Option<MissingNodes> {
    let text = schema.metadata().get(MISSING_NODES_KEY)?;
    let nodes: Vec<MissingNode> = serde_json::from_str(text).unwrap_or_else(|_| {
        let reason = format!("the metadata {MISSING_NODES_KEY} of the answer cannot be read");
        vec![MissingNode { name: "unknown".to_owned(), reason, rows: None }]
    });
    let rows_total = schema.metadata().get(ROWS_ON_ALL_NODES_KEY).and_then(|rows| rows.parse().ok());
    (!nodes.is_empty()).then_some(MissingNodes { nodes, rows_total })
}

/// The schema of the answer of `job`, with the missing nodes that the job has recorded, and no other ones.
pub(crate) fn mark_schema(schema: SchemaRef, job: &Job) -> SchemaRef {
    let missing = job.missing_nodes();
    if missing.is_none() && !schema.metadata().contains_key(MISSING_NODES_KEY) {
        return schema;
    }
    let mut metadata = schema.metadata().clone();
    metadata.retain(|key, _| key != MISSING_NODES_KEY && key != ROWS_ON_ALL_NODES_KEY);
    if let Some(missing) = missing {
        metadata.insert(MISSING_NODES_KEY.to_owned(), missing.nodes_as_json().to_string());
        metadata.extend(missing.rows_total.map(|rows| (ROWS_ON_ALL_NODES_KEY.to_owned(), rows.to_string())));
    }
    Arc::new(schema.as_ref().clone().with_metadata(metadata))
}

/// The members of [`MissingNodes::to_json_members`] for an object with other members before them: `,"partial":true,…`;
/// empty for a complete answer.
pub(crate) fn json_members_of_schema(schema: &Schema) -> String {
    let Some(missing) = missing_nodes_of_schema(schema) else { return String::new() };
    let members = missing.to_json_members().into_iter();
    members.map(|(name, value)| format!(",{}:{value}", serde_json::Value::from(name))).collect()
}
