//! A summary of the columns of some rows, shown in a preview.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use tidegate_core::shorten;

use crate::format::{batch_cells, unique_names};

/// Maximum characters of a minimum or maximum value.
const VALUE_CHARS_MAX: usize = 60;

/// Summarizes each column of `batches`: the number of values and nulls, the minimum, the maximum, and the number of
/// distinct values. Columns that cannot be compared have neither of the last three.
pub(crate) fn summarize_columns(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    let rows = concat_batches(schema, batches)?;
    let cells = batch_cells(&rows);
    let (mut counts, mut nulls, mut distinct) = (Vec::new(), Vec::new(), Vec::new());
    let (mut least, mut greatest) = (Vec::new(), Vec::new());
    for (values, cells) in rows.columns().iter().zip(&cells) {
        let text = |row: &usize| {
            let mut text = String::new();
            cells.append_text(*row, &mut text);
            shorten(text, VALUE_CHARS_MAX)
        };
        let present: Vec<usize> = (0..rows.num_rows()).filter(|row| !cells.is_null(*row)).collect();
        counts.push(present.len() as u64);
        nulls.push((rows.num_rows() - present.len()) as u64);
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]);
        let keys = converter.and_then(|converter| converter.convert_columns(std::slice::from_ref(values))).ok();
        let keys = keys.as_ref();
        least.push(keys.and_then(|keys| present.iter().min_by_key(|row| keys.row(**row))).map(text));
        greatest.push(keys.and_then(|keys| present.iter().max_by_key(|row| keys.row(**row))).map(text));
        distinct.push(keys.map(|keys| {
            let different: HashSet<&[u8]> = present.iter().map(|row| keys.row(*row).data()).collect();
            different.len() as u64
        }));
    }
    RecordBatch::try_from_iter_with_nullable([
        ("column", Arc::new(StringArray::from(unique_names(schema))) as ArrayRef, true),
        ("count", Arc::new(UInt64Array::from(counts)), true),
        ("nulls", Arc::new(UInt64Array::from(nulls)), true),
        ("min", Arc::new(StringArray::from_iter(least)), true),
        ("max", Arc::new(StringArray::from_iter(greatest)), true),
        ("distinct", Arc::new(UInt64Array::from(distinct)), true),
    ])
}
