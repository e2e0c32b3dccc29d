//! A foreign client that listens to what changes on disk.

use std::time::Duration;

use rmcp::model::{
    ResourceUpdatedNotificationParam, ServerNotification, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Subscription, SubscriptionEnd};
use rmcp::{ClientHandler, RoleClient, ServiceError};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::Configured;
use super::foreign::{WAYS, connected, serve};

const BEFORE: &str = "databases: [{name: shop, files: shop}]\nbuilt_in: [table]\n";
/// Longer than a change may take to be heard, on a busy machine too.
const HEARD_WITHIN: Duration = Duration::from_secs(60);
const UNKNOWN: &str = "tidegate://nowhere/nothing";

/// A configuration that offers another tool each time.
fn offering(number: usize) -> String {
    format!("{BEFORE}tools: [{{name: tool_{number}, description: D, sql: SELECT 1 AS one}}]\n")
}

fn change_orders(configured: &Configured, rows: usize) {
    let file = configured.folder().join("shop/orders.csv");
    let rows = (0..rows).map(|id| format!("{id},Ann,1\n")).collect::<String>();
    let unfinished = file.with_extension("unfinished");
    std::fs::write(&unfinished, format!("id,customer,amount\n{rows}")).unwrap();
    std::fs::rename(unfinished, file).unwrap();
}

async fn next(subscription: &mut Subscription) -> Option<ServerNotification> {
    tokio::time::timeout(HEARD_WITHIN, subscription.next()).await.unwrap().unwrap()
}

/// What a client of an older revision hears.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Tools,
    Updated(String),
}

struct Listener(Sender<Heard>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // An error means that the test is over.
        let _ = self.0.send(Heard::Tools).await;
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(Heard::Updated(params.uri)).await;
    }
}

async fn heard(events: &mut Receiver<Heard>) -> Heard {
    tokio::time::timeout(HEARD_WITHIN, events.recv()).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_hears_what_it_asked_for_and_how_the_stream_ends() {
    let configured = Configured::new(&offering(0));
    let server = serve(&configured);
    for (number, way) in WAYS.into_iter().filter(|way| !way.is_legacy).enumerate() {
        let client = connected((), way, &server, &configured).await;
        let resources = client.list_all_resources().await.unwrap();
        let table = resources.iter().find(|resource| resource.uri.contains("orders")).unwrap().uri.clone();

        let filter = SubscriptionFilter::builder().tools_list_changed().resource_subscriptions([&*table, UNKNOWN]);
        let mut both = client.listen(filter.build()).await.unwrap();
        let honoured = SubscriptionFilter::builder().tools_list_changed().resource_subscription(&*table).build();
        assert_eq!(*both.acknowledged(), honoured, "{way:?}");
        both.cancel().await.unwrap();

        let mut tables =
            client.listen(SubscriptionFilter::builder().resource_subscription(&*table).build()).await.unwrap();
        change_orders(&configured, number + 4);
        let Some(ServerNotification::ResourceUpdatedNotification(updated)) = next(&mut tables).await else {
            panic!("{way:?}: another notification");
        };
        assert_eq!(updated.params.uri, table, "{way:?}");
        tables.cancel().await.unwrap();

        let mut tools = client.listen(SubscriptionFilter::builder().tools_list_changed().build()).await.unwrap();
        configured.write(&offering(number + 1));
        let changed = next(&mut tools).await;
        assert!(matches!(changed, Some(ServerNotification::ToolListChangedNotification(_))), "{way:?}: {changed:?}");
        tools.cancel().await.unwrap();
        client.cancel().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_result_when_the_server_goes() {
    let configured = Configured::new(BEFORE);
    let server = serve(&configured);
    let way = WAYS[0];
    let client = connected((), way, &server, &configured).await;
    let mut tools = client.listen(SubscriptionFilter::builder().tools_list_changed().build()).await.unwrap();
    server.signal("TERM");
    assert_eq!(next(&mut tools).await.map(|_| "a notification"), None);
    assert!(matches!(tools.end(), Some(SubscriptionEnd::Graceful(_))), "{:?}", tools.end());
    assert_eq!(server.ended().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
#[allow(deprecated, reason = "older revisions have these methods")]
async fn a_legacy_client_hears_of_all_lists_and_of_what_it_subscribes_to() {
    let configured = Configured::new(&offering(0));
    let server = serve(&configured);
    for (number, way) in WAYS.into_iter().filter(|way| way.is_legacy).enumerate() {
        let (sender, mut events) = channel(100);
        let client = connected(Listener(sender), way, &server, &configured).await;
        let resources = client.list_all_resources().await.unwrap();
        let table = resources.iter().find(|resource| resource.uri.contains("orders")).unwrap().uri.clone();

        client.subscribe(SubscribeRequestParams::new(&*table)).await.unwrap();
        change_orders(&configured, number + 4);
        assert_eq!(heard(&mut events).await, Heard::Updated(table.clone()), "{way:?}");

        client.unsubscribe(UnsubscribeRequestParams::new(&*table)).await.unwrap();
        change_orders(&configured, number + 10);
        // A new configuration counts as a change of each resource. What there is to say of the first one is said when
        // the second one is.
        for round in 1..=2 {
            configured.write(&offering(10 * (number + 1) + round));
            assert_eq!(heard(&mut events).await, Heard::Tools, "{way:?}");
        }

        let refused = client.subscribe(SubscribeRequestParams::new(UNKNOWN)).await;
        assert!(matches!(refused, Err(ServiceError::McpError(_))), "{way:?}: {refused:?}");
        client.cancel().await.unwrap();
    }
}
