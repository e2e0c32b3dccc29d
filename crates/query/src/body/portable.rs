//! Converts the columns of an answer for external readers: unique names and types that the format supports.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use tidegate_core::Format;
use tidegate_results::StoredColumns;

use crate::format::{field_cells, unique_names};

pub(crate) struct PortableSchema {
    schema: SchemaRef,
    conversions: Vec<ColumnConversion>,
}

/// The columns of `schema` as a stored result keeps them: with unique names, and types that Arrow readers support.
pub fn stored_columns(schema: &SchemaRef) -> StoredColumns {
    let portable = PortableSchema::new(schema, Format::Arrow);
    StoredColumns { schema: portable.schema.clone(), convert: Box::new(move |batch| portable.convert(batch)) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnConversion {
    Keep,
    Cast,
    /// Formatted as text, because the format has no type for the values.
    FormatAsText,
}

impl PortableSchema {
    /// The columns of `schema` in `format`, which is binary.
    pub(crate) fn new(schema: &SchemaRef, format: Format) -> Self {
        let names = unique_names(schema).into_iter();
        let (fields, conversions): (Vec<Field>, Vec<ColumnConversion>) = names
            .zip(schema.fields())
            .map(|(name, field)| {
                let (field, change) = portable_field(field, format);
                (field.with_name(name), change)
            })
            .unzip();
        Self { schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())), conversions }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let fields = batch.schema_ref().fields().iter().zip(self.schema.fields());
        let columns = batch.columns().iter().zip(fields).zip(&self.conversions);
        let columns = columns.map(|((column, (from, to)), change)| match change {
            ColumnConversion::Keep => Ok(column.clone()),
            ColumnConversion::Cast => {
                // A value that cannot be represented in the target type is an error, never null.
                cast_with_options(column, to.data_type(), &CastOptions { safe: false, ..CastOptions::default() })
            }
            ColumnConversion::FormatAsText => Ok(format_as_text(from, column)),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns.collect::<Result<_, _>>()?, &options)
    }
}

fn portable_field(field: &FieldRef, format: Format) -> (Field, ColumnConversion) {
    let from = field.data_type();
    let to = portable_type(from, format).filter(|to| can_cast_types(from, to));
    let (to, change) = match (to, format) {
        (Some(to), _) if to == *from => (to, ColumnConversion::Keep),
        (Some(to), _) => (to, ColumnConversion::Cast),
        (None, Format::Parquet) => (DataType::Utf8, ColumnConversion::FormatAsText),
        (None, _) => (from.clone(), ColumnConversion::Keep),
    };
    // Values of some types are null although their column is not nullable.
    let nullable = field.is_nullable() || change == ColumnConversion::FormatAsText;
    (field.as_ref().clone().with_data_type(to).with_nullable(nullable), change)
}

/// The type for values of `data_type` in `format`; `None` if there is none. View types are unknown to many readers, and
/// a slice would carry the values of the whole batch.
fn portable_type(data_type: &DataType, format: Format) -> Option<DataType> {
    Some(match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(portable_item_field(item, format)?),
        DataType::LargeList(item) => DataType::LargeList(portable_item_field(item, format)?),
        DataType::Struct(members) if !members.is_empty() => {
            DataType::Struct(members.iter().map(|member| portable_item_field(member, format)).collect::<Option<_>>()?)
        }
        // Dictionaries of two batches differ, and in a file all batches share one.
        DataType::Dictionary(_, values) if format != Format::Arrow => portable_type(values, format)?,
        DataType::FixedSizeList(item, length) if format != Format::Arrow => {
            DataType::FixedSizeList(portable_item_field(item, format)?, *length)
        }
        DataType::Map(entries, is_sorted) if format != Format::Arrow => {
            DataType::Map(portable_item_field(entries, format)?, *is_sorted)
        }
        other if format == Format::Parquet => return parquet_type(other),
        other => other.clone(),
    })
}

fn portable_item_field(item: &FieldRef, format: Format) -> Option<FieldRef> {
    Some(Arc::new(item.as_ref().clone().with_data_type(portable_type(item.data_type(), format)?)))
}

/// The Parquet type for values that Arrow IPC writes unchanged.
///
/// Seconds, `Date64` and durations would become numbers without a unit.
fn parquet_type(data_type: &DataType) -> Option<DataType> {
    let format = Format::Parquet;
    Some(match data_type {
        DataType::Union(..) | DataType::Interval(_) | DataType::Duration(_) | DataType::Struct(_) => return None,
        // Parquet's decimals have no negative scale.
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale)
            if *scale < 0 =>
        {
            return None;
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Timestamp(TimeUnit::Second, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::RunEndEncoded(_, values) => portable_type(values.data_type(), format)?,
        DataType::ListView(item) => DataType::List(portable_item_field(item, format)?),
        DataType::LargeListView(item) => DataType::LargeList(portable_item_field(item, format)?),
        other => other.clone(),
    })
}

fn format_as_text(field: &Field, column: &ArrayRef) -> ArrayRef {
    let cell = field_cells(field, column.as_ref());
    let (mut texts, mut text) = (StringBuilder::new(), String::new());
    for row in 0..column.len() {
        if cell.is_null(row) {
            texts.append_null();
        } else {
            text.clear();
            cell.append_text(row, &mut text);
            texts.append_value(&text);
        }
    }
    Arc::new(texts.finish())
}
