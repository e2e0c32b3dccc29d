//! Dispatch of requests to methods, by revision. A request has its message, its sender, and the registration through which
//! it can be cancelled.
//!
//! Only 2025-03-26 has JSON-RPC batches: their responses are sent together, in any order. Sessions, jobs and the server
//! log store names and URIs from clients, so their length is checked when they are read.
//!
//! [MCP 2026-07-28, Versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning),
//! [MCP 2025-03-26, Batching](https://modelcontextprotocol.io/specification/2025-03-26/basic#batching)

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tidegate_core::{Budget, CallTarget, Caller, Error, LogLevel};
use tidegate_runtime::event::Event;
use tidegate_runtime::{Call, ClientRequest, Registry, ServerName};

use crate::answer::{ResponseFrame, RpcAnswer};
use crate::encode::{ResponseEnvelope, ResultType};
use crate::input_rounds::RequestStateStore;
use crate::jsonrpc::{
    DecodeError, IncomingMessage, RequestId, ResponseMessage, RpcError, RpcNotification, RpcRequest, RpcResponse,
};
use crate::list::ToolListCache;
use crate::revision::Revision;
use crate::session::{InFlightGuard, InFlightRequests, McpSession};
use crate::tasks::{TaskFolder, TaskLimits, TaskStore};
use crate::wire::{self, ServerDescription, parse_client_capabilities};

/// MCP over one registry. It is independent of the transport, and several transports can share it.
pub struct McpService {
    registry: Arc<Registry>,
    description: ArcSwap<EncodedDescription>,
    pub(crate) tool_lists: ToolListCache,
    pub(crate) request_states: Arc<RequestStateStore>,
    pub(crate) tasks: Arc<TaskStore>,
}

struct EncodedDescription {
    description: ServerDescription,
    server_info: [Arc<str>; Revision::ALL.len()],
}

impl EncodedDescription {
    fn new(description: ServerDescription) -> Self {
        let server_info = Revision::ALL.map(|revision| description.encode(revision).into());
        Self { description, server_info }
    }
}

#[derive(Deserialize)]
struct InitializeParams {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(default)]
    capabilities: Value,
}

#[derive(Deserialize)]
struct SetLevelParams {
    level: String,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Box<serde_json::value::RawValue>,
}

impl McpService {
    /// MCP over `registry`. Tasks are lost when the process ends.
    pub fn new(registry: Arc<Registry>, description: ServerDescription) -> Arc<Self> {
        Self::with_task_folder(None, registry, description)
    }

    /// MCP over `registry` with tasks stored in `folder`, including those of an earlier process.
    pub fn with_task_folder(
        folder: Option<TaskFolder>,
        registry: Arc<Registry>,
        description: ServerDescription,
    ) -> Arc<Self> {
        Arc::new(Self {
            registry,
            description: ArcSwap::from_pointee(EncodedDescription::new(description)),
            tool_lists: ToolListCache::default(),
            request_states: Arc::new(RequestStateStore::new()),
            tasks: TaskStore::open(folder, TaskLimits::default()),
        })
    }

    /// Waits until every call has ended and the end of every task is stored. After `within` it cancels the calls that
    /// still run and waits for them, within their grace period.
    pub async fn drain(&self, within: Duration) {
        self.registry.drain(within).await;
        self.tasks.drain(self.registry.limits().cancel_grace).await;
    }

    /// The name and version of the server, with its instructions.
    pub fn description(&self) -> ServerDescription {
        self.description.load().description.clone()
    }

    /// Replaces the description, for the next requests.
    pub fn set_description(&self, description: ServerDescription) {
        self.description.store(Arc::new(EncodedDescription::new(description)));
    }

    /// The registry.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Answers `initialize` with the client's revision, if it is supported, else with the newest legacy revision.
    ///
    /// # Errors
    /// If its params are invalid, or the caller exceeds its rate.
    pub async fn initialize(
        &self,
        request: &RpcRequest,
        caller: &Caller,
        in_flight: Arc<InFlightRequests>,
    ) -> Result<(McpSession, ResponseMessage), RpcError> {
        self.admit(caller, Revision::NEWEST_LEGACY).await?;
        self.report_request(&request.method, caller);
        let params: InitializeParams = request.params()?;
        let revision = Revision::parse(&params.protocol_version)
            .filter(|revision| revision.is_legacy())
            .unwrap_or(Revision::NEWEST_LEGACY);
        let envelope = self.envelope(&request.id, revision);
        let mut members = format!(
            "\"protocolVersion\":\"{}\",\"capabilities\":{},\"serverInfo\":{}",
            revision.name(),
            wire::encode_server_capabilities(envelope.dialect),
            envelope.server_info
        );
        members.push_str(&self.instructions_member(caller));
        let message = envelope.respond(&members, None);
        let client_capabilities = envelope.dialect.usable_capabilities(parse_client_capabilities(&params.capabilities));
        Ok((McpSession::new(revision, client_capabilities, in_flight, self.registry.watch()), message))
    }

    /// The revision in which a request is answered.
    ///
    /// # Errors
    /// `-32022` if the revision is not supported, `-32602` if a modern request lacks required metadata.
    pub fn resolve_revision(&self, request: &RpcRequest, session: Option<&McpSession>) -> Result<Revision, RpcError> {
        match (request.meta.protocol_version.as_deref(), session) {
            (Some(version), _) => match Revision::parse(version) {
                Some(revision) if !revision.is_legacy() && request.meta.has_client_capabilities => Ok(revision),
                Some(revision) if !revision.is_legacy() => {
                    Err(RpcError::invalid_params("params._meta lacks \"io.modelcontextprotocol/clientCapabilities\""))
                }
                _ => Err(RpcError::unsupported_version(version)),
            },
            (None, Some(session)) => Ok(session.revision()),
            (None, None) => Err(RpcError::invalid_params(
                "params._meta lacks \"io.modelcontextprotocol/protocolVersion\" and \
                 \"io.modelcontextprotocol/clientCapabilities\"; a client of 2025-11-25 or older begins with initialize",
            )),
        }
    }

    /// Answers one request, except `initialize`.
    pub async fn answer(&self, request: RpcRequest, context: &RequestContext) -> RpcAnswer {
        match self.resolve_revision(&request, context.session.as_deref()) {
            Ok(revision) => self.answer_in_revision(request, revision, context).await,
            Err(error) => RpcAnswer::Whole(ResponseMessage::error(Some(&request.id), &error)),
        }
    }

    /// The same, in the result of [`Self::resolve_revision`].
    pub async fn answer_in_revision(
        &self,
        request: RpcRequest,
        revision: Revision,
        context: &RequestContext,
    ) -> RpcAnswer {
        let id = request.id.clone();
        match self.dispatch(request, revision, context).await {
            Ok(answer) => answer,
            Err(error) => RpcAnswer::Whole(ResponseMessage::error(Some(&id), &error)),
        }
    }

    /// Handles a client's response to a server request.
    pub fn handle_response(&self, response: &RpcResponse, context: &RequestContext) {
        if let Some(session) = &context.session {
            session.server_requests.handle_response(response);
        }
    }

    /// Handles a notification, which is never answered.
    pub fn handle_notification(&self, notification: &RpcNotification, context: &RequestContext) {
        if notification.method != "notifications/cancelled" {
            return;
        }
        let Ok(params) = notification.params::<CancelledParams>() else { return };
        if let (Some(in_flight), Some(id)) = (&context.in_flight, RequestId::from_raw(&params.request_id)) {
            in_flight.cancel(&id);
        }
    }

    async fn dispatch(
        &self,
        request: RpcRequest,
        revision: Revision,
        context: &RequestContext,
    ) -> Result<RpcAnswer, RpcError> {
        self.admit(&context.caller, revision).await?;
        self.report_request(&request.method, &context.caller);
        let envelope = self.envelope(&request.id, revision);
        let guard = context.in_flight.as_ref().map(|in_flight| in_flight.register(&request.id)).transpose()?;
        let request = InFlightRequest { rpc: request, context, envelope, guard };
        let is_modern = request.envelope.dialect.stateless;
        let message = match request.rpc.method.as_str() {
            "tools/call" => return self.call_tool(request).await,
            "resources/read" => return Box::pin(self.read_resource(request)).await,
            "prompts/get" => return Box::pin(self.get_prompt(request)).await,
            "completion/complete" => return Box::pin(self.complete(request)).await,
            "subscriptions/listen" if is_modern => return Ok(RpcAnswer::Listen(Box::pin(self.listen(request)).await?)),
            "tools/list" => self.list_tools(&request)?,
            "resources/list" => Box::pin(self.list_resources(&request)).await?,
            "resources/templates/list" => self.list_templates(&request)?,
            "prompts/list" => self.list_prompts(&request)?,
            "tasks/get" if is_modern => Box::pin(self.get_task(&request)).await?,
            "tasks/update" if is_modern => self.update_task(&request)?,
            "tasks/cancel" if is_modern => self.cancel_task(&request)?,
            "server/discover" if is_modern => self.discover(&request),
            "resources/subscribe" if !is_modern => Box::pin(self.subscribe(&request)).await?,
            "resources/unsubscribe" if !is_modern => self.unsubscribe(&request)?,
            "ping" if !is_modern => request.envelope.respond("", None),
            "logging/setLevel" if !is_modern => set_level(&request)?,
            method => return Err(RpcError::method_not_found(method)),
        };
        Ok(RpcAnswer::Whole(message))
    }

    async fn admit(&self, caller: &Caller, revision: Revision) -> Result<(), RpcError> {
        let admitted = self.registry.admit_request(caller).await;
        admitted.map_err(|error| RpcError::from_error(&error, None, revision.dialect()))
    }

    fn report_request(&self, method: &str, caller: &Caller) {
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        self.registry.events().emit(Event::RequestAdmitted { method, transport: caller.origin.transport });
    }

    fn instructions_member(&self, caller: &Caller) -> String {
        let (encoded, snapshot) = (self.description.load(), self.registry.snapshot_for(caller));
        let Some(mut instructions) = encoded.description.instructions_for(snapshot.tools(caller)) else {
            return String::new();
        };
        let notes = snapshot.instruction_notes(caller);
        if !notes.is_empty() {
            instructions = format!("{}\n{notes}", instructions.trim_end());
        }
        format!(",\"instructions\":{}", json!(instructions))
    }

    fn discover(&self, request: &InFlightRequest<'_>) -> ResponseMessage {
        let envelope = &request.envelope;
        let versions: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.name()).collect();
        let capabilities = wire::encode_server_capabilities(envelope.dialect);
        let mut members = format!("\"supportedVersions\":{},\"capabilities\":{capabilities}", json!(versions));
        members.push_str(&self.instructions_member(request.caller()));
        envelope.respond(&members, Some(self.registry.snapshot().cache_hint()))
    }

    fn envelope(&self, id: &RequestId, revision: Revision) -> ResponseEnvelope {
        // The discriminant of a revision is its index in `ALL`.
        let description = self.description.load();
        let server_info = match self.registry.snapshot().server_name() {
            ServerName { name: None, version: None } => description.server_info[revision as usize].clone(),
            replaced => description.description.with_server_name(replaced).encode(revision).into(),
        };
        ResponseEnvelope {
            id: id.clone(),
            dialect: revision.dialect(),
            server_info,
            result_type: ResultType::Complete,
            is_nested: false,
        }
    }
}

/// The methods of all revisions.
const METHODS: [&str; 18] = [
    "initialize",
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "server/discover",
    "resources/subscribe",
    "resources/unsubscribe",
    "ping",
    "logging/setLevel",
];

/// Whether an answer to `method` depends on the state of a session, or changes it. A client of a legacy revision may send
/// other requests without a handshake.
pub fn needs_session(method: &str) -> bool {
    !STATELESS_METHODS.contains(&method)
}

/// The methods whose answers depend on the request and its sender only.
const STATELESS_METHODS: [&str; 9] = [
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "ping",
];

fn set_level(request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
    let params: SetLevelParams = request.rpc.params()?;
    let level = LogLevel::parse(&params.level).ok_or_else(|| {
        let levels: Vec<&str> = LogLevel::ALL.iter().map(|level| level.name()).collect();
        RpcError::invalid_params(format!("there is no level {:?}; levels are {}", params.level, levels.join(", ")))
    })?;
    if let Some(session) = &request.context.session {
        session.set_log_level(level);
    }
    Ok(request.envelope.respond("", None))
}

/// The sender of a request, with the state of its connection or session.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// The principal and origin of the sender.
    pub caller: Caller,
    /// The maximum inline size that the transport can carry.
    pub inline_limit: Budget,
    /// Whether the transport can send server requests to a legacy client during its request and receive the responses.
    pub accepts_server_requests: bool,
    /// The legacy session, if there was a handshake.
    pub session: Option<Arc<McpSession>>,
    /// Open requests that a later message can cancel; `None` if a connection has a single request.
    pub in_flight: Option<Arc<InFlightRequests>>,
}

pub(crate) struct InFlightRequest<'a> {
    pub(crate) rpc: RpcRequest,
    pub(crate) context: &'a RequestContext,
    pub(crate) envelope: ResponseEnvelope,
    /// The registration through which its client can cancel it.
    pub(crate) guard: Option<InFlightGuard>,
}

impl InFlightRequest<'_> {
    pub(crate) fn caller(&self) -> &Caller {
        &self.context.caller
    }

    pub(crate) fn to_rpc_error(&self, error: &Error) -> RpcError {
        RpcError::from_error(error, None, self.envelope.dialect)
    }

    /// The call of `target` for this request, without arguments.
    pub(crate) fn to_call(&self, target: CallTarget) -> Call {
        let meta = &self.rpc.meta;
        let session = self.context.session.as_ref();
        let mut call = Call::new(target, self.context.caller.clone());
        call.inline_limit = self.context.inline_limit;
        call.wants_progress = meta.progress_token.is_some();
        call.log_level = match self.envelope.dialect.stateless {
            true => meta.log_level,
            false => session.and_then(|session| session.log_level()),
        };
        call.client_request = Some(ClientRequest { id: self.rpc.id.to_shared_json(), meta: meta.text.clone() });
        call.trace_parent = meta.trace_parent.clone();
        call.trace = meta.trace;
        if let Some(guard) = &self.guard {
            call.cancellation = guard.token().clone();
        }
        call
    }
}

const CONCURRENT_MAX: usize = 8;
/// A JSON-RPC batch is answered as a whole, so its responses are collected in memory.
const RPC_BATCH_ANSWER_BYTES_MAX: usize = 256 * 1024;

impl McpService {
    /// Answers a JSON-RPC batch; `None` if it contains nothing to answer. Each message has its own caller, which is
    /// authenticated when its turn comes: that can take minutes, and the credential may be revoked meanwhile.
    ///
    /// # Errors
    /// `-32600` if the context's revision has no JSON-RPC batches.
    pub async fn answer_rpc_batch(
        &self,
        messages: impl Stream<Item = (Result<IncomingMessage, DecodeError>, Caller)>,
        context: &RequestContext,
    ) -> Result<Option<Bytes>, RpcError> {
        if !context.session.as_ref().is_some_and(|session| session.revision().has_batches()) {
            return Err(RpcError::invalid_request("batches exist only in revision 2025-03-26"));
        }
        let carries = context.inline_limit.and(Budget { rows: None, bytes: Some(RPC_BATCH_ANSWER_BYTES_MAX) });
        let answers: Vec<Option<Bytes>> = messages
            .map(|(message, caller)| {
                self.answer_one_of_rpc_batch(
                    message,
                    RequestContext { caller, inline_limit: carries, accepts_server_requests: false, ..context.clone() },
                )
            })
            .buffered(CONCURRENT_MAX)
            .collect()
            .await;
        let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
        Ok((!answers.is_empty()).then(|| join_rpc_batch(&answers)))
    }

    async fn answer_one_of_rpc_batch(
        &self,
        message: Result<IncomingMessage, DecodeError>,
        context: RequestContext,
    ) -> Option<Bytes> {
        match message {
            Ok(IncomingMessage::Request(mut request)) => {
                // The response to a JSON-RPC batch cannot contain notifications of a request.
                request.meta.progress_token = None;
                self.whole_answer(request, &context).await
            }
            Ok(IncomingMessage::Notification(notification)) => {
                self.handle_notification(&notification, &context);
                None
            }
            Ok(IncomingMessage::Response(response)) => {
                self.handle_response(&response, &context);
                None
            }
            Ok(IncomingMessage::RpcBatch(_)) => {
                Some(ResponseMessage::error(None, &RpcError::invalid_request("a batch cannot contain a batch")).bytes)
            }
            Err(rejection) => Some(ResponseMessage::error(rejection.id.as_ref(), &rejection.error).bytes),
        }
    }

    async fn whole_answer(&self, request: RpcRequest, context: &RequestContext) -> Option<Bytes> {
        let id = request.id.clone();
        match self.answer(request, context).await {
            RpcAnswer::NoResponse => None,
            RpcAnswer::Whole(message) => Some(message.bytes),
            RpcAnswer::Listen(_) => {
                let error = RpcError::invalid_request("a batch cannot contain subscriptions/listen");
                Some(ResponseMessage::error(Some(&id), &error).bytes)
            }
            RpcAnswer::Stream(mut stream) => {
                let mut whole = Vec::new();
                while let Some(frame) = stream.next().await {
                    if let ResponseFrame::ResponseBytes(piece) = frame {
                        whole.extend_from_slice(&piece);
                    }
                }
                stream.is_complete().then(|| whole.into())
            }
        }
    }
}

fn join_rpc_batch(answers: &[Bytes]) -> Bytes {
    let mut batch = vec![b'['];
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            batch.push(b',');
        }
        batch.extend_from_slice(answer);
    }
    batch.push(b']');
    batch.into()
}

/// The maximum length of names of tools and prompts in bytes. No registered name is nearly as long.
pub const NAME_BYTES_MAX: usize = 4 * 1024;
const URI_BYTES_MAX: usize = 8 * 1024;

pub(crate) fn bounded_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(deserializer, "name", NAME_BYTES_MAX)
}

pub(crate) fn bounded_uri<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(deserializer, "URI", URI_BYTES_MAX)
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D, subject: &str, bytes_max: usize) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.len() > bytes_max {
        return Err(D::Error::custom(format_args!("the {subject} is {} bytes long; at most {bytes_max}", text.len())));
    }
    Ok(text)
}
