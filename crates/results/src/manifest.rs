//! The manifest of a stored result on disk: a header line, a line for each block, and an end line.

use serde::{Deserialize, Serialize};
use tidegate_core::Owner;
use uuid::Uuid;

use crate::id::ResultId;
use crate::result_file::FileDescription;

/// The metadata of a result that is known before its first row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultHeader {
    /// The identifier of the result.
    pub id: ResultId,
    pub(crate) owner: Owner,
    /// The tool that was called, or the URI of the resource that was read.
    pub tool: String,
    /// The database that was queried; empty for a file.
    pub database: String,
    /// A stamp of the row policies that applied to the owner at the time of the query
    /// (`Database::row_policy_stamp`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub policies: u64,
    /// The job that writes it.
    pub job: Uuid,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
    /// When the result expires, in milliseconds since 1970.
    pub expires_at_ms: u64,
    /// The requested number of rows, if it was limited; whether further rows exist is then unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_max: Option<u64>,
    /// The file that the rows contain; `None` for rows of a query.
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
    /// The number of rows before this block.
    pub first_row: u64,
    /// The number of rows in this block.
    pub rows: u64,
    /// The size of the block on disk, in bytes.
    pub bytes: u64,
    /// The SHA-256 hash of the block in hexadecimal digits.
    pub sha256: String,
}

/// One line of a manifest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ManifestLine {
    Head(Box<ResultHeader>),
    Block(BlockFacts),
    /// The end, with the reason if it came before the last row.
    End {
        incomplete: Option<String>,
    },
}
