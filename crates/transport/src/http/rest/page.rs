//! The HTML page that lists the tools and lets people try them: one file without external resources.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use uuid::Uuid;

const PAGE: &str = include_str!("page.html");
/// The placeholder of the nonce in the page.
const NONCE: &str = "{nonce}";

/// The page. It contains nothing confidential: it loads the tools with the reader's own key.
pub(super) fn page() -> Response {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let mut response = Response::new(Body::from(PAGE.replace(NONCE, &nonce)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // A nonce consists of hexadecimal digits.
    headers.extend(HeaderValue::from_str(&policy).map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
    response
}
