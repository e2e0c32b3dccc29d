//! The events of a response, each with a bound on its size.
//!
//! [Server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html)

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use reqwest::Response;
use sse_stream::{Error, Sse, SseByteStream};

use crate::bridge::incoming::{MessageMeter, ReceiveError};
use crate::http_client::innermost_cause;

/// Reads the events of a response.
pub(super) struct EventReader(SseByteStream<BoxStream<'static, Result<Bytes, ReceiveError>>>);

impl EventReader {
    /// `meter` counts the bytes since the last complete event.
    pub(super) fn new(response: Response, meter: MessageMeter) -> Self {
        let chunks =
            stream::try_unfold((response, meter, true), |(mut response, meter, is_between_events)| async move {
                let chunk =
                    response.chunk().await.map_err(|error| ReceiveError::ConnectionLost(innermost_cause(&error)))?;
                let Some(chunk) = chunk else { return Ok(None) };
                if is_between_events {
                    meter.reset();
                }
                meter.add(chunk.len()).await?;
                // Comments that only keep the connection alive do not add up.
                let is_between_events = chunk.ends_with(b"\n\n") || chunk.ends_with(b"\r\n\r\n");
                Ok(Some((chunk, (response, meter, is_between_events))))
            });
        Self(SseByteStream::new(chunks.boxed()))
    }

    /// The next event; `None` at the end of the response.
    pub(super) async fn next(&mut self) -> Result<Option<Sse>, ReceiveError> {
        match self.0.next().await.transpose() {
            Ok(event) => Ok(event),
            Err(Error::Body(error)) => Err(match error.downcast() {
                Ok(error) => *error,
                Err(other) => ReceiveError::ConnectionLost(other.to_string()),
            }),
            Err(error) => Err(ReceiveError::MalformedEvents(error.to_string())),
        }
    }
}
