//! What is written down of a stored result: a head, a line for each block, an end.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use tidegate_core::Owner;

use super::id::ResultId;
use super::result_file::FileDescription;

/// What is known of a result before its first row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultHeader {
    /// Its name.
    pub id: ResultId,
    pub(super) owner: Owner,
    /// The tool that was asked, or the URI of the resource that was read.
    pub tool: String,
    /// The database that was asked; empty for a file.
    pub database: String,
    /// What its rows depend on beside its data: the row policies that bound its owner when it was asked
    /// ([`Database::row_policy_stamp`](crate::Database::row_policy_stamp)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub policies: u64,
    /// The job that writes it.
    pub job: Uuid,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
    /// When it goes, in milliseconds since 1970.
    pub expires_at_ms: u64,
    /// How many rows were asked for, if there was a bound: of the rows behind it nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_max: Option<u64>,
    /// The file whose bytes its rows are; none for rows of a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileDescription>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(policies: &u64) -> bool {
    *policies == 0
}

/// One block of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFacts {
    /// Rows before it.
    pub first_row: u64,
    /// Its rows.
    pub rows: u64,
    /// Its bytes, as they lie on the disk.
    pub bytes: u64,
    /// The SHA-256 of these bytes, in hexadecimal digits.
    pub sha256: String,
}

/// One line of a manifest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ManifestLine {
    Head(Box<ResultHeader>),
    Block(BlockFacts),
    /// The end; with why it came before the last row, if it did.
    End {
        incomplete: Option<String>,
    },
}
