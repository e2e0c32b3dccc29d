//! Parameters of the query string: their values as arguments, and those of the paths that call a tool.

use axum::extract::Query;
use axum::http::Uri;
use serde_json::{Map, Value};

use super::answer::ProblemDetails;

#[derive(Debug, Clone, Copy)]
pub(super) struct QueryParameter {
    pub(super) name: &'static str,
    pub(super) kind: ParameterKind,
    pub(super) description: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Text,
    Integer,
    /// `true` or `false`.
    Flag,
    /// Texts separated by commas.
    List,
}

impl QueryParameter {
    pub(super) const fn new(name: &'static str, kind: ParameterKind, description: &'static str) -> Self {
        Self { name, kind, description }
    }
}

/// The format of the answer; every call accepts it.
pub(super) const FORMAT: QueryParameter =
    QueryParameter::new("format", ParameterKind::Text, "The format of the answer; overrides Accept");

/// The parameters of the query string that are `known`, and the format of the answer.
pub(super) fn parse_query(
    uri: &Uri,
    known: &[QueryParameter],
) -> Result<(Map<String, Value>, Option<String>), ProblemDetails> {
    let known: Vec<QueryParameter> = std::iter::once(FORMAT).chain(known.iter().copied()).collect();
    let mut arguments = parse_parameters(uri, &known)?;
    // It is text.
    let format = arguments.shift_remove(FORMAT.name).and_then(|format| format.as_str().map(str::to_owned));
    Ok((arguments, format))
}

/// The parameters of the query string, all of which must be `known`.
pub(super) fn parse_parameters(uri: &Uri, known: &[QueryParameter]) -> Result<Map<String, Value>, ProblemDetails> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_| ProblemDetails::bad_request("the query string cannot be parsed"))?;
    let mut arguments = Map::new();
    for (name, text) in pairs {
        if arguments.contains_key(&name) {
            return Err(ProblemDetails::bad_request(format!("the parameter {name} is given more than once")));
        }
        let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
            let names = known.iter().map(|parameter| parameter.name);
            return Err(ProblemDetails::bad_request(format!("unknown query parameter {name:?}")).with_choices(names));
        };
        arguments.insert(name, parameter.parse_value(text)?);
    }
    Ok(arguments)
}

pub(super) fn require_no_parameters(uri: &Uri) -> Result<(), ProblemDetails> {
    match uri.query() {
        None | Some("") => Ok(()),
        Some(_) => Err(ProblemDetails::bad_request("this path has no query parameters")),
    }
}

impl QueryParameter {
    fn parse_value(&self, text: String) -> Result<Value, ProblemDetails> {
        match self.kind {
            ParameterKind::Text => Ok(text.into()),
            ParameterKind::List => Ok(text.split(',').map(|item| Value::from(item.trim())).collect()),
            ParameterKind::Integer => text.parse::<i64>().map(Value::from).map_err(|_| {
                ProblemDetails::bad_request(format!("the parameter {} must be a whole number, not {text:?}", self.name))
            }),
            ParameterKind::Flag => text.parse::<bool>().map(Value::from).map_err(|_| {
                ProblemDetails::bad_request(format!("the parameter {} must be true or false, not {text:?}", self.name))
            }),
        }
    }
}

pub(super) const EXTRACT: QueryParameter =
    QueryParameter::new("extract", ParameterKind::Text, "Return only the distinct values of this column, sorted");
pub(super) const PATTERN: QueryParameter =
    QueryParameter::new("pattern", ParameterKind::Text, "Words of name, comment or columns; or a glob: ord*");
pub(super) const SAMPLES: QueryParameter =
    QueryParameter::new("samples", ParameterKind::Integer, "Number of example values per column");
pub(super) const DATABASE: QueryParameter =
    QueryParameter::new("database", ParameterKind::Text, "The database to query");
pub(super) const MAX_ROWS: QueryParameter =
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

pub(super) const NODE: QueryParameter =
    QueryParameter::new("node", ParameterKind::Text, "The node of a network, instead of this server");

/// Of rows of a function.
pub(super) const FUNCTION_ROWS: [QueryParameter; 4] =
    [QueryParameter::new("columns", ParameterKind::List, "Columns, separated by commas"), LIMIT, NODE, EXTRACT];

/// Of rows.
pub(super) const ROWS: [QueryParameter; 7] = [SELECT, DISTINCT, WHERE, ORDER_BY, LIMIT, OFFSET, EXTRACT];

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
