//! The HTTP client of one server.

use std::time::Duration;

use reqwest::{Client, Response};
use tidegate_http_client::client_builder;

use crate::tls::TrustedAuthorities;

/// Interval of TCP keep-alive probes; a connection is lost after [`KEEP_ALIVE_TRIES`] unanswered ones.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEP_ALIVE_TRIES: u32 = 3;
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Detects lost connections, and closes idle ones before a server does. Without `authorities`, it trusts those of the system.
pub(crate) fn http_client(
    connect_timeout: Duration,
    idle_timeout: Duration,
    authorities: Option<&TrustedAuthorities>,
) -> Result<Client, reqwest::Error> {
    let builder = client_builder();
    let builder = match authorities {
        Some(authorities) => authorities.apply(builder),
        None => builder,
    };
    builder
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
