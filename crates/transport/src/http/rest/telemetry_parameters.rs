//! The parameters of the paths of logs and metrics.

use super::super::answer::{ParameterKind, QueryParameter};
use super::arguments::{LIMIT, PATTERN};

const AFTER: QueryParameter =
    QueryParameter::new("after", ParameterKind::Text, "The start: -15m, a date, RFC 3339, or seconds since 1970");
const BEFORE: QueryParameter = QueryParameter::new("before", ParameterKind::Text, "The end, in the same forms");
const QUERY: QueryParameter =
    QueryParameter::new("query", ParameterKind::Text, "Words, \"phrases\", | or, ! not, field:value");

/// Of entries.
pub(super) const LOG_ENTRIES: [QueryParameter; 9] = [
    AFTER,
    BEFORE,
    QUERY,
    QueryParameter::new("direction", ParameterKind::Text, "backward (newest first) or forward"),
    LIMIT,
    QueryParameter::new("columns", ParameterKind::List, "Fields, separated by commas"),
    QueryParameter::new("cursor", ParameterKind::Text, "The cursor of an answer: the next page"),
    QueryParameter::new("facets", ParameterKind::List, "Fields whose values are counted, separated by commas"),
    QueryParameter::new("patterns", ParameterKind::Integer, "Number of templates that messages are grouped by"),
];

/// Of the values of a field.
pub(super) const FIELD_VALUES: [QueryParameter; 5] = [
    AFTER,
    BEFORE,
    QUERY,
    LIMIT,
    QueryParameter::new("ranges", ParameterKind::Integer, "Number of ranges that numbers are counted in"),
];

/// Of the list of metrics.
pub(super) const METRIC_LIST: [QueryParameter; 4] = [AFTER, BEFORE, PATTERN, LIMIT];

/// Of the points of a metric.
pub(super) const METRIC_POINTS: [QueryParameter; 7] = [
    AFTER,
    BEFORE,
    QueryParameter::new("points", ParameterKind::Integer, "Number of points over the time"),
    QueryParameter::new("aggregation", ParameterKind::Text, "Over time: average, max, p95, rate and others"),
    QueryParameter::new("by", ParameterKind::List, "Labels to group by, separated by commas"),
    QueryParameter::new("label_aggregation", ParameterKind::Text, "Over series: sum, average, min, max, p95"),
    QueryParameter::new("series", ParameterKind::Integer, "Maximum number of series"),
];
