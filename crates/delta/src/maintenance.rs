//! Which files to join, which rows are too old, and which files nobody refers to.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::datatypes::{DataType, TimeUnit};

use super::DeltaError;
use super::calendar::{DAY_MICROSECONDS, HOUR_MICROSECONDS, parse_date};
use super::partition::{PartitionBy, next_month, parse_hour};
use super::snapshot::{DataFile, DeltaSnapshot};
use super::statistics::StatisticsValue;

/// When files are joined.
#[derive(Debug, Clone, Copy)]
pub struct CompactionOptions {
    /// The size of the files that compaction aims at. Files of at least half of it are left as they are.
    pub target_bytes: u64,
    /// The fewest files that are worth to be joined.
    pub files_min: usize,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self { target_bytes: 128 << 20, files_min: 4 }
    }
}

/// Groups of small files, each of one partition, that are to become one file each. Files are joined in the order in which
/// they were added.
#[must_use]
pub fn plan_compaction(snapshot: &DeltaSnapshot, options: CompactionOptions) -> Vec<Vec<Arc<DataFile>>> {
    let mut partitions: BTreeMap<&[Option<String>], Vec<&Arc<DataFile>>> = BTreeMap::new();
    for file in snapshot.files.iter().filter(|file| file.bytes < options.target_bytes / 2) {
        partitions.entry(&file.partition_values).or_default().push(file);
    }
    let mut groups = Vec::new();
    for files in partitions.into_values() {
        let mut group: Vec<Arc<DataFile>> = Vec::new();
        let mut bytes = 0;
        for file in files {
            if bytes + file.bytes > options.target_bytes {
                groups.push(std::mem::take(&mut group));
                bytes = 0;
            }
            bytes += file.bytes;
            group.push(Arc::clone(file));
        }
        groups.push(group);
    }
    groups.retain(|group| group.len() >= options.files_min.max(2));
    groups
}

/// The files of which all rows have a time before `cutoff`, in microseconds since 1970-01-01 UTC. A file with rows whose
/// time is null or unknown is not among them. In a table by day (or hour or month) of the column, no file has rows of two
/// days, so that the answer is exact for a cutoff at the beginning of one.
///
/// # Errors
/// `InvalidSchema` if the table has no such column, or if it is neither a time nor a date.
pub fn expired_files(
    snapshot: &DeltaSnapshot,
    time_column: &str,
    cutoff: i64,
) -> Result<Vec<Arc<DataFile>>, DeltaError> {
    let field = snapshot
        .schema
        .field_with_name(time_column)
        .map_err(|_| DeltaError::InvalidSchema(format!("the table has no column \"{time_column}\"")))?;
    let unit = UnitOfTime::new(field.data_type())
        .ok_or_else(|| DeltaError::InvalidSchema(format!("column \"{time_column}\" is neither a time nor a date")))?;
    let is_expired = |file: &&Arc<DataFile>| {
        let end = partition_end(snapshot, file, time_column);
        let maximum = statistics_maximum(file, time_column).map(|value| unit.to_microseconds(value));
        end.is_some_and(|end| end <= i128::from(cutoff)) || maximum.is_some_and(|time| time < i128::from(cutoff))
    };
    Ok(snapshot.files.iter().filter(is_expired).cloned().collect())
}

/// How a number is a time.
#[derive(Clone, Copy)]
enum UnitOfTime {
    /// A number is that many microseconds.
    Microseconds(i128),
    /// So many numbers are a microsecond.
    PerMicrosecond(i128),
}

impl UnitOfTime {
    fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Timestamp(TimeUnit::Second, _) => Self::Microseconds(1_000_000),
            DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => Self::Microseconds(1_000),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Self::Microseconds(1),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Self::PerMicrosecond(1_000),
            DataType::Date32 => Self::Microseconds(i128::from(DAY_MICROSECONDS)),
            _ => return None,
        })
    }

    /// Rounded down: a time in the microsecond before the cutoff is before it.
    fn to_microseconds(self, value: i128) -> i128 {
        match self {
            Self::Microseconds(factor) => value * factor,
            Self::PerMicrosecond(divisor) => value.div_euclid(divisor),
        }
    }
}

/// The greatest time in a file without null times.
fn statistics_maximum(file: &DataFile, column: &str) -> Option<i128> {
    let statistics = file.column_statistics(column)?;
    match (&statistics.maximum, statistics.null_count) {
        (Some(StatisticsValue::Integer(maximum)), Some(0)) => Some(*maximum),
        _ => None,
    }
}

/// The time in microseconds before which all rows of a file are, by its partition.
fn partition_end(snapshot: &DeltaSnapshot, file: &DataFile, column: &str) -> Option<i128> {
    let ends = snapshot.partition_columns.iter().zip(&file.partition_values).filter_map(|(partition, value)| {
        let value = value.as_deref()?;
        let day = i128::from(DAY_MICROSECONDS);
        match &partition.partition_by {
            PartitionBy::Day(source) if source == column => Some((i128::from(parse_date(value)?) + 1) * day),
            PartitionBy::Month(source) if source == column => Some(i128::from(next_month(parse_date(value)?)) * day),
            PartitionBy::Hour(source) if source == column => {
                Some((i128::from(parse_hour(value)?) + 1) * i128::from(HOUR_MICROSECONDS))
            }
            _ => None,
        }
    });
    ends.min()
}

/// Data files in the folder of a table that its newest version does not have, and that were neither written nor removed
/// from it since `older_than`: what interrupted writes left, and what no reader has open any more. The caller chooses
/// `older_than` before the start of all writers and readers. Removals are known for
/// [`super::TOMBSTONE_RETENTION_MS`]; a file removed before that counts as old.
///
/// # Errors
/// `Io`.
pub fn unreferenced_files(
    folder: &Path,
    snapshot: &DeltaSnapshot,
    older_than: SystemTime,
) -> Result<Vec<PathBuf>, DeltaError> {
    let older_than_ms = older_than.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
    let mut kept: HashSet<PathBuf> = snapshot.paths(folder).collect();
    let recently_removed =
        snapshot.removed.iter().filter(|(_, ms)| u128::try_from(**ms).map_or(true, |ms| ms >= older_than_ms));
    kept.extend(recently_removed.map(|(path, _)| folder.join(path)));
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(DeltaError::io(&folder))? {
            let entry = entry.map_err(DeltaError::io(&folder))?;
            let path = entry.path();
            let name = entry.file_name();
            let is_hidden = name.to_str().is_none_or(|name| name.starts_with(['_', '.']) && !name.contains('='));
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(DeltaError::io(&path)(error)),
            };
            if is_hidden {
                continue;
            }
            if metadata.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet")
                && !kept.contains(&path)
                && metadata.modified().map_err(DeltaError::io(&path))? < older_than
            {
                found.push(path);
            }
        }
    }
    Ok(found)
}
