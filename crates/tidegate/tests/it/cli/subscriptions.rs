//! A foreign client that listens to what changes on disk.

use std::time::Duration;

use rmcp::model::{
    ResourceUpdatedNotificationParam, ServerNotification, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Subscription, SubscriptionEnd};
use rmcp::{ClientHandler, RoleClient, ServiceError};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::ConfiguredFolder;
use super::journals::folder as journal_folder;
use super::logs::EVENTS;
use super::rmcp_client::{CLIENT_TRANSPORTS, connect, serve};

const BEFORE: &str = "databases: [{name: shop, files: shop}]\nbuilt_in: [table]\n";
/// Longer than a change may take to be reported, on a busy machine too.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(60);
const UNKNOWN_URI: &str = "tidegate://nowhere/nothing";

/// A configuration that offers another tool each time.
fn configuration_with_tool(number: usize) -> String {
    format!("{BEFORE}tools: [{{name: tool_{number}, description: D, sql: SELECT 1 AS one}}]\n")
}

fn change_orders(configured: &ConfiguredFolder, rows: usize) {
    let file = configured.folder().join("shop/orders.csv");
    let rows = (0..rows).map(|id| format!("{id},Ann,1\n")).collect::<String>();
    let unfinished = file.with_extension("unfinished");
    std::fs::write(&unfinished, format!("id,customer,amount\n{rows}")).unwrap();
    std::fs::rename(unfinished, file).unwrap();
}

async fn next_notification(subscription: &mut Subscription) -> Option<ServerNotification> {
    tokio::time::timeout(NOTIFICATION_TIMEOUT, subscription.next()).await.unwrap().unwrap()
}

/// The notifications that a client of an older revision receives.
#[derive(Debug, PartialEq, Eq)]
enum ReceivedNotification {
    Tools,
    Updated(String),
}

struct Listener(Sender<ReceivedNotification>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // An error means that the test is over.
        let _ = self.0.send(ReceivedNotification::Tools).await;
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(ReceivedNotification::Updated(params.uri)).await;
    }
}

async fn next_received(events: &mut Receiver<ReceivedNotification>) -> ReceivedNotification {
    tokio::time::timeout(NOTIFICATION_TIMEOUT, events.recv()).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn subscription_delivers_requested_notifications_and_its_end() {
    let configured = ConfiguredFolder::new(&configuration_with_tool(0));
    let server = serve(&configured);
    for (number, way) in CLIENT_TRANSPORTS.into_iter().filter(|way| !way.is_legacy).enumerate() {
        let client = connect((), way, &server, &configured).await;
        let resources = client.list_all_resources().await.unwrap();
        let table = resources.iter().find(|resource| resource.uri.contains("orders")).unwrap().uri.clone();

        let filter = SubscriptionFilter::builder().tools_list_changed().resource_subscriptions([&*table, UNKNOWN_URI]);
        let mut both = client.listen(filter.build()).await.unwrap();
        let honoured = SubscriptionFilter::builder().tools_list_changed().resource_subscription(&*table).build();
        assert_eq!(*both.acknowledged(), honoured, "{way:?}");
        both.cancel().await.unwrap();

        let mut tables =
            client.listen(SubscriptionFilter::builder().resource_subscription(&*table).build()).await.unwrap();
        change_orders(&configured, number + 4);
        let Some(ServerNotification::ResourceUpdatedNotification(updated)) = next_notification(&mut tables).await
        else {
            panic!("{way:?}: another notification");
        };
        assert_eq!(updated.params.uri, table, "{way:?}");
        tables.cancel().await.unwrap();

        let mut tools = client.listen(SubscriptionFilter::builder().tools_list_changed().build()).await.unwrap();
        configured.write(&configuration_with_tool(number + 1));
        let changed = next_notification(&mut tools).await;
        assert!(matches!(changed, Some(ServerNotification::ToolListChangedNotification(_))), "{way:?}: {changed:?}");
        tools.cancel().await.unwrap();
        client.cancel().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_of_a_log_source_learn_of_new_entries() {
    let configured =
        ConfiguredFolder::new("databases: [{name: shop, files: shop}]\nlogs: [{name: app, table: shop.events}]\n");
    let file = configured.folder().join("shop/events.csv");
    std::fs::write(&file, EVENTS).unwrap();
    expect_update(&configured, "tidegate://logs/app", || {
        std::fs::write(&file, format!("{EVENTS}2026-03-01 12:04:00,info,web,new,200\n")).unwrap();
    })
    .await;
    let journal = journal_folder();
    expect_update(&journal, "tidegate://logs/machine", || {
        let system = journal.folder().join("journal/system.journal");
        std::fs::copy(&system, journal.folder().join("journal/user.journal")).unwrap();
    })
    .await;
}

/// A client that subscribes to the listed resource `uri` is notified of `change`.
async fn expect_update(configured: &ConfiguredFolder, uri: &str, change: impl FnOnce()) {
    let server = serve(configured);
    let client = connect((), CLIENT_TRANSPORTS[0], &server, configured).await;
    let uris: Vec<String> = client.list_all_resources().await.unwrap().iter().map(|one| one.uri.clone()).collect();
    assert!(uris.iter().any(|listed| listed == uri), "{uris:?}");
    let filter = SubscriptionFilter::builder().resource_subscription(uri);
    let mut entries = client.listen(filter.build()).await.unwrap();
    change();
    let Some(ServerNotification::ResourceUpdatedNotification(updated)) = next_notification(&mut entries).await else {
        panic!("another notification");
    };
    assert_eq!(updated.params.uri, uri);
    entries.cancel().await.unwrap();
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn subscription_ends_with_a_result_at_shutdown() {
    let configured = ConfiguredFolder::new(BEFORE);
    let server = serve(&configured);
    let way = CLIENT_TRANSPORTS[0];
    let client = connect((), way, &server, &configured).await;
    let mut tools = client.listen(SubscriptionFilter::builder().tools_list_changed().build()).await.unwrap();
    server.signal("TERM");
    assert_eq!(next_notification(&mut tools).await.map(|_| "a notification"), None);
    assert!(matches!(tools.end(), Some(SubscriptionEnd::Graceful(_))), "{:?}", tools.end());
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
#[allow(deprecated, reason = "older revisions have these methods")]
async fn legacy_client_receives_list_and_resource_changes() {
    let configured = ConfiguredFolder::new(&configuration_with_tool(0));
    let server = serve(&configured);
    for (number, way) in CLIENT_TRANSPORTS.into_iter().filter(|way| way.is_legacy).enumerate() {
        let (sender, mut events) = channel(100);
        let client = connect(Listener(sender), way, &server, &configured).await;
        let resources = client.list_all_resources().await.unwrap();
        let table = resources.iter().find(|resource| resource.uri.contains("orders")).unwrap().uri.clone();

        client.subscribe(SubscribeRequestParams::new(&*table)).await.unwrap();
        change_orders(&configured, number + 4);
        assert_eq!(next_received(&mut events).await, ReceivedNotification::Updated(table.clone()), "{way:?}");

        client.unsubscribe(UnsubscribeRequestParams::new(&*table)).await.unwrap();
        change_orders(&configured, number + 10);
        // A new configuration counts as a change of each resource. What there is to say of the first one is said when
        // the second one is.
        for round in 1..=2 {
            configured.write(&configuration_with_tool(10 * (number + 1) + round));
            let mut received = next_received(&mut events).await;
            // A change from before the end of the subscription may be reported again, but not after the first `Tools`.
            while round == 1 && received == ReceivedNotification::Updated(table.clone()) {
                received = next_received(&mut events).await;
            }
            assert_eq!(received, ReceivedNotification::Tools, "{way:?}");
        }

        let refused = client.subscribe(SubscribeRequestParams::new(UNKNOWN_URI)).await;
        assert!(matches!(refused, Err(ServiceError::McpError(_))), "{way:?}: {refused:?}");
        client.cancel().await.unwrap();
    }
}
