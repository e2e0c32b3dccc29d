//! A configuration that changes while the node serves.

use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;

use super::server::Server;
use super::{Configured, tidegate};

const BEFORE: &str = "databases: [{name: shop, files: shop}]\nbuilt_in: []\n";
const AFTER: &str = "databases: [{name: shop, files: shop}]\nbuilt_in: []\ntools: [{name: count, description: C, sql: SELECT count(*) AS n FROM orders}]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_valid_one_is_entered_and_an_invalid_one_changes_nothing() {
    let configured = Configured::new(BEFORE);
    let server = Server::start(tidegate().current_dir(configured.folder()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
    ]));
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let names = async || {
        let tools = client.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect::<Vec<_>>()
    };
    assert!(names().await.is_empty());
    configured.write(AFTER);
    while names().await != ["count"] {
        tokio::task::yield_now().await;
    }
    configured.write("databases: [{name: shop, files: nowhere}]\n");
    configured.write(&AFTER.replace("count(*)", "nothing(*)"));
    server.signal("HUP");
    assert_eq!(names().await, ["count"]);
    configured.write(BEFORE);
    while !names().await.is_empty() {
        tokio::task::yield_now().await;
    }
    client.cancel().await.unwrap();
    server.signal("TERM");
    assert_eq!(server.ended().0.code(), Some(0));
}
