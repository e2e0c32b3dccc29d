//! Data files that a write produced, before a Delta table has them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::delta::{ColumnStatistics, DataFile, StatisticsValue};

/// A data file in a record of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StagedFile {
    path: String,
    pub(crate) rows: u64,
    bytes: u64,
    partition_values: Vec<Option<String>>,
    modified_ms: i64,
    checksum: Option<u32>,
    statistics: Vec<StagedStatistics>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StagedStatistics {
    column: String,
    minimum: Option<StagedValue>,
    maximum: Option<StagedValue>,
    is_exact: bool,
    null_count: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StagedValue {
    /// As text, as JSON has no numbers of 128 bits.
    Integer(String),
    /// The bits of the number.
    Float(u64),
    Text(Box<str>),
}

impl From<&DataFile> for StagedFile {
    fn from(file: &DataFile) -> Self {
        let statistics = file.statistics.iter().map(|column| StagedStatistics {
            column: column.column.clone(),
            minimum: column.minimum.as_ref().map(StagedValue::from),
            maximum: column.maximum.as_ref().map(StagedValue::from),
            is_exact: column.is_exact,
            null_count: column.null_count,
        });
        Self {
            path: file.path.clone(),
            rows: file.rows,
            bytes: file.bytes,
            partition_values: file.partition_values.clone(),
            modified_ms: file.modified_ms,
            checksum: file.checksum,
            statistics: statistics.collect(),
        }
    }
}

impl StagedFile {
    /// The data file. `None` if a number is none.
    pub(crate) fn into_data_file(self) -> Option<DataFile> {
        let statistics = self.statistics.into_iter().map(|column| {
            Some(ColumnStatistics {
                column: column.column,
                minimum: column.minimum.map(StagedValue::into_value).transpose().ok()?,
                maximum: column.maximum.map(StagedValue::into_value).transpose().ok()?,
                is_exact: column.is_exact,
                null_count: column.null_count,
            })
        });
        Some(DataFile {
            path: self.path,
            rows: self.rows,
            bytes: self.bytes,
            partition_values: self.partition_values,
            statistics: statistics.collect::<Option<_>>()?,
            modified_ms: self.modified_ms,
            checksum: self.checksum,
        })
    }
}

impl From<&StatisticsValue> for StagedValue {
    fn from(value: &StatisticsValue) -> Self {
        match value {
            StatisticsValue::Integer(number) => Self::Integer(number.to_string()),
            StatisticsValue::Float(number) => Self::Float(number.to_bits()),
            StatisticsValue::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl StagedValue {
    fn into_value(self) -> Result<StatisticsValue, std::num::ParseIntError> {
        Ok(match self {
            Self::Integer(text) => StatisticsValue::Integer(text.parse()?),
            Self::Float(bits) => StatisticsValue::Float(f64::from_bits(bits)),
            Self::Text(text) => StatisticsValue::Text(text),
        })
    }
}

/// Data files that are deleted when this is dropped, unless they were kept.
#[derive(Debug, Default)]
pub(crate) struct UnkeptFiles(Vec<PathBuf>);

impl UnkeptFiles {
    pub(crate) fn extend(&mut self, folder: &Path, files: &[DataFile]) {
        self.0.extend(files.iter().map(|file| folder.join(&file.path)));
    }

    /// Keeps the files: a record of the log has them, or may have them.
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for UnkeptFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // The folder may be gone with the table. A file that stays is deleted with the unused files later.
            if let Err(error) = std::fs::remove_file(path) {
                tracing::debug!(path = %path.display(), %error, "a file of an abandoned write could not be deleted");
            }
        }
    }
}
