//! The HTTP client of all http tools: sends requests, follows allowed redirects, reads bounded bodies.

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Method, Request, Response, StatusCode, Url};
use tidegate_core::{Error, ErrorKind};
use tidegate_http_client::client_builder;

use super::allowed_hosts::{AllowListResolver, AllowedHosts, DisallowedAddresses, DnsResolver, SystemResolver};
use super::request::HttpRequest;
use super::templates::{host_and_port, is_same_origin};

/// Bytes of an error's body that are read for its message.
const ERROR_BODY_BYTES_MAX: usize = 16 * 1024;
const REDIRECTS_MAX: usize = 5;
/// The time limit for connecting; the time limit of the tool applies as well.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle connections to one host that are kept, and for how long.
const IDLE_CONNECTIONS_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The HTTP client of all http tools of a registry. Clones share its connections and its allowed hosts.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    allowed: Arc<AllowedHosts>,
}

pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) is_cut: bool,
    pub(super) host: String,
}

impl HttpClient {
    /// A client for the hosts in `allowed`, with the user agent `tidegate/<version>`.
    ///
    /// # Errors
    /// `Unavailable` when TLS cannot be set up, for example without root certificates.
    pub fn new(allowed: Arc<AllowedHosts>, version: &str) -> Result<Self, Error> {
        Self::with_resolver(allowed, version, Arc::new(SystemResolver))
    }

    /// As [`HttpClient::new`], with the resolver `names`.
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    pub fn with_resolver(
        allowed: Arc<AllowedHosts>,
        version: &str,
        names: Arc<dyn DnsResolver>,
    ) -> Result<Self, Error> {
        // Redirects are followed below, because targets and headers depend on the list.
        let client = client_builder()
            .user_agent(format!("tidegate/{version}"))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .dns_resolver(AllowListResolver { resolver: names, allowed: allowed.clone() })
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, "http tools need TLS, and it cannot be set up on this machine")
                    .with_hint("Install the system's root certificates (package ca-certificates).")
                    .with_detail(format!("{error:?}"))
            })?;
        Ok(Self { client, allowed })
    }

    /// The allowed hosts.
    pub fn allowed_hosts(&self) -> &Arc<AllowedHosts> {
        &self.allowed
    }

    /// Sends `request` and reads at most `bytes_max` bytes of the body; fewer for an error status.
    pub(super) async fn fetch(&self, request: HttpRequest, bytes_max: usize) -> Result<HttpResponse, Error> {
        let (response, url) = self.send(request).await?;
        let host = host_and_port(&url);
        check_encoding(response.headers(), &host)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes_max = if status.is_success() { bytes_max } else { bytes_max.min(ERROR_BODY_BYTES_MAX) };
        let (body, is_cut) = read_body(response, bytes_max).await.map_err(|error| transport_error(&url, error))?;
        Ok(HttpResponse { status, headers, body, is_cut, host })
    }

    async fn send(&self, mut request: HttpRequest) -> Result<(Response, Url), Error> {
        for _ in 0..=REDIRECTS_MAX {
            if !self.allowed.permits(&request.url) {
                // Only possible if the template was parsed with another list.
                return Err(host_not_allowed_error(&request.url, "the tool calls"));
            }
            let response = self.client.execute(request.to_reqwest()).await;
            let response = response.map_err(|error| transport_error(&request.url, error))?;
            let Some(target) = redirect_target(&response, &request.url)? else { return Ok((response, request.url)) };
            if !self.allowed.permits(&target) {
                return Err(host_not_allowed_error(&target, &format!("{} redirects to", host_and_port(&request.url))));
            }
            request = request.follow_redirect(response.status(), target)?;
        }
        let host = host_and_port(&request.url);
        Err(Error::new(ErrorKind::Unavailable, format!("{host} redirects more than {REDIRECTS_MAX} times")))
    }
}

impl HttpRequest {
    fn to_reqwest(&self) -> Request {
        let mut wire = Request::new(self.method.clone(), self.url.clone());
        *wire.headers_mut() = self.headers.clone();
        *wire.body_mut() = self.body.clone().map(Into::into);
        wire
    }

    /// Configured headers and the body are meant for one origin, so another origin gets neither.
    fn follow_redirect(mut self, status: StatusCode, target: Url) -> Result<Self, Error> {
        let reject = |message: String| Err(Error::new(ErrorKind::Unavailable, message));
        let (from, to) = (host_and_port(&self.url), host_and_port(&target));
        if self.url.scheme() == "https" && target.scheme() != "https" {
            return reject(format!("{from} redirects to {to} without encryption, which is not followed"));
        }
        // As browsers do: 303 always becomes GET; 301 and 302 become GET after POST.
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::GET,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
        }
        if !is_same_origin(&self.url, &target) {
            if self.method != Method::GET {
                let method = &self.method;
                return reject(format!(
                    "{from} redirects a {method} to {to}; only a GET is followed to another origin"
                ));
            }
            let accept = self.headers.remove(ACCEPT);
            self.headers = accept.into_iter().map(|accept| (ACCEPT, accept)).collect();
        }
        self.url = target;
        Ok(self)
    }
}

fn redirect_target(response: &Response, url: &Url) -> Result<Option<Url>, Error> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = response.headers().get(LOCATION).filter(|_| is_redirect) else { return Ok(None) };
    let target = location.to_str().ok().and_then(|location| url.join(location).ok());
    let target = target.filter(|target| target.username().is_empty() && target.password().is_none());
    let host = host_and_port(url);
    target
        .map(Some)
        .ok_or_else(|| Error::new(ErrorKind::Unavailable, format!("{host} redirects to an invalid address")))
}

fn host_not_allowed_error(url: &Url, caller: &str) -> Error {
    let host = host_and_port(url);
    Error::new(
        ErrorKind::Unavailable,
        format!("{caller} {host}, which is not among the hosts that http tools may reach"),
    )
    .with_hint("The owner of this server can add it to http.allow_hosts.")
}

/// The request excludes compression, because a small response could expand to a large one.
fn check_encoding(headers: &HeaderMap, host: &str) -> Result<(), Error> {
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let message = format!("{host} answers compressed ({encoding:?}) although the request excludes compression");
            Err(Error::new(ErrorKind::Unavailable, message))
        }
        _ => Ok(()),
    }
}

/// A body that announces too many bytes is not read.
async fn read_body(response: Response, bytes_max: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let announced = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if response.status().is_success() && announced.is_some_and(|announced: usize| announced > bytes_max) {
        return Ok((Vec::new(), true));
    }
    tidegate_http_client::read_body(response, bytes_max).await
}

fn transport_error(url: &Url, error: reqwest::Error) -> Error {
    let host = host_and_port(url);
    let (kind, reason) = failure_reason(url, &error);
    // The URL may contain secrets, which neither the caller nor the log may see.
    let error = error.without_url();
    let mut detail = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        detail.push_str(": ");
        detail.push_str(&cause.to_string());
        source = cause.source();
    }
    Error::new(kind, format!("{host} {reason}")).with_detail(format!("http tool, {host}: {detail}"))
}

fn failure_reason(url: &Url, error: &reqwest::Error) -> (ErrorKind, &'static str) {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<DisallowedAddresses>() {
            return (ErrorKind::Unavailable, "has no address that http tools may reach");
        }
        let io_kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        if let Some(reason) = io_kind.filter(|_| !error.is_dns()).and_then(io_reason) {
            return (ErrorKind::Unavailable, reason);
        }
        source = cause.source();
    }
    if error.is_dns() {
        (ErrorKind::Unavailable, "is an unknown host name")
    } else if error.is_timeout() {
        (ErrorKind::TimedOut, "did not answer in time")
    } else if error.is_connect() && url.scheme() == "https" {
        (ErrorKind::Unavailable, "could not be reached: the TLS connection failed, or its certificate is not trusted")
    } else if error.is_connect() {
        (ErrorKind::Unavailable, "could not be reached")
    } else {
        (ErrorKind::Unavailable, "closed the connection early, or did not answer with HTTP")
    }
}

fn io_reason(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::ConnectionRefused => Some("refused the connection"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Some("closed the connection")
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Some("could not be reached: there is no route to it")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{AUTHORIZATION, HeaderValue};

    use super::*;

    fn redirected(method: Method, status: u16, from: &str, to: &str) -> Result<HttpRequest, String> {
        let headers = [(AUTHORIZATION, "a"), (ACCEPT, "b"), (CONTENT_TYPE, "c")];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter().collect();
        let request = HttpRequest { method, url: Url::parse(from).unwrap(), headers, body: Some(Vec::new()) };
        let status = StatusCode::from_u16(status).unwrap();
        request.follow_redirect(status, Url::parse(to).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn redirect_never_drops_tls() {
        let message = redirected(Method::GET, 302, "https://a.example/", "http://a.example/").unwrap_err();
        assert_eq!(message, "a.example redirects to a.example without encryption, which is not followed");
        // The opposite direction is another origin.
        let request = redirected(Method::GET, 302, "http://a.example/", "https://a.example/").unwrap();
        assert_eq!(request.headers.keys().collect::<Vec<_>>(), [ACCEPT]);
    }

    #[test]
    fn redirect_methods_follow_browsers() {
        let method = |method, status| {
            redirected(method, status, "https://a.example/", "https://a.example:443/b").unwrap().method
        };
        for status in [301, 302, 303] {
            assert_eq!(method(Method::POST, status), Method::GET);
        }
        assert_eq!(method(Method::DELETE, 303), Method::GET);
        assert_eq!(method(Method::DELETE, 302), Method::DELETE);
        assert_eq!(method(Method::POST, 307), Method::POST);
        assert_eq!(method(Method::PATCH, 308), Method::PATCH);
    }
}
