//! Sends parts of files, and repeats what was interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Body, Method, RequestBuilder, Response, Url};
use serde_json::Value;
use tidegate_core::Backoff;
use tidegate_http_client::innermost_cause;
use tokio_util::sync::CancellationToken;

use super::file_part::FilePart;
use super::{RowReason, UploadError, UploadOptions, UploadReceipt};
use crate::fetch::ResultServer;
use crate::server::{ServerMessage, ServerRefusal, http_client, permanent_request_error, read_refusal, sanitize};

const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts at a server that has never responded. Its address is then more likely wrong than the server is unavailable.
const INITIAL_ATTEMPTS_MAX: u32 = 4;
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 8 << 20;
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The table that gets the rows.
#[derive(Debug, Clone)]
pub struct UploadTarget {
    /// The server.
    pub server: ResultServer,
    /// The name of the database.
    pub database: String,
    /// The name of the table.
    pub table: String,
}

/// A body, and what the server does with it.
#[derive(Debug, Clone)]
pub struct UploadRequest {
    /// The bytes.
    pub part: FilePart,
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The value of `Content-Encoding`.
    pub coding: Option<&'static str>,
    /// Makes a repeat safe.
    pub key: String,
    /// Whether the rows replace all rows of the table.
    pub replaces: bool,
    /// Further parameters: `on_reject`, `create` and the syntax of CSV.
    pub parameters: Vec<(&'static str, String)>,
}

/// Sends parts to one table.
#[derive(Debug)]
pub struct Uploader {
    http: reqwest::Client,
    url: Url,
    subject: String,
    options: UploadOptions,
    has_answered: std::sync::atomic::AtomicBool,
}

enum Failure {
    /// A later attempt may succeed; the key makes it safe.
    Transient {
        reason: String,
        retry_after: Duration,
    },
    Permanent(UploadError),
}

impl Uploader {
    /// A client for `target`.
    ///
    /// # Errors
    /// When this process cannot make connections.
    pub fn new(target: &UploadTarget, options: UploadOptions) -> Result<Self, UploadError> {
        let http = http_client(options.connect_timeout, IDLE_TIMEOUT, options.authorities.as_ref())
            .map_err(|error| UploadError::Internal(innermost_cause(&error)))?;
        let url = target.server.data_url(&target.database, &target.table);
        Ok(Self { http, subject: url.to_string(), url, options, has_answered: false.into() })
    }

    /// Sends `request` until the server has answered it, or another attempt would not help. `on_bytes` receives how many
    /// bytes of the part were sent in this attempt; `on_retry` why another one is made, and when.
    ///
    /// # Errors
    /// Nothing of the part was stored, or it is stored and a repeat with the same key is safe (`Unreachable`,
    /// `Interrupted`).
    pub async fn send(
        &self,
        request: &UploadRequest,
        on_bytes: impl Fn(u64) + Clone + Send + Sync + 'static,
        on_retry: impl Fn(&str, Duration),
        stop: &CancellationToken,
    ) -> Result<UploadReceipt, UploadError> {
        let mut backoff = Backoff::new(self.options.initial_delay, self.options.max_delay);
        let mut attempts = 0;
        loop {
            let attempt = stop.run_until_cancelled(self.attempt(request, on_bytes.clone()));
            let (reason, retry_after) = match attempt.await.ok_or(UploadError::Interrupted)? {
                Ok(receipt) => return Ok(receipt),
                Err(Failure::Permanent(error)) => return Err(error),
                Err(Failure::Transient { reason, retry_after }) => (reason, retry_after),
            };
            attempts += 1;
            if attempts >= self.attempts_max() {
                return Err(UploadError::Unreachable { subject: self.subject.clone(), attempts, reason });
            }
            let delay = backoff.next_delay().max(retry_after);
            on_retry(&reason, delay);
            stop.run_until_cancelled(tokio::time::sleep(delay)).await.ok_or(UploadError::Interrupted)?;
        }
    }

    fn attempts_max(&self) -> u32 {
        let max = self.options.attempts_max;
        if self.has_answered.load(Ordering::Relaxed) { max } else { max.min(INITIAL_ATTEMPTS_MAX) }
    }

    async fn attempt(
        &self,
        request: &UploadRequest,
        on_bytes: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<UploadReceipt, Failure> {
        let sent = Arc::new(AtomicU64::new(0));
        let count = sent.clone();
        let file_error = Arc::new(parking_lot::Mutex::new(None));
        let failed = file_error.clone();
        let stream = request.part.stream(move |bytes| on_bytes(count.fetch_add(bytes, Ordering::Relaxed) + bytes));
        let stream = futures::StreamExt::map(stream, move |piece| {
            piece.inspect_err(|error| *failed.lock() = Some(std::io::Error::new(error.kind(), error.to_string())))
        });
        let sending = self.request(request).body(Body::wrap_stream(stream)).send();
        let response = tokio::select! {
            response = sending => response,
            () = self.stalled(&sent) => {
                let reason = format!("the server did nothing for {} s", self.options.stall_timeout.as_secs());
                return Err(Failure::Transient { reason, retry_after: Duration::ZERO });
            }
        };
        if let Some(error) = file_error.lock().take() {
            return Err(Failure::Permanent(UploadError::File(error)));
        }
        let response = response.map_err(|error| self.connection_failure(&error))?;
        self.has_answered.store(true, Ordering::Relaxed);
        if response.status().is_success() {
            self.read_receipt(response).await
        } else {
            Err(self.read_error(response).await)
        }
    }

    fn request(&self, request: &UploadRequest) -> RequestBuilder {
        let method = if request.replaces { Method::PUT } else { Method::POST };
        let mut url = self.url.clone();
        if !request.parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.parameters);
        }
        let mut builder = self
            .http
            .request(method, url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, request.media_type)
            .header(CONTENT_LENGTH, request.part.body_bytes())
            .header(IDEMPOTENCY_KEY, request.key.as_str());
        if let Some(coding) = request.coding {
            builder = builder.header(CONTENT_ENCODING, coding);
        }
        match &self.options.bearer {
            Some(bearer) => builder.header(AUTHORIZATION, bearer.header().clone()),
            None => builder,
        }
    }

    fn connection_failure(&self, error: &reqwest::Error) -> Failure {
        match permanent_request_error(error, self.has_answered.load(Ordering::Relaxed)) {
            Some(reason) => Failure::Permanent(UploadError::Tls { subject: self.subject.clone(), reason }),
            None => Failure::Transient {
                reason: format!("the connection failed: {}", innermost_cause(error)),
                retry_after: Duration::ZERO,
            },
        }
    }

    /// Returns when no bytes were sent for too long. After the last byte, the server has the same time to respond.
    async fn stalled(&self, sent: &AtomicU64) {
        let mut before = None;
        loop {
            let now = sent.load(Ordering::Relaxed);
            if before == Some(now) {
                return;
            }
            before = Some(now);
            tokio::time::sleep(self.options.stall_timeout).await;
        }
    }

    async fn read_receipt(&self, mut response: Response) -> Result<UploadReceipt, Failure> {
        let mut body = Vec::new();
        loop {
            match tokio::time::timeout(self.options.stall_timeout, response.chunk()).await {
                Ok(Ok(Some(chunk))) if body.len() + chunk.len() <= ANSWER_BYTES_MAX => body.extend_from_slice(&chunk),
                Ok(Ok(Some(_))) => return Err(self.invalid_response("it is too long")),
                Ok(Ok(None)) => break,
                // The rows are stored; the repeat is answered from its key.
                Ok(Err(error)) => {
                    let reason = format!("the connection was lost: {}", innermost_cause(&error));
                    return Err(Failure::Transient { reason, retry_after: Duration::ZERO });
                }
                Err(_) => {
                    let reason = "the server did not send its answer to the end".to_owned();
                    return Err(Failure::Transient { reason, retry_after: Duration::ZERO });
                }
            }
        }
        let answer: Option<Value> = serde_json::from_slice(&body).ok();
        let receipt = answer.as_ref().and_then(UploadReceipt::from_json);
        receipt.ok_or_else(|| self.invalid_response("it does not state how many rows are stored"))
    }

    fn invalid_response(&self, what: &str) -> Failure {
        let subject = self.subject.clone();
        Failure::Permanent(UploadError::InvalidResponse { subject, what: what.to_owned() })
    }

    async fn read_error(&self, response: Response) -> Failure {
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = retry_after.map_or(Duration::ZERO, Duration::from_secs).min(RETRY_AFTER_MAX);
        let body = read_refusal(response, self.options.stall_timeout).await;
        let secret = self.options.bearer.as_ref().map(|bearer| bearer.token());
        let message = ServerMessage::from_body(&body, secret);
        let subject = self.subject.clone();
        Failure::Permanent(match status {
            // 409: the call of an attempt that was interrupted still runs.
            408 | 409 | 429 | 502..=504 => {
                return Failure::Transient {
                    reason: format!("the server is not ready ({status}){message}"),
                    retry_after,
                };
            }
            404 | 405 => UploadError::NoTable { subject, status, message },
            _ => match ServerRefusal::from_status(status, secret.is_some(), message) {
                Ok(refusal) => UploadError::Denied { subject, refusal },
                Err(message) => refused(status, &body, &message, secret),
            },
        })
    }
}

/// The refusal of a body, with the reasons row by row.
fn refused(status: u16, body: &[u8], message: &ServerMessage, secret: Option<&str>) -> UploadError {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &Value| ServerMessage::new(value.as_str().unwrap_or_default(), secret).text().to_owned();
    let violations = problem["violations"].as_array().into_iter().flatten();
    let reasons =
        violations.map(|row| RowReason { path: text(&row["path"]), message: text(&row["message"]) }).collect();
    let detail = text(&problem["detail"]);
    let message = match detail.is_empty() {
        true => format!("the server refuses the rows ({status}){message}"),
        false => detail,
    };
    let hint = problem["hint"].as_str().map(sanitize);
    UploadError::Refused { message, reasons, hint }
}
