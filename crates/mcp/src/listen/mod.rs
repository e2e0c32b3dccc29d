//! `subscriptions/listen`: a stream of the notifications that a client has asked for, until the server ends it.
//!
//! What there is to say waits as a few flags and the set of URIs of a [`tidegate_core::Watch`], and becomes a message
//! when there is somebody to take it. A client that reads slowly therefore hears of each list and each resource once,
//! however often it changed meanwhile, and costs no memory; one that reads nothing at all is dropped by the bound on
//! writing of its transport, as it is in the midst of any answer.
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

/// One open `subscriptions/listen`. Dropping it ends it.
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
                // What is hidden and what does not exist are left out alike.
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
    /// What there is to tell, the acknowledgement first.
    pub fn feed(&mut self) -> &mut NotificationFeed {
        &mut self.feed
    }

    /// Fires when the client cancels the request: then nothing more may be said.
    pub fn cancellation(&self) -> CancellationToken {
        // A connection that carries nothing else cancels by closing.
        self.guard.as_ref().map(|guard| guard.token().clone()).unwrap_or_default()
    }

    /// The result, which says that the server ends the stream.
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
