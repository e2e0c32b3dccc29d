//! A request while it is answered: its message, its sender, and the registration through which it can be cancelled.

use std::sync::Arc;

use tidegate_core::{Budget, CallTarget, Caller, Error};
use tidegate_runtime::{Call, ClientRequest};

use crate::encode::ResponseEnvelope;
use crate::in_flight::{InFlightGuard, InFlightRequests};
use crate::jsonrpc::{RpcError, RpcRequest};
use crate::session::McpSession;

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
