//! Requests of web browsers: checks, headers, and a page for people who open an address of the server.
//!
//! `Host` and `Origin` are checked against allowlists: protection against DNS rebinding by web pages, and against requests
//! that pages of other sites send in the name of their reader. Pages of the server itself, such as the console, are
//! admitted by any of its allowed hosts. CORS permits pages of the allowed origins to read answers.
//! Cookies are never allowed: callers authenticate with a header that the page sets itself. Security headers say of every
//! response that it is not a page, is not cached, and sends no referrer to other sites.
//!
//! [MCP 2026-07-28, Security & Endpoint](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security--endpoint),
//! [Fetch Metadata Request Headers](https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header),
//! [Fetch, CORS protocol](https://fetch.spec.whatwg.org/#http-cors-protocol),
//! [Fetch, X-Content-Type-Options](https://fetch.spec.whatwg.org/#x-content-type-options-header),
//! [RFC 6797](https://www.rfc-editor.org/rfc/rfc6797)

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use tidegate_core::{ErrorKind, FORWARDING_HEADERS};

use super::answer::{ProblemDetails, ProblemType};
use super::body;
use super::endpoints::{Endpoint, PageAccess, Switch};
use super::response::refused_request;
use super::results::link_parameter;
use super::state::{HttpOptions, HttpState};
use crate::tls::TlsPeer;

/// Admits requests with an allowed `Host` and `Origin`; answers 403 to others, and 404 at paths of disabled endpoints.
/// Adds security headers to every response, and CORS headers for pages of allowed origins.
pub(super) async fn check_host<F: Future<Output = Response>>(
    http_state: &HttpState,
    endpoint: &Endpoint,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let is_over_tls = request.extensions().get::<Arc<TlsPeer>>().is_some();
    let mut response = respond_if_allowed(http_state, endpoint, request, next).await;
    add_security_headers(response.headers_mut(), is_over_tls);
    response
}

async fn respond_if_allowed<F: Future<Output = Response>>(
    http_state: &HttpState,
    endpoint: &Endpoint,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    if endpoint.access == PageAccess::Public {
        return next(request).await;
    }
    let options = http_state.reloadable_options();
    let validated = validate_host_and_origin(request.headers(), request.uri().host(), &options);
    let validated = validated.and_then(|()| validate_site(endpoint, request.headers(), request.uri(), &options));
    let Err(reason) = validated else { return respond_to_origin(endpoint, &options, request, next).await };
    let problem = ProblemDetails::new(ProblemType::Call(ErrorKind::Forbidden), reason);
    let response = refused_request(http_state, endpoint.origin(request.extensions()), problem);
    body::discard(request.into_body(), http_state.options.read_within).await;
    response
}

async fn respond_to_origin<F: Future<Output = Response>>(
    endpoint: &Endpoint,
    options: &HttpOptions,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = if !endpoint.switch.is_on(options) {
        not_found(request.headers(), options)
    } else if is_preflight(request.method(), request.headers()) {
        preflight_response(request.headers())
    } else {
        next(request).await
    };
    allow_origin(response.headers_mut(), origin);
    response
}

fn validate_host_and_origin(headers: &HeaderMap, uri_host: Option<&str>, options: &HttpOptions) -> Result<(), String> {
    // If a header has several values, each must be allowed: a proxy in front of the server may have checked any of
    // them.
    let text = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    if let Some(host) = text(header::HOST).chain(uri_host).find(|host| !is_allowed_host(host_name(host), options)) {
        return Err(format!("the host {host:?} is not allowed; the server's option --allow-host adds it"));
    }
    let is_refused = |origin: &&str| !is_allowed_origin(origin, options) && !is_own_origin(origin, headers);
    if let Some(origin) = text(header::ORIGIN).find(is_refused) {
        return Err(format!("the origin {origin:?} is not allowed; the server's option --allow-origin adds it"));
    }
    Ok(())
}

/// Refuses requests without `Origin` of pages whose origin is not allowed: a page can request any address as an image.
/// Browsers then report the site of the page, and its origin in `Referer` unless the page hides it.
fn validate_site(endpoint: &Endpoint, headers: &HeaderMap, uri: &Uri, options: &HttpOptions) -> Result<(), String> {
    let mut sites = headers.get_all("sec-fetch-site").iter().filter_map(|value| value.to_str().ok());
    let Some(site) = sites.find(|site| matches!(*site, "cross-site" | "same-site")) else { return Ok(()) };
    let page = headers.get(header::REFERER).and_then(|referer| origin_of(referer.to_str().ok()?));
    let is_allowed_page = page.is_some_and(|origin| is_allowed_origin(origin, options));
    let is_open = match endpoint.access {
        PageAccess::AllowedOrigins => false,
        PageAccess::Links => link_parameter(uri).is_some(),
        PageAccess::AnyOrigin | PageAccess::Public => true,
    };
    if headers.contains_key(header::ORIGIN) || is_allowed_page || is_open {
        return Ok(());
    }
    Err(format!(
        "a page of another origin sent the request (Sec-Fetch-Site: {site}); the server's option --allow-origin adds the \
         origin of the page"
    ))
}

/// Whether the request comes from a page of this server, whose host is allowed: pages need no permission to send requests
/// to their own server. Browsers say so over TLS. Without TLS they do not, and then the page has the address of the request.
fn is_own_origin(origin: &str, headers: &HeaderMap) -> bool {
    match single_text(headers, HeaderName::from_static("sec-fetch-site")) {
        Ok(Some(site)) => site == "same-origin",
        Ok(None) => {
            origin.strip_prefix("http://").is_some_and(|host| single_text(headers, header::HOST) == Ok(Some(host)))
        }
        Err(SeveralValues) => false,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct SeveralValues;

/// The value of a header, if it has one.
fn single_text(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, SeveralValues> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(|value| value.to_str().unwrap_or("?"))),
        _ => Err(SeveralValues),
    }
}

/// The origin of an address: `https://app.example.com` of `https://app.example.com/page`.
fn origin_of(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    let host_bytes = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    address.get(..scheme.len() + "://".len() + host_bytes)
}

fn is_allowed_origin(origin: &str, options: &HttpOptions) -> bool {
    let is_listed = options.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
    let is_local = origin
        .split_once("://")
        .is_some_and(|(scheme, host)| matches!(scheme, "http" | "https") && is_loopback_name(host_name(host)));
    is_listed || is_local
}

/// Whether all that the request names is on this machine, and no proxy says that it sends it on.
pub(super) fn is_direct(headers: &HeaderMap) -> bool {
    let is_local = |value: &HeaderValue| {
        let address = value.to_str().unwrap_or("?");
        is_loopback_name(host_name(address.split_once("://").map_or(address, |(_, host)| host)))
    };
    FORWARDING_HEADERS.iter().all(|name| !headers.contains_key(*name))
        && headers.get_all(header::HOST).iter().chain(headers.get_all(header::ORIGIN)).all(is_local)
}

/// `[::1]:80` is `[::1]`, `example.com:80` is `example.com`.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_allowed_host(name: &str, options: &HttpOptions) -> bool {
    is_loopback_name(name) || options.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "[::1]")
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, OPTIONS");
const ALL: HeaderValue = HeaderValue::from_static("*");
/// How long browsers keep the answer to a preflight request; Chromium keeps it no longer than two hours.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("7200");
const VARY: HeaderValue = HeaderValue::from_static("origin");

/// Whether a browser asks for permission before the request of a page.
fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight request of an allowed origin. All headers of requests are allowed.
fn preflight_response(request: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS);
    // "*" would not include Authorization.
    for requested in request.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.append(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
    response
}

/// Permits pages of the allowed `origin` to read the response and all its headers. A cache must not use the response to
/// a request without `Origin` for one with it.
fn allow_origin(response: &mut HeaderMap, origin: Option<HeaderValue>) {
    if let Some(origin) = origin {
        response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ALL);
    }
    response.append(header::VARY, VARY);
}

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// No web page may embed pages of this server in a frame.
const DENY: HeaderValue = HeaderValue::from_static("DENY");
/// A page without a policy of its own may load nothing.
const DENY_ALL_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
/// After a request over TLS, browsers use only TLS for a year.
const HSTS_ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Adds headers that are not set yet. `is_over_tls` is true if the request used TLS.
fn add_security_headers(headers: &mut HeaderMap, is_over_tls: bool) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.entry(header::REFERRER_POLICY).or_insert(NO_REFERRER);
    headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    if is_active_content(headers) {
        headers.insert(header::X_FRAME_OPTIONS, DENY);
        headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(DENY_ALL_POLICY);
    }
    if is_over_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS_ONE_YEAR);
    }
}

/// Whether a browser may interpret the body as more than data. Most responses are JSON and events.
fn is_active_content(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    [&b"text/html"[..], b"image/svg", b"application/xhtml", b"text/xml", b"application/xml"]
        .iter()
        .any(|page| media_type.len() >= page.len() && media_type[..page.len()].eq_ignore_ascii_case(page))
}

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
const CONSOLE: &str = "<p>People use it in the <a href=\"/\">console</a>.</p>\n";
const REST: &str = "<p>People can try its tools at <a href=\"/rest/\">/rest/</a>.</p>\n";

/// Whether a browser requests a page. Clients of MCP accept JSON and events only.
pub(super) fn is_page_requested(headers: &HeaderMap) -> bool {
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
    match is_page_requested(headers) {
        true => (StatusCode::NOT_FOUND, Html(content(NOTHING_HERE, options))).into_response(),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

fn content(first: &str, options: &HttpOptions) -> String {
    let mcp = if options.has_mcp { MCP } else { "" };
    let console = if Switch::Console.is_on(options) { CONSOLE } else { "" };
    let rest = if options.has_rest { REST } else { "" };
    [HEAD, first, mcp, console, rest].concat()
}

/// The media range without its parameters.
fn media_range(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(host: &str, origin: Option<&str>) -> bool {
        let options = HttpOptions {
            allowed_hosts: vec!["data.example.com".to_owned()],
            allowed_origins: vec!["https://app.example.com".to_owned()],
            ..HttpOptions::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        validate_host_and_origin(&headers, None, &options).is_ok()
    }

    #[test]
    fn accepts_only_local_and_allowed_hosts() {
        assert!(allows("localhost:7070", None));
        assert!(allows("127.0.0.1", Some("http://localhost:3000")));
        assert!(allows("[::1]:7070", Some("http://[::1]:7070")));
        assert!(allows("DATA.example.com", Some("https://app.example.com")));
        assert!(!allows("evil.example.com", None));
        assert!(!allows("localhost.evil.com", None));
        assert!(!allows("127.0.0.1:7070", Some("http://evil.example.com")));
        assert!(!allows("127.0.0.1:7070", Some("https://app.example.com.evil.com")));
        assert!(!allows("127.0.0.1:7070", Some("file://localhost")));
        assert!(!allows("127.0.0.1:7070", Some("null")));
    }

    #[test]
    fn rejects_when_any_of_several_hosts_is_not_allowed() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost".parse().unwrap());
        assert!(validate_host_and_origin(&headers, Some("127.0.0.1"), &HttpOptions::default()).is_ok());
        assert!(validate_host_and_origin(&headers, Some("evil.example.com"), &HttpOptions::default()).is_err());
        for name in [header::HOST, header::ORIGIN] {
            let mut headers = headers.clone();
            headers.append(header::ORIGIN, "http://localhost".parse().unwrap());
            headers.append(name, "http://evil.example.com".parse().unwrap());
            assert!(validate_host_and_origin(&headers, None, &HttpOptions::default()).is_err());
        }
    }

    fn headers_of(media_type: &'static str, is_over_tls: bool) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        add_security_headers(&mut headers, is_over_tls);
        let mut lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        lines.sort();
        lines.join("\n")
    }

    #[test]
    fn keeps_explicit_headers_and_restricts_active_content() {
        insta::assert_snapshot!(headers_of("application/json", true), @r#"
        cache-control: "max-age=60"
        content-type: "application/json"
        referrer-policy: "no-referrer"
        strict-transport-security: "max-age=31536000"
        x-content-type-options: "nosniff"
        "#);
        insta::assert_snapshot!(headers_of("TEXT/HTML; charset=utf-8", false), @r#"
        cache-control: "max-age=60"
        content-security-policy: "default-src 'none'; frame-ancestors 'none'; sandbox"
        content-type: "TEXT/HTML; charset=utf-8"
        referrer-policy: "no-referrer"
        x-content-type-options: "nosniff"
        x-frame-options: "DENY"
        "#);
    }
}
