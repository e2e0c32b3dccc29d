//! The columns of a Delta table, and how the log writes them: the JSON form of Delta types.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::{Map, Value, json};

use crate::DeltaError;
use crate::partition::{PartitionBy, PartitionColumn};
use crate::types::{has_timestamp_without_zone, stored_decimal, stored_type, utc_timestamp};

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

/// The key of a field's metadata with the Arrow type that was declared, where the Delta type does not imply it.
const ARROW_TYPE_KEY: &str = "tidegate.arrow_type";
/// The prefix of keys of a field's metadata that this writer adds.
const OWN_PREFIX: &str = "tidegate.";
/// The prefix of keys that mean something to Arrow. They get [`OWN_PREFIX`]: other readers would expect the extension type
/// in the data files too, which have plain columns.
const ARROW_PREFIX: &str = "ARROW:";

/// The types whose names say everything.
static PRIMITIVES: [(&str, DataType); 10] = [
    ("boolean", DataType::Boolean),
    ("byte", DataType::Int8),
    ("short", DataType::Int16),
    ("integer", DataType::Int32),
    ("long", DataType::Int64),
    ("float", DataType::Float32),
    ("double", DataType::Float64),
    ("string", DataType::Utf8),
    ("binary", DataType::Binary),
    ("date", DataType::Date32),
];

/// A column as the log writes it.
fn delta_field(field: &Field) -> Result<Value, &'static str> {
    let data_type = delta_type(field.data_type())?;
    let mut metadata = Map::new();
    let mut entries: Vec<_> = field.metadata().iter().collect();
    entries.sort_unstable();
    for (key, value) in entries {
        if key.starts_with(OWN_PREFIX) || key.starts_with("delta.") {
            return Err("its metadata has a key that begins with `tidegate.` or `delta.`");
        }
        let key = if key.starts_with(ARROW_PREFIX) { format!("{OWN_PREFIX}{key}") } else { key.clone() };
        metadata.insert(key, Value::String(value.clone()));
    }
    if type_from_delta(&data_type).ok().as_ref() != Some(field.data_type()) {
        metadata.insert(ARROW_TYPE_KEY.to_owned(), Value::String(field.data_type().to_string()));
    }
    Ok(json!({"name": field.name(), "type": data_type, "nullable": field.is_nullable(), "metadata": metadata}))
}

/// The Delta type of a declared type.
fn delta_type(data_type: &DataType) -> Result<Value, &'static str> {
    let name = match stored_type(data_type)? {
        DataType::Timestamp(_, Some(_)) => "timestamp",
        DataType::Timestamp(_, None) => "timestamp_ntz",
        DataType::Decimal128(precision, scale) => {
            return Ok(Value::String(format!("decimal({precision},{scale})")));
        }
        stored => match PRIMITIVES.iter().find(|(_, primitive)| *primitive == stored) {
            Some((name, _)) => *name,
            None => return nested_delta_type(data_type),
        },
    };
    Ok(Value::String(name.to_owned()))
}

fn nested_delta_type(data_type: &DataType) -> Result<Value, &'static str> {
    match data_type {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => Ok(json!({
            "type": "array",
            "elementType": delta_type(element.data_type())?,
            "containsNull": element.is_nullable(),
        })),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| delta_field(field)).collect::<Result<_, _>>()?;
            Ok(json!({"type": "struct", "fields": fields}))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { return Err("it is a map without entries") };
            let [key, value] = fields.as_ref() else { return Err("the entries of a map are pairs") };
            Ok(json!({
                "type": "map",
                "keyType": delta_type(key.data_type())?,
                "valueType": delta_type(value.data_type())?,
                "valueContainsNull": value.is_nullable(),
            }))
        }
        _ => Err("no Delta type holds all its values"),
    }
}

/// The Arrow field of a column in the log.
pub(super) fn field_from_delta(value: &Value) -> Result<Field, String> {
    let name = value.get("name").and_then(Value::as_str).ok_or("a column has no name")?;
    let delta = value.get("type").ok_or_else(|| format!("column \"{name}\" has no type"))?;
    let nullable = value.get("nullable").and_then(Value::as_bool).unwrap_or(true);
    let mut metadata = HashMap::new();
    let mut data_type = type_from_delta(delta).map_err(|reason| format!("column \"{name}\": {reason}"))?;
    if let Some(entries) = value.get("metadata").and_then(Value::as_object) {
        for (key, value) in entries {
            let Some(text) = value.as_str() else { continue };
            if key == ARROW_TYPE_KEY {
                let declared: DataType = text.parse().map_err(|error| format!("column \"{name}\": {error}"))?;
                if delta_type(&declared).ok().is_none_or(|declared| !is_same_type(&declared, delta)) {
                    return Err(format!("column \"{name}\": the type {declared} is not stored as {delta}"));
                }
                data_type = declared;
            } else if let Some(key) = key.strip_prefix(OWN_PREFIX).filter(|key| key.starts_with(ARROW_PREFIX)) {
                metadata.insert(key.to_owned(), text.to_owned());
            } else if !key.starts_with(OWN_PREFIX) && !key.starts_with("delta.") {
                metadata.insert(key.clone(), text.to_owned());
            }
        }
    }
    Ok(Field::new(name, data_type, nullable).with_metadata(metadata))
}

/// Whether two Delta types are the same, whatever the metadata of fields within.
fn is_same_type(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let is_relevant = |key: &str| key != "metadata";
            left.keys().filter(|key| is_relevant(key)).count() == right.keys().filter(|key| is_relevant(key)).count()
                && left
                    .iter()
                    .filter(|(key, _)| is_relevant(key))
                    .all(|(key, value)| right.get(key).is_some_and(|other| is_same_type(value, other)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same_type(left, right))
        }
        _ => left == right,
    }
}

/// The Arrow type that a Delta type implies.
fn type_from_delta(value: &Value) -> Result<DataType, String> {
    if let Some(name) = value.as_str() {
        return primitive_from_delta(name);
    }
    let inner = |key: &str| value.get(key).ok_or_else(|| format!("a type has no \"{key}\""));
    let contains_null = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(true);
    match value.get("type").and_then(Value::as_str) {
        Some("array") => {
            let element = type_from_delta(inner("elementType")?)?;
            Ok(DataType::List(Arc::new(Field::new("item", element, contains_null("containsNull")))))
        }
        Some("struct") => {
            let fields = inner("fields")?.as_array().ok_or("\"fields\" is no array")?;
            Ok(DataType::Struct(fields.iter().map(field_from_delta).collect::<Result<_, _>>()?))
        }
        Some("map") => {
            let fields = vec![
                Field::new("key", type_from_delta(inner("keyType")?)?, false),
                Field::new("value", type_from_delta(inner("valueType")?)?, contains_null("valueContainsNull")),
            ];
            Ok(DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields.into()), false)), false))
        }
        _ => Err(format!("the type {value} is not supported")),
    }
}

fn primitive_from_delta(name: &str) -> Result<DataType, String> {
    Ok(match name {
        "timestamp" => utc_timestamp(),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => match PRIMITIVES.iter().find(|(primitive, _)| *primitive == name) {
            Some((_, data_type)) => data_type.clone(),
            None => return decimal_from_delta(name).ok_or_else(|| format!("the type \"{name}\" is not supported")),
        },
    })
}

fn decimal_from_delta(name: &str) -> Option<DataType> {
    let (precision, scale) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    stored_decimal(precision.trim().parse().ok()?, scale.trim().parse().ok()?).ok()
}
