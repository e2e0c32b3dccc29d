//! The columns of an answer as readers elsewhere know them: names of their own, types that the form has.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

use crate::format::{BatchFormat, field_cell, unique_names};

/// What becomes of the columns of an answer.
pub(crate) struct Portable {
    schema: SchemaRef,
    changes: Vec<Change>,
}

/// What becomes of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// It stays what it is.
    Nothing,
    /// Its values get another type.
    Type,
    /// The form has none for its values: they are the text that they are in formats of text.
    Text,
}

impl Portable {
    /// The columns of `schema` in `format`.
    pub(crate) fn new(schema: &SchemaRef, format: BatchFormat) -> Self {
        let names = unique_names(schema).into_iter();
        let (fields, changes): (Vec<Field>, Vec<Change>) = names
            .zip(schema.fields())
            .map(|(name, field)| {
                let (field, change) = portable_field(field, format);
                (field.with_name(name), change)
            })
            .unzip();
        Self { schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())), changes }
    }

    /// The columns that come out.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of `batch` in these columns.
    pub(crate) fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let fields = batch.schema_ref().fields().iter().zip(self.schema.fields());
        let columns = batch.columns().iter().zip(fields).zip(&self.changes);
        let columns = columns.map(|((column, (from, to)), change)| match change {
            Change::Nothing => Ok(column.clone()),
            Change::Type => {
                // A value that has no place in the other type is an error, and never null.
                cast_with_options(column, to.data_type(), &CastOptions { safe: false, ..CastOptions::default() })
            }
            Change::Text => Ok(texts(from, column)),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns.collect::<Result<_, _>>()?, &options)
    }
}

fn portable_field(field: &FieldRef, format: BatchFormat) -> (Field, Change) {
    let from = field.data_type();
    let to = portable(from, format).filter(|to| can_cast_types(from, to));
    let (to, change) = match (to, format) {
        (Some(to), _) if to == *from => (to, Change::Nothing),
        (Some(to), _) => (to, Change::Type),
        (None, BatchFormat::Arrow) => (from.clone(), Change::Nothing),
        (None, BatchFormat::Parquet) => (DataType::Utf8, Change::Text),
    };
    // Values of some types are null though their column has none.
    let nullable = field.is_nullable() || change == Change::Text;
    (field.as_ref().clone().with_data_type(to).with_nullable(nullable), change)
}

/// The type that values of `data_type` have in `format`; none if it has none. Views are new to both formats, and a part
/// of a batch would bring the values of the whole along.
fn portable(data_type: &DataType, format: BatchFormat) -> Option<DataType> {
    Some(match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(inner(item, format)?),
        DataType::LargeList(item) => DataType::LargeList(inner(item, format)?),
        DataType::Struct(members) if !members.is_empty() => {
            DataType::Struct(members.iter().map(|member| inner(member, format)).collect::<Option<_>>()?)
        }
        other if format == BatchFormat::Parquet => return in_parquet(other),
        other => other.clone(),
    })
}

fn inner(item: &FieldRef, format: BatchFormat) -> Option<FieldRef> {
    Some(Arc::new(item.as_ref().clone().with_data_type(portable(item.data_type(), format)?)))
}

/// The type in Parquet of values that Arrow's own format takes as they are.
///
/// Seconds and `Date64` would become numbers without a meaning, and so would durations. A dictionary is the file's own
/// affair: those of two batches are not one.
fn in_parquet(data_type: &DataType) -> Option<DataType> {
    let format = BatchFormat::Parquet;
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
        DataType::Dictionary(_, values) => portable(values, format)?,
        DataType::RunEndEncoded(_, values) => portable(values.data_type(), format)?,
        DataType::ListView(item) => DataType::List(inner(item, format)?),
        DataType::LargeListView(item) => DataType::LargeList(inner(item, format)?),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(inner(item, format)?, *length),
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries, format)?, *is_sorted),
        other => other.clone(),
    })
}

/// The values of `column` as they are in formats of text.
fn texts(field: &Field, column: &ArrayRef) -> ArrayRef {
    let cell = field_cell(field, column.as_ref());
    let (mut texts, mut text) = (StringBuilder::new(), String::new());
    for row in 0..column.len() {
        if cell.is_null(row) {
            texts.append_null();
        } else {
            text.clear();
            cell.text(row, &mut text);
            texts.append_value(&text);
        }
    }
    Arc::new(texts.finish())
}
