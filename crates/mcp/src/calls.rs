//! Requests that call a handler, and the streams that answer them.
//!
//! [MCP 2026-07-28, Server Features](https://modelcontextprotocol.io/specification/2026-07-28/server)

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{CallTarget, ClientCapabilities, CompletionReference, CompletionRequest, ErrorKind};
use tidegate_runtime::Call;

use crate::answer::{Answer, AnswerStream, InputMode, OpenRequest};
use crate::bounded;
use crate::encode::{CallToolEncoder, CompleteEncoder, GetPromptEncoder, ReadResourceEncoder, ReplyEncoder};
use crate::input_rounds::InputRound;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::service::{McpService, Peer};

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

impl OpenRequest {
    /// The call of `target` for this request, without arguments.
    fn to_call(&self, target: CallTarget, peer: &Peer) -> Call {
        let mut call = Call::new(target, peer.caller.clone());
        call.inline_limit = peer.inline_limit;
        call.wants_progress = self.request.meta.progress_token.is_some();
        call.log_level = if self.envelope.dialect.stateless {
            self.request.meta.log_level
        } else {
            peer.session.as_ref().and_then(|session| session.log_level())
        };
        call.trace_parent = self.request.meta.trace_parent.clone();
        call.trace = self.request.meta.trace;
        if let Some(guard) = &self.guard {
            call.cancellation = guard.token().clone();
        }
        call
    }
}

impl McpService {
    pub(crate) async fn call_tool(&self, open: OpenRequest, peer: &Peer) -> Result<Answer, RpcError> {
        let params: CallToolParams = open.request.params()?;
        let mut call = open.to_call(CallTarget::Tool(params.name), peer);
        call.arguments = params.arguments.unwrap_or_default();
        let may_be_task = open.envelope.dialect.stateless && open.request.meta.client_capabilities.tasks;
        call.client_capabilities.tasks = may_be_task;
        let asks = self.enable_input(&mut call, &open, "tools/call", peer)?;
        // The status of a task contains its progress.
        call.wants_progress |= may_be_task;
        match self.registry().call(call) {
            Ok(reply) => {
                let encoder = Box::new(CallToolEncoder::new(open.envelope.clone()));
                let mut stream = AnswerStream::new(reply, encoder, open, asks);
                if may_be_task {
                    stream = stream.with_task_transition(self.tasks.clone());
                }
                Ok(stream.begin().await)
            }
            // The model sees errors of the tool and can correct its call; it may not see protocol errors.
            Err(error) if error.kind() == ErrorKind::InvalidArguments || error.kind() == ErrorKind::RateLimited => Ok(
                Answer::Whole(ResponseMessage::failure(CallToolEncoder::encode_failure(open.envelope, &error), &error)),
            ),
            Err(error) => Err(RpcError::from_error(&error, None, open.envelope.dialect)),
        }
    }

    pub(crate) async fn read_resource(&self, open: OpenRequest, peer: &Peer) -> Result<Answer, RpcError> {
        let uri = open.request.params::<ReadResourceParams>()?.uri;
        let mut call = open.to_call(CallTarget::Resource(uri.clone()), peer);
        let asks = self.enable_input(&mut call, &open, "resources/read", peer)?;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let mime_type = snapshot.media_type(&uri, &peer.caller);
        let cache = snapshot.resource_cache_hint(&uri, &peer.caller);
        let encoder = ReadResourceEncoder::new(open.envelope.clone(), uri, mime_type, cache);
        self.stream_call(call, open, Box::new(encoder), asks).await
    }

    pub(crate) async fn get_prompt(&self, open: OpenRequest, peer: &Peer) -> Result<Answer, RpcError> {
        let params: CallToolParams = open.request.params()?;
        let snapshot = self.registry().snapshot_for(&peer.caller);
        let prompt = snapshot.prompt(&params.name, &peer.caller).ok();
        let description = prompt.and_then(|prompt| prompt.description.clone());
        let mut call = open.to_call(CallTarget::Prompt(params.name), peer);
        call.arguments = params.arguments.unwrap_or_default();
        let asks = self.enable_input(&mut call, &open, "prompts/get", peer)?;
        let encoder = GetPromptEncoder::new(open.envelope.clone(), description);
        self.stream_call(call, open, Box::new(encoder), asks).await
    }

    pub(crate) async fn complete(&self, open: OpenRequest, peer: &Peer) -> Result<Answer, RpcError> {
        let params: CompleteParams = open.request.params()?;
        let completion = CompletionRequest {
            reference: match params.reference {
                ReferenceParams::Prompt { name } => CompletionReference::Prompt(name),
                ReferenceParams::Resource { uri } => CompletionReference::Resource(uri),
            },
            argument: params.argument.name,
            value: params.argument.value,
            context: params.context.arguments,
        };
        let call = open.to_call(CallTarget::Completion(completion), peer);
        let encoder = Box::new(CompleteEncoder::new(open.envelope.clone()));
        self.stream_call(call, open, encoder, InputMode::Unavailable).await
    }

    async fn stream_call(
        &self,
        call: Call,
        open: OpenRequest,
        encoder: Box<dyn ReplyEncoder>,
        asks: InputMode,
    ) -> Result<Answer, RpcError> {
        let resource = if let CallTarget::Resource(uri) = &call.target { Some(uri.clone()) } else { None };
        let refuse = |error| RpcError::from_error(&error, resource.as_deref(), open.envelope.dialect);
        let reply = self.registry().call(call).map_err(refuse)?;
        Ok(AnswerStream::new(reply, encoder, open, asks).begin().await)
    }

    /// Enables input requests of the handler that the client can answer, in the way of its revision.
    fn enable_input(
        &self,
        call: &mut Call,
        open: &OpenRequest,
        method: &'static str,
        peer: &Peer,
    ) -> Result<InputMode, RpcError> {
        if open.envelope.dialect.stateless {
            let tasks = call.client_capabilities.tasks;
            call.client_capabilities = ClientCapabilities { tasks, ..open.request.meta.client_capabilities };
            let round = InputRound::read(
                &self.request_states,
                &peer.caller,
                &open.request,
                method,
                call.target.name(),
                &call.arguments,
            )?;
            call.input_answers = round.provided_answers();
            return Ok(InputMode::MultiRoundTrip(round));
        }
        match &peer.session {
            Some(session)
                if peer.accepts_server_requests && session.client_capabilities() != ClientCapabilities::default() =>
            {
                call.client_capabilities = session.client_capabilities();
                call.supports_live_input = true;
                Ok(InputMode::Live(session.clone()))
            }
            _ => Ok(InputMode::Unavailable),
        }
    }
}
