//! Classifies failed requests: transient or permanent.

use std::time::Duration;

use reqwest::StatusCode;

use crate::credential::ResultCredential;
use crate::error::FetchError;
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
            StatusCode::UNAUTHORIZED => match access {
                ResultCredential::Anonymous => FetchError::TokenRequired { subject, words },
                ResultCredential::Bearer(_) => FetchError::TokenRejected { subject, words },
                ResultCredential::Link(_) => FetchError::LinkExpired { subject, words },
            },
            StatusCode::FORBIDDEN => FetchError::Forbidden { subject, words },
            StatusCode::NOT_FOUND | StatusCode::GONE => FetchError::ResultNotFound { subject, words },
            status if status.is_redirection() => FetchError::Redirected { subject, status: status.as_u16() },
            status => FetchError::RequestRejected { subject, status: status.as_u16(), words },
        })
    }
}
