//! A body that the handler of a call reads piece by piece, while the rest waits in the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use futures::{Stream, stream};
use http_body::{Body as _, Frame};
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::RequestBody;

use crate::http::answer::{ProblemDetails, ProblemType};
use crate::http::body;
use crate::http::state::HttpOptions;

const INCOMPLETE: &str = "the body broke off before its end; nothing was stored";
const TOO_SLOW: &str = "the body arrived too slowly; nothing was stored";

/// The body of a request. The handler and this module hold the same body, so that what the handler leaves unread can be
/// discarded.
pub(in crate::http) struct StreamedBody(Arc<BodyState>);

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
    pub(in crate::http) fn new(body: Body) -> Self {
        let (body, failure, was_read) = (Mutex::new(body), Mutex::new(None), AtomicBool::new(false));
        Self(Arc::new(BodyState { body, failure, was_read }))
    }

    /// Reads the rest of a refused body, so that the client reads the refusal, and the connection can be reused. A client
    /// that waits for `100 Continue` sends nothing after the refusal.
    ///
    /// [RFC 9110, Expect](https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1)
    pub(in crate::http) async fn discard_rest(&self, headers: &HeaderMap, within: Duration) {
        let expected = headers.get(header::EXPECT).map(HeaderValue::as_bytes).unwrap_or_default();
        if self.0.was_read.load(Ordering::Relaxed) || !expected.eq_ignore_ascii_case(b"100-continue") {
            // The handler then reads an empty body.
            let rest = std::mem::take(&mut *self.0.body.lock());
            body::discard(rest, within).await;
        }
    }

    /// The body for a call. Refuses a body whose declared length is over the limit before a byte of it is read, so that a
    /// client that waits for `100 Continue` sends nothing.
    pub(in crate::http) fn request_body(
        &self,
        media_type: &str,
        coding: Option<String>,
        options: &HttpOptions,
    ) -> Result<RequestBody, ProblemDetails> {
        let bytes_max = options.data_bytes_max;
        let declared = self.0.body.lock().size_hint().lower();
        if declared > bytes_max {
            let message = format!("the body has {declared} bytes; at most {bytes_max} are taken at once");
            return Err(Error::new(ErrorKind::TooLarge, message).into());
        }
        let pieces = read_pieces(self.0.clone(), options.read_within);
        Ok(RequestBody::new(media_type, coding, bytes_max, pieces))
    }

    /// The problem of a failed call, in the words of the failure of its body, if that failed.
    pub(in crate::http) fn describe_failure(&self, problem: ProblemDetails) -> ProblemDetails {
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
