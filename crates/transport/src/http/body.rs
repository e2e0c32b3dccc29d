//! Request bodies: read within limits, or piece by piece by the handler of a call while the rest waits in the connection. A
//! rejected body is still read to its end, so that the connection can be reused.
//!
//! Bodies with a transfer coding other than `chunked` are refused. The HTTP library decodes only `chunked`, so it would pass
//! the compressed bytes on as the body.
//!
//! [RFC 9112, Transfer-Encoding](https://www.rfc-editor.org/rfc/rfc9112#section-6.1)

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, stream};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{RequestBody, RequestBodyTypes};

use super::answer::{ProblemDetails, ProblemType};
use super::endpoints::Endpoint;
use super::response::refused_request;
use super::state::{HttpOptions, HttpState};

/// Maximum number of further bytes of a rejected body that are read and discarded. Beyond it the connection closes.
const DISCARDED_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(super) const REVOKED_REASON: &str = "the caller's credentials were revoked";

enum BodyError {
    TooLarge,
    Incomplete,
    TooSlow,
}

pub(super) async fn read(body: Body, bytes_max: usize, within: Duration) -> Result<Bytes, ProblemDetails> {
    let read = tokio::time::timeout(within, collect_bounded(body, bytes_max as u64)).await;
    read.unwrap_or(Err(BodyError::TooSlow)).map_err(|error| match error {
        BodyError::TooLarge => {
            ProblemDetails::new(ProblemType::BodyTooLarge, format!("the body is larger than {bytes_max} bytes"))
        }
        BodyError::Incomplete => ProblemDetails::bad_request("the body is incomplete"),
        BodyError::TooSlow => ProblemDetails::new(ProblemType::TooSlow, "the body arrived too slowly"),
    })
}

pub(super) async fn discard(body: Body, within: Duration) {
    // The response is a refusal in any case.
    let _ = tokio::time::timeout(within, collect_bounded(body, 0)).await;
}

/// The error that breaks a connection. The yield lets earlier data be flushed first.
pub(super) async fn broken_body_error(reason: &'static str) -> io::Error {
    tokio::task::yield_now().await;
    io::Error::other(reason)
}

/// The media type and the coding of a body, which are among `types`. Without `Content-Type` it has `default_media_type`.
pub(super) fn read_body_type(
    headers: &HeaderMap,
    types: RequestBodyTypes,
    default_media_type: Option<&str>,
) -> Result<(String, Option<String>), ProblemDetails> {
    let media_types = || types.media_types.iter().copied();
    let unsupported = |detail: String| ProblemDetails::new(ProblemType::UnsupportedMediaType, detail);
    let declared = single_value(headers, &header::CONTENT_TYPE)?;
    let Some(media_type) = declared.or_else(|| default_media_type.map(str::to_owned)) else {
        let detail = "Content-Type is missing; it states the format of the rows".to_owned();
        return Err(unsupported(detail).with_choices(media_types()));
    };
    if !types.takes_media_type(&media_type) {
        let detail = format!("Content-Type is {media_type:?}, which is no format of rows");
        return Err(unsupported(detail).with_choices(media_types()));
    }
    if let Some(reason) = unsupported_charset(&media_type) {
        return Err(unsupported(reason));
    }
    let coding = single_value(headers, &header::CONTENT_ENCODING)?;
    if let Some(coding) = coding.as_deref().filter(|coding| !types.takes_coding(coding)) {
        let detail = format!("Content-Encoding is {coding:?}, which is not supported");
        let problem = unsupported(detail).with_choices(types.codings.iter().copied());
        // RFC 9110, 15.5.16: it states the codings that would have been accepted.
        let accepted = HeaderValue::from_str(&types.codings.join(", "));
        return Err(match accepted {
            Ok(accepted) => problem.with_header(header::ACCEPT_ENCODING, accepted),
            Err(_) => problem,
        });
    }
    Ok((media_type, coding))
}

fn single_value(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, ProblemDetails> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim().to_owned())),
        (Ok(_), Some(_)) => Err(ProblemDetails::bad_request(format!("the header {name} is given more than once"))),
        (Err(_), _) => Err(ProblemDetails::bad_request(format!("the header {name} has characters other than ASCII"))),
    }
}

/// Why a body of `media_type` is refused because of its charset.
pub(super) fn unsupported_charset(media_type: &str) -> Option<String> {
    let mut parameters = media_type.split(';').skip(1).map(|parameter| parameter.trim().to_ascii_lowercase());
    let charset = parameters.find_map(|parameter| parameter.strip_prefix("charset=").map(str::to_owned))?;
    let charset = charset.trim_matches('"');
    let is_utf8 = matches!(charset, "utf-8" | "utf8" | "us-ascii");
    (!is_utf8).then(|| format!("the body must be UTF-8, not {charset}"))
}

async fn collect_bounded(mut body: Body, bytes_max: u64) -> Result<Bytes, BodyError> {
    let readable_bytes_max = bytes_max + DISCARDED_BYTES_MAX;
    if body.size_hint().lower() > readable_bytes_max {
        return Err(BodyError::TooLarge);
    }
    // Most bodies arrive in one piece. Further pieces are copied together at once, because a handle to a small piece
    // keeps a larger buffer alive.
    let mut only = Bytes::new();
    let mut joined: Vec<u8> = Vec::new();
    let mut seen_bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
        seen_bytes += piece.len() as u64;
        if seen_bytes > readable_bytes_max {
            return Err(BodyError::TooLarge);
        }
        if seen_bytes > bytes_max {
            (only, joined) = (Bytes::new(), Vec::new());
        } else if seen_bytes == piece.len() as u64 {
            only = piece;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut only));
            joined.extend_from_slice(&piece);
        }
    }
    if seen_bytes > bytes_max {
        return Err(BodyError::TooLarge);
    }
    Ok(if joined.is_empty() { only } else { joined.into() })
}

const INCOMPLETE: &str = "the body broke off before its end; nothing was stored";
const TOO_SLOW: &str = "the body arrived too slowly; nothing was stored";

/// The body of a request. The handler and this module hold the same body, so that what the handler leaves unread can be
/// discarded.
pub(super) struct StreamedBody(Arc<BodyState>);

struct BodyState {
    body: Mutex<Body>,
    failure: Mutex<Option<BodyFailure>>,
    was_read: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFailure {
    Incomplete,
    TooSlow,
}

impl StreamedBody {
    pub(super) fn new(body: Body) -> Self {
        let (body, failure, was_read) = (Mutex::new(body), Mutex::new(None), AtomicBool::new(false));
        Self(Arc::new(BodyState { body, failure, was_read }))
    }

    /// Reads the rest of a refused body, so that the client reads the refusal, and the connection can be reused. A client
    /// that waits for `100 Continue` sends nothing after the refusal.
    ///
    /// [RFC 9110, Expect](https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1)
    pub(super) async fn discard_rest(&self, headers: &HeaderMap, within: Duration) {
        let expected = headers.get(header::EXPECT).map(HeaderValue::as_bytes).unwrap_or_default();
        if self.0.was_read.load(Ordering::Relaxed) || !expected.eq_ignore_ascii_case(b"100-continue") {
            // The handler then reads an empty body.
            let rest = std::mem::take(&mut *self.0.body.lock());
            discard(rest, within).await;
        }
    }

    /// The body for a call. Refuses a body whose declared length is over the limit before a byte of it is read, so that a
    /// client that waits for `100 Continue` sends nothing.
    pub(super) fn request_body(
        &self,
        media_type: &str,
        coding: Option<String>,
        options: &HttpOptions,
    ) -> Result<RequestBody, ProblemDetails> {
        let bytes_max = options.data_bytes_max;
        let declared = self.0.body.lock().size_hint().lower();
        if declared > bytes_max {
            let detail = format!("the body has {declared} bytes; at most {bytes_max} are taken at once");
            return Err(ProblemDetails::new(ProblemType::Call(ErrorKind::TooLarge), detail));
        }
        let pieces = read_pieces(self.0.clone(), options.read_within);
        Ok(RequestBody::new(media_type, coding, bytes_max, pieces))
    }

    /// The problem of a failed call, in the words of the failure of its body, if that failed.
    pub(super) fn describe_failure(&self, problem: ProblemDetails) -> ProblemDetails {
        match *self.0.failure.lock() {
            Some(BodyFailure::Incomplete) => ProblemDetails::bad_request(INCOMPLETE),
            Some(BodyFailure::TooSlow) => ProblemDetails::new(ProblemType::TooSlow, TOO_SLOW),
            None => problem,
        }
    }
}

/// The pieces of a body, each within `within`. The time in which the handler does not read does not count.
fn read_pieces(state: Arc<BodyState>, within: Duration) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
    stream::unfold(Some(state), move |state| async move {
        let state = state?;
        loop {
            let failure = match tokio::time::timeout(within, next_frame(&state)).await {
                Ok(None) => return None,
                // Trailers have no meaning here.
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => return Some((Ok(piece), Some(state))),
                    Err(_) => continue,
                },
                Ok(Some(Err(_))) => BodyFailure::Incomplete,
                Err(_) => BodyFailure::TooSlow,
            };
            *state.failure.lock() = Some(failure);
            let message = if failure == BodyFailure::TooSlow { TOO_SLOW } else { INCOMPLETE };
            return Some((Err(Error::new(ErrorKind::InvalidArguments, message)), None));
        }
    })
}

async fn next_frame(state: &BodyState) -> Option<Result<Frame<Bytes>, axum::Error>> {
    state.was_read.store(true, Ordering::Relaxed);
    std::future::poll_fn(|context| -> Poll<_> { Pin::new(&mut *state.body.lock()).poll_frame(context) }).await
}

/// Answers 400 to requests with another transfer coding, and closes their connection, whose next request may not begin
/// where the body ends.
pub(super) async fn check_transfer_encoding<F: Future<Output = Response>>(
    http_state: &HttpState,
    endpoint: &Endpoint,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let Some(codings) = unsupported_codings(request.headers()) else { return next(request).await };
    let reason = format!(
        "the transfer coding {codings:?} is not supported; send the body uncompressed, with Transfer-Encoding: chunked \
         or Content-Length"
    );
    let origin = endpoint.origin(request.extensions());
    let mut response = refused_request(http_state, origin, ProblemDetails::bad_request(reason));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The value of `Transfer-Encoding`, unless it is absent or just `chunked`.
fn unsupported_codings(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::TRANSFER_ENCODING).iter().map(|value| value.to_str().unwrap_or("?").trim());
    let codings = values.collect::<Vec<_>>().join(", ");
    (!codings.is_empty() && !codings.eq_ignore_ascii_case("chunked")).then_some(codings)
}
