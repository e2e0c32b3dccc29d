//! The columns of a Delta table.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use serde_json::{Value, json};

use super::DeltaError;
use super::partition::{PartitionBy, PartitionColumn};
use super::schema_json::{delta_field, delta_type, field_from_delta};
use super::types::{has_timestamp_without_zone, stored_type};

/// The key of a field's metadata that marks a column computed for partitions, such as `day`.
const PARTITION_KEY: &str = "tidegate.partition";
/// The key of a field's metadata with the column that such a column is computed from.
const PARTITION_SOURCE_KEY: &str = "tidegate.partition_source";

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableSchema {
    /// The columns as declared, without those that are computed for partitions.
    pub(super) declared: SchemaRef,
    /// The columns of the data files: the declared ones without partition columns, with their stored types.
    pub(super) stored: SchemaRef,
    /// The partition columns.
    pub(super) partitions: Arc<[PartitionColumn]>,
}

impl TableSchema {
    /// The columns of a new table.
    pub(super) fn new(schema: &Schema, partition_by: &[PartitionBy]) -> Result<Self, DeltaError> {
        let partitions = partition_by
            .iter()
            .map(|partition_by| PartitionColumn::new(schema, partition_by))
            .collect::<Result<Vec<_>, _>>()?;
        Self::from_parts(schema.fields().clone(), partitions)
    }

    /// The same partition columns with other declared columns.
    pub(super) fn with_declared(&self, schema: &Schema) -> Result<Self, DeltaError> {
        let partition_by: Vec<_> = self.partitions.iter().map(|column| column.partition_by.clone()).collect();
        Self::new(schema, &partition_by)
    }

    fn from_parts(fields: Fields, partitions: Vec<PartitionColumn>) -> Result<Self, DeltaError> {
        let derived = partitions.iter().filter(|column| column.is_derived()).map(|column| column.name.as_str());
        check_names(fields.iter().map(|field| field.name().as_str()).chain(derived))?;
        let mut stored = Vec::new();
        for field in &fields {
            let stored_type = stored_type(field.data_type()).map_err(|reason| unsupported(field, reason))?;
            if !partitions.iter().any(|column| column.name == *field.name()) {
                stored.push(Field::new(field.name(), stored_type, field.is_nullable()));
            }
        }
        if stored.is_empty() {
            return Err(DeltaError::InvalidSchema("a table needs a column that it is not partitioned by".to_owned()));
        }
        Ok(Self {
            declared: Arc::new(Schema::new(fields)),
            stored: Arc::new(Schema::new(stored)),
            partitions: partitions.into(),
        })
    }

    /// The schema as the log writes it.
    pub(super) fn to_json(&self) -> Result<String, DeltaError> {
        let mut fields = Vec::new();
        for field in self.declared.fields() {
            let value = delta_field(field).map_err(|reason| unsupported(field, reason))?;
            if field_from_delta(&value).ok().as_ref() != Some(field.as_ref()) {
                return Err(unsupported(field, "its type, or metadata below it, has no text form"));
            }
            fields.push(value);
        }
        for column in self.partitions.iter().filter(|column| column.is_derived()) {
            let (kind, source) = column.partition_by.kind_and_source();
            fields.push(json!({
                "name": column.name,
                "type": delta_type(&column.data_type).map_err(|reason| DeltaError::InvalidSchema(reason.to_owned()))?,
                "nullable": true,
                "metadata": {PARTITION_KEY: kind, PARTITION_SOURCE_KEY: source},
            }));
        }
        Ok(json!({"type": "struct", "fields": fields}).to_string())
    }

    /// The inverse of [`TableSchema::to_json`].
    pub(super) fn from_json(text: &str, partition_columns: &[String]) -> Result<Self, DeltaError> {
        let invalid = |reason: String| DeltaError::InvalidSchema(format!("the schema of the table: {reason}"));
        let value: Value = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let entries = value.get("fields").and_then(Value::as_array).ok_or_else(|| invalid("no fields".to_owned()))?;
        let mut fields = Vec::new();
        let mut derived = HashMap::new();
        for entry in entries {
            let field = field_from_delta(entry).map_err(invalid)?;
            let metadata = |key: &str| entry.get("metadata")?.get(key)?.as_str();
            match (metadata(PARTITION_KEY), metadata(PARTITION_SOURCE_KEY)) {
                (Some(kind), Some(source)) => {
                    let partition_by = PartitionBy::from_kind_and_source(kind, source)
                        .ok_or_else(|| invalid(format!("unknown partition \"{kind}\"")))?;
                    derived.insert(field.name().clone(), partition_by);
                }
                _ => fields.push(field),
            }
        }
        let declared = Schema::new(fields);
        let mut partitions = Vec::new();
        for name in partition_columns {
            let column = PartitionBy::Column(name.clone());
            partitions.push(PartitionColumn::new(&declared, derived.get(name).unwrap_or(&column))?);
        }
        if partitions.iter().filter(|column| column.is_derived()).count() != derived.len() {
            return Err(invalid("a computed column is no partition column".to_owned()));
        }
        Self::from_parts(declared.fields, partitions)
    }

    /// Whether the log needs the feature `timestampNtz`.
    pub(super) fn needs_timestamp_ntz(&self) -> bool {
        self.declared
            .fields()
            .iter()
            .any(|field| stored_type(field.data_type()).is_ok_and(|data_type| has_timestamp_without_zone(&data_type)))
    }
}

/// Names must be different whatever their case, and present.
pub(super) fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), DeltaError> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            return Err(DeltaError::InvalidSchema("a column has no name".to_owned()));
        }
        if !seen.insert(name.to_lowercase()) {
            return Err(DeltaError::InvalidSchema(format!(
                "the column \"{name}\" occurs twice: names that differ only in case count as the same"
            )));
        }
    }
    Ok(())
}

fn unsupported(field: &Field, reason: &'static str) -> DeltaError {
    DeltaError::UnsupportedType { column: field.name().clone(), data_type: field.data_type().to_string(), reason }
}
