//! How an identity provider is asked: bounded in bytes and time, and nobody else in its place.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url, redirect, retry};

use super::{ProviderError, REQUEST_TIMEOUT};

/// Bytes of an answer that are read.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Redirects that are followed, all of them at the same scheme, host and port.
const REDIRECTS_MAX: usize = 3;
/// Connections that wait for the next question, and how long.
const IDLE_CONNECTIONS_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The way to an identity provider. Made with the first question: reading the system's root certificates takes time,
/// and most commands ask nothing.
#[derive(Default)]
pub(crate) struct ProviderClient {
    client: OnceLock<Option<Client>>,
}

/// What was answered.
pub(crate) struct ProviderResponse {
    pub(crate) body: Vec<u8>,
    /// For how long the provider wants it to be kept, if it says so; nothing if it wants it not to be kept.
    pub(crate) fresh_for: Option<Duration>,
}

impl ProviderClient {
    /// What lies at `url`.
    pub(crate) async fn get(&self, url: &Url) -> Result<ProviderResponse, ProviderError> {
        self.send(Request::new(Method::GET, url.clone())).await
    }

    /// What `url` answers to a form, asked by whom `authorization` proves.
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

/// What `Cache-Control` says of the time for which an answer may be kept.
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
