//! Calls: requests that reach a handler, and the streams that answer them.
//!
//! [MCP 2026-07-28, Server Features](https://modelcontextprotocol.io/specification/2026-07-28/server)

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{Abilities, Call, CompletionRequest, ErrorKind, Reference, Target};

use crate::answer::{Answer, AnswerStream, Asks, Message};
use crate::bounded;
use crate::encode::{CallToolEncoder, CompleteEncoder, Envelope, GetPromptEncoder, ReadResourceEncoder, ReplyEncoder};
use crate::in_flight::InFlightGuard;
use crate::jsonrpc::{Request, RpcError};
use crate::rounds::ThisRound;
use crate::service::{Peer, Service};

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

impl Service {
    pub(crate) async fn call_tool(
        &self,
        request: Request,
        envelope: Envelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let params: CallToolParams = request.params()?;
        let mut call = self.call(Target::Tool(params.name), &request, &envelope, guard.as_ref(), peer);
        call.arguments = params.arguments.unwrap_or_default();
        let may_be_task = envelope.dialect.stateless && request.meta.abilities.tasks;
        call.abilities.tasks = may_be_task;
        let asks = self.let_ask(&mut call, &request, "tools/call", &envelope, peer)?;
        let wants_notices = call.wants_progress || call.log_level.is_some();
        // How far a task is stands in its status.
        call.wants_progress |= may_be_task;
        match self.registry().call(call) {
            Ok(reply) => {
                let encoder = Box::new(CallToolEncoder::new(envelope.clone()));
                let token = request.meta.progress_token;
                let mut stream = AnswerStream::new(reply, encoder, envelope, guard, asks, token, wants_notices);
                if may_be_task {
                    stream = stream.or_task(self.tasks.clone());
                }
                Ok(stream.begin().await)
            }
            // The model sees the tool's errors and can mend its call; protocol errors it may not see.
            Err(error) if error.kind() == ErrorKind::InvalidArguments || error.kind() == ErrorKind::RateLimited => {
                Ok(Answer::Whole(Message::result(CallToolEncoder::failure(envelope, &error))))
            }
            Err(error) => Err(RpcError::from_error(&error, None, envelope.dialect)),
        }
    }

    pub(crate) async fn read_resource(
        &self,
        request: Request,
        envelope: Envelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let uri = request.params::<ReadResourceParams>()?.uri;
        let mut call = self.call(Target::Resource(uri.clone()), &request, &envelope, guard.as_ref(), peer);
        let asks = self.let_ask(&mut call, &request, "resources/read", &envelope, peer)?;
        let snapshot = self.registry().state_for(&peer.caller);
        let mime_type = snapshot.media_type(&uri, &peer.caller);
        let cache = snapshot.read_cache(&uri, &peer.caller);
        let encoder = ReadResourceEncoder::new(envelope.clone(), uri, mime_type, cache);
        self.stream(call, envelope, Box::new(encoder), guard, asks, request.meta.progress_token).await
    }

    pub(crate) async fn get_prompt(
        &self,
        request: Request,
        envelope: Envelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let params: CallToolParams = request.params()?;
        let snapshot = self.registry().state_for(&peer.caller);
        let prompt = snapshot.prompt(&params.name, &peer.caller).ok();
        let description = prompt.and_then(|prompt| prompt.description.clone());
        let mut call = self.call(Target::Prompt(params.name), &request, &envelope, guard.as_ref(), peer);
        call.arguments = params.arguments.unwrap_or_default();
        let asks = self.let_ask(&mut call, &request, "prompts/get", &envelope, peer)?;
        let encoder = GetPromptEncoder::new(envelope.clone(), description);
        self.stream(call, envelope, Box::new(encoder), guard, asks, request.meta.progress_token).await
    }

    pub(crate) async fn complete(
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
        let call = self.call(Target::Completion(completion), &request, &envelope, guard.as_ref(), peer);
        let encoder = Box::new(CompleteEncoder::new(envelope.clone()));
        self.stream(call, envelope, encoder, guard, Asks::Nobody, request.meta.progress_token).await
    }

    async fn stream(
        &self,
        call: Call,
        envelope: Envelope,
        encoder: Box<dyn ReplyEncoder>,
        guard: Option<InFlightGuard>,
        asks: Asks,
        progress_token: Option<String>,
    ) -> Result<Answer, RpcError> {
        let resource = if let Target::Resource(uri) = &call.target { Some(uri.clone()) } else { None };
        let wants_notices = call.wants_progress || call.log_level.is_some();
        let refuse = |error| RpcError::from_error(&error, resource.as_deref(), envelope.dialect);
        let reply = self.registry().call(call).map_err(refuse)?;
        Ok(AnswerStream::new(reply, encoder, envelope, guard, asks, progress_token, wants_notices).begin().await)
    }

    fn call(
        &self,
        target: Target,
        request: &Request,
        envelope: &Envelope,
        guard: Option<&InFlightGuard>,
        peer: &Peer,
    ) -> Call {
        let mut call = Call::new(target, peer.caller.clone());
        call.carries = peer.carries;
        call.wants_progress = request.meta.progress_token.is_some();
        call.log_level = if envelope.dialect.stateless {
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

    /// Lets the handler of `call` ask whatever the client can answer, in the way of its revision.
    fn let_ask(
        &self,
        call: &mut Call,
        request: &Request,
        method: &'static str,
        envelope: &Envelope,
        peer: &Peer,
    ) -> Result<Asks, RpcError> {
        if envelope.dialect.stateless {
            let tasks = call.abilities.tasks;
            call.abilities = Abilities { tasks, ..request.meta.abilities };
            let round = ThisRound::read(
                &self.request_states,
                &peer.caller,
                request,
                method,
                call.target.name(),
                &call.arguments,
            )?;
            call.answers = round.given();
            return Ok(Asks::NextRound(round));
        }
        match &peer.session {
            Some(session) if peer.can_be_asked && session.abilities() != Abilities::default() => {
                call.abilities = session.abilities();
                call.is_asked_live = true;
                Ok(Asks::Live(session.clone()))
            }
            _ => Ok(Asks::Nobody),
        }
    }
}
