//! The body of one answer, written while it is produced.
//!
//! A complete answer ends the body normally. An answer that fails after its first byte breaks the connection, so that
//! no client takes a part for the whole.

use std::collections::VecDeque;
use std::io;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use tidegate_core::Error;
use tidegate_runtime::{AnswerMeta, Reply, ReplyPart};
use tokio::time::timeout_at;

use super::answer_headers::{accepts_trailers, answer_headers};
use super::content_writer::ContentWriter;
use super::problem::ProblemDetails;
use crate::http::body::{REVOKED_REASON, broken_body_error};
use crate::revalidation::{CallerRevalidator, Revoked};

/// Maximum number of pieces of a short answer that are joined into one response; a piece has about 64 KiB at most.
const JOINED_PIECES_MAX: usize = 4;

/// The body of an answer. Dropping it cancels the call.
pub(in crate::http) struct AnswerBody {
    reply: Reply,
    revalidator: CallerRevalidator,
    /// Encodes the parts if they are content blocks; `None` if they are the bytes or the text of the body.
    blocks: Option<ContentWriter>,
    first: Option<ReplyPart>,
    ready_pieces: VecDeque<Bytes>,
    end: Option<Result<AnswerMeta, Error>>,
}

pub(in crate::http) enum AnswerStart {
    /// With the headers of its metadata.
    Whole(Bytes, HeaderMap),
    Streaming(Box<AnswerBody>),
}

impl AnswerBody {
    pub(in crate::http) fn new(
        reply: Reply,
        revalidator: CallerRevalidator,
        blocks: Option<ContentWriter>,
        first: Option<ReplyPart>,
    ) -> Self {
        Self { reply, revalidator, blocks, first, ready_pieces: VecDeque::new(), end: None }
    }

    /// Waits for the first bytes, so that a short answer needs no chunked encoding and a failed one becomes a problem.
    pub(in crate::http) async fn begin(mut self) -> Result<AnswerStart, ProblemDetails> {
        if let Some(piece) = self.next_piece_for_caller().await? {
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
            Some(Ok(metadata)) => {
                let bytes = self.ready_pieces.make_contiguous().concat().into();
                Ok(AnswerStart::Whole(bytes, answer_headers(&metadata)))
            }
        }
    }

    async fn next_piece_for_caller(&mut self) -> Result<Option<Bytes>, Revoked> {
        loop {
            self.revalidator.check_if_due().await?;
            let check_at = self.revalidator.next_check_at();
            if let Ok(piece) = timeout_at(check_at, self.next_piece()).await {
                return Ok(piece);
            }
        }
    }

    /// The next bytes; `None` at the end. Cancelling the wait loses no data.
    async fn next_piece(&mut self) -> Option<Bytes> {
        while self.end.is_none() {
            let part = match self.first.take() {
                Some(part) => part,
                None => self.reply.next().await?,
            };
            let piece = self.encode(part);
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        None
    }

    fn encode(&mut self, part: ReplyPart) -> Bytes {
        match (&mut self.blocks, part) {
            (blocks, ReplyPart::End(end)) => {
                let piece = blocks.as_mut().map(|blocks| blocks.end(&end));
                self.end = Some(end);
                piece.unwrap_or_default()
            }
            (Some(blocks), part) => blocks.write_part(part),
            (None, ReplyPart::Bytes(bytes)) => bytes,
            (None, ReplyPart::Text(text)) => text.into(),
            (None, _) => Bytes::new(),
        }
    }

    /// The next piece of a streamed response; an error if the answer failed, `None` at its regular end.
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

    fn final_metadata(&self) -> Option<&AnswerMeta> {
        self.end.as_ref()?.as_ref().ok()
    }

    pub(in crate::http) fn into_body(self, takes_trailers: bool) -> Body {
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
    /// The bytes without metadata, in pieces; an error ends the stream.
    pub(in crate::http) fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
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

/// The response that begins with `start`. The metadata of the answer is in its headers or its trailer.
pub(in crate::http) fn begin_response(start: AnswerStart, parts: &Parts) -> Response {
    match start {
        AnswerStart::Whole(bytes, headers) => {
            let mut response = Response::new(Body::from(bytes));
            response.headers_mut().extend(headers);
            response
        }
        AnswerStart::Streaming(pieces) => {
            let takes_trailers = accepts_trailers(parts);
            let mut response = Response::new(pieces.into_body(takes_trailers));
            if takes_trailers {
                let names = HeaderValue::from_static("tidegate-rows, tidegate-truncated, tidegate-cursor");
                response.headers_mut().insert(header::TRAILER, names);
            }
            response
        }
    }
}

/// The next part of the answer or its end, without what is beside the answer.
pub(in crate::http) async fn next_part(reply: &mut Reply) -> ReplyPart {
    loop {
        match reply.next().await {
            Some(ReplyPart::Notification(_) | ReplyPart::InputRequest(_)) => {}
            Some(part) => return part,
            None => return ReplyPart::End(Ok(AnswerMeta::default())),
        }
    }
}
