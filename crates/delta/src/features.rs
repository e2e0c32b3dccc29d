//! Which features of the protocol this reader and writer has.

use crate::DeltaError;
use crate::column_mapping::MappingMode;
use crate::log_files::{Metadata, Protocol};
use crate::schema::TableSchema;

/// Timestamps without time zone.
const TIMESTAMP_NTZ: &str = "timestampNtz";
/// Columns have names and numbers of their own in data files.
const COLUMN_MAPPING: &str = "columnMapping";
/// The setting of how they are found.
const COLUMN_MAPPING_MODE: &str = "delta.columnMapping.mode";
/// What a table may have whose versions are only read. Some writers name variants in each table; a column with the type is
/// refused by its type.
const READ_FEATURES: [&str; 9] = [
    COLUMN_MAPPING,
    "deletionVectors",
    TIMESTAMP_NTZ,
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
];
/// What a writer of version 2 has to obey, as names of features.
const LEGACY_WRITER_FEATURES: [&str; 2] = ["appendOnly", "invariants"];

/// The protocol that the columns need.
pub(super) fn protocol_for(schema: &TableSchema) -> Protocol {
    if schema.needs_timestamp_ntz() {
        let writer_features = LEGACY_WRITER_FEATURES.iter().chain(&[TIMESTAMP_NTZ]).map(ToString::to_string).collect();
        return Protocol {
            min_reader_version: 3,
            min_writer_version: 7,
            reader_features: Some(vec![TIMESTAMP_NTZ.to_owned()]),
            writer_features: Some(writer_features),
        };
    }
    Protocol { min_reader_version: 1, min_writer_version: 2, reader_features: None, writer_features: None }
}

/// Whether a table with the protocol `known` may have the columns that need `needed`.
pub(super) fn includes(known: &Protocol, needed: &Protocol) -> bool {
    let has_all = |known: &Option<Vec<String>>, needed: &Option<Vec<String>>| {
        needed.iter().flatten().all(|feature| known.iter().flatten().any(|known| known == feature))
    };
    known.min_reader_version >= needed.min_reader_version
        && known.min_writer_version >= needed.min_writer_version
        && has_all(&known.reader_features, &needed.reader_features)
        && has_all(&known.writer_features, &needed.writer_features)
}

/// The protocol of a table that gets columns which need `needed`.
pub(super) fn merge(known: &Protocol, needed: Protocol) -> Protocol {
    let union = |known: &Option<Vec<String>>, needed: Option<Vec<String>>| {
        let mut features = needed.unwrap_or_default();
        features.extend(known.iter().flatten().filter(|known| !features.contains(known)).cloned().collect::<Vec<_>>());
        (!features.is_empty()).then_some(features)
    };
    Protocol {
        min_reader_version: known.min_reader_version.max(needed.min_reader_version),
        min_writer_version: known.min_writer_version.max(needed.min_writer_version),
        reader_features: union(&known.reader_features, needed.reader_features),
        writer_features: union(&known.writer_features, needed.writer_features),
    }
}

/// Refuses a table that [`super::DeltaTable`] would read wrongly.
pub(super) fn check_readable(protocol: &Protocol, metadata: &Metadata) -> Result<(), DeltaError> {
    check_reader(protocol, metadata, &[TIMESTAMP_NTZ])?;
    match mapping_mode(metadata) {
        "none" => Ok(()),
        _ => refuse(COLUMN_MAPPING.to_owned()),
    }
}

/// Refuses a table whose versions [`super::TableLog`] would read wrongly. Returns how columns are found in its data files.
pub(super) fn check_version_readable(
    protocol: &Protocol,
    metadata: &Metadata,
) -> Result<Option<MappingMode>, DeltaError> {
    check_reader(protocol, metadata, &READ_FEATURES)?;
    let has_mapping = protocol.min_reader_version == 2
        || protocol.reader_features.iter().flatten().any(|feature| feature == COLUMN_MAPPING);
    match mapping_mode(metadata) {
        "none" => Ok(None),
        // The setting alone has no effect.
        _ if !has_mapping => Ok(None),
        "name" => Ok(Some(MappingMode::Name)),
        "id" => Ok(Some(MappingMode::Id)),
        mode => refuse(format!("{COLUMN_MAPPING} with the mode {mode}")),
    }
}

fn mapping_mode(metadata: &Metadata) -> &str {
    metadata.configuration.get(COLUMN_MAPPING_MODE).and_then(Option::as_deref).unwrap_or("none")
}

fn check_reader(protocol: &Protocol, metadata: &Metadata, known: &[&str]) -> Result<(), DeltaError> {
    if protocol.min_reader_version > 3 {
        return refuse(format!("reader version {}", protocol.min_reader_version));
    }
    let mut features = protocol.reader_features.iter().flatten();
    if let Some(feature) = features.find(|feature| !known.contains(&feature.as_str())) {
        return refuse(feature.clone());
    }
    if metadata.format.provider != "parquet" {
        return refuse(format!("format {}", metadata.format.provider));
    }
    Ok(())
}

fn refuse<T>(feature: String) -> Result<T, DeltaError> {
    Err(DeltaError::UnsupportedFeature(feature))
}

/// A rule for writers that this writer does not know. With one, no version can be committed.
pub(super) fn unsupported_writer_feature(protocol: &Protocol, metadata: &Metadata) -> Option<String> {
    if !matches!(protocol.min_writer_version, 1 | 2 | 7) {
        return Some(format!("writer version {}", protocol.min_writer_version));
    }
    let is_known = |feature: &String| *feature == TIMESTAMP_NTZ || LEGACY_WRITER_FEATURES.contains(&feature.as_str());
    let unknown = protocol.writer_features.iter().flatten().find(|feature| !is_known(feature));
    let invariants = || metadata.schema_string.contains("\"delta.invariants\"").then(|| "invariants".to_owned());
    unknown.cloned().or_else(invariants)
}

/// Whether rows of the table may only be added, or put into other files.
pub(super) fn is_append_only(metadata: &Metadata) -> bool {
    matches!(metadata.configuration.get("delta.appendOnly"), Some(Some(value)) if value == "true")
}

/// Refuses a commit to a table whose rules for writers this writer does not know. `removes`: whether it removes rows.
pub(super) fn check_writable(protocol: &Protocol, metadata: &Metadata, removes: bool) -> Result<(), DeltaError> {
    match unsupported_writer_feature(protocol, metadata) {
        Some(feature) => Err(DeltaError::UnsupportedWriterFeature(feature)),
        None if removes && is_append_only(metadata) => {
            Err(DeltaError::UnsupportedWriterFeature("appendOnly".to_owned()))
        }
        None => Ok(()),
    }
}
