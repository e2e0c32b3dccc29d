//! Checks `Host` and `Origin` against allowlists: protection against DNS rebinding by web pages, and against requests
//! that pages of other sites send in the name of their reader.
//!
//! [MCP 2026-07-28, Security & Endpoint](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security--endpoint),
//! [Fetch Metadata Request Headers](https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header)

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use tidegate_core::ErrorKind;

use super::answer::{ProblemDetails, ProblemType};
use super::endpoints::{Endpoint, PageAccess};
use super::response::refused_request;
use super::results::link_parameter;
use super::security_headers::add_security_headers;
use super::state::{HttpOptions, HttpState};
use super::{body, browser_page, cors};
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
        browser_page::not_found(request.headers(), options)
    } else if cors::is_preflight(request.method(), request.headers()) {
        cors::preflight_response(request.headers())
    } else {
        next(request).await
    };
    cors::allow_origin(response.headers_mut(), origin);
    response
}

fn validate_host_and_origin(headers: &HeaderMap, uri_host: Option<&str>, options: &HttpOptions) -> Result<(), String> {
    // If a header has several values, each must be allowed: a proxy in front of the server may have checked any of
    // them.
    let text = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    if let Some(host) = text(header::HOST).chain(uri_host).find(|host| !is_allowed_host(host_name(host), options)) {
        return Err(format!("the host {host:?} is not allowed; the server's option --allow-host adds it"));
    }
    if let Some(origin) = text(header::ORIGIN).find(|origin| !is_allowed_origin(origin, options)) {
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
}
