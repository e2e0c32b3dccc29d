//! Errors for requests that an API rejects.
//!
//! A caller reads the host and a short reason. The secrets of the request are removed, even where the API repeats them.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use tidegate_core::{Error, ErrorKind, shorten};

use super::api_result::{MediaType, media_type};
use super::client::HttpResponse;
use super::secrets::Secrets;

const API_MESSAGE_CHARACTERS_MAX: usize = 2_000;
const DATE_CHARACTERS_MAX: usize = 40;

/// The error for a status other than 2xx, without `secrets`.
pub(super) fn status_error(fetched: &HttpResponse, secrets: &Secrets) -> Error {
    let HttpResponse { status, headers, host, .. } = fetched;
    let with_api_message = |kind, subject: &str| {
        let error = Error::new(kind, format!("{subject}: {host} answers {status}"));
        match api_message(fetched, secrets) {
            Some(message) => error.with_hint(format!("The API's message: {message}")),
            None => error,
        }
    };
    match status.as_u16() {
        401 | 403 | 407 => {
            let message = format!("{host} rejects this server's credentials ({status})");
            Error::new(ErrorKind::Forbidden, message)
                .with_hint("The owner of this server has to correct them; other arguments do not help.")
        }
        404 | 410 => with_api_message(ErrorKind::NotFound, "the requested item does not exist"),
        408 | 504 => Error::new(ErrorKind::TimedOut, format!("{host} timed out ({status})")),
        413 | 414 => with_api_message(ErrorKind::TooLarge, "the request is too large for the API"),
        429 => with_retry_hint(
            Error::new(ErrorKind::RateLimited, format!("{host} limits the request rate ({status})")),
            headers,
        ),
        // Statuses that are caused by the tool's configuration, not by its arguments.
        405 | 406 | 411 | 415 | 426 => {
            Error::new(ErrorKind::Unavailable, format!("{host} does not accept the request of this tool ({status})"))
        }
        400..=499 => with_api_message(ErrorKind::InvalidArguments, "the API rejects these arguments"),
        500..=599 => with_retry_hint(Error::new(ErrorKind::Unavailable, format!("{host} fails ({status})")), headers),
        _ => Error::new(ErrorKind::Unavailable, format!("{host} answers {status}, which http tools do not support")),
    }
}

fn with_retry_hint(error: Error, headers: &HeaderMap) -> Error {
    let text = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
    match text {
        Some(seconds) if seconds.parse::<u32>().is_ok() => error.with_hint(format!("Try again in {seconds} seconds.")),
        // A date of RFC 9110 contains only these characters.
        Some(date) if is_date(date) => error.with_hint(format!("Try again after {date}.")),
        _ => error,
    }
}

fn is_date(text: &str) -> bool {
    let is_of_date = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ',' | ':' | '-');
    !text.is_empty() && text.len() <= DATE_CHARACTERS_MAX && text.chars().all(is_of_date)
}

fn api_message(fetched: &HttpResponse, secrets: &Secrets) -> Option<String> {
    let is_readable = match media_type(&fetched.headers) {
        Some(media_type) => match MediaType::classify(&media_type) {
            MediaType::Json => true,
            MediaType::Text => media_type != "text/html",
            MediaType::Other => false,
        },
        None => false,
    };
    if !is_readable {
        return None;
    }
    let text = secrets.redact_error(&String::from_utf8_lossy(&fetched.body));
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| shorten(text, API_MESSAGE_CHARACTERS_MAX))
}

pub(super) fn body_too_large(host: &str, bytes_max: usize) -> Error {
    let message = format!("the answer of {host} is larger than {bytes_max} bytes, the limit of this tool (max_bytes)");
    Error::new(ErrorKind::TooLarge, message)
        .with_hint("Request less data; the owner of this server can raise max_bytes of the tool.")
}
