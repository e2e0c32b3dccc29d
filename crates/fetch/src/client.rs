//! The way to one server over HTTP.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, Url, redirect, retry};

use crate::access::Access;
use crate::error::FetchError;
use crate::options::FetchOptions;
use crate::patience::Patience;
use crate::refusal::Trouble;
use crate::words::{Words, printable};

/// Idle connections are given up before a server does it.
const IDLE_WITHIN: Duration = Duration::from_secs(5);
/// A silent connection is asked for a sign of life this often, and lost after so many that did not come.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEP_ALIVE_TRIES: u32 = 3;
/// Bytes of a refusal that are read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Attempts at a server that has never answered: its address is more likely to be wrong than it is to come back.
const ATTEMPTS_AT_FIRST_MAX: u32 = 4;

/// The way to one server.
pub(crate) struct Client {
    http: reqwest::Client,
    access: Access,
    options: FetchOptions,
    /// What messages are about: an address that may be shown.
    subject: String,
    has_answered: AtomicBool,
}

impl Client {
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn new(subject: String, access: Access, options: FetchOptions) -> Result<Self, FetchError> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            // The token is for one server, and requests are for the one that was named.
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .connect_timeout(options.connect_within)
            .tcp_keepalive(KEEP_ALIVE_EVERY)
            .tcp_keepalive_interval(KEEP_ALIVE_EVERY)
            .tcp_keepalive_retries(KEEP_ALIVE_TRIES)
            .pool_idle_timeout(IDLE_WITHIN)
            .build()
            .map_err(|error| FetchError::Internal(reason(&error)))?;
        Ok(Self { http, access, options, subject, has_answered: AtomicBool::new(false) })
    }

    pub(crate) fn options(&self) -> &FetchOptions {
        &self.options
    }

    /// What messages are about.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Attempts at one thing without progress, for now.
    pub(crate) fn attempts_max(&self) -> u32 {
        let max = self.options.attempts_max;
        if self.has_answered.load(Ordering::Relaxed) { max } else { max.min(ATTEMPTS_AT_FIRST_MAX) }
    }

    pub(crate) fn patience(&self) -> Patience<'_> {
        Patience::new(self)
    }

    /// One GET; its answer has begun well.
    pub(crate) async fn get(&self, url: Url, headers: HeaderMap) -> Result<Response, Trouble> {
        let request = self.http.get(self.access.url(url)).headers(self.access.headers(headers));
        self.send(request, self.options.silence_max).await
    }

    /// One POST of JSON; its answer has begun well.
    pub(crate) async fn post(&self, url: Url, headers: HeaderMap, json: String) -> Result<Response, Trouble> {
        let request = self.http.post(self.access.url(url)).headers(self.access.headers(headers)).body(json);
        self.send(request, self.options.answer_within).await
    }

    /// More of a body; nothing at its end.
    pub(crate) async fn more(&self, response: &mut Response) -> Result<Option<Bytes>, Trouble> {
        match tokio::time::timeout(self.options.silence_max, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(Trouble::of_way(format!("the connection was lost: {}", reason(&error)), true)),
            Err(_) => Err(silent(self.options.silence_max)),
        }
    }

    /// A whole body of at most `bytes_max`.
    pub(crate) async fn body(&self, mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        while let Some(chunk) = self.more(&mut response).await? {
            if body.len() + chunk.len() > bytes_max {
                return Err(Trouble::Final(self.garbage(&format!("it is longer than {bytes_max} bytes"))));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The error of an answer that cannot be read.
    pub(crate) fn garbage(&self, what: &str) -> FetchError {
        FetchError::Garbage { subject: self.subject.clone(), what: printable(what) }
    }

    async fn send(&self, request: RequestBuilder, within: Duration) -> Result<Response, Trouble> {
        let response = match tokio::time::timeout(within, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Trouble::of_way(reason(&error), !error.is_connect())),
            Err(_) => return Err(silent(within)),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refusal(response).await)
    }

    async fn refusal(&self, mut response: Response) -> Trouble {
        let mut body = Vec::new();
        // Whatever can be read of it is enough.
        while let Ok(Some(chunk)) = self.more(&mut response).await
            && body.len() < REFUSAL_BYTES_MAX
        {
            body.extend_from_slice(&chunk);
        }
        let words = Words::of_body(&body, self.access.secret().as_deref());
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Trouble::of_status(response.status(), retry_after, words, &self.access, &self.subject)
    }
}

fn silent(within: Duration) -> Trouble {
    Trouble::of_way(format!("the server was silent for {} s", within.as_secs()), true)
}

/// The innermost cause, which says most, without the URL.
fn reason(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "no cause is known".to_owned(), ToString::to_string)
}
