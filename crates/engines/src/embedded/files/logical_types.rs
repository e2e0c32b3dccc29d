//! Logical types: what the values of a column in a Parquet or Arrow file are, beyond the type that the Arrow library reads.
//!
//! - UUIDs are bytes for the library. In a table they are text.
//! - Structures without members, which DataFusion cannot group by (its issue 25281), are the JSON `{}`.
//! - JSON is text for the library. In a table its column has the type `json`.
//! - Intervals of Parquet have months, days and milliseconds. The library reads either months or the rest.
//! - Times of 96 bits (INT96), as Spark and Impala write them: the library wraps around outside of the years 1677 to 2262.
//!
//! The last two are read as bytes (`scan/footer.rs`) and become values in `scan/parquet_values.rs`.
//!
//! `docs/decisions/upstream` says when intervals, times and structures without members can be read by the library.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, Schema, TimeUnit};
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::file::metadata::FileMetaData;
use parquet::schema::types::{ColumnDescriptor, Type as ParquetType};
use tidegate_query::ExtensionType;

/// The bytes of a UUID.
pub(crate) const UUID_BYTES: i32 = 16;
/// The bytes of an interval, and of a time of 96 bits.
pub(crate) const WIDE_BYTES: i32 = 12;

/// The columns of a table of a Parquet file, whose columns are `schema` for the Arrow library, without the metadata of the
/// writer. Views are not changed.
pub(crate) fn parquet_table_schema(schema: &Schema, footer: &FileMetaData) -> Schema {
    // The library has as many leaves, in the same order.
    let mut leaves = footer.schema_descr().columns().iter();
    let column = |field: &FieldRef| {
        let is_json = leaves.as_slice().first().is_some_and(|leaf| leaf.path().parts().len() == 1 && is_json(leaf));
        let in_table = table_field(field, &DataType::Utf8View, &mut |data_type, text| match leaves.next() {
            Some(leaf) => leaf_type(data_type, text, leaf, footer),
            None => data_type.clone(),
        });
        as_column(in_table, is_json)
    };
    Schema::new(schema.fields().iter().map(column).collect::<Vec<_>>())
}

/// The columns of a table of an Arrow file with the columns of `schema`, without the metadata of the writer. Views are not changed.
pub(crate) fn arrow_table_schema(schema: &Schema) -> Schema {
    let column = |field: &FieldRef| {
        let in_table = table_field(field, &DataType::Utf8View, &mut |data_type, _| data_type.clone());
        as_column(in_table, false)
    };
    Schema::new(schema.fields().iter().map(column).collect::<Vec<_>>())
}

/// `field` without the metadata of the writer.
fn as_column(field: Field, is_json: bool) -> Field {
    let is_json = is_json || ExtensionType::from_field(&field) == Some(ExtensionType::Json);
    let column = field.with_metadata(Default::default());
    if is_json { ExtensionType::Json.annotate(column) } else { column }
}

/// The type of a leaf in a table: that for the library, and the type of texts there.
type LeafType<'t> = &'t mut dyn FnMut(&DataType, &DataType) -> DataType;

/// The column or member of a table that is `field` for the library. UUIDs have the type `text`, and in other values `Utf8`.
fn table_field(field: &Field, text: &DataType, leaf_type: LeafType<'_>) -> Field {
    let mut member = |member: &FieldRef| Arc::new(table_field(member, &DataType::Utf8, leaf_type));
    let data_type = match field.data_type() {
        DataType::Struct(members) if members.is_empty() => {
            return ExtensionType::Json.annotate(Field::new(field.name(), text.clone(), field.is_nullable()));
        }
        DataType::Struct(members) => DataType::Struct(members.iter().map(member).collect()),
        DataType::List(item) => DataType::List(member(item)),
        DataType::LargeList(item) => DataType::LargeList(member(item)),
        DataType::ListView(item) => DataType::ListView(member(item)),
        DataType::LargeListView(item) => DataType::LargeListView(member(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(member(item), *length),
        DataType::Map(entries, is_sorted) => DataType::Map(member(entries), *is_sorted),
        leaf => leaf_type(leaf, text),
    };
    match ExtensionType::from_field(field) {
        Some(ExtensionType::Uuid) => Field::new(field.name(), text.clone(), field.is_nullable()),
        _ => field.clone().with_data_type(data_type),
    }
}

fn leaf_type(data_type: &DataType, text: &DataType, leaf: &ColumnDescriptor, footer: &FileMetaData) -> DataType {
    match data_type {
        DataType::Timestamp(_, zone) if is_read_as_bytes(leaf.self_type(), footer) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        DataType::Interval(_) if is_read_as_bytes(leaf.self_type(), footer) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(UUID_BYTES)
            if is_text(leaf) =>
        {
            text.clone()
        }
        other => other.clone(),
    }
}

fn is_json(leaf: &ColumnDescriptor) -> bool {
    matches!(leaf.logical_type_ref(), Some(LogicalType::Json)) || leaf.converted_type() == ConvertedType::JSON
}

fn is_text(leaf: &ColumnDescriptor) -> bool {
    is_json(leaf)
        || matches!(leaf.logical_type_ref(), Some(LogicalType::Uuid | LogicalType::Enum))
        || leaf.converted_type() == ConvertedType::ENUM
}

/// Whether the values of a leaf are read as bytes, because the library reads only a part of them.
pub(crate) fn is_read_as_bytes(leaf: &ParquetType, footer: &FileMetaData) -> bool {
    match leaf {
        ParquetType::PrimitiveType { physical_type: PhysicalType::INT96, basic_info, .. } => {
            !matches!(basic_info.logical_type_ref(), Some(LogicalType::Unknown))
        }
        ParquetType::PrimitiveType {
            physical_type: PhysicalType::FIXED_LEN_BYTE_ARRAY,
            basic_info,
            type_length,
            ..
        } => {
            // The Arrow schema of a file names the part that its intervals have.
            basic_info.converted_type() == ConvertedType::INTERVAL
                && *type_length == WIDE_BYTES
                && !has_arrow_schema(footer)
        }
        _ => false,
    }
}

fn has_arrow_schema(footer: &FileMetaData) -> bool {
    footer.key_value_metadata().is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ARROW_SCHEMA_META_KEY))
}
