//! HTTP client for an identity provider, bounded in bytes and time, without redirects to another origin.
//! Limits how often a repeated failure is logged.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url, redirect, retry};

use super::{ProviderError, REQUEST_TIMEOUT};

/// Bytes of a response body at most.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Redirects that are followed, all of them to the same scheme, host and port.
const REDIRECTS_MAX: usize = 3;
/// Idle connections that are kept, and for how long.
const IDLE_CONNECTIONS_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The HTTP client. Created with the first request, because reading the system's root certificates takes time and most
/// commands send no request.
#[derive(Default)]
pub(crate) struct ProviderClient {
    client: OnceLock<Option<Client>>,
}

/// A response with status 200.
pub(crate) struct ProviderResponse {
    pub(crate) body: Vec<u8>,
    /// The lifetime in `Cache-Control`, if present; zero if the response must not be cached.
    pub(crate) fresh_for: Option<Duration>,
}

impl ProviderClient {
    /// Sends a GET request to `url`.
    pub(crate) async fn get(&self, url: &Url) -> Result<ProviderResponse, ProviderError> {
        self.send(Request::new(Method::GET, url.clone())).await
    }

    /// Posts a form to `url` with the credentials in `authorization`.
    pub(crate) async fn post_form(
        &self,
        url: &Url,
        authorization: HeaderValue,
        form: String,
    ) -> Result<Vec<u8>, ProviderError> {
        let mut request = Request::new(Method::POST, url.clone());
        request.headers_mut().insert(AUTHORIZATION, authorization);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        *request.body_mut() = Some(form.into());
        Ok(self.send(request).await?.body)
    }

    async fn send(&self, mut request: Request) -> Result<ProviderResponse, ProviderError> {
        let client = self.client.get_or_init(build_client).as_ref().ok_or(ProviderError::NoTls)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let response = client.execute(request).await?;
        if response.status() != 200 {
            return Err(ProviderError::Status(response.status().as_u16()));
        }
        let fresh_for = cache_lifetime(response.headers());
        Ok(ProviderResponse { body: read_body(response).await?, fresh_for })
    }
}

fn build_client() -> Option<Client> {
    let same_origin = |attempt: redirect::Attempt<'_>| {
        let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if is_same && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
    };
    let built = Client::builder()
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(redirect::Policy::custom(same_origin))
        .retry(retry::never())
        .referer(false)
        .timeout(REQUEST_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build();
    built.ok()
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(ProviderError::TooLarge(BODY_BYTES_MAX));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The cache lifetime in `Cache-Control`, if present.
fn cache_lifetime(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
    let mut seconds = None;
    for directive in lines.flat_map(|line| line.split(',')).map(str::trim) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Some(Duration::ZERO),
            "max-age" => seconds = value.trim_matches('"').parse().ok().or(seconds),
            _ => {}
        }
    }
    seconds.map(Duration::from_secs)
}

/// The least time between two log lines for the same failure.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Counts failures and decides when the next one is logged.
#[derive(Default)]
pub(crate) struct LogThrottle {
    state: Mutex<ThrottleState>,
}

#[derive(Default)]
struct ThrottleState {
    last_logged: Option<Instant>,
    suppressed: u64,
}

impl LogThrottle {
    /// Counts a failure. Returns the number since the last log line, or `None` within the log interval.
    pub(crate) fn record_occurrence(&self) -> Option<u64> {
        let mut state = self.state.lock();
        state.suppressed += 1;
        if state.last_logged.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
            return None;
        }
        state.last_logged = Some(Instant::now());
        Some(std::mem::take(&mut state.suppressed))
    }

    /// Resets the count after a success. Returns whether a failure was logged; the next one is logged at once.
    pub(crate) fn clear(&self) -> bool {
        let mut state = self.state.lock();
        state.suppressed = 0;
        state.last_logged.take().is_some()
    }
}
