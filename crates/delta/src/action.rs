//! The actions of the log, as the protocol names them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of the log, or a row of a checkpoint: exactly one of the fields.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Action {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit_info: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) protocol: Option<Protocol>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) meta_data: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) txn: Option<Transaction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remove: Option<Remove>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) add: Option<Add>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sidecar: Option<Sidecar>,
}

/// What a reader and a writer must support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Protocol {
    pub(super) min_reader_version: u32,
    pub(super) min_writer_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reader_features: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) writer_features: Option<Vec<String>>,
}

/// The columns and settings of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) format: Format,
    pub(super) schema_string: String,
    pub(super) partition_columns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) created_time: Option<i64>,
    #[serde(default)]
    pub(super) configuration: BTreeMap<String, Option<String>>,
}

/// The format of the data files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Format {
    pub(super) provider: String,
    #[serde(default)]
    pub(super) options: BTreeMap<String, Option<String>>,
}

/// How far an application has written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transaction {
    pub(super) app_id: String,
    pub(super) version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_updated: Option<i64>,
}

/// A data file that is part of the table from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Add {
    pub(super) path: String,
    #[serde(default)]
    pub(super) partition_values: BTreeMap<String, Option<String>>,
    pub(super) size: u64,
    pub(super) modification_time: i64,
    pub(super) data_change: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<BTreeMap<String, Option<String>>>,
    /// Rows of the file that are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deletion_vector: Option<DeletionVector>,
}

/// A data file that is no longer part of the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remove {
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deletion_timestamp: Option<i64>,
    pub(super) data_change: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extended_file_metadata: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) partition_values: Option<BTreeMap<String, Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deletion_vector: Option<DeletionVector>,
}

/// Where the positions of the deleted rows of a file are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletionVector {
    /// `i` in this action, `u` in a file of the table with a unique name, `p` at an absolute path.
    pub(super) storage_type: String,
    pub(super) path_or_inline_dv: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<u64>,
    pub(super) size_in_bytes: u64,
    pub(super) cardinality: u64,
}

/// A file with more actions of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sidecar {
    pub(super) path: String,
}
