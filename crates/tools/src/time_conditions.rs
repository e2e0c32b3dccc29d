//! Times in queries: their bounds as databases compare them, to the microsecond, as PostgreSQL has times; the first and the
//! last of them.

use tidegate_query::{AggregateFunction, ComparisonOperator, Operand, QueryCondition, Selection};
use tidegate_sql::{Parameter, SqlDialect};
use tidegate_telemetry::logs::{NO_TIME, TimeRange, format_time};

use crate::source_columns::FieldKind;

pub(crate) const NANOS_PER_MICROSECOND: i64 = 1_000;
/// The columns of [`first_and_last`].
pub(crate) const FIRST_TIME: &str = "first_time";
pub(crate) const LAST_TIME: &str = "last_time";

/// Selects the first and the last time of `column`.
pub(crate) fn first_and_last(column: &str) -> [Selection; 2] {
    let aggregate = |function, alias| Selection::aggregate(function, column, alias);
    [aggregate(AggregateFunction::Min, FIRST_TIME), aggregate(AggregateFunction::Max, LAST_TIME)]
}

/// The last whole microsecond that is not after `time`.
pub(crate) fn floor_microseconds(time: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(NANOS_PER_MICROSECOND))
}

/// The first whole microsecond that is not before `time`.
pub(crate) fn ceil_microseconds(time: i64) -> i64 {
    floor_microseconds(time.saturating_add(NANOS_PER_MICROSECOND - 1))
}

/// The bounds of `range` as conditions of `column`; none where the database does not compare a column of this kind as a
/// time. Rows just outside of the range may meet them.
pub(crate) fn time_conditions(
    column: &str,
    kind: FieldKind,
    dialect: SqlDialect,
    range: TimeRange,
) -> impl Iterator<Item = QueryCondition> {
    let has_times = dialect.has_typed_columns() && matches!(kind, FieldKind::Moment | FieldKind::LocalTime);
    let is_time = |time: &i64| *time > NO_TIME && *time < i64::MAX - NANOS_PER_MICROSECOND;
    let start = range.start.map(floor_microseconds).filter(is_time);
    let end = range.end.filter(is_time).map(ceil_microseconds);
    let bounds = [(ComparisonOperator::GreaterOrEqual, start), (ComparisonOperator::Less, end)];
    bounds.into_iter().filter(move |_| has_times).filter_map(move |(operator, bound)| {
        let text = format_time(bound?);
        let text = if kind == FieldKind::LocalTime { text.trim_end_matches('Z').to_owned() } else { text };
        Some(QueryCondition::compare(column, operator, Operand::One(Parameter::Text(text))))
    })
}
