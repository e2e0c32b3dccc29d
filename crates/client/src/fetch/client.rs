//! HTTP client for one server: its credential, its timeouts, and when a failed request is repeated.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, Url};
use tidegate_core::Backoff;
use tidegate_http_client::innermost_cause;
use tokio_util::sync::CancellationToken;

use super::{DownloadEvent, FetchError, FetchOptions};
use crate::server::{
    BearerToken, ServerMessage, ServerRefusal, http_client, permanent_request_error, read_refusal, sanitize,
};

const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts at a server that has never responded. Its address is then more likely wrong than the server is unavailable.
const INITIAL_ATTEMPTS_MAX: u32 = 4;

const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

pub(crate) struct ResultClient {
    http: reqwest::Client,
    credential: ResultCredential,
    options: FetchOptions,
    /// Subject of error messages: an address without secrets.
    subject: String,
    has_answered: AtomicBool,
}

impl ResultClient {
    pub(crate) fn new(
        subject: String,
        credential: ResultCredential,
        options: FetchOptions,
    ) -> Result<Self, FetchError> {
        let http = http_client(options.connect_timeout, IDLE_TIMEOUT, options.authorities.as_ref())
            .map_err(|error| FetchError::Internal(innermost_cause(&error)))?;
        Ok(Self { http, credential, options, subject, has_answered: AtomicBool::new(false) })
    }

    pub(super) fn options(&self) -> &FetchOptions {
        &self.options
    }

    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Maximum number of attempts without progress, at this time.
    pub(crate) fn attempts_max(&self) -> u32 {
        let max = self.options.attempts_max;
        if self.has_answered.load(Ordering::Relaxed) { max } else { max.min(INITIAL_ATTEMPTS_MAX) }
    }

    /// Repeats `attempt` until it succeeds, or another attempt would not help.
    pub(crate) async fn retry<T>(&self, attempt: impl AsyncFn() -> Result<T, RequestFailure>) -> Result<T, FetchError> {
        let mut retry_state = RetryState::new(self);
        loop {
            match attempt().await {
                Ok(done) => return Ok(done),
                Err(failure) => retry_state.wait_after_failure(failure).await?,
            }
        }
    }

    pub(crate) async fn get(&self, url: Url, headers: HeaderMap) -> Result<Response, RequestFailure> {
        let request =
            self.http.get(self.credential.authorize_url(url)).headers(self.credential.authorize_headers(headers));
        self.send(request, self.options.read_timeout).await
    }

    /// Sends a POST request with JSON; returns a response with a success status.
    pub(crate) async fn post(&self, url: Url, headers: HeaderMap, json: String) -> Result<Response, RequestFailure> {
        let request = self
            .http
            .post(self.credential.authorize_url(url))
            .headers(self.credential.authorize_headers(headers))
            .body(json);
        self.send(request, self.options.response_timeout).await
    }

    pub(crate) async fn next_chunk(&self, response: &mut Response) -> Result<Option<Bytes>, RequestFailure> {
        match tokio::time::timeout(self.options.read_timeout, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => {
                let reason = format!("the connection was lost: {}", innermost_cause(&error));
                Err(RequestFailure::from_connection(reason, true))
            }
            Err(_) => Err(read_timeout_failure(self.options.read_timeout)),
        }
    }

    pub(crate) async fn read_body(&self, mut response: Response, bytes_max: usize) -> Result<Vec<u8>, RequestFailure> {
        let mut body = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut response).await? {
            if body.len() + chunk.len() > bytes_max {
                return Err(self.invalid_response(&format!("it is longer than {bytes_max} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    pub(crate) fn invalid_response(&self, description: &str) -> RequestFailure {
        let (subject, what) = (self.subject.clone(), sanitize(description));
        RequestFailure::Permanent(FetchError::InvalidResponse { subject, what })
    }

    async fn send(&self, request: RequestBuilder, within: Duration) -> Result<Response, RequestFailure> {
        let response = match tokio::time::timeout(within, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.connection_failure(&error)),
            Err(_) => return Err(read_timeout_failure(within)),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.read_error_response(response).await)
    }

    fn connection_failure(&self, error: &reqwest::Error) -> RequestFailure {
        match permanent_request_error(error, self.has_answered.load(Ordering::Relaxed)) {
            Some(reason) => RequestFailure::Permanent(FetchError::Tls { subject: self.subject.clone(), reason }),
            None => RequestFailure::from_connection(innermost_cause(error), !error.is_connect()),
        }
    }

    /// The failure for a response with another status, with the message of the server.
    async fn read_error_response(&self, response: Response) -> RequestFailure {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = retry_after.map_or(Duration::ZERO, Duration::from_secs).min(RETRY_AFTER_MAX);
        let body = read_refusal(response, self.options.read_timeout).await;
        let message = ServerMessage::from_body(&body, self.credential.secret());
        let subject = self.subject.clone();
        RequestFailure::Permanent(match status.as_u16() {
            408 | 429 | 502..=504 => {
                let status = status.as_u16();
                let reason = format!("the server is not ready ({status}){message}");
                let refused_call = message.is_refused_call().then_some((status, message));
                return RequestFailure::Transient { reason, retry_after, may_have_been_received: true, refused_call };
            }
            401 if matches!(self.credential, ResultCredential::Link(_)) => FetchError::LinkExpired { subject, message },
            404 | 410 => FetchError::ResultNotFound { subject, message },
            status => {
                let has_token = matches!(self.credential, ResultCredential::Bearer(_));
                match ServerRefusal::from_status(status, has_token, message) {
                    Ok(refusal) => FetchError::Refused { subject, refusal },
                    Err(message) => FetchError::RequestRejected { subject, status, message },
                }
            }
        })
    }
}

fn read_timeout_failure(within: Duration) -> RequestFailure {
    RequestFailure::from_connection(format!("the server sent nothing for {} s", within.as_secs()), true)
}

pub(crate) struct RetryState<'a> {
    client: &'a ResultClient,
    backoff: Backoff,
    failures: u32,
}

impl<'a> RetryState<'a> {
    pub(crate) fn new(client: &'a ResultClient) -> Self {
        let options = client.options();
        Self { client, backoff: Backoff::new(options.initial_delay, options.max_delay), failures: 0 }
    }

    /// Resets the count, because the last attempt made progress.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
        self.backoff.reset();
    }

    /// Fails if another attempt would not help, or if the maximum is reached.
    pub(crate) async fn wait_after_failure(&mut self, failure: RequestFailure) -> Result<(), FetchError> {
        let (reason, retry_after) = match failure {
            RequestFailure::Transient { reason, retry_after, .. } => (reason, retry_after),
            RequestFailure::Permanent(error) => return Err(error),
        };
        self.failures += 1;
        if self.failures >= self.client.attempts_max() {
            let subject = self.client.subject().to_owned();
            return Err(FetchError::Unreachable { subject, attempts: self.failures, reason });
        }
        let delay = self.backoff.next_delay().max(retry_after);
        self.client.options().notify(&DownloadEvent::Retrying { reason, delay });
        tokio::time::sleep(delay).await;
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// A later attempt may succeed.
    Transient {
        reason: String,
        retry_after: Duration,
        may_have_been_received: bool,
        /// The status and the message of a server that refused the call, so that nothing runs.
        refused_call: Option<(u16, ServerMessage)>,
    },
    /// A later attempt would fail too.
    Permanent(FetchError),
}

impl RequestFailure {
    pub(crate) fn from_connection(reason: String, may_have_been_received: bool) -> Self {
        Self::Transient { reason, retry_after: Duration::ZERO, may_have_been_received, refused_call: None }
    }
}

pub(crate) enum ResultCredential {
    Anonymous,
    Bearer(BearerToken),
    Link(String),
}

impl ResultCredential {
    /// The link if there is one, else the bearer token, which may be meant for another server than the link's.
    pub(crate) fn new(link: Option<&str>, bearer: Option<&BearerToken>) -> Self {
        match (link, bearer) {
            (Some(token), _) => Self::Link(token.to_owned()),
            (None, Some(bearer)) => Self::Bearer(bearer.clone()),
            (None, None) => Self::Anonymous,
        }
    }

    pub(crate) fn authorize_url(&self, mut url: Url) -> Url {
        if let Self::Link(token) = self {
            url.query_pairs_mut().append_pair("link", token);
        }
        url
    }

    pub(crate) fn authorize_headers(&self, mut headers: HeaderMap) -> HeaderMap {
        if let Self::Bearer(bearer) = self {
            headers.insert(AUTHORIZATION, bearer.header().clone());
        }
        headers
    }

    /// The secret, which must be removed from messages of the server.
    pub(crate) fn secret(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Bearer(bearer) => Some(bearer.token()),
            Self::Link(token) => Some(token),
        }
    }
}

/// The result of `work`, or [`FetchError::Interrupted`] if `stop` is cancelled first.
pub(crate) async fn run_until_cancelled<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(FetchError::Interrupted),
        done = work => done,
    }
}
