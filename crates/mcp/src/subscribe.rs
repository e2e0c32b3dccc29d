//! `resources/subscribe` and `resources/unsubscribe`: which resources a legacy session wants to hear of.
//!
//! All that we know of changes is that the registry was swapped; then every subscribed resource may be another.
//!
//! [MCP 2025-11-25, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)

use bytes::Bytes;
use serde::Deserialize;
use tidegate_core::{Error, ErrorKind};

use crate::answer::Message;
use crate::bounded;
use crate::encode::Envelope;
use crate::jsonrpc::{Request, RpcError};
use crate::service::{Peer, Service, empty};
use crate::session::Session;
use crate::wire;

#[derive(Deserialize)]
struct SubscribeParams {
    #[serde(deserialize_with = "bounded::uri")]
    uri: String,
}

impl Service {
    /// The notifications that tell a legacy session of a changed registry.
    pub fn changes(&self, session: &Session) -> Vec<Bytes> {
        let lists = self.list_changed();
        lists.into_iter().chain(session.subscriptions().iter().map(|uri| wire::resource_updated(uri))).collect()
    }

    pub(crate) fn subscribe(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let uri = request.params::<SubscribeParams>()?.uri;
        let refuse = |error: Error| RpcError::from_error(&error, Some(&uri), envelope.dialect);
        if !self.registry().state_for(&peer.caller).has_resource(&uri, &peer.caller) {
            return Err(refuse(Error::new(ErrorKind::NotFound, format!("there is no resource {uri:?}"))));
        }
        if peer.session.as_ref().is_some_and(|session| !session.subscribe(&uri)) {
            return Err(refuse(Error::new(ErrorKind::TooLarge, "too many resources are subscribed to")));
        }
        Ok(empty(envelope))
    }

    pub(crate) fn unsubscribe(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let uri = request.params::<SubscribeParams>()?.uri;
        if let Some(session) = &peer.session {
            session.unsubscribe(&uri);
        }
        Ok(empty(envelope))
    }
}
