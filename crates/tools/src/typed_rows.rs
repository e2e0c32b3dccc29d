//! Rows in memory: small tables that the discovery and status tools build, and rows that tools read from databases,
//! whose columns have one type each. In SQLite, each value has a type of its own.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, Int64Array, Int64Builder, RecordBatch,
    StringArray, StringBuilder, TimestampMillisecondArray, UInt64Array, UnionArray,
};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use futures::StreamExt;
use futures::stream::BoxStream;
use tidegate_core::Error;
use tidegate_query::{Database, QueryRows, QuerySpec};
use tidegate_runtime::Job;
use tidegate_telemetry::logs::display_value;

use crate::tool_services::ToolServices;

/// What integers and floats in one column of a batch become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MixedNumbers {
    Floats,
    /// Their display form, so that it does not depend on the other rows of a batch: for entries of logs.
    Text,
}

/// Runs the query `spec` for the caller of `job`. A column whose values have several types is text.
///
/// # Errors
/// Those of [`QuerySpec::render`] and of the database.
pub(crate) async fn open_typed_rows(
    services: &ToolServices,
    database: &dyn Database,
    spec: &QuerySpec,
    job: &Arc<Job>,
    mixed: MixedNumbers,
) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
    let statement = spec.render(database, job.principal()).await?;
    let batches = services.executor.open_rows(database, &statement, job).await?.batches;
    Ok(batches.map(move |batch| batch.and_then(|batch| with_typed_columns(batch, mixed))).boxed())
}

fn with_typed_columns(batch: RecordBatch, mixed: MixedNumbers) -> Result<RecordBatch, Error> {
    let is_untyped = |column: &ArrayRef| matches!(column.data_type(), DataType::Union(..));
    if !batch.columns().iter().any(is_untyped) {
        return Ok(batch);
    }
    let (mut fields, mut columns) = (Vec::with_capacity(batch.num_columns()), Vec::with_capacity(batch.num_columns()));
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let values = column.as_any().downcast_ref::<UnionArray>();
        let column = values.map_or_else(|| column.clone(), |values| typed_column(values, mixed));
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|error| Error::internal(format!("columns with one type: {error}")))
}

fn typed_column(values: &UnionArray, mixed: MixedNumbers) -> ArrayRef {
    let values: Vec<Option<ArrayRef>> =
        (0..values.len()).map(|row| Some(values.value(row)).filter(|value| value.is_valid(0))).collect();
    let all = |fits: fn(&DataType) -> bool| values.iter().flatten().all(|value| fits(value.data_type()));
    let integer = |value: &ArrayRef| value.as_primitive_opt::<Int64Type>().map(|value| value.value(0));
    if all(|kind| *kind == DataType::Int64) {
        let mut column = Int64Builder::with_capacity(values.len());
        values.iter().for_each(|value| column.append_option(value.as_ref().and_then(integer)));
        return Arc::new(column.finish());
    }
    let has_integer = values.iter().flatten().any(|value| *value.data_type() == DataType::Int64);
    let are_numbers = all(|kind| matches!(kind, DataType::Int64 | DataType::Float64));
    if are_numbers && (mixed == MixedNumbers::Floats || !has_integer) {
        let number = |value: &ArrayRef| {
            let float = value.as_primitive_opt::<Float64Type>().map(|value| value.value(0));
            float.or_else(|| integer(value).map(|integer| integer as f64))
        };
        let mut column = Float64Builder::with_capacity(values.len());
        values.iter().for_each(|value| column.append_option(value.as_ref().and_then(number)));
        return Arc::new(column.finish());
    }
    let mut column = StringBuilder::new();
    values.iter().for_each(|value| column.append_option(value.as_ref().map(|value| display_value(value.as_ref(), 0))));
    Arc::new(column.finish())
}

#[derive(Default)]
pub(crate) struct TableBuilder(Vec<(&'static str, ArrayRef)>);

impl TableBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_column(mut self, name: &'static str, values: ArrayRef) -> Self {
        self.0.push((name, values));
        self
    }

    pub(crate) fn into_rows(self) -> Result<QueryRows, Error> {
        let columns = self.0.into_iter().map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns)
            .map(QueryRows::from_batch)
            .map_err(|error| Error::internal(format!("a built-in table is malformed: {error}")))
    }
}

pub(crate) fn text_column(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

pub(crate) fn count_column(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

pub(crate) fn boolean_column(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}

pub(crate) fn integer_column(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

pub(crate) fn number_column(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

/// Times in UTC.
pub(crate) fn time_column(values: impl Iterator<Item = Option<SystemTime>>) -> ArrayRef {
    let milliseconds = |time: SystemTime| i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok();
    let times = values.map(|time| time.and_then(milliseconds));
    Arc::new(times.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::UnionFields;

    use super::*;

    /// A column of SQLite with these values.
    fn column(kinds: &[i8], mixed: MixedNumbers) -> ArrayRef {
        let kind = |id: i8, name: &str, data_type| (id, Arc::new(Field::new(name, data_type, true)));
        let fields: UnionFields =
            [kind(0, "integer", DataType::Int64), kind(1, "real", DataType::Float64), kind(2, "text", DataType::Utf8)]
                .into_iter()
                .collect();
        let children: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![7])),
            Arc::new(Float64Array::from(vec![0.5])),
            Arc::new(StringArray::from(vec![Some("x"), None])),
        ];
        // The kind 3 stands for a null text.
        let ids: Vec<i8> = kinds.iter().map(|kind| (*kind).min(2)).collect();
        let offsets: Vec<i32> = kinds.iter().map(|kind| i32::from(*kind == 3)).collect();
        let union = UnionArray::try_new(fields, ids.into(), Some(offsets.into()), children).unwrap();
        typed_column(&union, mixed)
    }

    #[test]
    fn a_column_has_the_type_of_all_its_values() {
        let of = |kinds: &[i8]| column(kinds, MixedNumbers::Floats);
        assert_eq!(of(&[0, 3, 0]).as_ref(), &Int64Array::from(vec![Some(7), None, Some(7)]) as &dyn Array);
        assert_eq!(of(&[0, 1]).as_ref(), &Float64Array::from(vec![7.0, 0.5]) as &dyn Array);
        assert_eq!(of(&[2, 0, 1]).as_ref(), &StringArray::from(vec!["x", "7", "0.5"]) as &dyn Array);
    }

    #[test]
    fn the_display_form_does_not_depend_on_other_rows() {
        let of = |kinds: &[i8]| column(kinds, MixedNumbers::Text);
        assert_eq!(of(&[0, 1]).as_ref(), &StringArray::from(vec!["7", "0.5"]) as &dyn Array);
        assert_eq!(of(&[1]).as_ref(), &Float64Array::from(vec![0.5]) as &dyn Array);
        assert_eq!(of(&[0]).as_ref(), &Int64Array::from(vec![7]) as &dyn Array);
    }
}
