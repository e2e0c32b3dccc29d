//! Reads the arguments of a call from the query string and the body of a request.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::super::answer::{ParameterKind, ProblemDetails, ProblemType, QueryParameter};
use super::super::body::{self, BodyError};
use super::super::state::{HttpOptions, HttpState};

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
pub(super) const LIMIT: QueryParameter = QueryParameter::new("limit", ParameterKind::Integer, "Maximum number of rows");
pub(super) const OFFSET: QueryParameter =
    QueryParameter::new("offset", ParameterKind::Integer, "Number of rows to skip");
pub(super) const DISTINCT: QueryParameter =
    QueryParameter::new("distinct", ParameterKind::Flag, "Return equal rows once");
pub(super) const SELECT: QueryParameter =
    QueryParameter::new("select", ParameterKind::List, "Columns, separated by commas");
pub(super) const ORDER_BY: QueryParameter =
    QueryParameter::new("order_by", ParameterKind::List, "Columns, separated by commas; -column for descending");
pub(super) const WHERE: QueryParameter =
    QueryParameter::new("where", ParameterKind::Text, "A SQL expression that filters the rows");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Nothing,
    Json,
    /// A plain SQL statement.
    Sql,
}

impl BodyKind {
    pub(super) fn from_headers(headers: &HeaderMap, takes_sql: bool) -> Result<Self, ProblemDetails> {
        let takes = if takes_sql { "application/json, application/sql or text/plain" } else { "application/json" };
        let unsupported = |subject: &str| {
            ProblemDetails::new(ProblemType::UnsupportedMediaType, format!("{subject}; Content-Type must be {takes}"))
        };
        let mut values = headers.get_all(header::CONTENT_TYPE).iter();
        let Some(value) = values.next() else { return Ok(Self::Nothing) };
        if values.next().is_some() {
            return Err(unsupported("Content-Type is given more than once"));
        }
        let text = value.to_str().unwrap_or("?").to_ascii_lowercase();
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        let charset = parts.find_map(|parameter| parameter.strip_prefix("charset="));
        if charset.is_some_and(|charset| !matches!(charset.trim_matches('"'), "utf-8" | "utf8" | "us-ascii")) {
            return Err(unsupported("the body must be UTF-8"));
        }
        match essence {
            "application/json" => Ok(Self::Json),
            "application/sql" | "text/plain" if takes_sql => Ok(Self::Sql),
            _ => Err(unsupported("the media type of the body is not supported")),
        }
    }

    pub(super) fn parse_arguments(self, body: &Bytes) -> Result<Map<String, Value>, ProblemDetails> {
        match self {
            _ if body.is_empty() => Ok(Map::new()),
            Self::Nothing => {
                let detail = "Content-Type is missing; it must be application/json";
                Err(ProblemDetails::new(ProblemType::UnsupportedMediaType, detail))
            }
            Self::Json => match serde_json::from_slice(body) {
                Ok(Value::Object(arguments)) => Ok(arguments),
                Ok(_) => Err(ProblemDetails::bad_request("the body must be a JSON object: the arguments by name")),
                Err(error) => Err(ProblemDetails::bad_request(format!("the body is not valid JSON: {error}"))),
            },
            Self::Sql => {
                let sql =
                    std::str::from_utf8(body).map_err(|_| ProblemDetails::bad_request("the statement is not UTF-8"))?;
                Ok(Map::from_iter([("sql".to_owned(), sql.into())]))
            }
        }
    }
}

pub(super) async fn read_body(http_state: &HttpState, parts: &Parts, body: Body) -> Result<Bytes, ProblemDetails> {
    let HttpOptions { body_bytes_max, read_within, .. } = *http_state.reloadable_options();
    if is_read_method(&parts.method) {
        body::discard(body, read_within).await;
        return Ok(Bytes::new());
    }
    body::read(body, body_bytes_max, read_within).await.map_err(|unread| match unread {
        BodyError::TooLarge => {
            ProblemDetails::new(ProblemType::BodyTooLarge, format!("the body is larger than {body_bytes_max} bytes"))
        }
        BodyError::Incomplete => ProblemDetails::bad_request("the body is incomplete"),
        BodyError::TooSlow => ProblemDetails::new(ProblemType::TooSlow, "the body arrived too slowly"),
    })
}

/// Reads an unused body, so that the connection can be reused.
pub(super) async fn discard_body(http_state: &HttpState, body: Body, problem: ProblemDetails) -> ProblemDetails {
    body::discard(body, http_state.options.read_within).await;
    problem
}

pub(super) fn is_read_method(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
