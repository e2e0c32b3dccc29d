//! The body of a request whose end has a meaning: a reset stream is an error, never an end.
//!
//! tonic takes a request that was reset with CANCEL for one that has ended, and hyper does so with NO_ERROR. The rows that
//! were sent before would then count as all rows.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

const RESET: &str = "the client has cancelled the request, or its connection broke";

/// A body that ends only if the client has ended it.
pub(super) struct WholeBody(pub(super) Body);

impl http_body::Body for WholeBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // Any status but CANCELLED, which tonic takes for an end.
        let reset = || Poll::Ready(Some(Err(Status::aborted(RESET))));
        match ready!(Pin::new(&mut self.0).poll_frame(context)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            Some(Err(_)) => reset(),
            None if self.0.is_end_stream() => Poll::Ready(None),
            None => reset(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
