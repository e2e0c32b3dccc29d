//! HTTP clients of a node: one policy for all requests that it sends, bounded bodies, causes of failures.
//!
//! - A client connects directly. A proxy of the environment would see tokens and answers, and it would resolve names
//!   without the checks of declared tools.
//! - It follows no redirects and repeats no request, because tokens and bodies are meant for the named server. A caller
//!   that follows some sets a rule of its own.

use std::error::Error as _;

use reqwest::{Client, ClientBuilder, Error, Response, redirect, retry};

/// A client with the policy. Its caller sets time limits and the bounds of idle connections.
pub fn client_builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
}

/// Reads at most `bytes_max` bytes of the body. Returns them, and whether the body is longer.
///
/// # Errors
/// The connection fails before the end of the body.
pub async fn read_body(mut response: Response, bytes_max: usize) -> Result<(Vec<u8>, bool), Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = bytes_max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

/// The innermost cause of an error, which is the most specific one, without the URL.
pub fn innermost_cause(error: &Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "unknown cause".to_owned(), ToString::to_string)
}
