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

use super::answer::answer_headers;
use super::content_writer::ContentWriter;
use super::problem::ProblemDetails;
use crate::http::response::REVOKED_REASON;
use crate::revalidation::{Revoked, SessionValidity};

/// Pieces of a short answer that are joined to one response; a piece is at most some 64 KiB.
const JOINED_PIECES_MAX: usize = 4;

/// How chunks become bytes.
pub(in super::super) enum ChunkEncoding {
    /// They are bytes.
    Body,
    /// They are text, which is a document by itself.
    Text,
    /// They are content.
    Blocks(ContentWriter),
}

/// An answer on its way. Dropping it cancels the call.
pub(in super::super) struct AnswerBody {
    reply: Reply,
    /// Whether its caller is still let in; none for who came by a link, which lets in by itself.
    validity: Option<SessionValidity>,
    encoding: ChunkEncoding,
    /// An event that was read before.
    first: Option<ReplyEvent>,
    /// What was read while waiting for the head.
    ready_pieces: VecDeque<Bytes>,
    end: Option<Result<Metadata, Error>>,
}

/// What breaks a connection, once what was written before is on its way: it is flushed while this waits.
pub(in super::super) async fn broken_body_error(why: &'static str) -> io::Error {
    tokio::task::yield_now().await;
    io::Error::other(why)
}

/// An answer when its head is due.
pub(in super::super) enum AnswerStart {
    /// All of it.
    Whole(Bytes, Metadata),
    /// Its beginning.
    Streaming(Box<AnswerBody>),
}

impl AnswerBody {
    /// The bytes of `reply`, which begins with `next_event`.
    pub(in super::super) fn new(
        reply: Reply,
        validity: Option<SessionValidity>,
        encoding: ChunkEncoding,
        first: Option<ReplyEvent>,
    ) -> Self {
        Self { reply, validity, encoding, first, ready_pieces: VecDeque::new(), end: None }
    }

    /// Waits for the first bytes. A short answer is over by then, or nearly so: it needs no chunks, and if it failed it
    /// is nothing but a problem.
    pub(in super::super) async fn begin(mut self) -> Result<AnswerStart, ProblemDetails> {
        if let Some(piece) =
            self.next_piece_for_caller().await.map_err(|lapsed| ProblemDetails::from_admission_error(&lapsed.into()))?
        {
            self.ready_pieces.push_back(piece);
            tokio::task::yield_now().await;
        }
        while self.end.is_none() && self.ready_pieces.len() < JOINED_PIECES_MAX {
            match self.next_piece().now_or_never() {
                Some(Some(piece)) => self.ready_pieces.push_back(piece),
                Some(None) => {}
                None => return Ok(AnswerStart::Streaming(Box::new(self))),
            }
        }
        match self.end.take() {
            None => Ok(AnswerStart::Streaming(Box::new(self))),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(facts)) => Ok(AnswerStart::Whole(self.ready_pieces.make_contiguous().concat().into(), facts)),
        }
    }

    /// The next bytes, if the caller is still let in.
    async fn next_piece_for_caller(&mut self) -> Result<Option<Bytes>, Revoked> {
        loop {
            let Some(session_validity) = &mut self.validity else { return Ok(self.next_piece().await) };
            session_validity.check_if_due().await?;
            let asks_at = session_validity.next_check_at();
            if let Ok(produced) = timeout_at(asks_at, self.next_piece()).await {
                return Ok(produced);
            }
        }
    }

    /// The next bytes; none at the end. Whoever stops waiting loses nothing.
    async fn next_piece(&mut self) -> Option<Bytes> {
        while self.end.is_none() {
            let event = match self.first.take() {
                Some(event) => event,
                None => self.reply.next().await?,
            };
            let piece = match event {
                ReplyEvent::Chunk(chunk) => self.encode_chunk(chunk),
                ReplyEvent::End(outcome) => self.encode_outcome(outcome),
            };
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        None
    }

    fn encode_chunk(&mut self, chunk: Chunk) -> Bytes {
        match (&mut self.encoding, chunk) {
            (ChunkEncoding::Body, Chunk::Bytes(bytes)) => bytes,
            (ChunkEncoding::Text, Chunk::Text(text)) => text.into(),
            (ChunkEncoding::Body | ChunkEncoding::Text, _) => Bytes::new(),
            (ChunkEncoding::Blocks(blocks), chunk) => blocks.write_chunk(chunk),
        }
    }

    fn encode_outcome(&mut self, outcome: Outcome) -> Bytes {
        let (piece, end) = match (&mut self.encoding, outcome) {
            (ChunkEncoding::Body | ChunkEncoding::Text, Outcome::Done(facts)) => (Bytes::new(), Ok(facts)),
            (ChunkEncoding::Body | ChunkEncoding::Text, Outcome::Failed(error)) => (Bytes::new(), Err(error)),
            (ChunkEncoding::Blocks(blocks), Outcome::Done(facts)) => (blocks.close(&facts), Ok(facts)),
            (ChunkEncoding::Blocks(blocks), Outcome::Failed(error)) => (blocks.fail(&error), Err(error)),
        };
        self.end = Some(end);
        piece
    }

    /// The next piece of a streamed response; an error where it broke off, none at a good end.
    async fn next_result(&mut self) -> Option<io::Result<Bytes>> {
        let ready = self.ready_pieces.pop_front();
        let next = match ready {
            Some(piece) => Some(piece),
            None => match self.next_piece_for_caller().await {
                Ok(next) => next,
                Err(Revoked) => return Some(Err(broken_body_error(REVOKED_REASON).await)),
            },
        };
        if let Some(piece) = next {
            return Some(Ok(piece));
        }
        match self.end {
            Some(Ok(_)) => None,
            Some(Err(_)) | None => Some(Err(broken_body_error("the answer ended early").await)),
        }
    }

    /// The facts about an answer that has ended well.
    fn final_metadata(&self) -> Option<&Metadata> {
        self.end.as_ref()?.as_ref().ok()
    }

    /// The body of a streamed response.
    pub(super) fn into_body(self, takes_trailers: bool) -> Body {
        let pieces = stream::unfold(Some(self), move |pieces| async move {
            let mut pieces = pieces?;
            match (pieces.next_result().await, takes_trailers) {
                (Some(Ok(piece)), _) => Some((Ok(Frame::data(piece)), Some(pieces))),
                (Some(Err(error)), _) => Some((Err(error), None)),
                (None, true) => Some((Ok(Frame::trailers(answer_headers(pieces.final_metadata()?))), None)),
                (None, false) => None,
            }
        });
        Body::new(StreamBody::new(pieces))
    }
}

impl AnswerStart {
    /// The bytes alone, in pieces; an error where they broke off, and nothing after it.
    pub(in super::super) fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        match self {
            Self::Whole(bytes, _) => stream::iter([Ok(bytes)]).boxed(),
            Self::Streaming(pieces) => stream::unfold(Some(pieces), |pieces| async move {
                let mut pieces = pieces?;
                let next = pieces.next_result().await?;
                let pieces = next.is_ok().then_some(pieces);
                Some((next, pieces))
            })
            .boxed(),
        }
    }
}
