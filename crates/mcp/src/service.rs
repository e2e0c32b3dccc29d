//! Dispatch: which method of which revision means what.
//!
//! [MCP 2026-07-28, Versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning)

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{
    Budget, Call, Caller, CompletionRequest, ErrorKind, LogLevel, Metadata, Reference, Registry, Target,
};

use crate::answer::{Answer, AnswerStream, Message};
use crate::bounded;
use crate::encode::{CallToolEncoder, CompleteEncoder, Envelope, GetPromptEncoder, ReadResourceEncoder, ReplyEncoder};
use crate::in_flight::{InFlight, InFlightGuard};
use crate::jsonrpc::{Notification, Request, RequestId, RpcError};
use crate::list::ToolListCache;
use crate::revision::{Dialect, Revision};
use crate::session::Session;
use crate::wire::{self, About};

/// MCP over one registry. Knows nothing of the transport; any number of them share it.
pub struct Service {
    registry: Arc<Registry>,
    about: About,
    server_info: [Arc<str>; Revision::ALL.len()],
    pub(crate) tool_lists: ToolListCache,
}

/// Who sent a request, and what its connection or session knows.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Who asks, and from where.
    pub caller: Caller,
    /// What the transport can carry inline at most.
    pub carries: Budget,
    /// What a legacy handshake settled, if there was one.
    pub session: Option<Arc<Session>>,
    /// Open requests that a later message may cancel; none where a connection carries one request.
    pub in_flight: Option<Arc<InFlight>>,
}

#[derive(Deserialize)]
struct CallToolParams {
    #[serde(deserialize_with = "bounded::name")]
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct ReadResourceParams {
    #[serde(deserialize_with = "bounded::uri")]
    uri: String,
}

#[derive(Deserialize)]
struct CompleteParams {
    #[serde(rename = "ref")]
    reference: ReferenceParams,
    argument: ArgumentParams,
    #[serde(default)]
    context: ContextParams,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum ReferenceParams {
    #[serde(rename = "ref/prompt")]
    Prompt {
        #[serde(deserialize_with = "bounded::name")]
        name: String,
    },
    #[serde(rename = "ref/resource")]
    Resource {
        #[serde(deserialize_with = "bounded::uri")]
        uri: String,
    },
}

#[derive(Deserialize)]
struct ArgumentParams {
    name: String,
    value: String,
}

#[derive(Deserialize, Default)]
struct ContextParams {
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct InitializeParams {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
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

impl Service {
    /// MCP over `registry`.
    pub fn new(registry: Arc<Registry>, about: About) -> Arc<Self> {
        let server_info =
            Revision::ALL.map(|revision| wire::implementation(&about, revision.dialect()).to_string().into());
        Arc::new(Self { registry, about, server_info, tool_lists: ToolListCache::default() })
    }

    /// Who the server is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What is served.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Answers `initialize`: the client's revision if we speak it, else our newest legacy one.
    ///
    /// # Errors
    /// `-32602` when its params are wrong.
    pub fn initialize(&self, request: &Request, in_flight: Arc<InFlight>) -> Result<(Session, Message), RpcError> {
        let params: InitializeParams = request.params()?;
        let revision = Revision::parse(&params.protocol_version)
            .filter(|revision| revision.is_legacy())
            .unwrap_or(Revision::NEWEST_LEGACY);
        let envelope = self.envelope(&request.id, revision);
        let mut members = format!(
            "\"protocolVersion\":\"{}\",\"capabilities\":{},\"serverInfo\":{}",
            revision.name(),
            wire::server_capabilities(envelope.dialect),
            envelope.server_info
        );
        if let Some(instructions) = &self.about.instructions {
            members.push_str(&format!(",\"instructions\":{}", json!(instructions)));
        }
        let message = Message::result(envelope.whole(&members, &Metadata::new(), None));
        Ok((Session::new(revision, in_flight, self.registry.watch()), message))
    }

    /// The revision that a request is to be answered in.
    ///
    /// # Errors
    /// `-32022` for one that we do not speak, `-32602` when a modern request does not say all it must.
    pub fn revision_of(&self, request: &Request, session: Option<&Session>) -> Result<Revision, RpcError> {
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

    /// Answers one request other than `initialize`.
    pub async fn answer(&self, request: Request, peer: &Peer) -> Answer {
        let id = request.id.clone();
        match self.dispatch(request, peer).await {
            Ok(answer) => answer,
            Err(error) => Answer::Whole(Message::error(Some(&id), &error)),
        }
    }

    /// Hears a notification. It is never answered.
    pub fn notified(&self, notification: &Notification, peer: &Peer) {
        if notification.method != "notifications/cancelled" {
            return;
        }
        let Ok(params) = notification.params::<CancelledParams>() else { return };
        if let (Some(in_flight), Some(id)) = (&peer.in_flight, RequestId::from_raw(&params.request_id)) {
            in_flight.cancel(&id);
        }
    }

    async fn dispatch(&self, request: Request, peer: &Peer) -> Result<Answer, RpcError> {
        let revision = self.revision_of(&request, peer.session.as_deref())?;
        let envelope = self.envelope(&request.id, revision);
        let guard = peer.in_flight.as_ref().map(|in_flight| in_flight.enter(&request.id)).transpose()?;
        let whole = |message| Ok(Answer::Whole(message));
        match request.method.as_str() {
            "tools/list" => whole(self.list_tools(&request, &envelope, peer)?),
            "tools/call" => self.call_tool(request, envelope, guard, peer).await,
            "resources/list" => whole(self.list_resources(&request, &envelope, peer).await?),
            "resources/templates/list" => whole(self.list_templates(&request, &envelope, peer)?),
            "resources/read" => self.read_resource(request, envelope, guard, peer).await,
            "prompts/list" => whole(self.list_prompts(&request, &envelope, peer)?),
            "prompts/get" => self.get_prompt(request, envelope, guard, peer).await,
            "completion/complete" => self.complete(request, envelope, guard, peer).await,
            "server/discover" if envelope.dialect.stateless => whole(self.discover(&envelope)),
            "subscriptions/listen" if envelope.dialect.stateless => self.listen(&request, envelope, guard, peer).await,
            "resources/subscribe" if !envelope.dialect.stateless => {
                whole(self.subscribe(&request, &envelope, peer).await?)
            }
            "resources/unsubscribe" if !envelope.dialect.stateless => {
                whole(self.unsubscribe(&request, &envelope, peer)?)
            }
            "ping" if !envelope.dialect.stateless => whole(empty(&envelope)),
            "logging/setLevel" if !envelope.dialect.stateless => whole(self.set_level(&request, &envelope, peer)?),
            method => Err(RpcError::method_not_found(method)),
        }
    }

    fn discover(&self, envelope: &Envelope) -> Message {
        let versions: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.name()).collect();
        let capabilities = wire::server_capabilities(envelope.dialect);
        let mut members = format!("\"supportedVersions\":{},\"capabilities\":{capabilities}", json!(versions));
        if let Some(instructions) = &self.about.instructions {
            members.push_str(&format!(",\"instructions\":{}", json!(instructions)));
        }
        Message::result(envelope.whole(&members, &Metadata::new(), Some(self.registry.snapshot().cache())))
    }

    fn set_level(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let params: SetLevelParams = request.params()?;
        let level = LogLevel::parse(&params.level).ok_or_else(|| {
            let levels: Vec<&str> = LogLevel::ALL.iter().map(|level| level.name()).collect();
            RpcError::invalid_params(format!("there is no level {:?}; levels are {}", params.level, levels.join(", ")))
        })?;
        if let Some(session) = &peer.session {
            session.set_log_level(level);
        }
        Ok(empty(envelope))
    }

    async fn call_tool(
        &self,
        request: Request,
        envelope: Envelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let params: CallToolParams = request.params()?;
        let mut call = self.call(Target::Tool(params.name), &request, envelope.dialect, guard.as_ref(), peer);
        call.arguments = params.arguments.unwrap_or_default();
        let wants_notices = call.wants_progress || call.log_level.is_some();
        match self.registry.call(call) {
            Ok(reply) => {
                let dialect = envelope.dialect;
                let encoder = Box::new(CallToolEncoder::new(envelope));
                let token = request.meta.progress_token;
                Ok(AnswerStream::new(reply, encoder, guard, token, wants_notices, dialect).begin().await)
            }
            // The model sees the tool's errors and can mend its call; protocol errors it may not see.
            Err(error) if error.kind() == ErrorKind::InvalidArguments || error.kind() == ErrorKind::RateLimited => {
                Ok(Answer::Whole(Message::result(CallToolEncoder::failure(envelope, &error))))
            }
            Err(error) => Err(RpcError::from_error(&error, None, envelope.dialect)),
        }
    }

    async fn read_resource(
        &self,
        request: Request,
        envelope: Envelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let uri = request.params::<ReadResourceParams>()?.uri;
        let call = self.call(Target::Resource(uri.clone()), &request, envelope.dialect, guard.as_ref(), peer);
        let snapshot = self.registry.state_for(&peer.caller);
        let mime_type = snapshot.media_type(&uri, &peer.caller);
        let cache = snapshot.read_cache(&uri, &peer.caller);
        let encoder = ReadResourceEncoder::new(envelope.clone(), uri, mime_type, cache);
        self.stream(call, envelope.dialect, Box::new(encoder), guard, request.meta.progress_token).await
    }

    async fn get_prompt(
        &self,
        request: Request,
        envelope: Envelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let params: CallToolParams = request.params()?;
        let snapshot = self.registry.state_for(&peer.caller);
        let prompt = snapshot.prompt(&params.name, &peer.caller).ok();
        let description = prompt.and_then(|prompt| prompt.description.clone());
        let mut call = self.call(Target::Prompt(params.name), &request, envelope.dialect, guard.as_ref(), peer);
        call.arguments = params.arguments.unwrap_or_default();
        let encoder = GetPromptEncoder::new(envelope.clone(), description);
        self.stream(call, envelope.dialect, Box::new(encoder), guard, request.meta.progress_token).await
    }

    async fn complete(
        &self,
        request: Request,
        envelope: Envelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let params: CompleteParams = request.params()?;
        let completion = CompletionRequest {
            reference: match params.reference {
                ReferenceParams::Prompt { name } => Reference::Prompt(name),
                ReferenceParams::Resource { uri } => Reference::Resource(uri),
            },
            argument: params.argument.name,
            value: params.argument.value,
            context: params.context.arguments,
        };
        let call = self.call(Target::Completion(completion), &request, envelope.dialect, guard.as_ref(), peer);
        let encoder = Box::new(CompleteEncoder::new(envelope.clone()));
        self.stream(call, envelope.dialect, encoder, guard, request.meta.progress_token).await
    }

    async fn stream(
        &self,
        call: Call,
        dialect: &'static Dialect,
        encoder: Box<dyn ReplyEncoder>,
        guard: Option<InFlightGuard>,
        progress_token: Option<String>,
    ) -> Result<Answer, RpcError> {
        let resource = if let Target::Resource(uri) = &call.target { Some(uri.clone()) } else { None };
        let wants_notices = call.wants_progress || call.log_level.is_some();
        let refuse = |error| RpcError::from_error(&error, resource.as_deref(), dialect);
        let reply = self.registry.call(call).map_err(refuse)?;
        Ok(AnswerStream::new(reply, encoder, guard, progress_token, wants_notices, dialect).begin().await)
    }

    fn call(
        &self,
        target: Target,
        request: &Request,
        dialect: &Dialect,
        guard: Option<&InFlightGuard>,
        peer: &Peer,
    ) -> Call {
        let mut call = Call::new(target, peer.caller.clone());
        call.carries = peer.carries;
        call.wants_progress = request.meta.progress_token.is_some();
        call.log_level = if dialect.stateless {
            request.meta.log_level
        } else {
            peer.session.as_ref().and_then(|session| session.log_level())
        };
        call.trace_parent = request.meta.trace_parent.clone();
        call.trace = request.meta.trace;
        if let Some(guard) = guard {
            call.cancellation = guard.token().clone();
        }
        call
    }

    fn envelope(&self, id: &RequestId, revision: Revision) -> Envelope {
        // A revision's position in ALL is its discriminant.
        let server_info = self.server_info[revision as usize].clone();
        Envelope { id: id.clone(), dialect: revision.dialect(), server_info }
    }
}

pub(crate) fn empty(envelope: &Envelope) -> Message {
    Message::result(envelope.whole("", &Metadata::new(), None))
}
