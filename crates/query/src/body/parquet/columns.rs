//! The columns of a file, with what the types of Arrow alone do not say: that bytes are a UUID, and text is JSON.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::format::Meaning;

/// The columns of a file with rows of `schema`.
pub(super) fn columns(schema: &Schema) -> Result<SchemaDescriptor, ParquetError> {
    let converted = ArrowSchemaConverter::new().convert(schema)?;
    let root = converted.root_schema();
    let columns = root.get_fields().iter().zip(schema.fields()).map(|(column, field)| match Meaning::of(field) {
        Some(Meaning::Uuid) => meant(field, PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(16), LogicalType::Uuid),
        Some(Meaning::Json) => meant(field, PhysicalType::BYTE_ARRAY, None, LogicalType::Json),
        Some(Meaning::Number) | None => Ok(column.clone()),
    });
    let columns = columns.collect::<Result<Vec<TypePtr>, _>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

fn meant(
    field: &Field,
    stored: PhysicalType,
    length: Option<i32>,
    meaning: LogicalType,
) -> Result<TypePtr, ParquetError> {
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let mut column = Type::primitive_type_builder(field.name(), stored).with_repetition(repetition);
    if let Some(length) = length {
        column = column.with_length(length);
    }
    Ok(Arc::new(column.with_logical_type(Some(meaning)).build()?))
}
