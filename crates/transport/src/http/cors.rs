//! CORS: permits web pages of allowed origins to read answers. The check of `Origin` decides which origins are allowed.
//!
//! Cookies are never allowed: callers authenticate with a header that the page sets itself.
//!
//! [Fetch, CORS protocol](https://fetch.spec.whatwg.org/#http-cors-protocol)

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, OPTIONS");
const ALL: HeaderValue = HeaderValue::from_static("*");
/// How long browsers keep the answer to a preflight request; Chromium keeps it no longer than two hours.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("7200");
const VARY: HeaderValue = HeaderValue::from_static("origin");

/// Whether a browser asks for permission before the request of a page.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight request of an allowed origin. All headers of requests are allowed.
pub(super) fn preflight_response(request: &HeaderMap) -> Response {
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
pub(super) fn allow_origin(response: &mut HeaderMap, origin: Option<HeaderValue>) {
    if let Some(origin) = origin {
        response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ALL);
    }
    response.append(header::VARY, VARY);
}
