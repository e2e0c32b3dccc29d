//! The page for people who open an address of the server in a browser: what it is, and where to go.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::state::HttpOptions;

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>Tidegate</title>
<h1>Tidegate</h1>
<p>This server answers questions about data.</p>
";
const NOTHING_HERE: &str = "<p>There is nothing at this path.</p>\n";
const MCP: &str = "<p>Programs use it over the Model Context Protocol (MCP), such as Claude, Cursor and VS Code: add a server \
                   with the transport Streamable HTTP and the URL of this server with the path <code>/mcp</code>.</p>\n";
const REST: &str = "<p>People can try its tools at <a href=\"/rest/\">/rest/</a>.</p>\n";

/// Whether a browser requests a page. Clients of MCP accept JSON and events only.
pub(super) fn is_requested(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let ranges: Vec<&str> = accepted.flat_map(|accept| accept.split(',')).map(media_range).collect();
    let has = |name: &str| ranges.iter().any(|range| range.eq_ignore_ascii_case(name));
    has("text/html") && !has("text/event-stream")
}

/// The page at an endpoint of MCP. It is the same for all readers and all toolsets.
pub(super) fn endpoint_page(options: &HttpOptions) -> Response {
    Html(content("", options)).into_response()
}

/// 404, with the page for a browser.
pub(super) fn not_found(headers: &HeaderMap, options: &HttpOptions) -> Response {
    match is_requested(headers) {
        true => (StatusCode::NOT_FOUND, Html(content(NOTHING_HERE, options))).into_response(),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

fn content(first: &str, options: &HttpOptions) -> String {
    let mcp = if options.has_mcp { MCP } else { "" };
    let rest = if options.has_rest { REST } else { "" };
    [HEAD, first, mcp, rest].concat()
}

/// The media range without its parameters.
fn media_range(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}
