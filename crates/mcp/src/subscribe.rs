//! `resources/subscribe` and `resources/unsubscribe` of legacy sessions.
//!
//! [MCP 2025-11-25, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)

use serde::Deserialize;

use crate::answer::ResponseMessage;
use crate::bounded;
use crate::encode::ResponseEnvelope;
use crate::jsonrpc::{RpcError, RpcRequest};
use crate::service::{McpService, Peer, empty_result};

#[derive(Deserialize)]
struct SubscribeParams {
    #[serde(deserialize_with = "bounded::uri")]
    uri: String,
}

impl McpService {
    pub(crate) async fn subscribe(
        &self,
        request: &RpcRequest,
        envelope: &ResponseEnvelope,
        peer: &Peer,
    ) -> Result<ResponseMessage, RpcError> {
        let uri = request.params::<SubscribeParams>()?.uri;
        if let Some(session) = &peer.session {
            let subscribed = session.watch().subscribe(&uri, &peer.caller);
            subscribed.map_err(|error| RpcError::from_error(&error, Some(&uri), envelope.dialect))?;
            session.watch().wait_for_baseline().await;
        }
        Ok(empty_result(envelope))
    }

    pub(crate) fn unsubscribe(
        &self,
        request: &RpcRequest,
        envelope: &ResponseEnvelope,
        peer: &Peer,
    ) -> Result<ResponseMessage, RpcError> {
        let uri = request.params::<SubscribeParams>()?.uri;
        if let Some(session) = &peer.session {
            session.watch().unsubscribe(&uri);
        }
        Ok(empty_result(envelope))
    }
}
