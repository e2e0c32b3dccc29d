//! HTTP client for one server, with timeouts and authentication.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, Url};

use super::credential::ResultCredential;
use super::error::FetchError;
use super::options::FetchOptions;
use super::request_failure::RequestFailure;
use super::retry::RetryState;
use crate::http_client::{http_client, innermost_cause, read_refusal};
use crate::server_message::{ServerMessage, sanitize};

/// Idle connections are closed after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts at a server that has never responded. Its address is then more likely wrong than the server is unavailable.
const INITIAL_ATTEMPTS_MAX: u32 = 4;

/// An HTTP client for one server.
pub(crate) struct ResultClient {
    http: reqwest::Client,
    access: ResultCredential,
    options: FetchOptions,
    /// Subject of error messages: an address without secrets.
    subject: String,
    has_answered: AtomicBool,
}

impl ResultClient {
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub(crate) fn new(subject: String, access: ResultCredential, options: FetchOptions) -> Result<Self, FetchError> {
        let http = http_client(options.connect_timeout, IDLE_TIMEOUT)
            .map_err(|error| FetchError::Internal(innermost_cause(&error)))?;
        Ok(Self { http, access, options, subject, has_answered: AtomicBool::new(false) })
    }

    pub(crate) fn options(&self) -> &FetchOptions {
        &self.options
    }

    /// The subject of error messages.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Maximum number of attempts without progress, at this time.
    pub(crate) fn attempts_max(&self) -> u32 {
        let max = self.options.attempts_max;
        if self.has_answered.load(Ordering::Relaxed) { max } else { max.min(INITIAL_ATTEMPTS_MAX) }
    }

    pub(crate) fn new_retry(&self) -> RetryState<'_> {
        RetryState::new(self)
    }

    /// Sends a GET request; returns a response with a success status.
    pub(crate) async fn get(&self, url: Url, headers: HeaderMap) -> Result<Response, RequestFailure> {
        let request = self.http.get(self.access.authorize_url(url)).headers(self.access.authorize_headers(headers));
        self.send(request, self.options.read_timeout).await
    }

    /// Sends a POST request with JSON; returns a response with a success status.
    pub(crate) async fn post(&self, url: Url, headers: HeaderMap, json: String) -> Result<Response, RequestFailure> {
        let request =
            self.http.post(self.access.authorize_url(url)).headers(self.access.authorize_headers(headers)).body(json);
        self.send(request, self.options.response_timeout).await
    }

    /// The next chunk of a body, or `None` at its end.
    pub(crate) async fn next_chunk(&self, response: &mut Response) -> Result<Option<Bytes>, RequestFailure> {
        match tokio::time::timeout(self.options.read_timeout, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(RequestFailure::from_connection(
                format!("the connection was lost: {}", innermost_cause(&error)),
                true,
            )),
            Err(_) => Err(read_timeout_failure(self.options.read_timeout)),
        }
    }

    /// A complete body of at most `bytes_max` bytes.
    pub(crate) async fn read_body(&self, mut response: Response, bytes_max: usize) -> Result<Vec<u8>, RequestFailure> {
        let mut body = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut response).await? {
            if body.len() + chunk.len() > bytes_max {
                return Err(RequestFailure::Permanent(
                    self.invalid_response(&format!("it is longer than {bytes_max} bytes")),
                ));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The error for a response that cannot be parsed.
    pub(crate) fn invalid_response(&self, description: &str) -> FetchError {
        FetchError::InvalidResponse { subject: self.subject.clone(), what: sanitize(description) }
    }

    async fn send(&self, request: RequestBuilder, within: Duration) -> Result<Response, RequestFailure> {
        let response = match tokio::time::timeout(within, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(RequestFailure::from_connection(innermost_cause(&error), !error.is_connect()));
            }
            Err(_) => return Err(read_timeout_failure(within)),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.read_error_response(response).await)
    }

    async fn read_error_response(&self, response: Response) -> RequestFailure {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = read_refusal(response, self.options.read_timeout).await;
        let words = ServerMessage::from_body(&body, self.access.secret());
        RequestFailure::from_status(status, retry_after.as_deref(), words, &self.access, &self.subject)
    }
}

fn read_timeout_failure(within: Duration) -> RequestFailure {
    RequestFailure::from_connection(format!("the server sent nothing for {} s", within.as_secs()), true)
}
