//! What a server answers to rows.

use serde_json::Value;

use crate::refusal::sanitize;

/// What a request stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadReceipt {
    /// Rows in the table.
    pub rows: u64,
    /// Rows that were rejected and kept in the table of rejected rows.
    pub rejected: u64,
    /// The first of these.
    pub rejections: Vec<Rejection>,
    /// Whether the table was created.
    pub is_created: bool,
    /// Whether an earlier request with the same key had stored the rows.
    pub is_repeated: bool,
}

/// A row that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The line of the body, from 1.
    pub line: Option<u64>,
    /// The number of the row, from 0, in formats without lines.
    pub row: Option<u64>,
    /// The column, if it is a single one.
    pub column: Option<String>,
    /// What does not fit.
    pub reason: String,
}

impl UploadReceipt {
    /// Reads an answer; `None` if it is not one.
    pub fn from_json(answer: &Value) -> Option<Self> {
        let flag = |name: &str| answer[name].as_bool().unwrap_or_default();
        let rejections = answer["rejections"].as_array().into_iter().flatten();
        Some(Self {
            rows: answer["rows"].as_u64()?,
            rejected: answer["rejected"].as_u64()?,
            rejections: rejections.map(Rejection::from_json).collect(),
            is_created: flag("created"),
            is_repeated: flag("repeated"),
        })
    }
}

impl Rejection {
    fn from_json(rejection: &Value) -> Self {
        Self {
            line: rejection["line"].as_u64(),
            row: rejection["row"].as_u64(),
            column: rejection["column"].as_str().map(sanitize),
            reason: rejection["reason"].as_str().map(sanitize).unwrap_or_default(),
        }
    }
}
