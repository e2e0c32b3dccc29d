//! Facets and histograms as groups of a database.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use tidegate_query::{AggregateFunction, GroupKey, QueryCondition, QuerySpec, Selection, SortKey};
use tidegate_telemetry::logs::{
    BarWidth, CountedBar, CountedValues, FACET_DISTINCT_MAX, FacetRequest, MISSING, RareValues, display_value,
};

use super::sql::{ColumnSql, SourceField, SourceFilters, source_field};
use super::{Counting, CountingError, ROWS, count_rows, counts, expression, group_key, times};
use crate::log_tools::scan::{RowRange, SourceSearch};
use crate::source_columns::FIRST_TIME;

/// The maximum number of groups of a histogram.
const BAR_GROUPS_MAX: u64 = 200_000;

const VALUE: &str = "field_value";
const VALUE_TYPE: &str = "field_type";
const UNIT: &str = "time_unit";
const DISTINCT: &str = "distinct_values";
const TOTAL: &str = "total_rows";

/// Leaves rows to the scan whose values a database groups with others. `Err` if a field cannot be grouped.
pub(super) fn require_own_groups(input: &SourceSearch<'_>, filters: &mut SourceFilters) -> Result<(), CountingError> {
    let series = input.request.histogram.iter().filter_map(|histogram| histogram.field.as_deref());
    for field in input.request.facets.iter().map(|facet| facet.field.as_str()).chain(series) {
        if let SourceField::Column(column) = find_field(input, field)? {
            column.has_own_group().into_iter().for_each(|condition| filters.require(condition));
        }
    }
    Ok(())
}

fn find_field(input: &SourceSearch<'_>, field: &str) -> Result<SourceField, CountingError> {
    source_field(&input.search.set, input.source, field).ok_or(CountingError::NotCountable)
}

/// The values of a facet. They include those that the database returns: the most frequent ones.
pub(super) async fn count_values(
    counting: &Counting<'_>,
    facet: &FacetRequest,
    rows: RowRange,
) -> Result<CountedValues, CountingError> {
    let conditions = counting.filters.matching(Some(&facet.field), counting.time_condition(rows)?);
    let column = match find_field(&counting.input, &facet.field)? {
        SourceField::Constant(value) => {
            let spec = counting.input.query(conditions, vec![count_rows()]);
            let batches = counting.input.read(&spec).await?;
            let rows = batches.iter().find_map(|batch| counts(batch, ROWS)?.first().copied());
            let value = value.unwrap_or_else(|| MISSING.to_owned());
            let values = vec![(value, rows.ok_or(CountingError::NotCountable)?)];
            return Ok(CountedValues { values, rare: RareValues::default() });
        }
        SourceField::Column(column) => column,
    };
    let spec = values_query(counting, &column, conditions);
    let batches = counting.input.read(&spec).await?;
    let (mut values, mut distinct, mut total) = (Vec::new(), 0, 0);
    for batch in &batches {
        let read = || {
            Some((batch.column_by_name(VALUE)?, counts(batch, ROWS)?, counts(batch, DISTINCT)?, counts(batch, TOTAL)?))
        };
        let (texts, rows, distincts, totals) = read().ok_or(CountingError::NotCountable)?;
        (distinct, total) = (distincts.last().copied().unwrap_or(distinct), totals.last().copied().unwrap_or(total));
        values.extend(rows.into_iter().enumerate().map(|(row, rows)| (display_value(texts.as_ref(), row), rows)));
    }
    let counted: u64 = values.iter().map(|(_, rows)| rows).sum();
    let rows_max = values.last().map_or(0, |(_, rows)| *rows);
    let rare = match distinct.saturating_sub(values.len() as u64) {
        0 => RareValues::default(),
        values => RareValues { values, rows: total.saturating_sub(counted), rows_max },
    };
    // Other rows may have one of the rare values; ranges need all of them.
    let has_other_rows = !counting.input.search.set.is_single() || !counting.filters.countable.is_empty();
    if rare.values > 0 && (has_other_rows || facet.ranges.is_some()) {
        return Err(CountingError::NotCountable);
    }
    Ok(CountedValues { values, rare })
}

fn values_query(counting: &Counting<'_>, field: &ColumnSql, conditions: Vec<QueryCondition>) -> QuerySpec {
    let (group_by, mut select) = value_groups(field);
    select.push(count_rows());
    select.push(expression("count(*) OVER ()", DISTINCT));
    select.push(expression("CAST(sum(count(*)) OVER () AS bigint)", TOTAL));
    let mut spec = counting.input.query(conditions, select);
    spec.group_by = group_by;
    spec.order_by = vec![SortKey { column: ROWS.to_owned(), descending: Some(true) }];
    spec.limit = FACET_DISTINCT_MAX as u64 - 1;
    spec
}

/// The keys of groups of equal values, and their value.
fn value_groups(field: &ColumnSql) -> (Vec<GroupKey>, Vec<Selection>) {
    let mut group_by = vec![group_key(field.bytes(), VALUE)];
    group_by.extend(field.type_key().map(|key| group_key(key, VALUE_TYPE)));
    (group_by, vec![Selection::column(VALUE)])
}

/// The rows of a histogram; empty if there is none.
pub(super) async fn count_bars(
    counting: &Counting<'_>,
    matched_times: Option<(i64, i64)>,
    rows: RowRange,
) -> Result<Vec<CountedBar>, CountingError> {
    let Some(histogram) = &counting.input.request.histogram else { return Ok(Vec::new()) };
    let field = match &histogram.field {
        Some(field) => Some(find_field(&counting.input, field)?),
        None => None,
    };
    let range = counting.input.request.range;
    let first = range.start.or(matched_times.map(|(first, _)| first));
    let last = range.end.map(|end| end.saturating_sub(1)).or(matched_times.map(|(_, last)| last));
    // Without a time there is no bar.
    let unit = match first.zip(last).filter(|(first, last)| first <= last) {
        Some((first, last)) => BarWidth::choose(first, last, histogram.bars).counting_unit(),
        None => BarWidth::choose(0, i64::MAX, 1).counting_unit(),
    };
    if matched_times.is_some_and(|(first, _)| first < 0) {
        return Err(CountingError::NotCountable);
    }
    let conditions = counting.filters.matching(None, counting.time_condition(rows)?);
    let unit = counting.time.unit_key(unit).ok_or(CountingError::NotCountable)?;
    let time = &counting.input.source.columns.time;
    let mut group_by = vec![group_key(unit, UNIT)];
    let mut select = vec![count_rows(), Selection::aggregate(AggregateFunction::Min, time, FIRST_TIME)];
    if let Some(SourceField::Column(field)) = &field {
        let (keys, values) = value_groups(field);
        group_by.extend(keys);
        select.extend(values);
    }
    let mut spec = counting.input.query(conditions, select);
    spec.group_by = group_by;
    spec.limit = BAR_GROUPS_MAX;
    let batches = counting.input.read(&spec).await?;
    if batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>() > BAR_GROUPS_MAX {
        return Err(CountingError::NotCountable);
    }
    let constant = match field {
        Some(SourceField::Constant(value)) => value.unwrap_or_else(|| MISSING.to_owned()),
        _ => String::new(),
    };
    let bars: Option<Vec<Vec<CountedBar>>> = batches.iter().map(|batch| bars_of(batch, &constant)).collect();
    Ok(joined(bars.ok_or(CountingError::NotCountable)?.into_iter().flatten()))
}

fn bars_of(batch: &RecordBatch, constant: &str) -> Option<Vec<CountedBar>> {
    let (times, rows) = (times(batch, FIRST_TIME)?, counts(batch, ROWS)?);
    let values = batch.column_by_name(VALUE);
    let value = |row: usize| values.map_or_else(|| constant.to_owned(), |values| display_value(values.as_ref(), row));
    let bars = times.into_iter().zip(rows).enumerate();
    Some(bars.map(|(row, (time, rows))| CountedBar { time, value: value(row), rows }).collect())
}

/// The rows without a time as one.
fn joined(bars: impl Iterator<Item = CountedBar>) -> Vec<CountedBar> {
    let mut without_time: HashMap<String, u64> = HashMap::new();
    let mut joined = Vec::new();
    for bar in bars {
        match bar.time {
            Some(_) => joined.push(bar),
            None => *without_time.entry(bar.value).or_default() += bar.rows,
        }
    }
    joined.extend(without_time.into_iter().map(|(value, rows)| CountedBar { time: None, value, rows }));
    joined
}
