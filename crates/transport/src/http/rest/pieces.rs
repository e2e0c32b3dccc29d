//! The bytes of one answer, written while they are produced.
//!
//! What ends well ends cleanly. What breaks off after its first byte breaks the connection, so that a part is never
//! taken for the whole.

use std::collections::VecDeque;
use std::io;

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use tidegate_core::{Chunk, Error, Metadata, Outcome, Reply, ReplyEvent};
use tokio::time::timeout_at;

use super::answer::told;
use super::blocks::Blocks;
use super::problem::Problem;
use crate::http::response::LAPSED;
use crate::standing::{Lapsed, Standing};

/// Pieces of a short answer that are joined to one response; a piece is at most some 64 KiB.
const JOINED_PIECES_MAX: usize = 4;

/// How chunks become bytes.
pub(in super::super) enum Encoding {
    /// They are bytes.
    Body,
    /// They are text, which is a document by itself.
    Text,
    /// They are content.
    Blocks(Blocks),
}

/// An answer on its way. Dropping it cancels the call.
pub(in super::super) struct Pieces {
    reply: Reply,
    /// Whether its caller is still let in; none for who came by a link, which lets in by itself.
    standing: Option<Standing>,
    encoding: Encoding,
    /// An event that was read before.
    first: Option<ReplyEvent>,
    /// What was read while waiting for the head.
    ready: VecDeque<Bytes>,
    end: Option<Result<Metadata, Error>>,
}

/// What breaks a connection, once what was written before is on its way: it is flushed while this waits.
pub(in super::super) async fn broken_off(why: &'static str) -> io::Error {
    tokio::task::yield_now().await;
    io::Error::other(why)
}

/// An answer when its head is due.
pub(in super::super) enum Begun {
    /// All of it.
    Whole(Bytes, Metadata),
    /// Its beginning.
    Streaming(Box<Pieces>),
}

impl Pieces {
    /// The bytes of `reply`, which begins with `first`.
    pub(in super::super) fn new(
        reply: Reply,
        standing: Option<Standing>,
        encoding: Encoding,
        first: Option<ReplyEvent>,
    ) -> Self {
        Self { reply, standing, encoding, first, ready: VecDeque::new(), end: None }
    }

    /// Waits for the first bytes. A short answer is over by then, or nearly so: it needs no chunks, and if it failed it
    /// is nothing but a problem.
    pub(in super::super) async fn begin(mut self) -> Result<Begun, Problem> {
        if let Some(piece) = self.produce_for_caller().await.map_err(|lapsed| Problem::refused(&lapsed.into()))? {
            self.ready.push_back(piece);
            tokio::task::yield_now().await;
        }
        while self.end.is_none() && self.ready.len() < JOINED_PIECES_MAX {
            match self.produce().now_or_never() {
                Some(Some(piece)) => self.ready.push_back(piece),
                Some(None) => {}
                None => return Ok(Begun::Streaming(Box::new(self))),
            }
        }
        match self.end.take() {
            None => Ok(Begun::Streaming(Box::new(self))),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(facts)) => Ok(Begun::Whole(self.ready.make_contiguous().concat().into(), facts)),
        }
    }

    /// The next bytes, if the caller is still let in.
    async fn produce_for_caller(&mut self) -> Result<Option<Bytes>, Lapsed> {
        loop {
            let Some(standing) = &mut self.standing else { return Ok(self.produce().await) };
            standing.ask().await?;
            let asks_at = standing.asks_at();
            if let Ok(produced) = timeout_at(asks_at, self.produce()).await {
                return Ok(produced);
            }
        }
    }

    /// The next bytes; none at the end. Whoever stops waiting loses nothing.
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
            (Encoding::Text, Chunk::Text(text)) => text.into(),
            (Encoding::Body | Encoding::Text, _) => Bytes::new(),
            (Encoding::Blocks(blocks), chunk) => blocks.chunk(chunk),
        }
    }

    fn outcome(&mut self, outcome: Outcome) -> Bytes {
        let (piece, end) = match (&mut self.encoding, outcome) {
            (Encoding::Body | Encoding::Text, Outcome::Done(facts)) => (Bytes::new(), Ok(facts)),
            (Encoding::Body | Encoding::Text, Outcome::Failed(error)) => (Bytes::new(), Err(error)),
            (Encoding::Blocks(blocks), Outcome::Done(facts)) => (blocks.close(&facts), Ok(facts)),
            (Encoding::Blocks(blocks), Outcome::Failed(error)) => (blocks.fail(&error), Err(error)),
        };
        self.end = Some(end);
        piece
    }

    /// The next piece of a streamed response; an error where it broke off, none at a good end.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let ready = self.ready.pop_front();
        let next = match ready {
            Some(piece) => Some(piece),
            None => match self.produce_for_caller().await {
                Ok(next) => next,
                Err(Lapsed) => return Some(Err(broken_off(LAPSED).await)),
            },
        };
        if let Some(piece) = next {
            return Some(Ok(piece));
        }
        match self.end {
            Some(Ok(_)) => None,
            Some(Err(_)) | None => Some(Err(broken_off("the answer broke off").await)),
        }
    }

    /// The facts about an answer that has ended well.
    fn facts(&self) -> Option<&Metadata> {
        self.end.as_ref()?.as_ref().ok()
    }

    /// The body of a streamed response.
    pub(super) fn body(self, takes_trailers: bool) -> Body {
        let pieces = stream::unfold(Some(self), move |pieces| async move {
            let mut pieces = pieces?;
            match (pieces.next().await, takes_trailers) {
                (Some(Ok(piece)), _) => Some((Ok(Frame::data(piece)), Some(pieces))),
                (Some(Err(error)), _) => Some((Err(error), None)),
                (None, true) => Some((Ok(Frame::trailers(told(pieces.facts()?))), None)),
                (None, false) => None,
            }
        });
        Body::new(StreamBody::new(pieces))
    }
}

impl Begun {
    /// The bytes alone, in pieces; an error where they broke off, and nothing after it.
    pub(in super::super) fn stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        match self {
            Self::Whole(bytes, _) => stream::iter([Ok(bytes)]).boxed(),
            Self::Streaming(pieces) => stream::unfold(Some(pieces), |pieces| async move {
                let mut pieces = pieces?;
                let next = pieces.next().await?;
                let pieces = next.is_ok().then_some(pieces);
                Some((next, pieces))
            })
            .boxed(),
        }
    }
}
