//! Dispatch of requests to methods, by revision.
//!
//! [MCP 2026-07-28, Versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning)

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_core::{Caller, LogLevel};
use tidegate_runtime::{Registry, ServerName};

use crate::answer::RpcAnswer;
use crate::encode::{ResponseEnvelope, ResultType};
use crate::in_flight::InFlightRequests;
use crate::jsonrpc::{RequestId, ResponseMessage, RpcError, RpcNotification, RpcRequest, RpcResponse};
use crate::request::{InFlightRequest, RequestContext};
use crate::request_state::RequestStateStore;
use crate::revision::Revision;
use crate::session::McpSession;
use crate::tasks::{TaskFolder, TaskLimits, TaskStore};
use crate::tool_list_cache::ToolListCache;
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

    fn instructions_member(&self, caller: &Caller) -> String {
        let (encoded, snapshot) = (self.description.load(), self.registry.snapshot_for(caller));
        let instructions = encoded.description.instructions_for(snapshot.tools(caller));
        instructions.map(|text| format!(",\"instructions\":{}", json!(text))).unwrap_or_default()
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
