//! What a request gets: nothing, one message, or a message that is written while it is produced.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::FutureExt;
use tidegate_core::{Notice, Reply, ReplyEvent};

use crate::encode::ReplyEncoder;
use crate::in_flight::InFlightGuard;
use crate::jsonrpc::{RequestId, RpcError};
use crate::listen::ListenStream;
use crate::revision::Dialect;
use crate::wire::notice;

/// Frames of a short answer that are joined to one message; a chunk is at most some 64 KiB.
const JOINED_FRAMES_MAX: usize = 4;

/// What a request gets.
pub enum Answer {
    /// Nothing: the client cancelled it before anything was said.
    Silence,
    /// One whole message.
    Whole(Message),
    /// Notifications and the pieces of one message, while they are produced.
    Stream(AnswerStream),
    /// Notifications, for as long as the client listens.
    Listen(ListenStream),
}

/// A whole response message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The message as JSON text on one line.
    pub bytes: Bytes,
    /// The JSON-RPC error code if it is an error.
    pub error_code: Option<i64>,
}

impl Message {
    /// A successful response.
    pub(crate) fn result(bytes: Bytes) -> Self {
        Self { bytes, error_code: None }
    }

    /// A refusal of the request of `id`.
    pub fn error(id: Option<&RequestId>, error: &RpcError) -> Self {
        Self { bytes: error.to_bytes(id), error_code: Some(error.code) }
    }
}

/// A part of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A whole notification that belongs to the request. Only before the first piece.
    Notification(Bytes),
    /// The next bytes of the response message.
    Piece(Bytes),
}

/// A streamed answer. Dropping it cancels the call.
pub struct AnswerStream {
    reply: Reply,
    encoder: Box<dyn ReplyEncoder>,
    guard: Option<InFlightGuard>,
    progress_token: Option<String>,
    dialect: &'static Dialect,
    /// What was read while waiting for the first piece.
    ready: VecDeque<Frame>,
    last_progress: f64,
    wants_notices: bool,
    has_begun: bool,
    has_ended: bool,
    error_code: Option<i64>,
}

impl AnswerStream {
    pub(crate) fn new(
        reply: Reply,
        encoder: Box<dyn ReplyEncoder>,
        guard: Option<InFlightGuard>,
        progress_token: Option<String>,
        wants_notices: bool,
        dialect: &'static Dialect,
    ) -> Self {
        Self {
            reply,
            encoder,
            guard,
            progress_token,
            dialect,
            ready: VecDeque::new(),
            last_progress: f64::NEG_INFINITY,
            wants_notices,
            has_begun: false,
            has_ended: false,
            error_code: None,
        }
    }

    /// Whoever wants news gets a stream at once. For everybody else this waits until there is something to say, so that a call that fails early can be answered as
    /// an error, and one that ends early as one whole message.
    pub(crate) async fn begin(mut self) -> Answer {
        if self.wants_notices {
            return Answer::Stream(self);
        }
        let Some(first) = self.next().await else { return Answer::Silence };
        self.ready.push_back(first);
        // A short answer is over by now, or nearly so; as one message it needs no chunks.
        tokio::task::yield_now().await;
        while !self.has_ended && self.ready.len() < JOINED_FRAMES_MAX {
            match self.produce().now_or_never() {
                Some(Some(frame)) => self.ready.push_back(frame),
                Some(None) => return Answer::Silence,
                None => break,
            }
        }
        if !self.has_ended {
            return Answer::Stream(self);
        }
        let pieces = self.ready.iter().map(|frame| match frame {
            Frame::Notification(bytes) | Frame::Piece(bytes) => bytes.as_ref(),
        });
        Answer::Whole(Message { bytes: pieces.collect::<Vec<_>>().concat().into(), error_code: self.error_code })
    }

    /// The next part; `None` when the answer is complete, or when the client cancelled the
    /// request: then nothing more may be said, and [`AnswerStream::is_complete`] is false.
    pub async fn next(&mut self) -> Option<Frame> {
        match self.ready.pop_front() {
            Some(frame) => Some(frame),
            None => self.produce().await,
        }
    }

    async fn produce(&mut self) -> Option<Frame> {
        while !self.has_ended {
            let event = match &self.guard {
                Some(guard) => tokio::select! {
                    biased;
                    () = guard.token().cancelled() => return None,
                    event = self.reply.next() => event,
                },
                None => self.reply.next().await,
            };
            if let Some(frame) = self.frame_of(event?) {
                return Some(frame);
            }
        }
        None
    }

    /// Whether notifications may come before the response.
    pub fn may_notify(&self) -> bool {
        self.wants_notices && !self.has_begun
    }

    /// Whether the response message is complete.
    pub fn is_complete(&self) -> bool {
        self.has_ended && self.ready.is_empty()
    }

    fn frame_of(&mut self, event: ReplyEvent) -> Option<Frame> {
        let piece = match event {
            ReplyEvent::Chunk(tidegate_core::Chunk::Notice(news)) => return self.notification_of(&news),
            ReplyEvent::Chunk(chunk) => self.encoder.chunk(chunk),
            ReplyEvent::End(outcome) => {
                let (piece, error_code) = self.encoder.end(outcome);
                self.has_ended = true;
                self.error_code = error_code;
                piece
            }
        };
        self.has_begun |= !piece.is_empty();
        (!piece.is_empty()).then_some(Frame::Piece(piece))
    }

    /// Progress only rises, and no notification comes once the response has begun.
    fn notification_of(&mut self, news: &Notice) -> Option<Frame> {
        if self.has_begun {
            return None;
        }
        if let Notice::Progress { done, .. } = news {
            if *done <= self.last_progress {
                return None;
            }
            self.last_progress = *done;
        }
        notice(news, self.progress_token.as_deref(), self.dialect).map(Frame::Notification)
    }
}
