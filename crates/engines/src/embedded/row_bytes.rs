//! Approximate number of bytes of each row, computed from the values and not from their memory layout; and the width
//! of rows that an operator repeats or collects.
//!
//! A join, an unnest or a scalar subquery repeats a row for many others. A text of one megabyte then becomes a batch
//! of gigabytes, and this memory is not accounted for. So rows that are too wide for the batch size stop the plan
//! first, and the statement is planned again with shorter batches.
//!
//! Other operators collect rows until they have a whole batch, and copy them. Many rows can share a few bytes, as views
//! and dictionaries do, and then the copy is larger than all that was read.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, GenericListViewArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    RunArray, UInt32Array, UnionArray,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, DataType, Int16Type, Int32Type, Int64Type, RunEndIndexType,
};
use datafusion::arrow::downcast_dictionary_array;
use datafusion::common::{Result, internal_datafusion_err};
use thiserror::Error;

/// Approximate number of bytes of a fixed-size value, and overhead of other values.
const FIXED_BYTES: u64 = 8;

/// Parts of `batch` with at most about `bytes_max` bytes, or with one row. They share the memory of `batch`.
pub(crate) fn cut_rows(batch: &RecordBatch, bytes_max: u64) -> Vec<RecordBatch> {
    if value_bytes(batch) <= bytes_max {
        return vec![batch.clone()];
    }
    let (mut parts, mut begun, mut bytes) = (Vec::new(), 0, 0_u64);
    for (row, width) in measure_rows(batch).into_iter().enumerate() {
        if row > begun && bytes.saturating_add(width) > bytes_max {
            parts.push(batch.slice(begun, row - begun));
            (begun, bytes) = (row, 0);
        }
        bytes = bytes.saturating_add(width);
    }
    parts.push(batch.slice(begun, batch.num_rows() - begun));
    parts
}

/// Copies columns that refer to much more memory than their rows need.
pub(super) fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(compact_column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

fn compact_column(column: &ArrayRef) -> Result<ArrayRef> {
    let is_loose = |needed: usize| column.get_buffer_memory_size() > 2 * needed + 4_096;
    let views_bytes = 16 * column.len();
    match column.data_type() {
        DataType::Utf8View => {
            let texts = column.as_string_view();
            let needed = views_bytes + texts.total_buffer_bytes_used();
            Ok(if is_loose(needed) { Arc::new(texts.gc()) } else { column.clone() })
        }
        DataType::BinaryView => {
            let values = column.as_binary_view();
            let needed = views_bytes + values.total_buffer_bytes_used();
            Ok(if is_loose(needed) { Arc::new(values.gc()) } else { column.clone() })
        }
        _ if is_loose(column.to_data().get_slice_memory_size()?) => {
            let rows = u32::try_from(column.len()).map_err(|_| internal_datafusion_err!("a batch of too many rows"))?;
            Ok(take(column, &UInt32Array::from_iter_values(0..rows), None)?)
        }
        _ => Ok(column.clone()),
    }
}

/// The number of bytes of all rows of `batch`.
pub(super) fn value_bytes(batch: &RecordBatch) -> u64 {
    let mut sum = [0];
    batch.columns().iter().for_each(|column| add_bytes(column.as_ref(), &|_| 0..column.len(), &mut sum));
    sum[0]
}

/// The number of bytes of each row of `batch`.
pub(super) fn measure_rows(batch: &RecordBatch) -> Vec<u64> {
    let mut widths = vec![0; batch.num_rows()];
    batch.columns().iter().for_each(|column| add_bytes(column.as_ref(), &|row| row..row + 1, &mut widths));
    widths
}

/// The positions of the values that each sum consists of.
type Positions<'p> = &'p dyn Fn(usize) -> Range<usize>;

/// Adds the bytes of the values of `array` at `positions` to each of `sums`.
fn add_bytes(array: &dyn Array, positions: Positions<'_>, sums: &mut [u64]) {
    add_each(positions, sums, |range| FIXED_BYTES.saturating_mul(range.len() as u64));
    match array.data_type() {
        DataType::Utf8 => add_spans(array.as_string::<i32>().value_offsets(), positions, sums),
        DataType::LargeUtf8 => add_spans(array.as_string::<i64>().value_offsets(), positions, sums),
        DataType::Binary => add_spans(array.as_binary::<i32>().value_offsets(), positions, sums),
        DataType::LargeBinary => add_spans(array.as_binary::<i64>().value_offsets(), positions, sums),
        DataType::Utf8View => add_views(array.as_string_view().views(), positions, sums),
        DataType::BinaryView => add_views(array.as_binary_view().views(), positions, sums),
        DataType::FixedSizeBinary(bytes) => {
            let bytes = u64::try_from(*bytes).unwrap_or(0);
            add_each(positions, sums, |range| bytes.saturating_mul(range.len() as u64));
        }
        DataType::Dictionary(..) => {
            downcast_dictionary_array!(array => add_keys(array, positions, sums), _ => {});
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => add_runs(array.as_run::<Int16Type>(), positions, sums),
            DataType::Int32 => add_runs(array.as_run::<Int32Type>(), positions, sums),
            _ => add_runs(array.as_run::<Int64Type>(), positions, sums),
        },
        DataType::Struct(_) => {
            array.as_struct().columns().iter().for_each(|column| add_bytes(column.as_ref(), positions, sums));
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            add_items(list.values().as_ref(), list.value_offsets(), positions, sums);
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            add_items(list.values().as_ref(), list.value_offsets(), positions, sums);
        }
        DataType::Map(..) => {
            let map = array.as_map();
            add_items(map.entries(), map.value_offsets(), positions, sums);
        }
        DataType::FixedSizeList(_, length) => {
            let length = usize::try_from(*length).unwrap_or(0);
            let items = |sum: usize| {
                let range = positions(sum);
                range.start * length..range.end * length
            };
            add_bytes(array.as_fixed_size_list().values().as_ref(), &items, sums);
        }
        DataType::ListView(_) => add_list_views(array.as_list_view::<i32>(), positions, sums),
        DataType::LargeListView(_) => add_list_views(array.as_list_view::<i64>(), positions, sums),
        DataType::Union(..) => {
            let union = array.as_union();
            add_each(positions, sums, |range| saturating_sum(range.map(|row| union_value_bytes(union, row))));
        }
        _ => {}
    }
}

fn add_each(positions: Positions<'_>, sums: &mut [u64], bytes: impl Fn(Range<usize>) -> u64) {
    for (index, sum) in sums.iter_mut().enumerate() {
        *sum = sum.saturating_add(bytes(positions(index)));
    }
}

fn saturating_sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn add_spans<O: OffsetSizeTrait>(offsets: &[O], positions: Positions<'_>, sums: &mut [u64]) {
    add_each(positions, sums, |range| (offsets[range.end].as_usize() - offsets[range.start].as_usize()) as u64);
}

fn add_views(views: &[u128], positions: Positions<'_>, sums: &mut [u64]) {
    // The lowest 32 bits of a view are its length.
    add_each(positions, sums, |range| views[range].iter().map(|view| u64::from(*view as u32)).sum());
}

fn add_items<O: OffsetSizeTrait>(items: &dyn Array, offsets: &[O], positions: Positions<'_>, sums: &mut [u64]) {
    let of_rows = |sum: usize| {
        let range = positions(sum);
        offsets[range.start].as_usize()..offsets[range.end].as_usize()
    };
    add_bytes(items, &of_rows, sums);
}

fn add_keys<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>, positions: Positions<'_>, sums: &mut [u64]) {
    let (keys, values) = (array.keys(), array.values());
    // A few rows of a batch have all values of its dictionary.
    let is_costly = values.data_type().is_nested() || values.as_any_dictionary_opt().is_some();
    let is_table = is_costly || values.len() <= count_positions(positions, sums.len());
    let of_values = if is_table { each_value_bytes(values) } else { Vec::new() };
    let of_key = |row: usize| {
        let key = keys.value(row).as_usize();
        let bytes = of_values.get(key).copied().unwrap_or_else(|| one_value_bytes(values, key));
        bytes.saturating_sub(FIXED_BYTES)
    };
    add_each(positions, sums, |range| saturating_sum(range.filter(|row| keys.is_valid(*row)).map(of_key)));
}

fn add_runs<R: RunEndIndexType>(runs: &RunArray<R>, positions: Positions<'_>, sums: &mut [u64]) {
    let (ends, offset, values) = (runs.run_ends().values(), runs.run_ends().offset(), runs.values());
    let is_table = ends.len() <= count_positions(positions, sums.len());
    let of_values = if is_table { each_value_bytes(values) } else { Vec::new() };
    let of_run = |run: usize| {
        let bytes = of_values.get(run).copied().unwrap_or_else(|| one_value_bytes(values, run));
        bytes.saturating_sub(FIXED_BYTES)
    };
    // The bytes of all rows before each run: rows of several sums are measured once.
    let (mut before, mut all, mut start) = (Vec::new(), 0_u64, 0);
    for (run, end) in ends.iter().enumerate().filter(|_| is_table) {
        before.push((start, all));
        all = all.saturating_add(of_run(run).saturating_mul(end.as_usize().saturating_sub(start) as u64));
        start = end.as_usize();
    }
    let bytes_before = |row: usize| match ends.partition_point(|end| end.as_usize() <= row) {
        run if run < before.len() => {
            let (start, bytes) = before[run];
            bytes.saturating_add(of_run(run).saturating_mul((row - start) as u64))
        }
        _ => all,
    };
    let bytes_between = |mut row: usize, end: usize| {
        let (mut bytes, mut run) = (0_u64, ends.partition_point(|end| end.as_usize() <= row));
        while row < end && run < ends.len() {
            let run_end = ends[run].as_usize().min(end);
            bytes = bytes.saturating_add(of_run(run).saturating_mul((run_end - row) as u64));
            (row, run) = (run_end, run + 1);
        }
        bytes
    };
    add_each(positions, sums, |range| {
        let (start, end) = (range.start + offset, range.end + offset);
        match is_table {
            true => bytes_before(end).saturating_sub(bytes_before(start)),
            false => bytes_between(start, end),
        }
    });
}

fn add_list_views<O: OffsetSizeTrait>(list: &GenericListViewArray<O>, positions: Positions<'_>, sums: &mut [u64]) {
    let used = used_positions(positions, sums.len());
    let items = |row: usize| {
        let start = list.offsets()[used.start + row].as_usize();
        start..start + list.sizes()[used.start + row].as_usize()
    };
    let mut of_rows = vec![0; used.len()];
    add_shared(list.values(), &items, &mut of_rows);
    let row = |row: usize| of_rows.get(row - used.start).copied().unwrap_or(0);
    add_each(positions, sums, |range| saturating_sum(range.map(row)));
}

/// As [`add_bytes`], where several sums may have the same values: each value is measured once.
fn add_shared(array: &ArrayRef, positions: Positions<'_>, sums: &mut [u64]) {
    if is_measured_at_once(array.data_type()) {
        return add_bytes(array.as_ref(), positions, sums);
    }
    let used = used_positions(positions, sums.len());
    let mut before = vec![0; used.len() + 1];
    add_bytes(array.as_ref(), &|value| used.start + value..used.start + value + 1, &mut before[1..]);
    let mut all = 0_u64;
    for bytes in &mut before {
        all = all.saturating_add(*bytes);
        *bytes = all;
    }
    add_each(positions, sums, |range| match range.is_empty() {
        true => 0,
        false => before[range.end - used.start].saturating_sub(before[range.start - used.start]),
    });
}

/// The range that contains all of `positions` that are not empty.
fn used_positions(positions: Positions<'_>, sums: usize) -> Range<usize> {
    let used = (0..sums).map(positions).filter(|range| !range.is_empty());
    used.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end)).unwrap_or(0..0)
}

/// How many values there are at all of `positions`.
fn count_positions(positions: Positions<'_>, sums: usize) -> usize {
    (0..sums).map(|sum| positions(sum).len()).fold(0, usize::saturating_add)
}

/// Whether many values of a type are measured as fast as one, without memory for each of them.
fn is_measured_at_once(data_type: &DataType) -> bool {
    use DataType::{
        BinaryView, Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct, Union, Utf8View,
    };
    match data_type {
        Utf8View | BinaryView | Dictionary(..) | ListView(_) | LargeListView(_) | Union(..) => false,
        FixedSizeList(_, 0) => true,
        List(item) | LargeList(item) | FixedSizeList(item, _) | Map(item, _) => is_measured_at_once(item.data_type()),
        Struct(members) => members.iter().all(|member| is_measured_at_once(member.data_type())),
        _ => true,
    }
}

fn each_value_bytes(values: &ArrayRef) -> Vec<u64> {
    let mut widths = vec![0; values.len()];
    add_bytes(values.as_ref(), &|value| value..value + 1, &mut widths);
    widths
}

fn one_value_bytes(values: &ArrayRef, position: usize) -> u64 {
    let mut sum = [0];
    add_bytes(values.as_ref(), &|_| position..position + 1, &mut sum);
    sum[0]
}

fn union_value_bytes(union: &UnionArray, row: usize) -> u64 {
    one_value_bytes(union.child(union.type_id(row)), union.value_offset(row))
}

/// Maximum number of bytes of a batch with repeated rows.
const BATCH_BYTES_MAX: usize = 64 << 20;
/// Maximum number of bytes of a row that is alone in its batch.
const ROW_BYTES_MAX: usize = 256 << 20;
/// Maximum number of bytes of a batch of a scan, and of rows that an operator collects for one batch.
pub(crate) const COLLECTED_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("rows of {bytes} bytes are too wide")]
pub(super) struct RowsTooWide {
    pub(super) bytes: usize,
    /// What a batch of such rows may have.
    batch_bytes_max: usize,
}

impl RowsTooWide {
    /// A batch size that fits, at most half of `before`.
    pub(super) fn batch_rows(self, before: usize) -> usize {
        (self.batch_bytes_max / self.bytes.max(1)).min(before / 2).max(1)
    }
}

/// Checks the rows that are passed to an operator that repeats them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RepeatedRows {
    pub(super) batch_rows: usize,
    /// Whether the elements of lists become rows.
    pub(super) is_unnested: bool,
}

impl RepeatedRows {
    /// The number of bytes of the widest row made from `batch`, if it is too wide for the batch size.
    pub(super) fn check_batch(self, batch: &RecordBatch) -> Option<RowsTooWide> {
        let row_bytes_max = if self.batch_rows > 1 { BATCH_BYTES_MAX / self.batch_rows } else { ROW_BYTES_MAX };
        let elements = if self.is_unnested { longest_list(batch) } else { 1 };
        let as_copied = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(elements);
        if as_copied(value_bytes(batch)) <= row_bytes_max {
            return None;
        }
        let bytes = as_copied(measure_rows(batch).into_iter().max().unwrap_or(0));
        (bytes > row_bytes_max).then_some(RowsTooWide { bytes, batch_bytes_max: BATCH_BYTES_MAX })
    }
}

fn longest_list(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| longest_list_in(column)).max().unwrap_or(0).max(1)
}

fn longest_list_in(column: &dyn Array) -> usize {
    match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().offsets().lengths().max().unwrap_or(0),
        DataType::LargeList(_) => column.as_list::<i64>().offsets().lengths().max().unwrap_or(0),
        DataType::Map(..) => column.as_map().offsets().lengths().max().unwrap_or(0),
        DataType::FixedSizeList(_, length) => usize::try_from(*length).unwrap_or(0),
        _ => 0,
    }
}

/// Counts the rows that an operator collects until they make a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CollectedRows {
    batch_rows: usize,
    rows: usize,
    bytes: usize,
}

impl CollectedRows {
    pub(super) fn new(batch_rows: usize) -> Self {
        Self { batch_rows, rows: 0, bytes: 0 }
    }

    /// Adds the rows of `batch`. Returns the bytes of the collected rows and of one of them if they are too wide for the
    /// batch size.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Option<(usize, RowsTooWide)> {
        if self.batch_rows <= 1 {
            return None;
        }
        self.rows += batch.num_rows();
        self.bytes = self.bytes.saturating_add(usize::try_from(value_bytes(batch)).unwrap_or(usize::MAX));
        let (rows, bytes) = (self.rows.max(1), self.bytes);
        if rows >= self.batch_rows {
            (self.rows, self.bytes) = (0, 0);
        }
        // Half as many fit, also if the next rows are somewhat wider.
        let too_wide = RowsTooWide { bytes: bytes / rows, batch_bytes_max: COLLECTED_BYTES_MAX / 2 };
        (bytes > COLLECTED_BYTES_MAX).then_some((bytes, too_wide))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        FixedSizeListArray, Int32Array, Int64Array, ListArray, ListBuilder, ListViewArray, StringArray, StringBuilder,
        StringViewArray, StructArray,
    };
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::{Field, Int8Type};

    use super::*;

    #[test]
    fn row_bytes_depend_on_values_only() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("ab"), Some("cde")]);
        lists.append_value([None::<&str>; 0]);
        lists.append_null();
        lists.append_value([Some("f")]);
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("four"), Some("")]));
        let nested: ArrayRef = Arc::new(StructArray::try_from(vec![("x", texts.clone())]).unwrap());
        let lists: ArrayRef = Arc::new(lists.finish());
        let batch =
            RecordBatch::try_from_iter([("id", ids), ("text", texts), ("deep", nested), ("list", lists)]).unwrap();
        let expected = [8 + 9 + 17 + 8 + 10 + 11, 8 + 8 + 16 + 8, 8 + 12 + 20 + 8, 8 + 8 + 16 + 8 + 9];
        assert_eq!(measure_rows(&batch), expected);
        assert_eq!(measure_rows(&batch.slice(1, 3)), expected[1..]);
    }

    #[test]
    fn values_of_dictionaries_count_for_each_row() {
        let long = "x".repeat(1_000);
        let texts = [Some(long.as_str()), None, Some("ab"), Some(long.as_str())];
        let dictionary: ArrayRef = Arc::new(texts.into_iter().collect::<DictionaryArray<Int8Type>>());
        let empty: ArrayRef = Arc::new([None::<&str>; 4].into_iter().collect::<DictionaryArray<Int8Type>>());
        let batch = RecordBatch::try_from_iter_with_nullable([("d", dictionary, true), ("e", empty, true)]).unwrap();
        assert_eq!(measure_rows(&batch), [1_016, 16, 18, 1_016]);
        assert_eq!(measure_rows(&batch.slice(2, 2)), [18, 1_016]);
        let parts: Vec<usize> = cut_rows(&batch, 1_100).iter().map(RecordBatch::num_rows).collect();
        assert_eq!(parts, [3, 1]);
        let parts: Vec<usize> = cut_rows(&batch, 10).iter().map(RecordBatch::num_rows).collect();
        assert_eq!(parts, [1, 1, 1, 1]);
    }

    /// A batch of one column, whose parts are measured as the whole.
    fn measured(column: ArrayRef) -> Vec<u64> {
        let batch = RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap();
        let widths = measure_rows(&batch);
        for start in 0..widths.len() {
            for end in start..=widths.len() {
                let part = batch.slice(start, end - start);
                assert_eq!(measure_rows(&part), widths[start..end], "{start}..{end}");
                assert_eq!(value_bytes(&part), widths[start..end].iter().sum::<u64>(), "{start}..{end}");
            }
        }
        widths
    }

    #[test]
    fn shared_values_count_for_each_row() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("ab"), Some("cde"), None, Some("f")]));
        let ends = Int32Array::from(vec![1, 3, 5, 6]);
        let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts).unwrap());
        assert_eq!(measured(runs.clone()), [10, 11, 11, 8, 8, 9]);
        let views: ArrayRef = Arc::new(StringViewArray::from(vec![Some("ab"), Some("cde"), None, Some("f")]));
        for items in [texts, views] {
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            let (offsets, sizes) = (vec![0_i32, 0, 1, 4, 3], vec![2_i32, 2, 2, 0, 1]);
            let lists = ListViewArray::new(field, offsets.into(), sizes.into(), items, None);
            assert_eq!(measured(Arc::new(lists)), [29, 29, 27, 8, 17]);
        }
        let field = Arc::new(Field::new_list_field(runs.data_type().clone(), true));
        assert_eq!(measured(Arc::new(FixedSizeListArray::new(field, 2, runs, None))), [29, 27, 25]);
    }

    #[test]
    fn few_rows_of_a_large_dictionary_have_their_values_only() {
        let texts: Vec<String> = (0..100).map(|length| "x".repeat(length)).collect();
        let texts = texts.iter().map(String::as_str);
        let rows: ArrayRef = Arc::new(texts.collect::<DictionaryArray<Int8Type>>());
        assert_eq!(measured(rows), (8..108).collect::<Vec<u64>>());
    }

    #[test]
    fn collected_rows_are_too_wide_together() {
        let batch = |bytes: usize, rows: usize| {
            let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(bytes - 8); rows]));
            RecordBatch::try_from_iter([("t", texts)]).unwrap()
        };
        let (narrow, mut rows) = (batch(16_000, 500), CollectedRows::new(1_000));
        for _ in 0..6 {
            assert_eq!(rows.add(&narrow), None, "8 MB in half a batch");
        }
        assert_eq!(rows.add(&batch(32_000, 400)), None);
        let (bytes, too_wide) = rows.add(&batch(32_000, 400)).unwrap();
        assert_eq!((bytes, too_wide.bytes, too_wide.batch_rows(1_000)), (25_600_000, 32_000, 262));
        let mut rows = CollectedRows::new(1);
        assert_eq!(rows.add(&batch(COLLECTED_BYTES_MAX + 1, 1)), None, "a row alone is not collected");
    }

    fn excess(batch: &RecordBatch, batch_rows: usize, is_unnested: bool) -> Option<usize> {
        RepeatedRows { batch_rows, is_unnested }.check_batch(batch).map(|too_wide| too_wide.bytes)
    }

    #[test]
    fn measures_the_widest_row() {
        let long = "x".repeat(1 << 20);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", &long, ""]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).unwrap();
        let bytes = (1 << 20) + 16;
        assert_eq!(excess(&batch, 63, false), None);
        assert_eq!(excess(&batch, 64, false), Some(bytes));
        assert_eq!(excess(&batch, 1, false), None);
        let too_wide = RowsTooWide { bytes, batch_bytes_max: BATCH_BYTES_MAX };
        assert_eq!(too_wide.batch_rows(8_192), 63);
        assert_eq!(too_wide.batch_rows(100), 50, "at most half, so that it comes to an end");
        assert_eq!(RowsTooWide { bytes: usize::MAX, ..too_wide }.batch_rows(8_192), 1);
    }

    #[test]
    fn lists_count_row_by_row_and_unnested_ones_for_each_element() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..80_000));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let lists: ArrayRef =
            Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(vec![10; 8_000]), numbers, None));
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        assert_eq!(excess(&batch, 8_192, false), None);
        assert_eq!(excess(&batch, 8_192, true), None);
        let long: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let lists: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([10_000]), long, None));
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        assert!(excess(&batch, 1, true).is_some_and(|bytes| bytes >= 800_000_000));
    }
}
