//! Classifies failed requests: transient or permanent.

use std::time::Duration;

use reqwest::StatusCode;

use super::credential::ResultCredential;
use super::error::FetchError;
use crate::refusal::ServerRefusal;
use crate::server_message::ServerMessage;

/// Maximum delay that a server can request with `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// A later attempt may succeed.
    Transient {
        reason: String,
        /// The delay that the server requests.
        retry_after: Duration,
        /// Whether the server may have received the request.
        may_have_been_received: bool,
    },
    /// A later attempt would fail too.
    Permanent(FetchError),
}

impl RequestFailure {
    /// A failure of the connection.
    pub(crate) fn from_connection(reason: String, may_have_been_received: bool) -> Self {
        Self::Transient { reason, retry_after: Duration::ZERO, may_have_been_received }
    }

    /// The failure for a `status`, with the `words` of the server. `retry_after` is the value of the header.
    pub(crate) fn from_status(
        status: StatusCode,
        retry_after: Option<&str>,
        words: ServerMessage,
        access: &ResultCredential,
        subject: &str,
    ) -> Self {
        let subject = subject.to_owned();
        Self::Permanent(match status {
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let pause =
                    retry_after.and_then(|seconds| seconds.parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
                let reason = format!("the server is not ready ({}){words}", status.as_u16());
                return Self::Transient {
                    reason,
                    retry_after: pause.min(RETRY_AFTER_MAX),
                    may_have_been_received: true,
                };
            }
            StatusCode::UNAUTHORIZED if matches!(access, ResultCredential::Link(_)) => {
                FetchError::LinkExpired { subject, words }
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => FetchError::ResultNotFound { subject, words },
            status => {
                let (status, has_token) = (status.as_u16(), matches!(access, ResultCredential::Bearer(_)));
                match ServerRefusal::from_status(status, has_token, words) {
                    Ok(refusal) => FetchError::Refused { subject, refusal },
                    Err(words) => FetchError::RequestRejected { subject, status, words },
                }
            }
        })
    }
}
