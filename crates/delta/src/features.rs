//! Which features of the protocol this reader and writer has.

use super::DeltaError;
use super::action::{Metadata, Protocol};
use super::schema::TableSchema;

/// Timestamps without time zone.
const TIMESTAMP_NTZ: &str = "timestampNtz";
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

/// Refuses a table that this reader would read wrongly.
pub(super) fn check_readable(protocol: &Protocol, metadata: &Metadata) -> Result<(), DeltaError> {
    let refuse = |feature: String| Err(DeltaError::UnsupportedFeature(feature));
    if protocol.min_reader_version > 3 {
        return refuse(format!("reader version {}", protocol.min_reader_version));
    }
    if let Some(feature) = protocol.reader_features.iter().flatten().find(|feature| *feature != TIMESTAMP_NTZ) {
        return refuse(feature.clone());
    }
    if let Some(Some(mode)) = metadata.configuration.get("delta.columnMapping.mode")
        && mode != "none"
    {
        return refuse("columnMapping".to_owned());
    }
    if metadata.format.provider != "parquet" {
        return refuse(format!("format {}", metadata.format.provider));
    }
    Ok(())
}

/// Refuses a commit to a table whose rules for writers this writer does not know. `removes`: whether it removes rows.
pub(super) fn check_writable(protocol: &Protocol, metadata: &Metadata, removes: bool) -> Result<(), DeltaError> {
    let refuse = |feature: String| Err(DeltaError::UnsupportedFeature(feature));
    if !matches!(protocol.min_writer_version, 1 | 2 | 7) {
        return refuse(format!("writer version {}", protocol.min_writer_version));
    }
    let is_known = |feature: &String| *feature == TIMESTAMP_NTZ || LEGACY_WRITER_FEATURES.contains(&feature.as_str());
    if let Some(feature) = protocol.writer_features.iter().flatten().find(|feature| !is_known(feature)) {
        return refuse(feature.clone());
    }
    if metadata.schema_string.contains("\"delta.invariants\"") {
        return refuse("invariants".to_owned());
    }
    if removes && matches!(metadata.configuration.get("delta.appendOnly"), Some(Some(value)) if value == "true") {
        return refuse("appendOnly".to_owned());
    }
    Ok(())
}
