//! `subscriptions/listen`: a stream of the requested notifications, until the server ends it. Legacy sessions subscribe
//! to resources with `resources/subscribe`.
//!
//! Pending changes are stored as flags and the set of URIs of a [`tidegate_runtime::Watch`], and are encoded when the
//! client is ready to receive. A slow client therefore receives one notification per list and resource, however often
//! they changed, and uses no memory. A client that reads nothing at all is disconnected by the write timeout of its
//! transport, as for any answer.
//!
//! [MCP 2026-07-28, Subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions),
//! [MCP 2025-11-25, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)

mod feed;
mod filter;

use serde::Deserialize;
use tidegate_core::ErrorKind;

pub use self::feed::{FeedPosition, ListenStream, NotificationFeed};
use self::filter::SubscriptionFilter;
use crate::answer::OpenRequest;
use crate::bounded;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::service::{McpService, Peer};
use crate::wire;

#[derive(Deserialize)]
struct SubscribeParams {
    #[serde(deserialize_with = "bounded::uri")]
    uri: String,
}

impl McpService {
    pub(crate) async fn listen(&self, open: OpenRequest, peer: &Peer) -> Result<ListenStream, RpcError> {
        let subscription_filter = SubscriptionFilter::read(&open.request)?;
        let mut tasks = None;
        if let Some(ids) = subscription_filter.tasks {
            self.require_tasks_extension(&open)?;
            tasks = Some(self.tasks.listen(ids, self.registry(), &peer.caller, &open.envelope.id));
        }
        let (news, ids) = tasks.unzip();
        let watch = self.registry().watch();
        let mut honoured = SubscriptionFilter {
            lists: subscription_filter.lists,
            resources: subscription_filter.resources.as_ref().map(|_| Vec::new()),
            tasks: ids,
        };
        for uri in subscription_filter.resources.into_iter().flatten() {
            match watch.subscribe(&uri, &peer.caller) {
                Ok(()) => honoured.resources.get_or_insert_default().push(uri),
                // Resources that are hidden and resources that do not exist are treated alike.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(RpcError::from_error(&error, None, open.envelope.dialect)),
            }
        }
        watch.wait_for_baseline().await;
        let acknowledgement = wire::encode_acknowledgement(&honoured.to_json(), &open.envelope.id);
        let feed =
            NotificationFeed::for_stream(watch.into(), honoured.lists, news, open.envelope.id.clone(), acknowledgement);
        Ok(ListenStream { feed, envelope: open.envelope, guard: open.guard })
    }

    /// `resources/subscribe` of a legacy session.
    pub(crate) async fn subscribe(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let uri = open.request.params::<SubscribeParams>()?.uri;
        if let Some(session) = &peer.session {
            let subscribed = session.watch().subscribe(&uri, &peer.caller);
            subscribed.map_err(|error| RpcError::from_error(&error, Some(&uri), open.envelope.dialect))?;
            session.watch().wait_for_baseline().await;
        }
        Ok(open.envelope.respond("", None))
    }

    /// `resources/unsubscribe` of a legacy session.
    pub(crate) fn unsubscribe(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let uri = open.request.params::<SubscribeParams>()?.uri;
        if let Some(session) = &peer.session {
            session.watch().unsubscribe(&uri);
        }
        Ok(open.envelope.respond("", None))
    }
}
