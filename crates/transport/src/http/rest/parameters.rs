//! The parameters of the paths that call a tool.

use super::super::answer::{ParameterKind, QueryParameter};

pub(in crate::http) const EXTRACT: QueryParameter =
    QueryParameter::new("extract", ParameterKind::Text, "Return only the distinct values of this column, sorted");
pub(in crate::http) const PATTERN: QueryParameter =
    QueryParameter::new("pattern", ParameterKind::Text, "Words of name, comment or columns; or a glob: ord*");
pub(in crate::http) const SAMPLES: QueryParameter =
    QueryParameter::new("samples", ParameterKind::Integer, "Number of example values per column");
pub(in crate::http) const DATABASE: QueryParameter =
    QueryParameter::new("database", ParameterKind::Text, "The database to query");
pub(in crate::http) const MAX_ROWS: QueryParameter =
    QueryParameter::new("max_rows", ParameterKind::Integer, "Maximum number of rows");
const LIMIT: QueryParameter = QueryParameter::new("limit", ParameterKind::Integer, "Maximum number of rows");
const OFFSET: QueryParameter = QueryParameter::new("offset", ParameterKind::Integer, "Number of rows to skip");
const DISTINCT: QueryParameter = QueryParameter::new("distinct", ParameterKind::Flag, "Return equal rows once");
const SELECT: QueryParameter = QueryParameter::new("select", ParameterKind::List, "Columns, separated by commas");
const ORDER_BY: QueryParameter =
    QueryParameter::new("order_by", ParameterKind::List, "Columns, separated by commas; -column for descending");
const WHERE: QueryParameter =
    QueryParameter::new("where", ParameterKind::Text, "A SQL expression that filters the rows");
const AFTER: QueryParameter =
    QueryParameter::new("after", ParameterKind::Text, "The start: -15m, a date, RFC 3339, or seconds since 1970");
const BEFORE: QueryParameter = QueryParameter::new("before", ParameterKind::Text, "The end, in the same forms");
const QUERY: QueryParameter =
    QueryParameter::new("query", ParameterKind::Text, "Words, \"phrases\", | or, ! not, field:value");

/// Of rows.
pub(in crate::http) const ROWS: [QueryParameter; 7] = [SELECT, DISTINCT, WHERE, ORDER_BY, LIMIT, OFFSET, EXTRACT];

/// Of entries.
pub(in crate::http) const LOG_ENTRIES: [QueryParameter; 9] = [
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
pub(in crate::http) const FIELD_VALUES: [QueryParameter; 5] = [
    AFTER,
    BEFORE,
    QUERY,
    LIMIT,
    QueryParameter::new("ranges", ParameterKind::Integer, "Number of ranges that numbers are counted in"),
];

/// Of the list of metrics.
pub(in crate::http) const METRIC_LIST: [QueryParameter; 4] = [AFTER, BEFORE, PATTERN, LIMIT];

/// Of the points of a metric.
pub(in crate::http) const METRIC_POINTS: [QueryParameter; 7] = [
    AFTER,
    BEFORE,
    QueryParameter::new("points", ParameterKind::Integer, "Number of points over the time"),
    QueryParameter::new("aggregation", ParameterKind::Text, "Over time: average, max, p95, rate and others"),
    QueryParameter::new("by", ParameterKind::List, "Labels to group by, separated by commas"),
    QueryParameter::new("label_aggregation", ParameterKind::Text, "Over series: sum, average, min, max, p95"),
    QueryParameter::new("series", ParameterKind::Integer, "Maximum number of series"),
];
