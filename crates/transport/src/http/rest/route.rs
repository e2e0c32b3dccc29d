//! The paths of REST, and the methods of each path.

use axum::http::{HeaderValue, Method};
use percent_encoding::percent_decode_str;
use tidegate_mcp::NAME_BYTES_MAX;

use crate::http::answer::{ProblemDetails, ProblemType};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RestRoute {
    /// The page that lists the tools and lets people try them.
    Page,
    OpenApi,
    Tools,
    Tool(String),
    Schema(String),
    Call(String),
    Query,
    Sql,
    Databases,
    Tables {
        database: String,
    },
    Table {
        database: String,
        table: String,
    },
    Rows {
        database: String,
        table: String,
    },
    /// The log sources.
    Logs,
    LogEntries {
        source: String,
    },
    LogFields {
        source: String,
    },
    LogFieldValues {
        source: String,
        field: String,
    },
    /// The metrics of all sources, or the sources if there are several.
    Metrics,
    SourceMetrics {
        source: String,
    },
    MetricPoints {
        source: String,
        metric: String,
    },
    Jobs,
    Job(String),
    /// The transports that an operator can stop and start.
    Transports,
    Transport {
        group: String,
        /// `start` or `stop`.
        action: String,
    },
}

impl RestRoute {
    /// Parses a path. Each segment is percent-decoded separately, because names may contain slashes.
    pub(super) fn parse(path: &str) -> Result<Self, ProblemDetails> {
        let no_such_path =
            || ProblemDetails::new(ProblemType::NoSuchPath, format!("there is no path {path}; /rest/ lists the tools"));
        let segments: Option<Vec<String>> = path
            .strip_prefix("/rest")
            .unwrap_or(path)
            .split('/')
            .skip(1)
            .map(|segment| percent_decode_str(segment).decode_utf8().ok().map(Into::into))
            .collect();
        let segments =
            segments.ok_or_else(|| ProblemDetails::bad_request("the path is not UTF-8 after percent-decoding"))?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if let Some(name) = segments.iter().find(|segment| segment.len() > NAME_BYTES_MAX) {
            let detail = format!("the name is {} bytes long; at most {NAME_BYTES_MAX}", name.len());
            return Err(ProblemDetails::bad_request(detail));
        }
        let name = |name: &&str| (*name).to_owned();
        Ok(match segments.as_slice() {
            [] | [""] | ["docs"] => Self::Page,
            ["openapi.json"] => Self::OpenApi,
            ["tools"] => Self::Tools,
            ["tools", tool] => Self::Tool(name(tool)),
            ["tools", tool, "schema"] => Self::Schema(name(tool)),
            ["tools", tool, "call"] => Self::Call(name(tool)),
            ["query"] => Self::Query,
            ["sql"] => Self::Sql,
            ["databases"] => Self::Databases,
            ["databases", database, "tables"] => Self::Tables { database: name(database) },
            ["databases", database, "tables", table] => Self::Table { database: name(database), table: name(table) },
            ["databases", database, "tables", table, "rows"] => {
                Self::Rows { database: name(database), table: name(table) }
            }
            ["logs"] => Self::Logs,
            ["logs", source] => Self::LogEntries { source: name(source) },
            ["logs", source, "fields"] => Self::LogFields { source: name(source) },
            ["logs", source, "fields", field] => Self::LogFieldValues { source: name(source), field: name(field) },
            ["metrics"] => Self::Metrics,
            ["metrics", source] => Self::SourceMetrics { source: name(source) },
            ["metrics", source, metric] => Self::MetricPoints { source: name(source), metric: name(metric) },
            ["jobs"] => Self::Jobs,
            ["jobs", job] => Self::Job(name(job)),
            ["transports"] => Self::Transports,
            ["transports", group, action @ ("start" | "stop")] => {
                Self::Transport { group: name(group), action: name(action) }
            }
            _ => return Err(no_such_path()),
        })
    }

    pub(super) fn check_method(&self, method: &Method) -> Result<(), ProblemDetails> {
        if self.methods().split(", ").any(|supported| supported == method.as_str()) {
            return Ok(());
        }
        let detail = format!("{method} is not supported here; supported methods: {}", self.methods());
        Err(ProblemDetails::new(ProblemType::MethodNotAllowed, detail).with_allow(self.allow_header()))
    }

    pub(super) fn allow_header(&self) -> HeaderValue {
        HeaderValue::from_static(self.methods())
    }

    fn methods(&self) -> &'static str {
        match self {
            Self::Call(_) | Self::Query | Self::Sql | Self::Transport { .. } => "POST, OPTIONS",
            Self::Job(_) => "GET, HEAD, DELETE, OPTIONS",
            _ => "GET, HEAD, OPTIONS",
        }
    }
}
