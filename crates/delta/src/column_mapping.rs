//! Columns that have other names in the data files: column mapping.
//!
//! A column is renamed or dropped without new files, because the files have names of their own for it. The schema of the
//! table has both names of each column, and of each field within it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use serde_json::Value;

/// How the columns of a table are found in a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MappingMode {
    /// By their names in the files.
    Name,
    /// By their numbers in the files.
    Id,
}

/// Which columns of a table those of its data files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMapping {
    mode: MappingMode,
    columns: Vec<MappedField>,
}

/// A column, or a field within one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MappedField {
    name: String,
    name_in_files: String,
    id: Option<i32>,
    within: MappedType,
}

/// The fields within a type.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MappedType {
    Plain,
    Struct(Vec<MappedField>),
    List(Box<MappedType>),
    Map(Box<MappedType>, Box<MappedType>),
}

impl ColumnMapping {
    /// The mapping of the columns in the schema of a table.
    pub(super) fn from_schema(columns: &[Value], mode: MappingMode) -> Result<Self, String> {
        Ok(Self { mode, columns: mapped_fields(columns, mode)? })
    }

    /// The name that the log has for the values of a column, as the files have it.
    pub(super) fn name_in_files(&self, column: &str) -> Option<&str> {
        let found = self.columns.iter().find(|field| field.name == column);
        found.map(|field| field.name_in_files.as_str())
    }

    /// The schema of a data file with the names that its columns have in the table. Columns that the table does not have
    /// get names that the table does not have.
    ///
    /// # Errors
    /// When the file does not have what columns are found by.
    pub fn rename(&self, file: &SchemaDescriptor) -> Result<SchemaDescriptor, ParquetError> {
        let found = file.root_schema().get_fields();
        if self.mode == MappingMode::Id && !found.iter().any(|field| field.get_basic_info().has_id()) {
            let reason = "its columns have no numbers, by which the table finds them";
            return Err(ParquetError::General(reason.to_owned()));
        }
        let fields = self.rename_fields(found, &self.columns)?;
        let root = Type::group_type_builder(file.root_schema().name()).with_fields(fields).build()?;
        Ok(SchemaDescriptor::new(Arc::new(root)))
    }

    fn rename_fields(&self, found: &[TypePtr], fields: &[MappedField]) -> Result<Vec<TypePtr>, ParquetError> {
        match self.mode {
            MappingMode::Name => {
                self.rename_by(found, fields, |field| Some(field.name_in_files.as_str()), |found| Some(found.name()))
            }
            MappingMode::Id => {
                let id = |found: &Type| Some(found.get_basic_info()).filter(|info| info.has_id()).map(|info| info.id());
                self.rename_by(found, fields, |field| field.id, id)
            }
        }
    }

    fn rename_by<'a, K: Hash + Eq>(
        &self,
        found: &'a [TypePtr],
        fields: &'a [MappedField],
        key_of_field: impl Fn(&'a MappedField) -> Option<K>,
        key_of_found: impl Fn(&'a Type) -> Option<K>,
    ) -> Result<Vec<TypePtr>, ParquetError> {
        let by_key: HashMap<K, &MappedField> =
            fields.iter().filter_map(|field| Some((key_of_field(field)?, field))).collect();
        let rename = |found: &'a TypePtr| match key_of_found(found).and_then(|key| by_key.get(&key)) {
            Some(field) => with_name(found, &field.name, self.rename_within(found, &field.within)?),
            None => with_name(found, &unused_name(found.name(), fields), fields_of(found).to_vec()),
        };
        found.iter().map(rename).collect()
    }

    /// The fields of a type of a file, with those names within it that they have in the table.
    fn rename_within(&self, found: &Type, within: &MappedType) -> Result<Vec<TypePtr>, ParquetError> {
        match (within, fields_of(found)) {
            (MappedType::Struct(fields), found) => self.rename_fields(found, fields),
            (MappedType::List(element), [repeated]) => {
                let repeated = match fields_of(repeated) {
                    [only] if !is_element(repeated) => {
                        let only = with_name(only, only.name(), self.rename_within(only, element)?)?;
                        with_name(repeated, repeated.name(), vec![only])?
                    }
                    _ => with_name(repeated, repeated.name(), self.rename_within(repeated, element)?)?,
                };
                Ok(vec![repeated])
            }
            (MappedType::Map(of_keys, of_values), [entries]) => {
                let [key, value] = fields_of(entries) else { return Ok(vec![Arc::clone(entries)]) };
                let key = with_name(key, key.name(), self.rename_within(key, of_keys)?)?;
                let value = with_name(value, value.name(), self.rename_within(value, of_values)?)?;
                Ok(vec![with_name(entries, entries.name(), vec![key, value])?])
            }
            (_, found) => Ok(found.to_vec()),
        }
    }
}

fn mapped_fields(fields: &[Value], mode: MappingMode) -> Result<Vec<MappedField>, String> {
    fields.iter().map(|field| mapped_field(field, mode)).collect()
}

fn mapped_field(field: &Value, mode: MappingMode) -> Result<MappedField, String> {
    let name = field.get("name").and_then(Value::as_str).ok_or("a column has no name")?;
    let metadata = |key: &str| field.get("metadata")?.get(key);
    let name_in_files = metadata("delta.columnMapping.physicalName").and_then(Value::as_str);
    let id = metadata("delta.columnMapping.id").and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok());
    if mode == MappingMode::Id && id.is_none() {
        return Err(format!("column \"{name}\" has no number in the data files"));
    }
    Ok(MappedField {
        name: name.to_owned(),
        name_in_files: name_in_files
            .ok_or_else(|| format!("column \"{name}\" has no name in the data files"))?
            .to_owned(),
        id,
        within: mapped_type(field.get("type"), mode)?,
    })
}

fn mapped_type(data_type: Option<&Value>, mode: MappingMode) -> Result<MappedType, String> {
    let inner = |key: &str| mapped_type(data_type.and_then(|data_type| data_type.get(key)), mode).map(Box::new);
    let kind = data_type.and_then(|data_type| data_type.get("type")).and_then(Value::as_str);
    Ok(match kind {
        Some("struct") => {
            let fields = data_type.and_then(|data_type| data_type.get("fields")).and_then(Value::as_array);
            MappedType::Struct(mapped_fields(fields.map(Vec::as_slice).unwrap_or_default(), mode)?)
        }
        Some("array") => MappedType::List(inner("elementType")?),
        Some("map") => MappedType::Map(inner("keyType")?, inner("valueType")?),
        _ => MappedType::Plain,
    })
}

fn fields_of(found: &Type) -> &[TypePtr] {
    if found.is_group() { found.get_fields() } else { &[] }
}

/// Whether the repeated group of a list is its element, by the rules for old files.
fn is_element(repeated: &Type) -> bool {
    repeated.name() == "array" || repeated.name().ends_with("_tuple")
}

/// A name that none of the fields has.
fn unused_name(name: &str, fields: &[MappedField]) -> String {
    let mut unused = name.to_owned();
    while fields.iter().any(|field| field.name == unused) {
        unused.push('~');
    }
    unused
}

/// The type of a file with another name, other fields within it, and no number.
fn with_name(found: &Type, name: &str, fields: Vec<TypePtr>) -> Result<TypePtr, ParquetError> {
    let info = found.get_basic_info();
    let renamed = match found {
        Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
            let builder = Type::primitive_type_builder(name, *physical_type)
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_length(*type_length)
                .with_scale(*scale)
                .with_precision(*precision);
            let builder = if info.has_repetition() { builder.with_repetition(info.repetition()) } else { builder };
            builder.build()
        }
        Type::GroupType { .. } => {
            let builder = Type::group_type_builder(name)
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_fields(fields);
            let builder = if info.has_repetition() { builder.with_repetition(info.repetition()) } else { builder };
            builder.build()
        }
    };
    Ok(Arc::new(renamed?))
}
