//! The events of a response, each with a bound on its size.
//!
//! [Server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html)

use futures::stream::{self, BoxStream, StreamExt as _};
use reqwest::Response;
use sse_stream::{ByteStreamBody, Error, Sse, SseStream};

use crate::bridge::incoming::{MessageMeter, ReceiveError};
use crate::http_client::innermost_cause;

/// Reads the events of a response. `meter` counts the bytes since the last event.
pub(super) struct EventReader(SseStream<ByteStreamBody<BoxStream<'static, Result<bytes::Bytes, ReceiveError>>, bytes::Bytes>>);

impl EventReader {
    pub(super) fn new(response: Response, meter: MessageMeter) -> Self {
        let chunks = stream::try_unfold((response, meter), |(mut response, meter)| async {
            let chunk = response.chunk().await.map_err(|error| ReceiveError::ConnectionLost(innermost_cause(&error)))?;
            let Some(chunk) = chunk else { return Ok(None) };
            meter.add(chunk.len()).await?;
            Ok(Some((chunk, (response, meter))))
        });
        Self(SseStream::from_bytes_stream(chunks.boxed()))
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
