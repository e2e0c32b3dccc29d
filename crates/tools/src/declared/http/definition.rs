//! What the configuration says of an http tool, as plain values, and how its mistakes are told.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// What the configuration says of one http tool. Texts may hold `{name}` where the field allows it.
#[derive(Clone, Default)]
pub struct HttpDefinition {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`; empty stands for `GET`.
    pub method: String,
    /// The address. `{name}` in segments of its path and values of its query.
    pub url: String,
    /// Pairs that are added to the query. `{name}` in texts.
    pub query: Vec<(String, Value)>,
    /// Headers; their values are secrets. `{name}` allowed.
    pub headers: Vec<(String, String)>,
    /// The JSON body. `{name}` in texts.
    pub body: Option<Value>,
    /// Values in all of these that came from outside the configuration (`${VARIABLE}`). No caller reads them, whatever
    /// the API sends back.
    pub secrets: Vec<String>,
    /// JSON pointer to the array that is the table.
    pub rows: Option<String>,
    /// How long one request may take, redirects and body included; without it only the call's deadline counts.
    pub timeout: Option<Duration>,
    /// Bytes of an answer's body at most; 4 MiB without it.
    pub max_bytes: Option<usize>,
}

impl fmt::Debug for HttpDefinition {
    /// Without any value: headers, addresses and bodies carry secrets.
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
    /// Its name.
    pub name: String,
    /// Whether it must be given.
    pub is_required: bool,
    /// What stands for it when it is not given.
    pub default: Option<Value>,
}

/// Something that is wrong in the configuration of http tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProblem {
    /// Which field, as a path within the tool's `http` (`headers.X-Key`, `query.limit`) or the whole
    /// (`http.allow_hosts[2]`).
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: String,
}

impl HttpProblem {
    pub(super) fn new(field: impl Into<String>, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { field: field.into(), message: wrong.into(), hint: right.into() }
    }
}

impl fmt::Display for HttpProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.message, self.hint)
    }
}

impl std::error::Error for HttpProblem {}
