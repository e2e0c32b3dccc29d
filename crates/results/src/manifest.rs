//! The manifest of a stored result on disk: a header line, a line for each block, and an end line; and the identifier
//! of the result.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tidegate_core::{CallerIdentity, Error, ErrorKind, MissingNodes};
use uuid::Uuid;

/// The metadata of a result that is known before its first row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultHeader {
    /// The identifier of the result.
    pub id: ResultId,
    pub(crate) owner: CallerIdentity,
    /// The tool that was called, or the URI of the resource that was read.
    pub tool: String,
    /// The database that was queried; empty for a file.
    pub database: String,
    /// A fingerprint of the row policies that applied to the owner at the time of the query
    /// (`Database::row_policy_fingerprint`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub policies: u64,
    /// The job that writes it.
    pub job: Uuid,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
    /// Its place in the order in which the results of its store were begun; 0 in a manifest of an earlier version.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) number: u64,
    /// When the result expires, in milliseconds since 1970.
    pub expires_at_ms: u64,
    /// The requested number of rows, if it was limited; whether further rows exist is then unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_max: Option<u64>,
    /// The nodes whose rows are missing, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_nodes: Option<MissingNodes>,
    /// The file that the rows contain; `None` for rows of a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileDescription>,
    /// Whether the owner requested a table, with as many rows as it has.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_table: bool,
    /// A name of the table that the owner chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// What the owner must have access to, if rows come from other stored results; with the tool and the database of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) required_access: Vec<RequiredAccess>,
}

/// What the owner of a result must still have access to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredAccess {
    /// The tool that was called.
    pub tool: String,
    /// The database that was queried; `None` if the tool read stored results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The fingerprint of the row policies of the database that applied to the owner.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub policies: u64,
}

impl ResultHeader {
    /// What the owner must have access to, with what the stored results need from which rows come.
    pub fn required_access(&self) -> Vec<RequiredAccess> {
        if !self.required_access.is_empty() {
            return self.required_access.clone();
        }
        let (tool, database) = (self.tool.clone(), Some(self.database.clone()));
        vec![RequiredAccess { tool, database, policies: self.policies }]
    }
}

/// The metadata of a stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDescription {
    /// The file name, without folders.
    pub name: String,
    /// The media type, if it is known.
    pub media_type: Option<String>,
    /// The size of the file, in bytes.
    pub bytes: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One block of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockMetadata {
    /// The number of rows before this block.
    pub first_row: u64,
    /// The number of rows in this block.
    pub rows: u64,
    /// The size of the block on disk, in bytes.
    pub bytes: u64,
    /// The SHA-256 hash of the block in hexadecimal digits.
    pub sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ManifestLine {
    Head(Box<ResultHeader>),
    Block(BlockMetadata),
    /// The end, with the reason if it came before the last row.
    End {
        incomplete: Option<String>,
    },
}

/// How the names of results as tables begin.
const TABLE_NAME_START: &str = "r_";

/// Identifies a stored result; random, so that it cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultId(pub Uuid);

impl ResultId {
    pub(crate) fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// The URI of its manifest.
    pub fn uri(self) -> String {
        format!("tidegate://results/{self}")
    }

    /// Its name as a table, which is an SQL identifier without quotes.
    pub fn table_name(self) -> String {
        format!("{TABLE_NAME_START}{}", self.0.simple())
    }

    /// The result with this name as a table, in the form of [`ResultId::table_name`] only.
    pub fn from_table_name(name: &str) -> Option<Self> {
        let id = Self(Uuid::parse_str(name.strip_prefix(TABLE_NAME_START)?).ok()?);
        (id.table_name() == name).then_some(id)
    }

    /// The error for callers for which the result does not exist.
    pub fn not_found(self) -> Error {
        not_found_error(self)
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ResultId {
    type Err = Error;

    /// Parses an id in its canonical form only: other spellings of a UUID would be other addresses of the same result.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.parse().map(Self).ok().filter(|id: &Self| id.to_string() == text);
        id.ok_or_else(|| not_found_error(text))
    }
}

fn not_found_error(id: impl fmt::Display) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no stored result {id}"))
}
