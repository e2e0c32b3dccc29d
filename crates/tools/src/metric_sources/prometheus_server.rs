//! HTTP client of a server with the API of Prometheus, bounded in bytes and time.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::{Client, Url};
use tidegate_core::{Error, ErrorKind};
use tidegate_http_client::{client_builder, innermost_cause, read_body};
use tidegate_telemetry::metrics::prometheus::{BODY_BYTES_MAX, PrometheusRequest};

use super::MetricApi;

/// The time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle connections that are kept.
const IDLE_CONNECTIONS_MAX: usize = 4;

/// A server with the HTTP API of Prometheus, at the base URL under which `/api/v1` is.
pub struct PrometheusServer {
    base: Url,
    authorization: Option<HeaderValue>,
    /// Created with the first request, because reading the system's root certificates takes time.
    client: OnceLock<Option<Client>>,
}

impl PrometheusServer {
    /// The server at `url` (`http` or `https`), which receives `token` as a bearer token.
    ///
    /// # Errors
    /// What is wrong with the URL or the token.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, String> {
        let mut base = Url::parse(url).map_err(|error| format!("{url:?} is no URL: {error}"))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() || base.host().is_none() {
            return Err(format!("{url:?} is no URL of a server; expected http://HOST:PORT or https://HOST"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(format!("{url:?} has a query or a fragment; write only the base URL, without /api/v1"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err("the URL contains a password; write it as token".to_owned());
        }
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        let header = |token: &str| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the token has characters that a header cannot contain".to_owned())?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        };
        Ok(Self { base, authorization: token.map(header).transpose()?, client: OnceLock::new() })
    }

    fn unavailable(&self, reason: &str) -> Error {
        let host = self.base.host_str().unwrap_or_default();
        Error::new(ErrorKind::Unavailable, format!("the Prometheus server {host} {reason}"))
    }
}

#[async_trait]
impl MetricApi for PrometheusServer {
    async fn get(&self, request: &PrometheusRequest) -> Result<Vec<u8>, Error> {
        let client = self.client.get_or_init(build_client).as_ref();
        let client = client.ok_or_else(|| self.unavailable("cannot be asked: TLS cannot be set up on this machine"))?;
        let path = request.path_and_query();
        let url = self.base.join(path.trim_start_matches('/'));
        let url = url.map_err(|error| Error::internal(format!("the path {path:?}: {error}")))?;
        let mut builder = client.get(url).header(ACCEPT, "application/json");
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        let failed = |error: reqwest::Error| {
            let reason = if error.is_timeout() { "does not answer in time" } else { "cannot be reached" };
            self.unavailable(reason).with_detail(innermost_cause(&error))
        };
        let response = builder.send().await.map_err(failed)?;
        let status = response.status();
        // Errors of the API have a body that says what is wrong.
        if !(status.is_success() || matches!(status.as_u16(), 400 | 422 | 503)) {
            return Err(self.unavailable(&format!("answers with the status {}", status.as_u16())));
        }
        // The parser refuses a body that is too large, with advice.
        let (body, _) = read_body(response, BODY_BYTES_MAX + 1).await.map_err(failed)?;
        Ok(body)
    }
}

fn build_client() -> Option<Client> {
    let built = client_builder()
        .timeout(REQUEST_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .build();
    built.ok()
}

impl fmt::Debug for PrometheusServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrometheusServer").field(&self.base.host_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_base_urls_are_accepted() {
        for url in ["localhost:9090", "ftp://host", "not a url", "http://h/?q=1", "http://me:pw@h/", "file:///etc"] {
            assert!(PrometheusServer::new(url, None).is_err(), "{url}");
        }
        let server = PrometheusServer::new("http://127.0.0.1:9090/prom", None).unwrap();
        assert_eq!(server.base.join("api/v1/labels").unwrap().path(), "/prom/api/v1/labels");
    }
}
