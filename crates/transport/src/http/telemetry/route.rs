//! The paths where senders expect their receivers.

use axum::http::{HeaderMap, Uri, header};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tidegate_mcp::NAME_BYTES_MAX;

use super::Arguments;
use crate::http::answer::ProblemDetails;

/// The paths of the router.
pub(in crate::http) const PATHS: [&str; 9] = [
    "/v1/logs",
    "/v1/metrics",
    "/v1/traces",
    "/api/v1/write",
    "/_bulk",
    "/{index}/_bulk",
    "/_license",
    "/_cluster/health",
    "/",
];
/// What the header `User-Agent` of clients of Elasticsearch contains.
const ELASTIC_AGENTS: [&str; 5] = ["elastic", "vector", "fluent", "logstash", "beat"];

/// What a sender speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Otlp,
    RemoteWrite,
    Bulk,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TelemetryRoute {
    /// The signal: `logs`, `metrics` or `traces`.
    Otlp(&'static str),
    RemoteWrite,
    /// The index of the path.
    Bulk(Option<String>),
    License,
    Health,
    /// Only clients of Elasticsearch have an answer there.
    Root,
}

/// Whether telemetry is received at `path`, or could be.
pub(in crate::http) fn is_telemetry_path(path: &str) -> bool {
    TelemetryRoute::parse(path).is_some()
}

impl Protocol {
    /// The name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Otlp => "OTLP",
            Self::RemoteWrite => "remote write",
            Self::Bulk => "the bulk API",
        }
    }

    /// The media type of a body without `Content-Type`.
    pub(super) fn default_media_type(self) -> Option<&'static str> {
        match self {
            Self::Otlp => None,
            Self::RemoteWrite => Some("application/x-protobuf"),
            Self::Bulk => Some("application/x-ndjson"),
        }
    }
}

impl TelemetryRoute {
    pub(super) fn parse(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/logs" => Self::Otlp("logs"),
            "/v1/metrics" => Self::Otlp("metrics"),
            "/v1/traces" => Self::Otlp("traces"),
            "/api/v1/write" => Self::RemoteWrite,
            "/_bulk" => Self::Bulk(None),
            "/_license" => Self::License,
            "/_cluster/health" => Self::Health,
            "/" => Self::Root,
            _ => {
                let index = path.strip_prefix('/')?.strip_suffix("/_bulk")?;
                if index.is_empty() || index.contains('/') || index.len() > NAME_BYTES_MAX {
                    return None;
                }
                Self::Bulk(Some(percent_decode_str(index).decode_utf8().ok()?.into_owned()))
            }
        })
    }

    /// Whether the request is meant for a receiver. At the root, only clients of Elasticsearch expect one.
    pub(super) fn is_meant(&self, headers: &HeaderMap) -> bool {
        if *self != Self::Root {
            return true;
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let agent = text(header::USER_AGENT).to_ascii_lowercase();
        ELASTIC_AGENTS.iter().any(|name| agent.contains(name)) || text(header::ACCEPT).contains("vnd.elasticsearch")
    }

    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Self::Otlp(_) => Protocol::Otlp,
            Self::RemoteWrite => Protocol::RemoteWrite,
            Self::Bulk(_) | Self::License | Self::Health | Self::Root => Protocol::Bulk,
        }
    }

    /// The tool that a request calls.
    pub(super) fn tool(&self) -> &'static str {
        match self.protocol() {
            Protocol::Otlp => "receive_otlp",
            Protocol::RemoteWrite => "receive_prometheus",
            Protocol::Bulk => "receive_bulk",
        }
    }

    pub(super) fn methods(&self) -> &'static str {
        match self {
            Self::Otlp(_) | Self::RemoteWrite => "POST, OPTIONS",
            // Some clients of the bulk API use PUT, which this server does not.
            Self::Bulk(_) => "POST, OPTIONS",
            Self::License | Self::Health | Self::Root => "GET, HEAD, OPTIONS",
        }
    }

    pub(super) fn arguments(&self) -> Arguments {
        let argument = match self {
            Self::Otlp(signal) => Some(("signal", (*signal).to_owned())),
            Self::RemoteWrite | Self::Bulk(None) => None,
            Self::Bulk(Some(index)) => Some(("index", index.clone())),
            Self::License => Some(("probe", "license".to_owned())),
            Self::Health => Some(("probe", "health".to_owned())),
            Self::Root => Some(("probe", "info".to_owned())),
        };
        argument.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect()
    }

    /// Refuses parameters that would change what is stored. Others are about the answer or about replicas.
    pub(super) fn check_parameters(&self, uri: &Uri) -> Result<(), ProblemDetails> {
        if !matches!(self, Self::Bulk(_)) {
            return Ok(());
        }
        let parameters = uri.query().unwrap_or_default().split('&');
        let pipeline = parameters.filter_map(|parameter| parameter.strip_prefix("pipeline=")).next();
        match pipeline.filter(|name| !matches!(*name, "" | "_none")) {
            Some(name) => Err(ProblemDetails::bad_request(format!("the pipeline {name:?} does not exist"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_protocols_and_arguments() {
        let argument = |path: &str| {
            let route = TelemetryRoute::parse(path)?;
            Some((route.tool(), Value::Object(route.arguments()).to_string()))
        };
        let cases = [
            ("/v1/logs", "receive_otlp", r#"{"signal":"logs"}"#),
            ("/api/v1/write", "receive_prometheus", "{}"),
            ("/_bulk", "receive_bulk", "{}"),
            ("/app-1%2E2/_bulk", "receive_bulk", r#"{"index":"app-1.2"}"#),
            ("/_license", "receive_bulk", r#"{"probe":"license"}"#),
        ];
        for (path, tool, arguments) in cases {
            assert_eq!(argument(path), Some((tool, arguments.to_owned())), "{path}");
        }
        for path in ["/v1/logs/", "/v1", "//_bulk", "/a/b/_bulk", "/a%ff/_bulk", "/_bulk/", "/mcp", "/rest/_bulk/x"] {
            assert_eq!(TelemetryRoute::parse(path), None, "{path}");
        }
    }

    #[test]
    fn the_root_is_for_clients_of_elasticsearch() {
        let is_meant = |name: header::HeaderName, value: &'static str| {
            TelemetryRoute::Root.is_meant(&HeaderMap::from_iter([(name, header::HeaderValue::from_static(value))]))
        };
        assert!(is_meant(header::USER_AGENT, "Elastic-filebeat/8.17.0 (linux; amd64)"));
        assert!(is_meant(header::USER_AGENT, "Vector/0.43.0 (x86_64-unknown-linux-gnu)"));
        assert!(is_meant(header::ACCEPT, "application/vnd.elasticsearch+json;compatible-with=8"));
        assert!(!is_meant(header::USER_AGENT, "curl/8.0") && !TelemetryRoute::Root.is_meant(&HeaderMap::new()));
    }

    #[test]
    fn pipelines_are_refused() {
        let check = |uri: &str| {
            let uri: Uri = uri.parse().unwrap();
            TelemetryRoute::parse(uri.path()).unwrap().check_parameters(&uri).is_ok()
        };
        assert!(check("/_bulk?filter_path=errors&pipeline=") && check("/_bulk") && check("/v1/logs?pipeline=x"));
        assert!(!check("/_bulk?timeout=60s&pipeline=geo"));
    }
}
