//! Maps paths of the server to transports.

use tidegate_core::TransportKind;

use super::state::HttpOptions;
use super::telemetry::is_telemetry_path;

/// Whether `options` enable the endpoint at `path`. Paths without an endpoint count as enabled.
pub(super) fn is_enabled(path: &str, options: &HttpOptions) -> bool {
    match transport_of(path) {
        TransportKind::Rest => options.has_rest,
        TransportKind::Sse => options.has_sse,
        TransportKind::WebSocket => options.has_web_socket,
        _ if path == "/metrics" => options.has_metrics,
        _ => options.has_mcp || !path.strip_prefix("/mcp").is_some_and(is_at_or_below),
    }
}

/// The transport of `path`; Streamable HTTP unless another transport has that path.
pub(super) fn transport_of(path: &str) -> TransportKind {
    if ["/rest", "/results", "/data"].iter().any(|root| path.strip_prefix(root).is_some_and(is_at_or_below))
        || is_telemetry_path(path)
    {
        return TransportKind::Rest;
    }
    let Some(below) = path.strip_prefix("/mcp/") else { return TransportKind::StreamableHttp };
    match below.split_once('/') {
        None => transport_of_segment(below),
        Some(("messages", _)) => TransportKind::Sse,
        Some((_toolset, last)) => transport_of_segment(last),
    }
}

fn is_at_or_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

fn transport_of_segment(last: &str) -> TransportKind {
    match last {
        "sse" => TransportKind::Sse,
        "ws" => TransportKind::WebSocket,
        _ => TransportKind::StreamableHttp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_paths_to_transports() {
        for path in ["/mcp", "/mcp/sales", "/metrics", "/mcp/sse/more", "/ws", "/mcp/wss", "/restore", "/database"] {
            assert_eq!(transport_of(path), TransportKind::StreamableHttp, "{path}");
        }
        for path in ["/mcp/sse", "/mcp/sales/sse", "/mcp/messages/0123", "/mcp/messages/ws"] {
            assert_eq!(transport_of(path), TransportKind::Sse, "{path}");
        }
        for path in ["/mcp/ws", "/mcp/sales/ws"] {
            assert_eq!(transport_of(path), TransportKind::WebSocket, "{path}");
        }
        for path in [
            "/rest",
            "/rest/",
            "/rest/tools/x/call",
            "/results",
            "/results/",
            "/results/x/data",
            "/data/plant/sensors",
            "/v1/logs",
            "/app/_bulk",
        ] {
            assert_eq!(transport_of(path), TransportKind::Rest, "{path}");
        }
    }
}
