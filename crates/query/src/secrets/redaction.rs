//! Masks secrets in rows before they are encoded, so that all formats are treated alike.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, LargeStringBuilder, RecordBatch, StringBuilder, StringLikeArrayBuilder,
    StringViewBuilder, make_array,
};
use arrow::datatypes::DataType;
use futures::StreamExt;
use futures::stream::BoxStream;
use tidegate_core::Error;
use tidegate_runtime::Job;

type RecordBatchStream = BoxStream<'static, Result<RecordBatch, Error>>;

/// Masks each secret in the texts of `batches`, if `job` has a redactor.
pub(crate) fn redact_stream(batches: RecordBatchStream, job: &Arc<Job>) -> RecordBatchStream {
    if job.protection().redactor().is_none() {
        return batches;
    }
    let job = job.clone();
    batches.map(move |batch| batch.and_then(|batch| redact_batch(batch, &job))).boxed()
}

fn redact_batch(batch: RecordBatch, job: &Job) -> Result<RecordBatch, Error> {
    let mut columns: Option<Vec<ArrayRef>> = None;
    for (index, column) in batch.columns().iter().enumerate() {
        if let Some(column) = redact_array(column, job)? {
            columns.get_or_insert_with(|| batch.columns().to_vec())[index] = column;
        }
    }
    let Some(columns) = columns else { return Ok(batch) };
    RecordBatch::try_new(batch.schema(), columns).map_err(|error| Error::internal(format!("a redacted batch: {error}")))
}

/// Masks the secrets in `array`; `None` if it has none.
fn redact_array(array: &ArrayRef, job: &Job) -> Result<Option<ArrayRef>, Error> {
    Ok(match array.data_type() {
        DataType::Utf8 => redact_values(array.as_string::<i32>().iter(), job, StringBuilder::new())?,
        DataType::LargeUtf8 => redact_values(array.as_string::<i64>().iter(), job, LargeStringBuilder::new())?,
        DataType::Utf8View => redact_values(array.as_string_view().iter(), job, StringViewBuilder::new())?,
        other if may_contain_text(other) => redact_children(array, job)?,
        _ => None,
    })
}

fn may_contain_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => may_contain_text(item.data_type()),
        DataType::Struct(members) => members.iter().any(|member| may_contain_text(member.data_type())),
        DataType::Union(members, _) => members.iter().any(|(_, member)| may_contain_text(member.data_type())),
        DataType::Dictionary(_, values) => may_contain_text(values),
        _ => false,
    }
}

/// The masked values, if `values` contain a secret.
fn redact_values<'a>(
    values: impl Iterator<Item = Option<&'a str>> + Clone,
    job: &Job,
    mut masked: impl StringLikeArrayBuilder,
) -> Result<Option<ArrayRef>, Error> {
    let Some(redactor) = job.protection().redactor() else { return Ok(None) };
    if !values.clone().flatten().any(|text| redactor.redact(text).is_some()) {
        return Ok(None);
    }
    for value in values {
        match value {
            Some(text) => masked.append_value(&job.protection().redact_text(text)?),
            None => masked.append_null(),
        }
    }
    Ok(Some(masked.finish()))
}

/// Masks the texts within lists, structs, dictionaries and the like.
fn redact_children(array: &ArrayRef, job: &Job) -> Result<Option<ArrayRef>, Error> {
    let data = array.to_data();
    let mut children: Option<Vec<ArrayData>> = None;
    for (index, child) in data.child_data().iter().enumerate() {
        if let Some(child) = redact_array(&make_array(child.clone()), job)? {
            children.get_or_insert_with(|| data.child_data().to_vec())[index] = child.to_data();
        }
    }
    let Some(children) = children else { return Ok(None) };
    let data = data.into_builder().child_data(children).build();
    let data = data.map_err(|error| Error::internal(format!("a redacted array: {error}")))?;
    Ok(Some(make_array(data)))
}
