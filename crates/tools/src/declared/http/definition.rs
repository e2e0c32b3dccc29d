//! The configuration of an http tool as plain values, and its errors.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

/// The configuration of one http tool. `{{name}}` is an argument where the field allows it.
#[derive(Clone, Default)]
pub struct HttpDefinition {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`; empty means `GET`.
    pub method: String,
    /// The URL. `{{name}}` is allowed in path segments and query values.
    pub url: String,
    /// Pairs that are added to the query. `{{name}}` is allowed in texts.
    pub query: Vec<(String, Value)>,
    /// Headers; their values are secrets. `{{name}}` is allowed.
    pub headers: Vec<(String, String)>,
    /// The JSON body. `{{name}}` is allowed in texts.
    pub body: Option<Value>,
    /// Values from outside the configuration (`${VARIABLE}`). They are removed from everything that callers read.
    pub secrets: Vec<String>,
    /// JSON pointer to the array of rows.
    pub rows: Option<String>,
    /// The time limit of one request, with redirects and body; without it, only the call's deadline applies.
    pub timeout: Option<Duration>,
    /// Bytes of a response body at most; 4 MiB by default.
    pub max_bytes: Option<usize>,
}

impl fmt::Debug for HttpDefinition {
    /// Omits values: headers, URLs and bodies contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpDefinition")
            .field("method", &self.method)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// An argument that the tool declares in its `input`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpArgument {
    /// The name.
    pub name: String,
    /// Whether it is required.
    pub is_required: bool,
    /// The default.
    pub default: Option<Value>,
}

/// An error in the configuration of http tools.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {message}; {hint}")]
pub struct HttpProblem {
    /// The path of the field within the tool's `http` (`headers.X-Key`, `query.limit`), or the full path
    /// (`http.allow_hosts[2]`).
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: String,
}

impl HttpProblem {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), hint: hint.into() }
    }
}
