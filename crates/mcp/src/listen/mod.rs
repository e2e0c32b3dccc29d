//! `subscriptions/listen`: a stream of the requested notifications, until the server ends it.
//!
//! Pending changes are stored as flags and the set of URIs of a [`tidegate_runtime::Watch`], and are encoded when the
//! client is ready to receive. A slow client therefore receives one notification per list and resource, however often
//! they changed, and uses no memory. A client that reads nothing at all is disconnected by the write timeout of its
//! transport, as for any answer.
//!
//! [MCP 2026-07-28, Subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions)

mod feed;
mod filter;

use tidegate_core::ErrorKind;
use tokio_util::sync::CancellationToken;

pub use self::feed::{FeedPosition, NotificationFeed};
use self::filter::SubscriptionFilter;
use crate::answer::{Answer, ResponseMessage};
use crate::encode::ResponseEnvelope;
use crate::in_flight::InFlightGuard;
use crate::jsonrpc::{RpcError, RpcRequest};
use crate::service::{McpService, Peer};
use crate::wire;

/// An open `subscriptions/listen` stream. Dropping it ends it.
pub struct ListenStream {
    feed: NotificationFeed,
    envelope: ResponseEnvelope,
    guard: Option<InFlightGuard>,
}

impl McpService {
    pub(crate) async fn listen(
        &self,
        request: &RpcRequest,
        envelope: ResponseEnvelope,
        guard: Option<InFlightGuard>,
        peer: &Peer,
    ) -> Result<Answer, RpcError> {
        let subscription_filter = SubscriptionFilter::read(request)?;
        let mut tasks = None;
        if let Some(ids) = subscription_filter.tasks {
            self.require_tasks_extension(request, &envelope)?;
            tasks = Some(self.tasks.listen(ids, self.registry(), &peer.caller, &envelope.id));
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
                Err(error) => return Err(RpcError::from_error(&error, None, envelope.dialect)),
            }
        }
        watch.wait_for_baseline().await;
        let acknowledgement = wire::encode_acknowledgement(&honoured.to_json(), &envelope.id);
        let feed =
            NotificationFeed::for_stream(watch.into(), honoured.lists, news, envelope.id.clone(), acknowledgement);
        Ok(Answer::Listen(ListenStream { feed, envelope, guard }))
    }
}

impl ListenStream {
    /// The notifications, starting with the acknowledgement.
    pub fn feed(&mut self) -> &mut NotificationFeed {
        &mut self.feed
    }

    /// Fires when the client cancels the request. Nothing more may be sent then.
    pub fn cancellation(&self) -> CancellationToken {
        // A connection with a single request is cancelled by closing it.
        self.guard.as_ref().map(|guard| guard.token().clone()).unwrap_or_default()
    }

    /// The result, which reports that the server ends the stream.
    pub fn end(self) -> ResponseMessage {
        let (id, server_info) = (self.envelope.id.as_json(), &self.envelope.server_info);
        let opening = self.envelope.open();
        let result = format!(
            "{opening}\"resultType\":\"complete\",\"_meta\":{{\"io.modelcontextprotocol/serverInfo\":{server_info},\
             \"io.modelcontextprotocol/subscriptionId\":{id}}}}}}}"
        );
        ResponseMessage::result(result.into())
    }
}
