//! The methods `subscriptions/listen`, `resources/subscribe` and `resources/unsubscribe`.

use serde::Deserialize;
use tidegate_core::ErrorKind;

use super::feed::{ListenStream, NotificationFeed};
use super::filter::SubscriptionFilter;
use crate::bounded;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::request::InFlightRequest;
use crate::service::McpService;
use crate::wire;

#[derive(Deserialize)]
struct SubscribeParams {
    #[serde(deserialize_with = "bounded::uri")]
    uri: String,
}

impl McpService {
    pub(crate) async fn listen(&self, request: InFlightRequest<'_>) -> Result<ListenStream, RpcError> {
        let filter = SubscriptionFilter::read(&request.rpc)?;
        let mut tasks = None;
        if let Some(ids) = filter.tasks {
            self.require_tasks_extension(&request)?;
            tasks = Some(self.tasks.listen(ids, self.registry(), request.caller(), &request.envelope.id));
        }
        let (task_feed, task_ids) = tasks.unzip();
        let watch = self.registry().watch();
        let mut honoured = SubscriptionFilter {
            lists: filter.lists,
            resources: filter.resources.as_ref().map(|_| Vec::new()),
            tasks: task_ids,
        };
        for uri in filter.resources.into_iter().flatten() {
            match watch.subscribe(&uri, request.caller()) {
                Ok(()) => honoured.resources.get_or_insert_default().push(uri),
                // Resources that are hidden and resources that do not exist are treated alike.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(request.to_rpc_error(&error)),
            }
        }
        watch.wait_for_baseline().await;
        let InFlightRequest { envelope, guard, .. } = request;
        let acknowledgement = wire::encode_acknowledgement(&honoured.to_json(), &envelope.id);
        let stream = envelope.id.clone();
        let feed = NotificationFeed::for_stream(watch.into(), honoured.lists, task_feed, stream, acknowledgement);
        Ok(ListenStream { feed, envelope, guard })
    }

    /// `resources/subscribe` of a legacy session.
    pub(crate) async fn subscribe(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let uri = request.rpc.params::<SubscribeParams>()?.uri;
        if let Some(session) = &request.context.session {
            let subscribed = session.watch.subscribe(&uri, request.caller());
            subscribed.map_err(|error| RpcError::from_error(&error, Some(&uri), request.envelope.dialect))?;
            session.watch.wait_for_baseline().await;
        }
        Ok(request.envelope.respond("", None))
    }

    /// `resources/unsubscribe` of a legacy session.
    pub(crate) fn unsubscribe(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let uri = request.rpc.params::<SubscribeParams>()?.uri;
        if let Some(session) = &request.context.session {
            session.watch.unsubscribe(&uri);
        }
        Ok(request.envelope.respond("", None))
    }
}
