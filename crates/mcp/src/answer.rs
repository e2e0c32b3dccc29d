//! What a request gets: nothing, one message, or a message that is written while it is produced.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use tidegate_core::{Asked, Error, ErrorKind, Job, Metadata, Notice, Outcome, Reply, ReplyEvent, Said};

use crate::calls::Open;
use crate::encode::{Envelope, ReplyEncoder, ResultType};
use crate::in_flight::InFlightGuard;
use crate::jsonrpc::{Hindrance, RequestId, RpcError};
use crate::listen::ListenStream;
use crate::rounds::ThisRound;
use crate::session::Session;
use crate::tasks::{Became, Tasks, Transition};
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
    Stream(Box<AnswerStream>),
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
    /// What hindered the call, where transports have words of their own for it. A result may tell of it too.
    pub hindrance: Option<Box<Hindrance>>,
}

impl Message {
    /// A successful response.
    pub(crate) fn result(bytes: Bytes) -> Self {
        Self { bytes, error_code: None, hindrance: None }
    }

    /// A result that tells of the failure of its call.
    pub(crate) fn failure(bytes: Bytes, error: &Error) -> Self {
        Self { hindrance: Hindrance::of(error), ..Self::result(bytes) }
    }

    /// A refusal of the request of `id`.
    pub fn error(id: Option<&RequestId>, error: &RpcError) -> Self {
        Self { bytes: error.to_bytes(id), error_code: Some(error.code), hindrance: error.hindrance.clone() }
    }
}

/// A part of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A whole message that belongs to the request: a notification, or a request of ours to a legacy client. Only before
    /// the first piece.
    Notification(Bytes),
    /// The next bytes of the response message.
    Piece(Bytes),
}

/// How the handler of a call asks its client.
pub(crate) enum Asks {
    /// It cannot.
    Nobody,
    /// The call ends with the questions and comes again.
    NextRound(ThisRound),
    /// By requests of ours, while the call goes on.
    Live(Arc<Session>),
}

/// What happened next.
enum Step {
    Said(Said),
    Became(Became),
    Over,
}

/// A streamed answer. Dropping it cancels the call.
pub struct AnswerStream {
    job: Arc<Job>,
    /// None while the call becomes a task.
    reply: Option<Reply>,
    encoder: Box<dyn ReplyEncoder>,
    guard: Option<InFlightGuard>,
    progress_token: Option<String>,
    envelope: Envelope,
    asks: Asks,
    /// How the call becomes a task; none for one that may not.
    to_task: Option<Transition>,
    /// What was read while waiting for the first piece.
    ready: VecDeque<Frame>,
    last_progress: f64,
    /// What the last progress said, for the task that the call may become.
    last_message: Option<String>,
    wants_notices: bool,
    has_begun: bool,
    has_ended: bool,
    /// The error that the whole response is.
    error: Option<RpcError>,
}

impl AnswerStream {
    pub(crate) fn new(reply: Reply, encoder: Box<dyn ReplyEncoder>, open: Open, asks: Asks) -> Self {
        let Open { request, envelope, guard } = open;
        let progress_token = request.meta.progress_token;
        let wants_notices = progress_token.is_some() || reply.job().log_level().is_some();
        Self {
            job: reply.job().clone(),
            reply: Some(reply),
            encoder,
            guard,
            progress_token,
            envelope,
            asks,
            to_task: None,
            ready: VecDeque::new(),
            last_progress: f64::NEG_INFINITY,
            last_message: None,
            wants_notices,
            has_begun: false,
            has_ended: false,
            error: None,
        }
    }

    /// Whoever wants news gets a stream at once. For everybody else this waits until there is something to say, so that a
    /// call that fails early can be answered as an error, and one that ends early as one whole message.
    pub(crate) async fn begin(mut self) -> Answer {
        if self.wants_notices {
            return Answer::Stream(Box::new(self));
        }
        let Some(first) = self.next().await else { return Answer::Silence };
        let is_question = matches!(first, Frame::Notification(_));
        self.ready.push_back(first);
        if is_question {
            return Answer::Stream(Box::new(self));
        }
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
            return Answer::Stream(Box::new(self));
        }
        let pieces = self.ready.iter().map(|frame| match frame {
            Frame::Notification(bytes) | Frame::Piece(bytes) => bytes.as_ref(),
        });
        let bytes = pieces.collect::<Vec<_>>().concat().into();
        let (error_code, hindrance) = self.error.map(|error| (error.code, error.hindrance)).unzip();
        Answer::Whole(Message { bytes, error_code, hindrance: hindrance.flatten() })
    }

    /// The next part; `None` when the answer is complete, or when the client cancelled the
    /// request: then nothing more may be said, and [`AnswerStream::is_complete`] is false.
    pub async fn next(&mut self) -> Option<Frame> {
        match self.ready.pop_front() {
            Some(frame) => Some(frame),
            None => self.produce().await,
        }
    }

    /// The same answer, of a call that may become one of `tasks`.
    pub(crate) fn or_task(self, tasks: Arc<Tasks>) -> Self {
        let to_task = Some(Transition::new(tasks, self.job.task_after()));
        Self { to_task, ..self }
    }

    async fn produce(&mut self) -> Option<Frame> {
        while !self.has_ended {
            let step = match &self.guard {
                Some(guard) => {
                    let cancelled = guard.token().clone();
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => return None,
                        step = self.step() => step,
                    }
                }
                None => self.step().await,
            };
            let frame = match step {
                Step::Said(Said::Event(event)) => self.frame_of(event),
                Step::Said(Said::Asked(asked)) => self.question_of(asked),
                Step::Became(became) => self.task_of(became),
                Step::Over => return None,
            };
            if let Some(frame) = frame {
                return Some(frame);
            }
        }
        None
    }

    /// Waits for what happens next. Whoever stops waiting loses nothing.
    async fn step(&mut self) -> Step {
        let Some(to_task) = self.to_task.as_mut().filter(|_| !self.has_begun) else { return self.next_said().await };
        if let Some(reply) = &mut self.reply {
            let late = tokio::time::sleep_until(to_task.at());
            tokio::select! {
                biased;
                () = to_task.wished(&self.job) => {}
                // Before the time: what has ended, or ended to be run again, is no task because its reader was slow.
                said = reply.next_said() => return said.map_or(Step::Over, Step::Said),
                () = late => {}
            }
        }
        if let Some(reply) = self.reply.take() {
            to_task.begin(reply, self.envelope.clone(), self.last_message.take());
        }
        let became = to_task.end().await;
        self.to_task = None;
        Step::Became(became)
    }

    async fn next_said(&mut self) -> Step {
        match &mut self.reply {
            Some(reply) => reply.next_said().await.map_or(Step::Over, Step::Said),
            None => Step::Over,
        }
    }

    /// The response that says that the call became a task; none when it goes on as it is.
    fn task_of(&mut self, became: Became) -> Option<Frame> {
        let (response, error) = match became {
            Became::Task(members) => {
                let envelope = self.envelope.clone().of_type(ResultType::Task);
                (envelope.whole(&members, &Metadata::new(), None), None)
            }
            Became::Nothing(error) => (self.envelope.error(&error), Some(error)),
            Became::Itself(reply) => {
                self.reply = Some(reply);
                return None;
            }
        };
        (self.has_begun, self.has_ended, self.error) = (true, true, error);
        Some(Frame::Piece(response))
    }

    /// Whether notifications or requests of ours may come before the response.
    pub fn may_notify(&self) -> bool {
        (self.wants_notices || matches!(self.asks, Asks::Live(_))) && !self.has_begun
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
                let (piece, error) = self.end(outcome);
                self.has_ended = true;
                self.error = error;
                piece
            }
        };
        self.has_begun |= !piece.is_empty();
        (!piece.is_empty()).then_some(Frame::Piece(piece))
    }

    fn end(&mut self, outcome: Outcome) -> (Bytes, Option<RpcError>) {
        let Outcome::Failed(error) = outcome else { return self.encoder.end(outcome) };
        if error.kind() != ErrorKind::InputRequired {
            return self.encoder.end(Outcome::Failed(error));
        }
        match std::mem::replace(&mut self.asks, Asks::Nobody) {
            Asks::NextRound(round) if !self.has_begun => {
                let job = self.job.clone();
                match round.ask(self.envelope.clone(), &error, job.target().name(), job.arguments()) {
                    Ok(response) => (response, None),
                    Err(error) => (self.envelope.error(&error), Some(error)),
                }
            }
            // What was said cannot be unsaid, and would be said twice.
            _ => self.encoder.end(Outcome::Failed(Error::internal("a handler asked after it had begun to answer"))),
        }
    }

    /// A request of ours. It has no place within a response, and then its handler is told that there is no answer.
    fn question_of(&mut self, asked: Asked) -> Option<Frame> {
        match &self.asks {
            Asks::Live(session) if !self.has_begun => session.questions().ask(asked).map(Frame::Notification),
            _ => None,
        }
    }

    /// Progress only rises, and no notification comes once the response has begun.
    fn notification_of(&mut self, news: &Notice) -> Option<Frame> {
        if self.has_begun {
            return None;
        }
        if let Notice::Progress { done, message, .. } = news {
            if *done <= self.last_progress {
                return None;
            }
            self.last_progress = *done;
            self.last_message.clone_from(message);
        }
        notice(news, self.progress_token.as_deref(), self.envelope.dialect).map(Frame::Notification)
    }
}
