//! A version of a table: its columns and its data files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::log_files::{Add, Remove};
use crate::partition::{PartitionColumn, decode_path, encode_path};
use crate::schema::TableSchema;
use crate::statistics::ColumnStatistics;
use crate::{DeltaError, statistics};

/// The tag of a file with the CRC-32 of its bytes. Only this writer sets it.
const CHECKSUM_TAG: &str = "tidegate.crc32";
/// The tag with the partition columns whose value is empty text, as a JSON array. The protocol takes it for null.
const EMPTY_TEXT_TAG: &str = "tidegate.empty_text";

/// A data file of a table. It never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    /// Where it is, below the folder of the table, with `/` between names.
    pub path: String,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// The value of each partition column, in their order, as [`PartitionColumn::parse`] reads it; `None` is null.
    pub partition_values: Vec<Option<String>>,
    /// What is known of the values of its columns. A column that is missing has unknown values.
    pub statistics: Vec<ColumnStatistics>,
    /// When it was written, in milliseconds since 1970-01-01 UTC.
    pub modified_ms: i64,
    /// The CRC-32 of its bytes, if this writer wrote it.
    pub checksum: Option<u32>,
}

impl DataFile {
    /// The statistics of a column.
    #[must_use]
    pub fn column_statistics(&self, column: &str) -> Option<&ColumnStatistics> {
        self.statistics.iter().find(|statistics| statistics.column == column)
    }

    /// The file that an action adds.
    pub(super) fn from_add(folder: &Path, add: Add, schema: &TableSchema) -> Result<Self, DeltaError> {
        if add.deletion_vector.is_some() {
            return Err(DeltaError::UnsupportedFeature("deletionVectors".to_owned()));
        }
        let path = path_below_table(&add.path)?;
        let checksum = tag(&add, CHECKSUM_TAG).and_then(|text| u32::from_str_radix(text, 16).ok());
        let partition_values = partition_texts(&add, schema.partitions.iter().map(|column| column.name.as_str()));
        let (rows, statistics) = add
            .stats
            .as_deref()
            .map_or((None, Vec::new()), |stats| statistics::from_json(stats, &schema.declared, checksum.is_some()));
        let rows = match rows {
            Some(rows) => rows,
            None => super::reader::count_rows(&folder.join(&path))?,
        };
        Ok(Self {
            path,
            rows,
            bytes: add.size,
            partition_values,
            statistics,
            modified_ms: add.modification_time,
            checksum,
        })
    }

    /// The action that adds the file. `data_change`: whether the table has rows that it did not have before.
    pub(super) fn to_add(&self, schema: &TableSchema, data_change: bool) -> Result<Add, DeltaError> {
        let stats = statistics::to_json(self.rows, &self.statistics, &schema.declared)
            .map_err(|error| DeltaError::InvalidCommit(format!("the statistics of \"{}\": {error}", self.path)))?;
        let mut tags = std::collections::BTreeMap::new();
        if let Some(checksum) = self.checksum {
            tags.insert(CHECKSUM_TAG.to_owned(), Some(format!("{checksum:08x}")));
        }
        let values = schema.partitions.iter().zip(&self.partition_values);
        let empty: Vec<_> =
            values.filter(|(_, value)| value.as_deref() == Some("")).map(|(column, _)| column.name.as_str()).collect();
        if !empty.is_empty() {
            tags.insert(EMPTY_TEXT_TAG.to_owned(), Some(serde_json::json!(empty).to_string()));
        }
        Ok(Add {
            path: encode_path(&self.path),
            partition_values: self.named_partition_values(schema),
            size: self.bytes,
            modification_time: self.modified_ms,
            data_change,
            stats: Some(stats),
            tags: (!tags.is_empty()).then_some(tags),
            deletion_vector: None,
        })
    }

    /// The action that removes the file.
    pub(super) fn to_remove(&self, schema: &TableSchema, now_ms: i64, data_change: bool) -> Remove {
        Remove {
            path: encode_path(&self.path),
            deletion_timestamp: Some(now_ms),
            data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(self.named_partition_values(schema)),
            size: Some(self.bytes),
            deletion_vector: None,
        }
    }

    fn named_partition_values(&self, schema: &TableSchema) -> std::collections::BTreeMap<String, Option<String>> {
        let values = schema.partitions.iter().zip(&self.partition_values);
        // An empty text is null for all readers of the protocol; writing null makes that explicit.
        values.map(|(column, value)| (column.name.clone(), value.clone().filter(|value| !value.is_empty()))).collect()
    }
}

fn tag<'a>(add: &'a Add, key: &str) -> Option<&'a str> {
    add.tags.as_ref()?.get(key)?.as_deref()
}

/// The values of the partition columns with these names in the log. `None` is null, as is empty text without the tag of
/// this writer.
pub(super) fn partition_texts<'a>(add: &Add, names: impl Iterator<Item = &'a str>) -> Vec<Option<String>> {
    let empty = tag(add, EMPTY_TEXT_TAG).and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    let empty = empty.unwrap_or_default();
    let text = |name: &str| {
        let text = add.partition_values.get(name).cloned().flatten().filter(|text| !text.is_empty());
        text.or_else(|| empty.iter().any(|empty| empty == name).then(String::new))
    };
    names.map(text).collect()
}

/// The path of a file of the log, below the folder of the table.
pub(super) fn path_below_table(encoded: &str) -> Result<String, DeltaError> {
    let path = decode_path(encoded).filter(|path| is_below_table(path));
    path.ok_or_else(|| DeltaError::OutsideOfTable(encoded.to_owned()))
}

/// Whether a path of the log is a relative one that stays below the table.
fn is_below_table(path: &str) -> bool {
    let is_plain = |name: &str| !name.is_empty() && name != "." && name != "..";
    // A scheme such as `s3:` is before the first slash. Names of folders have their colons escaped.
    let has_scheme = path.split('/').next().is_some_and(|first| first.ends_with(':'));
    !has_scheme && !path.contains('\\') && path.split('/').all(is_plain)
}

/// A version of a table. Readers keep it as long as they read.
#[derive(Debug, Clone)]
pub struct DeltaSnapshot {
    /// The version.
    pub version: u64,
    /// The columns as declared. Columns that are computed for partitions are not among them.
    pub schema: SchemaRef,
    /// The columns that the files are separated by.
    pub partition_columns: Arc<[PartitionColumn]>,
    /// The data files.
    pub files: Vec<Arc<DataFile>>,
    /// The columns of the data files and their types in them.
    pub stored_schema: SchemaRef,
    /// Files that commits removed, with the time in milliseconds since 1970-01-01 UTC. Entries older than
    /// [`super::TOMBSTONE_RETENTION_MS`] may be missing.
    pub(super) removed: Arc<std::collections::HashMap<String, i64>>,
}

impl DeltaSnapshot {
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// The bytes of all data files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The paths of all data files in the folder of the table.
    pub fn paths<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        self.files.iter().map(move |file| folder.join(&file.path))
    }
}
