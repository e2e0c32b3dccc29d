//! The paths where senders expect their receivers.

use axum::http::{HeaderMap, Uri, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use tidegate_core::WriteRows;
use tidegate_mcp::NAME_BYTES_MAX;

use crate::http::answer::ProblemDetails;
use crate::http::endpoints::{Endpoint, EndpointHandler, ROOT, endpoint_at};

/// What the header `User-Agent` of clients of Elasticsearch contains.
const ELASTIC_AGENTS: [&str; 5] = ["elastic", "vector", "fluent", "logstash", "beat"];

pub(super) struct TelemetryRoute {
    pub(super) endpoint: &'static Endpoint,
    pub(super) entry: WriteRows,
    /// The argument that the path stands for.
    argument: Option<(&'static str, &'static str)>,
    /// The index of the path.
    index: Option<String>,
}

impl TelemetryRoute {
    pub(super) fn parse(path: &str) -> Option<Self> {
        let endpoint = endpoint_at(path);
        let EndpointHandler::Telemetry(entry, argument) = endpoint.handler else { return None };
        let index = match endpoint.parameters(path.split('/')).next() {
            Some((_, index)) => Some(parse_index(index)?),
            None => None,
        };
        Some(Self { endpoint, entry, argument, index })
    }

    /// Whether the request is meant for a receiver. At the root, only clients of Elasticsearch expect one.
    pub(super) fn is_meant(&self, headers: &HeaderMap) -> bool {
        if self.endpoint.path != ROOT {
            return true;
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let agent = text(header::USER_AGENT).to_ascii_lowercase();
        ELASTIC_AGENTS.iter().any(|name| agent.contains(name)) || text(header::ACCEPT).contains("vnd.elasticsearch")
    }

    /// The name of the protocol for people.
    pub(super) fn protocol_name(&self) -> &'static str {
        match self.entry {
            WriteRows::ReceivePrometheus => "remote write",
            WriteRows::ReceiveBulk => "the bulk API",
            _ => "OTLP",
        }
    }

    /// The media type of a body without `Content-Type`.
    pub(super) fn default_media_type(&self) -> Option<&'static str> {
        match self.entry {
            WriteRows::ReceivePrometheus => Some("application/x-protobuf"),
            WriteRows::ReceiveBulk => Some("application/x-ndjson"),
            _ => None,
        }
    }

    pub(super) fn arguments(&self) -> Map<String, Value> {
        let index = self.index.as_deref().map(|index| ("index", index));
        let argument = self.argument.or(index);
        argument.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    }

    /// Refuses parameters that would change what is stored. Others are about the answer or about replicas.
    pub(super) fn check_parameters(&self, uri: &Uri) -> Result<(), ProblemDetails> {
        if self.entry != WriteRows::ReceiveBulk || self.argument.is_some() {
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

fn parse_index(segment: &str) -> Option<String> {
    let is_name = !segment.is_empty() && segment.len() <= NAME_BYTES_MAX;
    let index = percent_decode_str(segment).decode_utf8().ok().filter(|_| is_name)?;
    Some(index.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_protocols_and_arguments() {
        let argument = |path: &str| {
            let route = TelemetryRoute::parse(path)?;
            Some((route.entry.name(), Value::Object(route.arguments()).to_string()))
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
            assert!(TelemetryRoute::parse(path).is_none(), "{path}");
        }
    }

    #[test]
    fn the_root_is_for_clients_of_elasticsearch() {
        let root = TelemetryRoute::parse("/").unwrap();
        let is_meant = |name: header::HeaderName, value: &'static str| {
            root.is_meant(&HeaderMap::from_iter([(name, header::HeaderValue::from_static(value))]))
        };
        assert!(is_meant(header::USER_AGENT, "Elastic-filebeat/8.17.0 (linux; amd64)"));
        assert!(is_meant(header::USER_AGENT, "Vector/0.43.0 (x86_64-unknown-linux-gnu)"));
        assert!(is_meant(header::ACCEPT, "application/vnd.elasticsearch+json;compatible-with=8"));
        assert!(!is_meant(header::USER_AGENT, "curl/8.0") && !root.is_meant(&HeaderMap::new()));
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
