//! HTTP requests to the identity provider, bounded in bytes and time, without redirects to another origin, and how often a
//! repeated failure is logged. A caller learns only that its token is invalid.
//!
//! Issuer metadata ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-3) and [OpenID Connect
//! Discovery](https://openid.net/specs/openid-connect-discovery-1_0.html)) is read for the URL of the key set.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Request, Url, redirect};
use serde_json::{Map, Value};
use tidegate_http_client::{client_builder, innermost_cause, read_body};

/// The time limit of one request, and so the longest wait of a caller.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Redirects that are followed, all of them to the same scheme, host and port.
const REDIRECTS_MAX: usize = 3;
/// Idle connections that are kept, and for how long.
const IDLE_CONNECTIONS_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Created with the first request: reading the system's root certificates takes time, and most commands send none.
#[derive(Default)]
pub(crate) struct ProviderClient {
    client: OnceLock<Option<Client>>,
}

pub(crate) struct ProviderResponse {
    pub(crate) body: Vec<u8>,
    /// The lifetime in `Cache-Control`, if present; zero if the response must not be cached.
    pub(crate) fresh_for: Option<Duration>,
}

impl ProviderClient {
    pub(crate) async fn get(&self, url: &Url) -> Result<ProviderResponse, ProviderError> {
        self.send(Request::new(Method::GET, url.clone())).await
    }

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
        let client = self.client.get_or_init(build_client).as_ref().ok_or_else(|| {
            let problem =
                "TLS cannot be set up on this machine; are the system's root certificates installed (ca-certificates)?";
            ProviderError::other(problem)
        })?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let response = client.execute(request).await?;
        if response.status() != 200 {
            return Err(ProviderError::Status(response.status().as_u16()));
        }
        let fresh_for = cache_lifetime(response.headers());
        let (body, is_cut) = read_body(response, BODY_BYTES_MAX).await?;
        if is_cut {
            return Err(ProviderError::other(format_args!("its answer is larger than {BODY_BYTES_MAX} bytes")));
        }
        Ok(ProviderResponse { body, fresh_for })
    }
}

fn build_client() -> Option<Client> {
    let same_origin = |attempt: redirect::Attempt<'_>| {
        let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if is_same && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
    };
    let built = client_builder()
        .redirect(redirect::Policy::custom(same_origin))
        .timeout(REQUEST_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build();
    built.ok()
}

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

const LOG_INTERVAL: Duration = Duration::from_secs(60);

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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error("it answered with the status {0}")]
    Status(u16),
    #[error("its answer is not a JSON object")]
    NotJson,
    /// Another problem, as a text that follows the name of the provider.
    #[error("{0}")]
    Other(String),
}

impl ProviderError {
    pub(crate) fn other(problem: impl std::fmt::Display) -> Self {
        Self::Other(problem.to_string())
    }

    pub(crate) fn timed_out() -> Self {
        Self::other(format_args!("it did not answer within {} seconds", REQUEST_TIMEOUT.as_secs()))
    }
}

impl From<reqwest::Error> for ProviderError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::timed_out();
        }
        Self::other(format_args!("it cannot be reached: {}", innermost_cause(&error)))
    }
}

/// The error does not repeat the URL, because it may contain a password.
pub(crate) fn parse_url(text: &str) -> Result<Url, &'static str> {
    const MALFORMED: &str = "is not a complete URL such as https://login.example.com/keys";
    let url = Url::parse(text).map_err(|_| MALFORMED)?;
    if !url.has_host() {
        return Err(MALFORMED);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    if url.fragment().is_some() {
        return Err("must not have a part after #");
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err(NOT_PRIVATE),
    }
}

/// The URL is not encrypted, so a third party could answer in place of the provider.
const NOT_PRIVATE: &str = "must begin with https://; http:// is allowed for this machine only (localhost, 127.0.0.1)";

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

const NO_KEY_SET: &str = "its metadata have no jwks_uri";

/// The URL of the key set of `issuer`. `url` is the same issuer as a parsed URL.
pub(crate) async fn discover_key_set_url(http: &ProviderClient, issuer: &str, url: &Url) -> Result<Url, ProviderError> {
    let mut last = ProviderError::other(NO_KEY_SET);
    for metadata_url in metadata_urls(url) {
        match http.get(&metadata_url).await {
            // An issuer may use only one of these URLs; some serve an HTML page at the others.
            Ok(page) => match parse_metadata(&page.body, issuer, url) {
                Err(failure @ ProviderError::NotJson) => last = failure,
                result => return result,
            },
            Err(failure @ ProviderError::Status(_)) => last = failure,
            Err(failure) => return Err(failure),
        }
    }
    Err(last)
}

/// In the order of the MCP specification: both names before the path (RFC 8414), then the OpenID name after it.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let with_path = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url.set_query(None);
        url
    };
    paths.into_iter().map(with_path).collect()
}

fn parse_metadata(body: &[u8], issuer: &str, url: &Url) -> Result<Url, ProviderError> {
    let metadata: Map<String, Value> = serde_json::from_slice(body).map_err(|_| ProviderError::NotJson)?;
    let named_issuer = metadata.get("issuer").and_then(Value::as_str).unwrap_or_default();
    if named_issuer != issuer {
        let named_issuer: String = named_issuer.chars().take(200).collect();
        return Err(ProviderError::other(format_args!("its metadata name another issuer: {named_issuer:?}")));
    }
    let keys = metadata.get("jwks_uri").and_then(Value::as_str).ok_or_else(|| ProviderError::other(NO_KEY_SET))?;
    let invalid = |problem| ProviderError::other(format_args!("the jwks_uri of its metadata {problem}"));
    let keys = parse_url(keys).map_err(invalid)?;
    // A remote issuer must not direct requests to services on this machine.
    if is_loopback(&keys) && !is_loopback(url) {
        return Err(invalid(NOT_PRIVATE));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_urls_follow_the_specifications() {
        let urls = |issuer: &str| -> Vec<String> {
            super::metadata_urls(&Url::parse(issuer).unwrap()).into_iter().map(String::from).collect()
        };
        let bare = [
            "https://login.example/.well-known/oauth-authorization-server",
            "https://login.example/.well-known/openid-configuration",
        ];
        assert_eq!(urls("https://login.example"), bare);
        assert_eq!(urls("https://login.example/"), bare);
        assert_eq!(
            urls("https://login.example:8443/realms/one/"),
            [
                "https://login.example:8443/.well-known/oauth-authorization-server/realms/one",
                "https://login.example:8443/.well-known/openid-configuration/realms/one",
                "https://login.example:8443/realms/one/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn rejects_metadata_of_another_issuer_and_insecure_jwks_uri() {
        let of = |metadata: &str| {
            let url = Url::parse("https://login.example").unwrap();
            parse_metadata(metadata.as_bytes(), "https://login.example", &url).map(String::from)
        };
        let keys = r#"{"issuer": "https://login.example", "jwks_uri": "https://keys.example/set"}"#;
        assert_eq!(of(keys), Ok("https://keys.example/set".to_owned()));
        assert_eq!(of("[]"), Err(ProviderError::NotJson));
        let other = r#"{"issuer": "https://login.example/", "jwks_uri": "https://keys.example/set"}"#;
        assert_eq!(
            of(other),
            Err(ProviderError::other("its metadata name another issuer: \"https://login.example/\""))
        );
        assert_eq!(of(r#"{"issuer": "https://login.example"}"#), Err(ProviderError::other(NO_KEY_SET)));
        for odd in ["http://keys.example", "file:///etc/passwd", "http://127.0.0.1:1/set", "https://[::1]/set"] {
            let metadata = format!(r#"{{"issuer": "https://login.example", "jwks_uri": "{odd}"}}"#);
            let problem = of(&metadata).unwrap_err().to_string();
            assert!(problem.starts_with("the jwks_uri of its metadata "), "{odd}: {problem}");
        }
    }
}
