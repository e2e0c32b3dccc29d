//! Security headers of every response: it is not a page, is not cached, and sends no referrer to other sites.
//!
//! [Fetch, X-Content-Type-Options](https://fetch.spec.whatwg.org/#x-content-type-options-header),
//! [RFC 6797](https://www.rfc-editor.org/rfc/rfc6797)

use axum::http::{HeaderMap, HeaderValue, header};

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
pub(super) fn add_security_headers(headers: &mut HeaderMap, is_over_tls: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
