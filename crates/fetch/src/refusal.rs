//! What a status means for who asked.

use std::time::Duration;

use reqwest::StatusCode;

use crate::access::Access;
use crate::error::FetchError;
use crate::words::Words;

/// A server that asks for a longer pause does not get it.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It may go better next time.
    Passing {
        reason: String,
        /// The pause that the server asks for.
        pause: Duration,
        /// Whether the server may have heard the request.
        was_heard: bool,
    },
    /// It will not.
    Final(FetchError),
}

impl Trouble {
    /// Something between us and the server.
    pub(crate) fn of_way(reason: String, was_heard: bool) -> Self {
        Self::Passing { reason, pause: Duration::ZERO, was_heard }
    }

    /// What `status` means, with the `words` of the server. `retry_after` is a header's value.
    pub(crate) fn of_status(
        status: StatusCode,
        retry_after: Option<&str>,
        words: Words,
        access: &Access,
        subject: &str,
    ) -> Self {
        let subject = subject.to_owned();
        Self::Final(match status {
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let pause =
                    retry_after.and_then(|seconds| seconds.parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
                let reason = format!("the server is not ready ({}){words}", status.as_u16());
                return Self::Passing { reason, pause: pause.min(PAUSE_MAX), was_heard: true };
            }
            StatusCode::UNAUTHORIZED => match access {
                Access::Nothing => FetchError::NoToken { subject, words },
                Access::Bearer(_) => FetchError::WrongToken { subject, words },
                Access::Link(_) => FetchError::OldLink { subject, words },
            },
            StatusCode::FORBIDDEN => FetchError::Forbidden { subject, words },
            StatusCode::NOT_FOUND | StatusCode::GONE => FetchError::NoSuchResult { subject, words },
            status if status.is_redirection() => FetchError::Redirects { subject, status: status.as_u16() },
            status => FetchError::Refused { subject, status: status.as_u16(), words },
        })
    }
}
