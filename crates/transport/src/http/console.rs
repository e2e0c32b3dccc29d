//! The console: a page for people, at the root. Its files are compiled in; `console/README.md` describes their build.
//!
//! The files are public, because they contain no data. The page sends the requests of its reader to REST, MCP and stored
//! results, with the key that the reader enters. It keeps the key in memory, never in a cookie, so no other page can use it.
//!
//! [Content Security Policy](https://www.w3.org/TR/CSP3/)

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt, stream};
use headers::HeaderMapExt;

use self::files::FILES;
use super::answer::{ContentCoding, content_hash, entity_tag, matches_none_match, not_modified};
use super::browser;
use super::state::{HttpOptions, HttpState};

#[path = "../../../../console/dist/files.rs"]
mod files;

const PAGE: &str = "index.html";
/// The page runs and loads only what is compiled in, sends requests only to this server, and turns no text into markup.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
);
/// The names of these files contain a hash of their content.
const CACHE_IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// A new version of the server has other files.
const CACHE_REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// The page at the root for a browser; 404 for other clients, and where the console is off.
pub(super) fn page(parts: &Parts, options: &HttpOptions) -> Response {
    let is_requested = matches!(parts.method, Method::GET | Method::HEAD) && browser::is_page_requested(&parts.headers);
    match find(PAGE).filter(|_| is_requested && options.has_console) {
        Some(bytes) => {
            let mut response = file_response(PAGE, bytes, &parts.headers);
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
            response
        }
        None => browser::not_found(&parts.headers, options),
    }
}

/// A file that the page loads.
pub(super) async fn file(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let name = request.uri().path().trim_start_matches('/');
    match find(name) {
        Some(bytes) => file_response(name, bytes, request.headers()),
        None => browser::not_found(request.headers(), &http_state.reloadable_options()),
    }
}

fn find(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

fn file_response(name: &str, bytes: &'static [u8], request: &HeaderMap) -> Response {
    let coding = ContentCoding::negotiate(request);
    let tag = entity_tag(&content_hash(bytes), coding.is_some());
    let mut response = match coding {
        _ if matches_none_match(request, tag.as_ref()) => not_modified(),
        None => Response::new(Body::from(Bytes::from_static(bytes))),
        Some(coding) => {
            let pieces = stream::iter([Ok(Bytes::from_static(bytes))]).boxed();
            let mut response = Response::new(coding.encode(pieces));
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
            response
        }
    };
    let (media_type, cache) = describe(name);
    let headers = response.headers_mut();
    if let Some(tag) = tag {
        headers.typed_insert(tag);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, cache);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// The media type of a file, and how long browsers may keep it.
fn describe(name: &str) -> (&'static str, HeaderValue) {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "js" => ("text/javascript; charset=utf-8", CACHE_IMMUTABLE),
        "css" => ("text/css; charset=utf-8", CACHE_IMMUTABLE),
        "svg" => ("image/svg+xml", CACHE_IMMUTABLE),
        "html" => ("text/html; charset=utf-8", CACHE_REVALIDATE),
        _ => ("text/plain; charset=utf-8", CACHE_REVALIDATE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_refers_to_files_that_are_compiled_in() {
        let page = std::str::from_utf8(find(PAGE).unwrap()).unwrap();
        let addresses = page.split('"').filter_map(|part| part.strip_prefix("./"));
        let mut names = 0;
        for name in addresses {
            assert!(find(name).is_some(), "{name}");
            names += 1;
        }
        assert!(names >= 3, "a script, a style sheet and an icon: {names}");
        // The policy permits no inline code.
        assert!(!page.contains("<style") && !page.contains("<script>"), "{page}");
    }
}
