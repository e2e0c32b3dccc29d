//! Answers to requests: nothing, one message, or a message that is sent while it is produced.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{AnswerMeta, Job, PendingInputRequest, Reply, ReplyNotification, ReplyPart};

use crate::encode::{ReplyEncoder, ResponseEnvelope, ResultType};
use crate::input_rounds::InputRound;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::listen::ListenStream;
use crate::messages::encode_notification;
use crate::service::InFlightRequest;
use crate::session::{InFlightGuard, McpSession};
use crate::tasks::{TaskStore, TaskTransition, TransitionOutcome};

/// The maximum number of frames of a short answer that are joined to one message; a frame has at most about 64 KiB.
const JOINED_FRAMES_MAX: usize = 4;

/// The answer to a request.
pub enum RpcAnswer {
    /// No response: the client cancelled the request before the response began.
    NoResponse,
    /// One complete message.
    Whole(ResponseMessage),
    /// Notifications and the frames of one message, while they are produced.
    Stream(Box<AnswerStream>),
    /// Notifications, until the client or the server ends the stream.
    Listen(ListenStream),
}

/// A part of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerFrame {
    /// A complete message that belongs to the request: a notification, or a server request to a legacy client. Sent
    /// only before the first response bytes.
    Notification(Bytes),
    /// The next bytes of the response message.
    ResponseBytes(Bytes),
}

pub(crate) enum InputMode {
    /// It cannot.
    Unavailable,
    /// The call ends with the input requests, and the client sends it again with the answers.
    MultiRoundTrip(InputRound),
    /// With server requests, while the call runs.
    Live(Arc<McpSession>),
}

/// A streamed answer. Dropping it cancels the call.
pub struct AnswerStream {
    job: Arc<Job>,
    /// `None` while the call becomes a task.
    reply: Option<Reply>,
    encoder: Box<dyn ReplyEncoder>,
    guard: Option<InFlightGuard>,
    progress_token: Option<String>,
    envelope: ResponseEnvelope,
    input_mode: InputMode,
    /// The transition to a task; `None` for a call that cannot become one.
    task_transition: Option<TaskTransition>,
    ready_frames: VecDeque<AnswerFrame>,
    last_progress: f64,
    /// The last progress message, for the status of a task that the call may become.
    last_message: Option<String>,
    sends_notifications: bool,
    has_begun: bool,
    has_ended: bool,
    /// The error, if the whole response is one.
    error: Option<RpcError>,
}

impl AnswerStream {
    pub(crate) fn new(
        reply: Reply,
        encoder: Box<dyn ReplyEncoder>,
        request: InFlightRequest<'_>,
        input_mode: InputMode,
    ) -> Self {
        let InFlightRequest { rpc, envelope, guard, .. } = request;
        let progress_token = rpc.meta.progress_token;
        let sends_notifications = progress_token.is_some() || reply.job().request().log_level.is_some();
        Self {
            job: reply.job().clone(),
            reply: Some(reply),
            encoder,
            guard,
            progress_token,
            envelope,
            input_mode,
            task_transition: None,
            ready_frames: VecDeque::new(),
            last_progress: f64::NEG_INFINITY,
            last_message: None,
            sends_notifications,
            has_begun: false,
            has_ended: false,
            error: None,
        }
    }

    /// Starts the answer. A client that requests notifications gets a stream at once. Otherwise this waits for the
    /// first output, so that a call that fails early becomes an error response, and a short answer becomes one message.
    pub(crate) async fn begin(mut self) -> RpcAnswer {
        if self.sends_notifications {
            return RpcAnswer::Stream(Box::new(self));
        }
        let Some(first) = self.next().await else { return RpcAnswer::NoResponse };
        let is_server_request = matches!(first, AnswerFrame::Notification(_));
        self.ready_frames.push_back(first);
        if is_server_request {
            return RpcAnswer::Stream(Box::new(self));
        }
        // A short answer has usually ended by now. As one message it needs no chunked transfer.
        tokio::task::yield_now().await;
        while !self.has_ended && self.ready_frames.len() < JOINED_FRAMES_MAX {
            match self.produce_frame().now_or_never() {
                Some(Some(frame)) => self.ready_frames.push_back(frame),
                Some(None) => return RpcAnswer::NoResponse,
                None => break,
            }
        }
        if !self.has_ended {
            return RpcAnswer::Stream(Box::new(self));
        }
        let parts = self.ready_frames.iter().map(|frame| match frame {
            AnswerFrame::Notification(bytes) | AnswerFrame::ResponseBytes(bytes) => bytes.as_ref(),
        });
        let bytes = parts.collect::<Vec<_>>().concat().into();
        let (error_code, call_rejection) = self.error.map(|error| (error.code, error.rejection)).unzip();
        RpcAnswer::Whole(ResponseMessage { bytes, error_code, rejection: call_rejection.flatten() })
    }

    /// The next frame. `None` when the answer is complete, or when the client cancelled the request. In the latter case
    /// nothing more may be sent, and [`AnswerStream::is_complete`] is false.
    pub async fn next(&mut self) -> Option<AnswerFrame> {
        match self.ready_frames.pop_front() {
            Some(frame) => Some(frame),
            None => self.produce_frame().await,
        }
    }

    pub(crate) fn with_task_transition(self, tasks: Arc<TaskStore>) -> Self {
        let transition = Some(TaskTransition::new(tasks, self.job.limits().task_after));
        Self { task_transition: transition, ..self }
    }

    async fn produce_frame(&mut self) -> Option<AnswerFrame> {
        let Some(guard) = &self.guard else { return self.wait_for_frame().await };
        let cancelled = guard.token().clone();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            frame = self.wait_for_frame() => frame,
        }
    }

    /// Waits for the next frame. Cancel-safe: dropping the future loses nothing.
    async fn wait_for_frame(&mut self) -> Option<AnswerFrame> {
        while !self.has_ended {
            let frame = match self.next_part().await {
                Some(part) => self.reply_frame(part),
                None => {
                    let transition_outcome = self.task_transition.as_mut()?.finish().await;
                    self.task_transition = None;
                    self.task_frame(transition_outcome)
                }
            };
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// The next part of the reply; `None` while the call becomes a task.
    async fn next_part(&mut self) -> Option<ReplyPart> {
        let reply = self.reply.as_mut()?;
        let Some(transition) = self.task_transition.as_mut().filter(|_| !self.has_begun) else {
            return reply.next().await;
        };
        let deadline = tokio::time::sleep_until(transition.deadline());
        tokio::select! {
            biased;
            () = transition.requested(&self.job) => {}
            // Before the timeout: a call that has ended, or ended in order to run again, must not become a task
            // because its reader was slow.
            part = reply.next() => return part,
            () = deadline => {}
        }
        transition.begin(self.reply.take()?, self.envelope.clone(), self.last_message.take());
        None
    }

    /// The response for a call that became a task; `None` if it continues as a call.
    fn task_frame(&mut self, transition_outcome: TransitionOutcome) -> Option<AnswerFrame> {
        let (response, error) = match transition_outcome {
            TransitionOutcome::Task(members) => {
                let envelope = self.envelope.clone().with_result_type(ResultType::Task);
                (envelope.encode_response(&members, &AnswerMeta::default(), None), None)
            }
            TransitionOutcome::Failed(error) => (self.envelope.encode_error(&error), Some(error)),
            TransitionOutcome::ContinuesAsCall(reply) => {
                self.reply = Some(reply);
                return None;
            }
        };
        (self.has_begun, self.has_ended, self.error) = (true, true, error);
        Some(AnswerFrame::ResponseBytes(response))
    }

    /// Ends a response that has begun, and cancels its call: the remaining bytes, with `reason` as the error.
    pub fn abandon(&mut self, reason: String) -> Bytes {
        let mut rest: Vec<u8> = Vec::new();
        for frame in self.ready_frames.drain(..) {
            if let AnswerFrame::ResponseBytes(bytes) = frame {
                rest.extend_from_slice(&bytes);
            }
        }
        if !std::mem::replace(&mut self.has_ended, true) {
            self.reply = None;
            let end = ReplyPart::End(Err(Error::new(ErrorKind::Cancelled, reason)));
            rest.extend_from_slice(&self.encoder.encode(end).0);
        }
        rest.into()
    }

    /// Whether notifications or server requests may come before the response.
    pub fn may_notify(&self) -> bool {
        (self.sends_notifications || matches!(self.input_mode, InputMode::Live(_))) && !self.has_begun
    }

    /// Whether the response message is complete.
    pub fn is_complete(&self) -> bool {
        self.has_ended && self.ready_frames.is_empty()
    }

    fn reply_frame(&mut self, part: ReplyPart) -> Option<AnswerFrame> {
        let bytes = match part {
            ReplyPart::Notification(notification) => return self.notification_frame(&notification),
            ReplyPart::InputRequest(pending_input_request) => return self.input_request_frame(pending_input_request),
            ReplyPart::End(end) => {
                let (bytes, error) = self.end(end);
                self.has_ended = true;
                self.error = error;
                bytes
            }
            part => self.encoder.encode(part).0,
        };
        self.has_begun |= !bytes.is_empty();
        (!bytes.is_empty()).then_some(AnswerFrame::ResponseBytes(bytes))
    }

    fn end(&mut self, end: Result<AnswerMeta, Error>) -> (Bytes, Option<RpcError>) {
        let error = match end {
            Err(error) if error.kind() == ErrorKind::InputRequired => error,
            end => return self.encoder.encode(ReplyPart::End(end)),
        };
        match std::mem::replace(&mut self.input_mode, InputMode::Unavailable) {
            InputMode::MultiRoundTrip(round) if !self.has_begun => {
                let job = self.job.clone();
                match round.encode_input_required(self.envelope.clone(), &error, job.target().name(), job.arguments()) {
                    Ok(response) => (response, None),
                    Err(error) => (self.envelope.encode_error(&error), Some(error)),
                }
            }
            // Output that was sent cannot be withdrawn, and would be sent twice.
            _ => {
                let error = Error::internal("a handler requested input after it had begun to answer");
                self.encoder.encode(ReplyPart::End(Err(error)))
            }
        }
    }

    /// A server request. It cannot be sent within a response; its handler then receives no answer.
    fn input_request_frame(&mut self, pending_input_request: PendingInputRequest) -> Option<AnswerFrame> {
        match &self.input_mode {
            InputMode::Live(session) if !self.has_begun => {
                session.server_requests.create_request(pending_input_request).map(AnswerFrame::Notification)
            }
            _ => None,
        }
    }

    /// A notification. Progress must rise, and no notification may follow the start of the response.
    fn notification_frame(&mut self, notification: &ReplyNotification) -> Option<AnswerFrame> {
        if self.has_begun {
            return None;
        }
        if let ReplyNotification::Progress { done, message, .. } = notification {
            if *done <= self.last_progress {
                return None;
            }
            self.last_progress = *done;
            self.last_message.clone_from(message);
        }
        encode_notification(notification, self.progress_token.as_deref(), self.envelope.dialect)
            .map(AnswerFrame::Notification)
    }
}
