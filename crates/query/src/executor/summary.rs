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
    let mut columns: Vec<ColumnSummary> = Vec::new();
    for (index, values) in rows.columns().iter().enumerate() {
        let text = |row: usize| {
            let mut text = String::new();
            cells[index].append_text(row, &mut text);
            shorten(text, VALUE_CHARS_MAX)
        };
        let nulls = (0..rows.num_rows()).filter(|row| cells[index].is_null(*row)).count();
        let compared = compare_values(values, |row| cells[index].is_null(row));
        columns.push(ColumnSummary {
            count: (rows.num_rows() - nulls) as u64,
            nulls: nulls as u64,
            min: compared.as_ref().and_then(|compared| compared.min).map(text),
            max: compared.as_ref().and_then(|compared| compared.max).map(text),
            distinct: compared.map(|compared| compared.distinct),
        });
    }
    let text =
        |of: fn(&ColumnSummary) -> Option<&str>| Arc::new(columns.iter().map(of).collect::<StringArray>()) as ArrayRef;
    let count =
        |of: fn(&ColumnSummary) -> Option<u64>| Arc::new(columns.iter().map(of).collect::<UInt64Array>()) as ArrayRef;
    let names = unique_names(schema);
    RecordBatch::try_from_iter_with_nullable([
        ("column", Arc::new(StringArray::from(names)) as ArrayRef, true),
        ("count", count(|column| Some(column.count)), true),
        ("nulls", count(|column| Some(column.nulls)), true),
        ("min", text(|column| column.min.as_deref()), true),
        ("max", text(|column| column.max.as_deref()), true),
        ("distinct", count(|column| column.distinct), true),
    ])
}

struct ColumnSummary {
    count: u64,
    nulls: u64,
    min: Option<String>,
    max: Option<String>,
    distinct: Option<u64>,
}

struct ValueRange {
    min: Option<usize>,
    max: Option<usize>,
    distinct: u64,
}

fn compare_values(values: &ArrayRef, is_null: impl Fn(usize) -> bool) -> Option<ValueRange> {
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]).ok()?;
    let rows = converter.convert_columns(std::slice::from_ref(values)).ok()?;
    let present = || (0..values.len()).filter(|row| !is_null(*row));
    let different: HashSet<&[u8]> = present().map(|row| rows.row(row).data()).collect();
    Some(ValueRange {
        min: present().min_by_key(|row| rows.row(*row)),
        max: present().max_by_key(|row| rows.row(*row)),
        distinct: different.len() as u64,
    })
}
