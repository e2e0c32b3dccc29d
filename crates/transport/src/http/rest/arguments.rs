//! Reads the arguments of a call from the query string and the body of a request.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::super::answer::{ProblemDetails, ProblemType};
use super::super::body;
use super::super::state::{HttpOptions, HttpState};

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
    body::read(body, body_bytes_max, read_within).await
}

pub(super) fn is_read_method(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
