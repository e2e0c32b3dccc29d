//! The newest version of a table of any writer.
//!
//! [`super::DeltaTable`] reads tables that it can also write. This module reads more: columns with other names in the data
//! files, deleted rows, types that became wider.
//!
//! A deletion vector is a set of positions in a file, as a Roaring bitmap of 64 bits in its portable format. It is in the
//! action that adds the file, or beside those of other files in a file of the table.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use roaring::RoaringTreemap;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::column_mapping::{ColumnMapping, MappingMode};
use crate::log_files::{Action, Add, DeletionVector, LogListing, Metadata, Protocol, entry_path, list, log_folder};
use crate::partition::{decode_path, parse_value};
use crate::schema::{check_names, field_from_delta};
use crate::snapshot::{partition_texts, path_below_table};
use crate::state::read_log;
use crate::{DeltaError, FileAccess, features};

/// What the log of a table consists of at one moment. Nothing of it has been read.
#[derive(Debug)]
pub struct TableLog {
    table: PathBuf,
    listing: LogListing,
    newest: u64,
}

/// A version of a table.
#[derive(Debug)]
pub struct TableVersion {
    /// Its number.
    pub number: u64,
    /// The columns.
    pub schema: SchemaRef,
    /// The names of columns whose values are not in the data files, but in [`VersionFile::partition_values`].
    pub partition_columns: Vec<String>,
    /// Which columns those of the data files are. `None` if they have the same names.
    pub mapping: Option<ColumnMapping>,
    /// The data files, in the order in which they were added.
    pub files: Vec<VersionFile>,
}

/// A data file of a version.
#[derive(Debug)]
pub struct VersionFile {
    /// Where it is, below the folder of the table, with `/` between names.
    pub path: String,
    /// Its rows, also those that are deleted, as its writer counted them.
    pub rows: Option<u64>,
    /// The value of each partition column, in their order: an array of one row.
    pub partition_values: Vec<ArrayRef>,
    /// The rows that are deleted.
    pub deleted: Option<Arc<DeletedRows>>,
}

impl TableLog {
    /// Lists the log of the table in a folder.
    ///
    /// # Errors
    /// `Corrupt` if it has no version; `Io`.
    pub fn list(table: &Path) -> Result<Self, DeltaError> {
        let empty = || DeltaError::corrupt(&log_folder(table), "it has no version of a table");
        let listing = list(table)?.ok_or_else(empty)?;
        let newest = listing.newest_version().ok_or_else(empty)?;
        Ok(Self { table: table.to_owned(), listing, newest })
    }

    /// The file that came with the newest version, and that of the version after it.
    #[must_use]
    pub fn newest_and_next_file(&self) -> (PathBuf, PathBuf) {
        let newest = match self.listing.newest_checkpoint() {
            Some(checkpoint) if !self.listing.entries.contains(&self.newest) => {
                log_folder(&self.table).join(checkpoint.files.first().map(String::as_str).unwrap_or_default())
            }
            _ => entry_path(&self.table, self.newest),
        };
        (newest, entry_path(&self.table, self.newest.saturating_add(1)))
    }

    /// Reads the newest version. `open` opens the files of the log and of deletion vectors.
    ///
    /// # Errors
    /// `UnsupportedFeature` and `OutsideOfTable` if its rows would be read wrongly; `InvalidSchema` and `InvalidRows` if a column has a type or
    /// value that is unknown; `Corrupt` also if it has more than `files_max` data files; `Io` and `Parquet`.
    pub fn read(&self, files_max: usize, open: FileAccess<'_>) -> Result<TableVersion, DeltaError> {
        let mut replay = VersionReplay { files_max, ..VersionReplay::default() };
        let number = read_log(&self.table, &self.listing, open, |action| replay.apply(&self.table, action))?;
        replay.finish(&self.table, number, open)
    }
}

/// Actions in order, applied.
#[derive(Debug, Default)]
struct VersionReplay {
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
    /// Data files by what identifies them, with their position among all added files.
    files: HashMap<String, (u64, Add)>,
    files_max: usize,
    added: u64,
}

impl VersionReplay {
    fn apply(&mut self, table: &Path, action: Action) -> Result<(), DeltaError> {
        self.protocol = action.protocol.or(self.protocol.take());
        self.metadata = action.meta_data.or(self.metadata.take());
        if let Some(remove) = action.remove {
            self.files.remove(&file_key(&remove.path, remove.deletion_vector.as_ref()));
        }
        if let Some(add) = action.add {
            self.added += 1;
            self.files.insert(file_key(&add.path, add.deletion_vector.as_ref()), (self.added, add));
            if self.files.len() > self.files_max {
                let reason = format!("it has more than {} data files", self.files_max);
                return Err(DeltaError::corrupt(&log_folder(table), reason));
            }
        }
        Ok(())
    }

    fn finish(self, table: &Path, number: u64, open: FileAccess<'_>) -> Result<TableVersion, DeltaError> {
        let folder = log_folder(table);
        let protocol = self.protocol.ok_or_else(|| DeltaError::corrupt(&folder, "the log has no protocol"))?;
        let metadata = self.metadata.ok_or_else(|| DeltaError::corrupt(&folder, "the log has no metadata"))?;
        let mode = features::check_version_readable(&protocol, &metadata)?;
        let (schema, mapping) = parse_columns(&metadata.schema_string, mode)
            .map_err(|reason| DeltaError::InvalidSchema(format!("the schema of the table: {reason}")))?;
        check_names(schema.fields().iter().map(|field| field.name().as_str()))?;
        let mut partitions = Vec::with_capacity(metadata.partition_columns.len());
        for column in &metadata.partition_columns {
            let name_in_files = mapping.as_ref().and_then(|mapping| mapping.name_in_files(column));
            partitions.push((schema.field_with_name(column)?, name_in_files.unwrap_or(column)));
        }
        let mut adds: Vec<_> = self.files.into_values().collect();
        adds.sort_unstable_by_key(|(position, _)| *position);
        let read = |(_, add): &(u64, Add)| read_file(table, add, &partitions, open);
        let files = adds.iter().map(read).collect::<Result<_, _>>()?;
        Ok(TableVersion {
            number,
            partition_columns: metadata.partition_columns.clone(),
            files,
            schema: Arc::new(schema),
            mapping,
        })
    }
}

/// A file is another one if other rows of it are deleted. Writers encode the same path in different ways.
fn file_key(path: &str, vector: Option<&DeletionVector>) -> String {
    let path = decode_path(path).unwrap_or_else(|| path.to_owned());
    match vector {
        Some(vector) => format!("{path}\n{}\n{}", vector.path_or_inline_dv, vector.offset.unwrap_or_default()),
        None => path,
    }
}

fn read_file(
    table: &Path,
    add: &Add,
    partitions: &[(&Field, &str)],
    open: FileAccess<'_>,
) -> Result<VersionFile, DeltaError> {
    let texts = partition_texts(add, partitions.iter().map(|(_, name_in_files)| *name_in_files));
    let values = partitions.iter().zip(&texts);
    let parse = |((column, _), text): (&(&Field, &str), &Option<String>)| {
        parse_value(column.name(), text.as_deref(), column.data_type())
    };
    Ok(VersionFile {
        path: path_below_table(&add.path)?,
        rows: count_rows(add),
        partition_values: values.map(parse).collect::<Result<_, _>>()?,
        deleted: match &add.deletion_vector {
            Some(vector) => Some(Arc::new(DeletedRows::read(table, vector, open)?)),
            None => None,
        },
    })
}

/// The part of a file's statistics that this reader needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RowCount {
    num_records: Option<u64>,
}

fn count_rows(add: &Add) -> Option<u64> {
    serde_json::from_str::<RowCount>(add.stats.as_deref()?).ok()?.num_records
}

fn parse_columns(text: &str, mode: Option<MappingMode>) -> Result<(Schema, Option<ColumnMapping>), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let columns = value.get("fields").and_then(Value::as_array).ok_or("it has no fields")?;
    let fields = columns.iter().map(field_from_delta).collect::<Result<Vec<_>, _>>()?;
    let mapping = mode.map(|mode| ColumnMapping::from_schema(columns, mode)).transpose()?;
    Ok((Schema::new(fields), mapping))
}

/// What the bytes of a deletion vector begin with, as a number with its lowest byte first.
const MAGIC: u32 = 1_681_511_377;
/// More bytes are not read.
const BYTES_MAX: u64 = 256 << 20;
/// The number of the length before the bytes in a file, and of the checksum after them.
const NUMBER_BYTES: u64 = 4;
/// The characters of a UUID at the end of the name of a file.
const UUID_CHARACTERS: usize = 20;
/// The digits of numbers to the base 85, as ZeroMQ has them.
const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Positions of rows in a data file that are not rows of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletedRows(RoaringTreemap);

impl DeletedRows {
    /// The number of deleted rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The position of the last one. `None` if there is none.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.0.max()
    }

    /// The positions as ranges, ascending. No range is empty.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.bitmaps().flat_map(|(high, bitmap)| {
            let (first, mut rows) = (u64::from(high) << 32, bitmap.iter());
            std::iter::from_fn(move || {
                let range = rows.next_range()?;
                Some(first + u64::from(*range.start())..first + u64::from(*range.end()) + 1)
            })
        })
    }

    /// Reads what an action of the log refers to.
    pub(super) fn read(table: &Path, vector: &DeletionVector, open: FileAccess<'_>) -> Result<Self, DeltaError> {
        let text = vector.path_or_inline_dv.as_str();
        let (path, bytes) = match vector.storage_type.as_str() {
            "i" => {
                let path = log_folder(table);
                let bytes = decode_base_85(text).filter(|bytes| bytes.len() as u64 >= vector.size_in_bytes);
                let mut bytes =
                    bytes.ok_or_else(|| DeltaError::corrupt(&path, "a deletion vector has other digits"))?;
                bytes.truncate(usize::try_from(vector.size_in_bytes).unwrap_or(usize::MAX));
                (path, bytes)
            }
            "u" => {
                let name = file_name(text).ok_or_else(|| {
                    DeltaError::corrupt(&log_folder(table), format!("\"{text}\" names no deletion vector"))
                })?;
                let path = table.join(path_below_table(&name)?);
                let bytes = read_part(&path, vector, open)?;
                (path, bytes)
            }
            "p" => {
                return Err(DeltaError::OutsideOfTable(text.to_owned()));
            }
            other => return Err(DeltaError::UnsupportedFeature(format!("deletion vector of the kind {other}"))),
        };
        let rows = parse(&bytes).map_err(|reason| DeltaError::corrupt(&path, reason))?;
        if rows.len() != vector.cardinality {
            let reason = format!("it has {} deleted rows, but the log has {}", rows.len(), vector.cardinality);
            return Err(DeltaError::corrupt(&path, reason));
        }
        Ok(Self(rows))
    }
}

fn parse(bytes: &[u8]) -> Result<RoaringTreemap, String> {
    let (magic, bitmap) = bytes.split_first_chunk().ok_or("a deletion vector is too short")?;
    if u32::from_le_bytes(*magic) != MAGIC {
        return Err("a deletion vector has an unknown format".to_owned());
    }
    RoaringTreemap::deserialize_from(bitmap).map_err(|error| format!("a deletion vector: {error}"))
}

/// The path of the file with the UUID at the end of `text`. What is before it is the name of a folder.
fn file_name(text: &str) -> Option<String> {
    let (folder, digits) = text.split_at_checked(text.len().checked_sub(UUID_CHARACTERS)?)?;
    let uuid = Uuid::from_slice(&decode_base_85(digits)?).ok()?;
    let name = format!("deletion_vector_{uuid}.bin");
    Some(if folder.is_empty() { name } else { format!("{folder}/{name}") })
}

/// The bytes of a deletion vector in a file with several.
fn read_part(path: &Path, vector: &DeletionVector, open: FileAccess<'_>) -> Result<Vec<u8>, DeltaError> {
    let mut file = open(path).map_err(DeltaError::io(path))?;
    let bytes_in_file = file.metadata().map_err(DeltaError::io(path))?.len();
    let (offset, length) = (vector.offset.unwrap_or_default(), vector.size_in_bytes);
    let end = offset.checked_add(length).and_then(|end| end.checked_add(2 * NUMBER_BYTES));
    if length > BYTES_MAX || end.is_none_or(|end| end > bytes_in_file) {
        let reason = format!("it has {bytes_in_file} bytes, and no deletion vector of {length} bytes at {offset}");
        return Err(DeltaError::corrupt(path, reason));
    }
    file.seek(SeekFrom::Start(offset)).map_err(DeltaError::io(path))?;
    let length_in_file = read_number(&mut file).map_err(DeltaError::io(path))?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact(&mut bytes).map_err(DeltaError::io(path))?;
    let checksum = read_number(&mut file).map_err(DeltaError::io(path))?;
    if u64::from(length_in_file) != length || checksum != crc32fast::hash(&bytes) {
        return Err(DeltaError::corrupt(path, format!("the deletion vector at {offset} is not that of the log")));
    }
    Ok(bytes)
}

fn read_number(file: &mut File) -> std::io::Result<u32> {
    let mut bytes = [0; NUMBER_BYTES as usize];
    file.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

/// The bytes of a text in which five digits are four bytes, the highest first.
fn decode_base_85(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    let mut groups = text.as_bytes().chunks_exact(5);
    for group in groups.by_ref() {
        let digit = |digit: &u8| DIGITS.iter().position(|known| known == digit);
        let number = group.iter().try_fold(0_u64, |number, next| Some(number * 85 + digit(next)? as u64))?;
        bytes.extend_from_slice(&u32::try_from(number).ok()?.to_be_bytes());
    }
    groups.remainder().is_empty().then_some(bytes)
}
