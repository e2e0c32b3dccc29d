//! Answers to requests: nothing, one message, or a message that is sent while it is produced, as for requests that call a
//! handler.
//!
//! [MCP 2026-07-28, Server Features](https://modelcontextprotocol.io/specification/2026-07-28/server)

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{CallTarget, ClientCapabilities, CompletionReference, CompletionRequest, Error, ErrorKind};
use tidegate_runtime::{AnswerMeta, Call, Job, PendingInputRequest, Reply, ReplyNotification, ReplyPart};

use crate::encode::{
    CallToolEncoder, CollectingEncoder, ReadResourceEncoder, ReplyEncoder, ResponseEnvelope, ResultType,
};
use crate::input_rounds::InputRound;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::listen::ListenStream;
use crate::messages::encode_notification;
use crate::service::{InFlightRequest, McpService, bounded_name, bounded_uri};
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
    Stream(Box<ResponseStream>),
    /// Notifications, until the client or the server ends the stream.
    Listen(ListenStream),
}

/// A part of a streamed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseFrame {
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

/// A streamed response. Dropping it cancels the call.
pub struct ResponseStream {
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
    ready_frames: VecDeque<ResponseFrame>,
    last_progress: f64,
    /// The last progress message, for the status of a task that the call may become.
    last_message: Option<String>,
    sends_notifications: bool,
    has_begun: bool,
    has_ended: bool,
    /// The error, if the whole response is one.
    error: Option<RpcError>,
}

impl ResponseStream {
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
        let is_server_request = matches!(first, ResponseFrame::Notification(_));
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
            ResponseFrame::Notification(bytes) | ResponseFrame::ResponseBytes(bytes) => bytes.as_ref(),
        });
        let bytes = parts.collect::<Vec<_>>().concat().into();
        let (error_code, call_rejection) = self.error.map(|error| (error.code, error.rejection)).unzip();
        RpcAnswer::Whole(ResponseMessage { bytes, error_code, rejection: call_rejection.flatten() })
    }

    /// The next frame. `None` when the answer is complete, or when the client cancelled the request. In the latter case
    /// nothing more may be sent, and [`ResponseStream::is_complete`] is false.
    pub async fn next(&mut self) -> Option<ResponseFrame> {
        match self.ready_frames.pop_front() {
            Some(frame) => Some(frame),
            None => self.produce_frame().await,
        }
    }

    fn with_task_transition(self, tasks: Arc<TaskStore>) -> Self {
        let transition = Some(TaskTransition::new(tasks, self.job.limits().task_after));
        Self { task_transition: transition, ..self }
    }

    async fn produce_frame(&mut self) -> Option<ResponseFrame> {
        let Some(guard) = &self.guard else { return self.wait_for_frame().await };
        let cancelled = guard.token().clone();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            frame = self.wait_for_frame() => frame,
        }
    }

    /// Waits for the next frame. Cancel-safe: dropping the future loses nothing.
    async fn wait_for_frame(&mut self) -> Option<ResponseFrame> {
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
    fn task_frame(&mut self, transition_outcome: TransitionOutcome) -> Option<ResponseFrame> {
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
        Some(ResponseFrame::ResponseBytes(response))
    }

    /// Ends a response that has begun, and cancels its call: the remaining bytes, with `reason` as the error.
    pub fn abandon(&mut self, reason: String) -> Bytes {
        let mut rest: Vec<u8> = Vec::new();
        for frame in self.ready_frames.drain(..) {
            if let ResponseFrame::ResponseBytes(bytes) = frame {
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

    fn reply_frame(&mut self, part: ReplyPart) -> Option<ResponseFrame> {
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
        (!bytes.is_empty()).then_some(ResponseFrame::ResponseBytes(bytes))
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
    fn input_request_frame(&mut self, pending_input_request: PendingInputRequest) -> Option<ResponseFrame> {
        match &self.input_mode {
            InputMode::Live(session) if !self.has_begun => {
                session.server_requests.create_request(pending_input_request).map(ResponseFrame::Notification)
            }
            _ => None,
        }
    }

    /// A notification. Progress must rise, and no notification may follow the start of the response.
    fn notification_frame(&mut self, notification: &ReplyNotification) -> Option<ResponseFrame> {
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
            .map(ResponseFrame::Notification)
    }
}

#[derive(Deserialize)]
struct CallToolParams {
    #[serde(deserialize_with = "bounded_name")]
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct ReadResourceParams {
    #[serde(deserialize_with = "bounded_uri")]
    uri: String,
}

#[derive(Deserialize)]
struct CompleteParams {
    #[serde(rename = "ref")]
    reference: ReferenceParams,
    argument: ArgumentParams,
    #[serde(default)]
    context: Option<ContextParams>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum ReferenceParams {
    #[serde(rename = "ref/prompt")]
    Prompt {
        #[serde(deserialize_with = "bounded_name")]
        name: String,
    },
    #[serde(rename = "ref/resource")]
    Resource {
        #[serde(deserialize_with = "bounded_uri")]
        uri: String,
    },
}

#[derive(Deserialize)]
struct ArgumentParams {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct ContextParams {
    #[serde(default)]
    arguments: Option<BTreeMap<String, String>>,
}

impl McpService {
    pub(crate) async fn call_tool(&self, request: InFlightRequest<'_>) -> Result<RpcAnswer, RpcError> {
        let params: CallToolParams = request.rpc.params()?;
        let mut call = request.to_call(CallTarget::Tool(params.name));
        call.arguments = params.arguments.unwrap_or_default();
        let may_be_task = request.envelope.dialect.stateless && request.rpc.meta.client_capabilities.tasks;
        call.client_capabilities.tasks = may_be_task;
        let input_mode = self.enable_input(&mut call, &request, "tools/call")?;
        // The status of a task contains its progress.
        call.wants_progress |= may_be_task;
        match self.registry().call(call) {
            Ok(reply) => {
                let encoder = Box::new(CallToolEncoder::new(request.envelope.clone()));
                let mut stream = ResponseStream::new(reply, encoder, request, input_mode);
                if may_be_task {
                    stream = stream.with_task_transition(self.tasks.clone());
                }
                Ok(stream.begin().await)
            }
            // The model sees errors of the tool and can correct its call; it may not see protocol errors.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidArguments | ErrorKind::RateLimited) => {
                let bytes = CallToolEncoder::encode_failure(request.envelope, &error);
                Ok(RpcAnswer::Whole(ResponseMessage::failure(bytes, &error)))
            }
            Err(error) => Err(request.to_rpc_error(&error)),
        }
    }

    pub(crate) async fn read_resource(&self, request: InFlightRequest<'_>) -> Result<RpcAnswer, RpcError> {
        let uri = request.rpc.params::<ReadResourceParams>()?.uri;
        let mut call = request.to_call(CallTarget::Resource(uri.clone()));
        let input_mode = self.enable_input(&mut call, &request, "resources/read")?;
        let snapshot = self.registry().snapshot_for(request.caller());
        let mime_type = snapshot.media_type(&uri, request.caller());
        let cache = snapshot.resource_cache_hint(&uri, request.caller());
        let reply = self.registry().call(call);
        let reply = reply.map_err(|error| RpcError::from_error(&error, Some(&uri), request.envelope.dialect))?;
        let encoder = Box::new(ReadResourceEncoder::new(request.envelope.clone(), uri, mime_type, cache));
        Ok(ResponseStream::new(reply, encoder, request, input_mode).begin().await)
    }

    pub(crate) async fn get_prompt(&self, request: InFlightRequest<'_>) -> Result<RpcAnswer, RpcError> {
        let params: CallToolParams = request.rpc.params()?;
        let snapshot = self.registry().snapshot_for(request.caller());
        let prompt = snapshot.prompt(&params.name, request.caller()).ok();
        let description = prompt.and_then(|prompt| prompt.description.clone());
        let mut call = request.to_call(CallTarget::Prompt(params.name));
        call.arguments = params.arguments.unwrap_or_default();
        let input_mode = self.enable_input(&mut call, &request, "prompts/get")?;
        let reply = self.registry().call(call).map_err(|error| request.to_rpc_error(&error))?;
        let encoder = Box::new(CollectingEncoder::for_prompt(request.envelope.clone(), description));
        Ok(ResponseStream::new(reply, encoder, request, input_mode).begin().await)
    }

    pub(crate) async fn complete(&self, request: InFlightRequest<'_>) -> Result<RpcAnswer, RpcError> {
        let params: CompleteParams = request.rpc.params()?;
        let completion = CompletionRequest {
            reference: match params.reference {
                ReferenceParams::Prompt { name } => CompletionReference::Prompt(name),
                ReferenceParams::Resource { uri } => CompletionReference::Resource(uri),
            },
            argument: params.argument.name,
            value: params.argument.value,
            context: params.context.and_then(|context| context.arguments).unwrap_or_default(),
        };
        let reply = self.registry().call(request.to_call(CallTarget::Completion(completion)));
        let reply = reply.map_err(|error| request.to_rpc_error(&error))?;
        let encoder = Box::new(CollectingEncoder::for_completion(request.envelope.clone()));
        Ok(ResponseStream::new(reply, encoder, request, InputMode::Unavailable).begin().await)
    }

    /// Enables input requests of the handler that the client can answer, in the way of its revision.
    fn enable_input(
        &self,
        call: &mut Call,
        request: &InFlightRequest<'_>,
        method: &'static str,
    ) -> Result<InputMode, RpcError> {
        if request.envelope.dialect.stateless {
            let tasks = call.client_capabilities.tasks;
            call.client_capabilities = ClientCapabilities { tasks, ..request.rpc.meta.client_capabilities };
            let round = InputRound::read(&self.request_states, request, method, call.target.name(), &call.arguments)?;
            call.input_answers = round.provided_answers();
            return Ok(InputMode::MultiRoundTrip(round));
        }
        let session = request.context.session.as_ref().filter(|_| request.context.accepts_server_requests);
        match session.filter(|session| session.client_capabilities != ClientCapabilities::default()) {
            Some(session) => {
                call.client_capabilities = session.client_capabilities;
                call.supports_live_input = true;
                Ok(InputMode::Live(session.clone()))
            }
            None => Ok(InputMode::Unavailable),
        }
    }
}
