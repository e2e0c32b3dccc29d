//! The Parquet columns of a schema, with the logical type UUID that the Arrow types alone do not express.
//!
//! JSON text stays text. Readers reject a whole file for one value that does not match its column type, and SQLite
//! stores any text in a JSON column.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::format::ExtensionType;

pub(super) fn parquet_columns(schema: &Schema) -> Result<SchemaDescriptor, ParquetError> {
    let converted = ArrowSchemaConverter::new().convert(schema)?;
    let root = converted.root_schema();
    let columns =
        root.get_fields().iter().zip(schema.fields()).map(|(column, field)| match ExtensionType::from_field(field) {
            Some(ExtensionType::Uuid) => uuid_column(field),
            Some(ExtensionType::Json | ExtensionType::Number) | None => Ok(column.clone()),
        });
    let columns = columns.collect::<Result<Vec<TypePtr>, _>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

fn uuid_column(field: &Field) -> Result<TypePtr, ParquetError> {
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let column = Type::primitive_type_builder(field.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
        .with_length(16)
        .with_repetition(repetition)
        .with_logical_type(Some(LogicalType::Uuid));
    Ok(Arc::new(column.build()?))
}
