//! Counting in the database of a source: matches, facets and histograms as groups, and the newest entries by their
//! order.
//!
//! The answers are those of a scan, or there are none. What SQL compares in another way than a scan is not counted: rows
//! with such values are scanned, and a search that needs them all is a scan. Secrets are masked in rows that a database
//! returned, so that filters in the database would see them; then everything is scanned as well.

mod groups;
mod newest;
mod sql;

use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{
    AggregateFunction, ComparisonOperator, GroupKey, NamedExpression, Operand, QueryCondition, QuerySpec, Selection,
    batch_bytes,
};
use tidegate_sql::SqlDialect;
use tidegate_telemetry::logs::{CountedRows, CountedValues, TimeRange, borrowed_text, time_column};
use tokio::time::Instant;

use self::sql::{SourceFilters, TimeSql, find_version};
use super::scan::{RowRange, SourceSearch, selection_filters};
use crate::source_columns::{FIRST_TIME, LAST_TIME, ceil_microseconds, first_and_last};
use crate::typed_rows::{MixedNumbers, open_typed_rows};

pub(super) use self::sql::UniformTimes;

/// The time in which a database must have counted, so that enough is left for a scan.
const COUNTING_TIME_MAX: Duration = Duration::from_secs(10);
/// How often rows are counted again that changed meanwhile.
const ATTEMPTS_MAX: usize = 2;

/// The number of times in SQLite that show the form of the others.
const SAMPLED_TIMES: u64 = 16;

const ROWS: &str = "counted_rows";
const TIMES: &str = "counted_times";

/// What a database counted of a source, the counted rows among which are those of the page, and the condition for the rows
/// that it did not count.
type SourceCounts = (CountedRows, Vec<RecordBatch>, Option<QueryCondition>);

/// Counts the rows of a source in its database; `None` if they must be scanned.
///
/// # Errors
/// If the call was cancelled.
pub(super) async fn count_source(input: &SourceSearch<'_>) -> Result<Option<SourceCounts>, Error> {
    let is_countable = input.request.patterns.is_none() && input.request.context.is_none();
    if !is_countable || input.search.job.protection().redactor().is_some() || !counts_fast(input).await {
        return Ok(None);
    }
    let input = SourceSearch { deadline: input.deadline.min(Instant::now() + COUNTING_TIME_MAX), ..*input };
    for attempt in 0..ATTEMPTS_MAX {
        let counting = async { Counting::prepare(input, attempt == 0).await?.run().await };
        match counting.await {
            Ok(Some(counted)) => return Ok(Some(counted)),
            // The table changed between two statements.
            Ok(None) => {}
            Err(CountingError::NotCountable) => return Ok(None),
            Err(CountingError::Ended(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether several statements take less time than one scan. The embedded engine reads text files as a whole for each
/// statement; it knows the number of rows of the other files, on the nodes of a network too.
async fn counts_fast(input: &SourceSearch<'_>) -> bool {
    let database = &input.source.database;
    match database.dialect() {
        SqlDialect::Postgres => true,
        SqlDialect::MySql => false,
        // SQLite sorts all rows for each group, which takes more time than a scan of them.
        SqlDialect::Sqlite => {
            let request = input.request;
            let is_filtered = !input.rows.range.is_unbounded()
                || request.condition.is_some()
                || !request.selections.is_empty()
                || input.search.conditions.is_some();
            is_filtered || request.facets.is_empty() && request.histogram.is_none()
        }
        SqlDialect::DataFusion => {
            let Ok(catalog) = database.catalog(input.search.job.principal()).await else { return false };
            let table = catalog.tables.iter().find(|table| table.name == input.source.table);
            table.is_some_and(|table| table.rows.is_some())
        }
    }
}

/// The counting of one source.
struct Counting<'a> {
    input: SourceSearch<'a>,
    filters: SourceFilters,
    time: TimeSql,
    /// The version of the table in which all times have the form of `time`; otherwise `filters` check each of them.
    version: Option<String>,
}

/// The rows that match everything.
#[derive(Debug, Clone, Copy)]
struct Matches {
    rows: u64,
    /// The first and the last time.
    times: Option<(i64, i64)>,
}

impl<'a> Counting<'a> {
    async fn prepare(input: SourceSearch<'a>, trusts_version: bool) -> Result<Self, CountingError> {
        let mut filters = SourceFilters::new(&input).ok_or(CountingError::NotCountable)?;
        let time = find_time(&input).await?;
        let mut version = None;
        if let Some(form) = time.has_form() {
            version = match trusts_version {
                true => input.search.context.uniform_times.check(&input, &time, &form).await?,
                false => None,
            };
            if version.is_none() {
                filters.require(form);
            }
        }
        groups::require_own_groups(&input, &mut filters)?;
        Ok(Self { input, filters, time, version })
    }

    /// `None` if the table changed meanwhile.
    async fn run(&self) -> Result<Option<SourceCounts>, CountingError> {
        let (request, range) = (self.input.request, self.input.rows.range);
        let is_covered = self.is_covered().await?;
        let includes_no_time = range.is_unbounded() || self.input.rows.includes_no_time;
        let all_rows = match is_covered {
            true => RowRange { range: TimeRange::default(), includes_no_time: true },
            false => RowRange { range, includes_no_time },
        };
        let matches = self.count_matches(all_rows).await?;
        // Rows that were added since are newer than the last match, as a rule.
        let rows = match matches.times.filter(|_| !is_covered) {
            Some((_, last)) => RowRange { range: until(range, last), includes_no_time },
            None => all_rows,
        };
        let mut facets: Vec<CountedValues> = Vec::with_capacity(request.facets.len());
        let mut evaluated = matches.rows;
        for facet in &request.facets {
            // The rows that only its own selection excludes may be newer than those that match.
            let is_selected = self.filters.has_selection(&facet.field);
            let counted = groups::count_values(self, facet, if is_selected { all_rows } else { rows }).await?;
            let total = counted.values.iter().map(|(_, rows)| rows).sum::<u64>() + counted.rare.rows;
            if !is_selected && total != matches.rows {
                return Ok(None);
            }
            evaluated = evaluated.max(total);
            facets.push(counted);
        }
        let bars = groups::count_bars(self, matches.times, rows).await?;
        if request.histogram.is_some() && bars.iter().map(|bar| bar.rows).sum::<u64>() != matches.rows {
            return Ok(None);
        }
        let entries = match &request.page {
            Some(page) => {
                let last = matches.times.map(|(_, last)| last);
                let range = last.map_or(request.range, |last| until(request.range, last));
                let has_no_index = self.input.source.database.dialect().is_embedded();
                self.read_page(page, range, has_no_index.then_some(matches)).await?
            }
            None => Vec::new(),
        };
        let seen_times = self.seen_times(matches).await?;
        if self.version.is_some() && find_version(&self.input).await != self.version {
            return Ok(None);
        }
        let counts =
            CountedRows { evaluated, matched: matches.rows, seen_times, matched_times: matches.times, facets, bars };
        Ok(Some((counts, entries, self.filters.uncountable())))
    }

    /// Whether all rows of the table are in the range. The embedded engine knows this from the statistics of its files,
    /// and takes as long for a comparison of each time as for the counting.
    async fn is_covered(&self) -> Result<bool, CountingError> {
        let input = &self.input;
        if input.rows.range.is_unbounded() || !input.source.database.dialect().is_embedded() {
            return Ok(false);
        }
        let with_time = Selection::aggregate(AggregateFunction::Count, &input.source.columns.time, TIMES);
        let mut select = vec![count_rows(), with_time];
        select.extend(first_and_last(&input.source.columns.time));
        let batches = input.read(&input.query(Vec::new(), select)).await?;
        let batch = batches.iter().find(|batch| batch.num_rows() == 1).ok_or(CountingError::NotCountable)?;
        let (all, with_time) = (counts(batch, ROWS), counts(batch, TIMES));
        let times = first_and_last_of(batch)?;
        Ok(all.is_some()
            && all == with_time
            && times.is_some_and(|(first, last)| {
                let TimeRange { start, end } = input.rows.range;
                start.is_none_or(|start| start <= first) && end.is_none_or(|end| last < end)
            }))
    }

    async fn count_matches(&self, rows: RowRange) -> Result<Matches, CountingError> {
        let conditions = self.filters.matching(None, self.time_condition(rows)?);
        let mut select = vec![count_rows()];
        select.extend(first_and_last(&self.input.source.columns.time));
        let batches = self.input.read(&self.input.query(conditions, select)).await?;
        let batch = batches.iter().find(|batch| batch.num_rows() == 1).ok_or(CountingError::NotCountable)?;
        let counted = counts(batch, ROWS).and_then(|rows| rows.first().copied()).ok_or(CountingError::NotCountable)?;
        Ok(Matches { rows: counted, times: first_and_last_of(batch)? })
    }

    /// The times of the rows that a scan would read.
    async fn seen_times(&self, matches: Matches) -> Result<Option<(i64, i64)>, CountingError> {
        let TimeRange { start, end } = self.input.rows.range;
        let is_needed = start.is_none() || end.is_none() || matches.rows == 0;
        if !is_needed || !self.filters.is_selective() {
            return Ok(matches.times);
        }
        let mut conditions = self.filters.countable_rows(self.time_condition(self.input.rows)?);
        conditions.extend(selection_filters(&self.input));
        let spec = self.input.query(conditions, first_and_last(&self.input.source.columns.time).into());
        let batches = self.input.read(&spec).await?;
        batches.iter().find(|batch| batch.num_rows() == 1).map_or(Ok(None), first_and_last_of)
    }

    /// The condition for `rows`; `None` for all of the table.
    fn time_condition(&self, rows: RowRange) -> Result<Option<QueryCondition>, CountingError> {
        if rows.range.is_unbounded() {
            return Ok(None);
        }
        let bounded = self.time.is_in(rows.range).ok_or(CountingError::NotCountable)?;
        Ok(Some(match rows.includes_no_time {
            true => QueryCondition::Or(vec![bounded, self.time.is_null()]),
            false => bounded,
        }))
    }
}

/// `range` up to the time `last`.
fn until(range: TimeRange, last: i64) -> TimeRange {
    let end = ceil_microseconds(last.saturating_add(1));
    TimeRange { end: Some(range.end.map_or(end, |known| known.min(end))), ..range }
}

fn first_and_last_of(batch: &RecordBatch) -> Result<Option<(i64, i64)>, CountingError> {
    let time = |name: &str| Some(times(batch, name)?.first().copied().flatten());
    let first = time(FIRST_TIME).ok_or(CountingError::NotCountable)?;
    let last = time(LAST_TIME).ok_or(CountingError::NotCountable)?;
    Ok(first.zip(last))
}

/// The time of a source. In SQLite, it has the form of most of the first rows.
async fn find_time(input: &SourceSearch<'_>) -> Result<TimeSql, CountingError> {
    let source = input.source;
    let name = &source.columns.time;
    let dialect = source.database.dialect();
    if dialect.has_typed_columns() {
        let found = source.columns.columns.iter().find(|column| column.name == *name);
        return found
            .and_then(|column| TimeSql::timestamp(dialect, name, column.kind))
            .ok_or(CountingError::NotCountable);
    }
    let has_time = QueryCondition::compare(name, ComparisonOperator::IsNotNull, Operand::None);
    let mut spec = input.query(vec![has_time], vec![Selection::column(name)]);
    spec.limit = SAMPLED_TIMES;
    let batches = input.read(&spec).await?;
    let mut forms: Vec<(TimeSql, usize)> = Vec::new();
    for values in batches.iter().filter_map(|batch| batch.column_by_name(name)) {
        for row in 0..values.len() {
            let form = match values.as_primitive_opt::<Int64Type>() {
                Some(numbers) => numbers.is_valid(row).then(|| TimeSql::integer(name, numbers.value(row))).flatten(),
                None => borrowed_text(values.as_ref(), row).and_then(|text| TimeSql::text(name, text)),
            };
            match (forms.iter_mut().find(|(known, _)| Some(known) == form.as_ref()), form) {
                (Some((_, rows)), _) => *rows += 1,
                (None, Some(form)) => forms.push((form, 1)),
                (None, None) => {}
            }
        }
    }
    forms.into_iter().max_by_key(|(_, rows)| *rows).map(|(form, _)| form).ok_or(CountingError::NotCountable)
}

/// The maximum size of the rows of one statement.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why a database does not count the rows of a source. They are scanned instead.
enum CountingError {
    /// The rows cannot be counted exactly, or not in time.
    NotCountable,
    /// The call ended.
    Ended(Error),
}

impl SourceSearch<'_> {
    /// The rows of `spec`.
    async fn read(&self, spec: &QuerySpec) -> Result<Vec<RecordBatch>, CountingError> {
        match tokio::time::timeout_at(self.deadline, self.read_all(spec)).await {
            Ok(Ok(Some(batches))) => Ok(batches),
            // The scan reports what is wrong with the source.
            Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => Err(CountingError::Ended(error)),
            Ok(Err(_) | Ok(None)) | Err(_) => Err(CountingError::NotCountable),
        }
    }

    /// `None` if the rows exceed the maximum size.
    async fn read_all(&self, spec: &QuerySpec) -> Result<Option<Vec<RecordBatch>>, Error> {
        let search = self.search;
        let mut rows =
            open_typed_rows(&search.context.services, &*self.source.database, spec, search.job, MixedNumbers::Text)
                .await?;
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = rows.next().await.transpose()? {
            bytes += batch_bytes(&batch);
            if bytes > BYTES_MAX {
                return Ok(None);
            }
            batches.push(batch);
        }
        Ok(Some(batches))
    }
}

/// A column of the answer that is an expression.
fn expression(text: impl Into<String>, alias: &str) -> Selection {
    Selection::Expression(named(text, alias))
}

/// A key of groups, which `select` names by its alias.
fn group_key(text: impl Into<String>, alias: &str) -> GroupKey {
    GroupKey::Expression(named(text, alias))
}

fn named(text: impl Into<String>, alias: &str) -> NamedExpression {
    NamedExpression { text: text.into(), alias: Some(alias.to_owned()) }
}

/// The number of rows.
fn count_rows() -> Selection {
    Selection::Aggregate {
        function: AggregateFunction::Count,
        column: None,
        distinct: false,
        alias: Some(ROWS.to_owned()),
    }
}

/// A column of a batch with counts.
fn counts(batch: &RecordBatch, name: &str) -> Option<Vec<u64>> {
    let numbers = cast(batch.column_by_name(name)?, &DataType::Int64).ok()?;
    let numbers = numbers.as_primitive::<Int64Type>();
    numbers.iter().map(|number| number.map_or(Some(0), |number| u64::try_from(number).ok())).collect()
}

/// A column of a batch with times in nanoseconds UTC; `None` if a value is no time.
fn times(batch: &RecordBatch, name: &str) -> Option<Vec<Option<i64>>> {
    let values = batch.column_by_name(name)?;
    if values.null_count() == values.len() {
        return Some(vec![None; values.len()]);
    }
    let times = time_column(values.as_ref())?;
    (times.null_count() == values.null_count()).then(|| times.iter().collect())
}
