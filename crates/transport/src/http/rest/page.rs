//! The page to read and try the tools, for people: one file, and nothing from elsewhere.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use uuid::Uuid;

const PAGE: &str = include_str!("page.html");
/// Stands in the page where the nonce belongs.
const NONCE: &str = "{nonce}";

/// The page. It holds nothing that is not for everybody: what it shows it asks for with the reader's own key.
pub(super) fn page() -> Response {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let mut response = Response::new(Body::from(PAGE.replace(NONCE, &nonce)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // A nonce is hexadecimal digits.
    headers.extend(HeaderValue::from_str(&policy).map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
    response
}
