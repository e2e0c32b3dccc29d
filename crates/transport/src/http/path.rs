//! Which transport a path of the server belongs to.

use tidegate_core::TransportKind;

/// The transport of `path`; Streamable HTTP where no other one has its address.
pub(super) fn transport_of(path: &str) -> TransportKind {
    if path == "/rest" || path.starts_with("/rest/") {
        return TransportKind::Rest;
    }
    let Some(below) = path.strip_prefix("/mcp/") else { return TransportKind::StreamableHttp };
    match below.split_once('/') {
        None => of_last(below),
        Some(("messages", _)) => TransportKind::Sse,
        Some((_toolset, last)) => of_last(last),
    }
}

fn of_last(last: &str) -> TransportKind {
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
    fn a_transport_is_known_by_its_address() {
        for path in ["/mcp", "/mcp/sales", "/metrics", "/mcp/sse/more", "/ws", "/mcp/wss", "/restore"] {
            assert_eq!(transport_of(path), TransportKind::StreamableHttp, "{path}");
        }
        for path in ["/mcp/sse", "/mcp/sales/sse", "/mcp/messages/0123", "/mcp/messages/ws"] {
            assert_eq!(transport_of(path), TransportKind::Sse, "{path}");
        }
        for path in ["/mcp/ws", "/mcp/sales/ws"] {
            assert_eq!(transport_of(path), TransportKind::WebSocket, "{path}");
        }
        for path in ["/rest", "/rest/", "/rest/tools/x/call"] {
            assert_eq!(transport_of(path), TransportKind::Rest, "{path}");
        }
    }
}
