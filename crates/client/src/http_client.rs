//! The HTTP client of one server.

use std::error::Error as _;
use std::time::Duration;

use reqwest::{Client, Response, redirect, retry};

/// Interval of TCP keep-alive probes; a connection is lost after [`KEEP_ALIVE_TRIES`] unanswered ones.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEP_ALIVE_TRIES: u32 = 3;
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Connects directly, neither follows redirects nor repeats requests, and closes idle connections before a server does.
pub(crate) fn http_client(connect_timeout: Duration, idle_timeout: Duration) -> Result<Client, reqwest::Error> {
    Client::builder()
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        // The token and the requests are meant only for the named server.
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(connect_timeout)
        .tcp_keepalive(KEEP_ALIVE_EVERY)
        .tcp_keepalive_interval(KEEP_ALIVE_EVERY)
        .tcp_keepalive_retries(KEEP_ALIVE_TRIES)
        .pool_idle_timeout(idle_timeout)
        .build()
}

/// The body of a refusal, or the part of it that arrives within `timeout`: a part is enough for the message.
pub(crate) async fn read_refusal(mut response: Response, timeout: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < REFUSAL_BYTES_MAX
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    let _ = tokio::time::timeout(timeout, reading).await;
    body
}

/// The innermost cause of an error, which is the most specific one, without the URL.
pub(crate) fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "unknown cause".to_owned(), ToString::to_string)
}
