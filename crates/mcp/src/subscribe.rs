//! `resources/subscribe` and `resources/unsubscribe`: which resources a legacy session wants to hear of.
//!
//! [MCP 2025-11-25, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)

use serde::Deserialize;

use crate::answer::Message;
use crate::bounded;
use crate::encode::Envelope;
use crate::jsonrpc::{Request, RpcError};
use crate::service::{Peer, Service, empty};

#[derive(Deserialize)]
struct SubscribeParams {
    #[serde(deserialize_with = "bounded::uri")]
    uri: String,
}

impl Service {
    pub(crate) async fn subscribe(
        &self,
        request: &Request,
        envelope: &Envelope,
        peer: &Peer,
    ) -> Result<Message, RpcError> {
        let uri = request.params::<SubscribeParams>()?.uri;
        if let Some(session) = &peer.session {
            let subscribed = session.watch().subscribe(&uri, &peer.caller);
            subscribed.map_err(|error| RpcError::from_error(&error, Some(&uri), envelope.dialect))?;
            session.watch().settled().await;
        }
        Ok(empty(envelope))
    }

    pub(crate) fn unsubscribe(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let uri = request.params::<SubscribeParams>()?.uri;
        if let Some(session) = &peer.session {
            session.watch().unsubscribe(&uri);
        }
        Ok(empty(envelope))
    }
}
