//! Requests that call a handler, and the streams that answer them.
//!
//! [MCP 2026-07-28, Server Features](https://modelcontextprotocol.io/specification/2026-07-28/server)

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{CallTarget, ClientCapabilities, CompletionReference, CompletionRequest, ErrorKind};
use tidegate_runtime::Call;

use crate::answer::{AnswerStream, InputMode, RpcAnswer};
use crate::encode::{CallToolEncoder, CollectingEncoder, ReadResourceEncoder};
use crate::input_rounds::InputRound;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::service::{InFlightRequest, McpService, bounded_name, bounded_uri};

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
                let mut stream = AnswerStream::new(reply, encoder, request, input_mode);
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
        Ok(AnswerStream::new(reply, encoder, request, input_mode).begin().await)
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
        Ok(AnswerStream::new(reply, encoder, request, input_mode).begin().await)
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
        Ok(AnswerStream::new(reply, encoder, request, InputMode::Unavailable).begin().await)
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
