//! The bytes of one answer, written while they are produced.
//!
//! What ends well ends cleanly. What breaks off after its first byte breaks the connection, so that a part is never
//! taken for the whole.

use std::collections::VecDeque;

use axum::body::Body;
use bytes::Bytes;
use futures::{FutureExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use tidegate_core::{Chunk, Error, Metadata, Outcome, Reply, ReplyEvent};

use super::answer::told;
use super::blocks::Blocks;
use super::problem::Problem;

/// Pieces of a short answer that are joined to one response; a piece is at most some 64 KiB.
const JOINED_PIECES_MAX: usize = 4;

/// How chunks become bytes.
pub(super) enum Encoding {
    /// They are bytes.
    Body,
    /// They are content.
    Blocks(Blocks),
}

/// An answer on its way. Dropping it cancels the call.
pub(super) struct Pieces {
    reply: Reply,
    encoding: Encoding,
    /// An event that was read before.
    first: Option<ReplyEvent>,
    /// What was read while waiting for the head.
    ready: VecDeque<Bytes>,
    end: Option<Result<Metadata, Error>>,
}

/// An answer when its head is due.
pub(super) enum Begun {
    /// All of it.
    Whole(Bytes, Metadata),
    /// Its beginning.
    Streaming(Pieces),
}

impl Pieces {
    /// The bytes of `reply`, which begins with `first`.
    pub(super) fn new(reply: Reply, encoding: Encoding, first: Option<ReplyEvent>) -> Self {
        Self { reply, encoding, first, ready: VecDeque::new(), end: None }
    }

    /// Waits for the first bytes. A short answer is over by then, or nearly so: it needs no chunks, and if it failed it
    /// is nothing but a problem.
    pub(super) async fn begin(mut self) -> Result<Begun, Problem> {
        if let Some(piece) = self.produce().await {
            self.ready.push_back(piece);
            tokio::task::yield_now().await;
        }
        while self.end.is_none() && self.ready.len() < JOINED_PIECES_MAX {
            match self.produce().now_or_never() {
                Some(Some(piece)) => self.ready.push_back(piece),
                Some(None) => {}
                None => return Ok(Begun::Streaming(self)),
            }
        }
        match self.end.take() {
            None => Ok(Begun::Streaming(self)),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(facts)) => Ok(Begun::Whole(self.ready.make_contiguous().concat().into(), facts)),
        }
    }

    /// The next bytes; none at the end.
    async fn produce(&mut self) -> Option<Bytes> {
        while self.end.is_none() {
            let event = match self.first.take() {
                Some(event) => event,
                None => self.reply.next().await?,
            };
            let piece = match event {
                ReplyEvent::Chunk(chunk) => self.chunk(chunk),
                ReplyEvent::End(outcome) => self.outcome(outcome),
            };
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        None
    }

    fn chunk(&mut self, chunk: Chunk) -> Bytes {
        match (&mut self.encoding, chunk) {
            (Encoding::Body, Chunk::Bytes(bytes)) => bytes,
            (Encoding::Body, _) => Bytes::new(),
            (Encoding::Blocks(blocks), chunk) => blocks.chunk(chunk),
        }
    }

    fn outcome(&mut self, outcome: Outcome) -> Bytes {
        let (piece, end) = match (&mut self.encoding, outcome) {
            (Encoding::Body, Outcome::Done(facts)) => (Bytes::new(), Ok(facts)),
            (Encoding::Body, Outcome::Failed(error)) => (Bytes::new(), Err(error)),
            (Encoding::Blocks(blocks), Outcome::Done(facts)) => (blocks.close(&facts), Ok(facts)),
            (Encoding::Blocks(blocks), Outcome::Failed(error)) => (blocks.fail(&error), Err(error)),
        };
        self.end = Some(end);
        piece
    }

    /// The body of a streamed response.
    pub(super) fn body(self, takes_trailers: bool) -> Body {
        let pieces = stream::unfold(Some(self), move |pieces| async move {
            let mut pieces = pieces?;
            let ready = pieces.ready.pop_front();
            let next = match ready {
                Some(piece) => Some(piece),
                None => pieces.produce().await,
            };
            if let Some(piece) = next {
                return Some((Ok(Frame::data(piece)), Some(pieces)));
            }
            match pieces.end {
                Some(Ok(facts)) if takes_trailers => Some((Ok(Frame::trailers(told(&facts))), None)),
                Some(Ok(_)) => None,
                Some(Err(_)) | None => {
                    // What was written before is flushed while this waits.
                    tokio::task::yield_now().await;
                    Some((Err(std::io::Error::other("the answer broke off")), None))
                }
            }
        });
        Body::new(StreamBody::new(pieces))
    }
}
