//! The statement that reads the rows of a source. It may return more rows than match, because each row is checked again.

use tidegate_query::{ComparisonOperator, Operand, QueryCondition, QuerySpec, Selection};
use tidegate_sql::{Parameter, SqlDialect};
use tidegate_telemetry::logs::{NO_TIME, format_time};

use super::scan::{RowRange, SourceSearch};
use crate::log_sources::{FieldKind, ResolvedSource};

/// PostgreSQL has times to the microsecond.
const NANOS_PER_MICROSECOND: i64 = 1_000;
/// The values of a selection that become a part of the statement.
pub(super) const PUSHED_VALUES_MAX: usize = 200;

/// The query for the rows of a source that may match and meet `further`; with a context, for all rows of the range.
pub(super) fn build_query(input: &SourceSearch<'_>, further: Option<QueryCondition>) -> QuerySpec {
    let (conditions, selections) = match input.request.context {
        Some(_) => (None, Vec::new()),
        None => (input.search.conditions.clone(), selection_filters(input)),
    };
    let filters = conditions.into_iter().chain(time_filter(input.source, input.rows)).chain(selections).chain(further);
    QuerySpec {
        select: input.columns.iter().copied().map(Selection::column).collect(),
        filter: QueryCondition::all(filters.collect()),
        limit: QuerySpec::UNLIMITED,
        ..QuerySpec::new(&input.source.table)
    }
}

/// The range of time, where the database compares the column as a time.
fn time_filter(source: &ResolvedSource, rows: RowRange) -> Option<QueryCondition> {
    let name = &source.columns.time;
    let kind = source.columns.columns.iter().find(|column| column.name == *name)?.kind;
    let has_times = source.database.dialect() != SqlDialect::Sqlite;
    if !has_times || !matches!(kind, FieldKind::Moment | FieldKind::LocalTime) {
        return None;
    }
    let compare = |operator, time: i64| {
        let text = format_time(time);
        let text = if kind == FieldKind::LocalTime { text.trim_end_matches('Z').to_owned() } else { text };
        QueryCondition::compare(name, operator, Operand::One(Parameter::Text(text)))
    };
    let is_time = |time: &i64| *time > NO_TIME && *time < i64::MAX - NANOS_PER_MICROSECOND;
    let floor = |time: i64| time.saturating_sub(time.rem_euclid(NANOS_PER_MICROSECOND));
    let start = rows.range.start.map(floor).filter(is_time);
    let end = rows.range.end.filter(is_time).map(|end| floor(end.saturating_add(NANOS_PER_MICROSECOND - 1)));
    let start = start.map(|start| compare(ComparisonOperator::GreaterOrEqual, start));
    let end = end.map(|end| compare(ComparisonOperator::Less, end));
    let bounds: Vec<QueryCondition> = start.into_iter().chain(end).collect();
    if bounds.is_empty() {
        return None;
    }
    let bounded = QueryCondition::And(bounds);
    if !rows.includes_no_time {
        return Some(bounded);
    }
    let is_null = QueryCondition::compare(name, ComparisonOperator::IsNull, Operand::None);
    Some(QueryCondition::Or(vec![bounded, is_null]))
}

/// The selections of text columns that apply to everything that is computed.
pub(super) fn selection_filters(input: &SourceSearch<'_>) -> Vec<QueryCondition> {
    let SourceSearch { search, request, source, .. } = *input;
    let mut filters = Vec::new();
    for (field, values) in search.selections.iter() {
        let values_sorted = values.to_sorted();
        if values.selects_missing()
            || values_sorted.len() > PUSHED_VALUES_MAX
            || request.facets.iter().any(|facet| facet.field == field)
        {
            continue;
        }
        let Some((_, column)) = search.set.fields(source).find(|(name, _)| *name == field) else { continue };
        // In SQLite, an integer in a column without a type is no text, although its display form may be equal.
        let is_sqlite = source.database.dialect() == SqlDialect::Sqlite;
        if column.kind != FieldKind::Text || is_sqlite && !has_text_affinity(&column.type_name) {
            continue;
        }
        let list = values_sorted.into_iter().map(|value| Parameter::Text(value.to_owned())).collect();
        filters.push(QueryCondition::compare(&column.name, ComparisonOperator::In, Operand::List(list)));
    }
    filters
}

/// Whether SQLite stores numbers in a column of this declared type as text. A type of integers has another kind.
fn has_text_affinity(type_name: &str) -> bool {
    let name = type_name.to_ascii_lowercase();
    ["char", "clob", "text"].into_iter().any(|part| name.contains(part))
}
