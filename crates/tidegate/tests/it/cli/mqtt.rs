//! `mqtt`: messages of a real broker, mosquitto, become rows of a server; other processes leave the broker alone.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Client;
use serde_json::json;

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::{Server, wait_until};
use broker::Broker;

#[path = "../../../../ingest/tests/it/mqtt/broker.rs"]
mod broker;

const PLANT: &str = "
databases:
  - name: plant
    ingest: plant
    tables:
      sensors: {columns: {site: string, n: int64 not null}}
      stamped: {columns: {owner: string, n: int64}, stamp: {owner: subject}}
";

fn configuration(port: u16, topic: &str, client_id: &str) -> String {
    format!(
        "{PLANT}mqtt: [{{broker: 'mqtt://127.0.0.1:{port}', topics: ['{topic}'], \
         table: plant.sensors, client_id: {client_id}, topic_columns: {{site: 1}}}}]\n"
    )
}

/// Publishes with QoS 1, and returns when the broker has acknowledged the message.
fn publish(port: u16, topic: &str, payload: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat();
    let packet = |kind: u8, body: Vec<u8>| {
        assert!(body.len() < 128, "one byte has the length");
        [&[kind, u8::try_from(body.len()).unwrap()][..], &body].concat()
    };
    // Level 4 is MQTT 3.1.1; the session is clean, and is kept alive for a minute.
    let connect = [text("MQTT"), vec![4, 2, 0, 60], text("publisher")].concat();
    stream.write_all(&packet(0x10, connect)).unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [0x20, 2, 0, 0], "the broker accepts the connection");
    let message = [text(topic), vec![0, 1], payload.as_bytes().to_vec()].concat();
    stream.write_all(&packet(0x32, message)).unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [0x40, 2, 0, 1], "the broker has the message");
    stream.write_all(&packet(0xe0, Vec::new())).unwrap();
}

/// The rows of a statement, a line each.
async fn rows(server: &Server, sql: &str) -> Vec<String> {
    let arguments = json!({"database": "plant", "sql": sql, "format": "csv"});
    let response = Client::new().post(server.url.replace("/mcp", "/rest/sql")).json(&arguments).send().await.unwrap();
    response.text().await.unwrap().lines().skip(1).map(str::to_owned).collect()
}

/// Publishes until a row arrives: a broker forgets messages that no session subscribes to.
async fn publish_until_received(server: &Server, port: u16, topic: &str, number: u32) {
    let sql = format!("SELECT count(*) FROM sensors WHERE n = {number}");
    wait_until(async || {
        publish(port, topic, &format!("{{\"n\": {number}}}"));
        rows(server, &sql).await != ["0"]
    })
    .await;
}

#[test]
fn commands_leave_the_broker_to_the_server() {
    // Nothing listens at this port.
    let configured = ConfiguredFolder::new(&configuration(1, "plant/+/data", "node"));
    for arguments in [&["config", "check"][..], &["query", "SELECT 1 AS one"], &["tools"], &["ingest", "status"]] {
        let ran = configured.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        assert!(!ran.stderr.contains("mqtt"), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn entries_are_checked_against_the_declared_tables() {
    let entry = |table: &str, client: &str, more: &str| {
        format!("  - {{broker: 'mqtt://127.0.0.1:1', topics: [a], table: {table}, client_id: {client}{more}}}\n")
    };
    let entries = [
        entry("plent.sensors", "a", ""),
        entry("shop.orders", "b", ""),
        entry("closed.sensor", "c", ""),
        entry("plant.stamped", "d", ""),
        entry("plant.sensors", "e", ", topic: n"),
        entry("plant.sensors", "e", ", qos: 2"),
        entry("sensors", "f", ""),
        entry("plant.created_by_its_first_rows", "g", ""),
    ];
    let configured = ConfiguredFolder::new(&format!(
        "{PLANT}  - {{name: closed, ingest: closed, create_tables: false, tables: {{sensors: {{columns: {{n: int64}}}}}}}}
  - {{name: shop, files: shop}}
mqtt:
{}",
        entries.concat()
    ));
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_rows_over_a_reload_and_a_restart() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    wait_until(async || TcpStream::connect(("127.0.0.1", broker.port)).is_ok()).await;
    let configured = ConfiguredFolder::new(&configuration(broker.port, "plant/+/data", "node-1"));
    let server = serve(&configured);
    publish_until_received(&server, broker.port, "plant/north/data", 1).await;
    assert_eq!(rows(&server, "SELECT DISTINCT site, n FROM sensors").await, ["north,1"]);
    // Another process reads beside the server, and does not take its session.
    let beside = configured.run(&["query", "SELECT 1 AS one"]);
    assert_eq!(beside.code, Some(0), "{beside:?}");
    configured.write(&configuration(broker.port, "mill/+/data", "node-2"));
    publish_until_received(&server, broker.port, "mill/west/data", 2).await;
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    for number in 3..6 {
        publish(broker.port, "mill/east/data", &format!("{{\"n\": {number}}}"));
    }
    let server = serve(&configured);
    wait_until(async || rows(&server, "SELECT n FROM sensors WHERE site = 'east'").await.len() == 3).await;
    broker.end();
    broker.start();
    wait_until(async || TcpStream::connect(("127.0.0.1", broker.port)).is_ok()).await;
    publish_until_received(&server, broker.port, "mill/south/data", 6).await;
    let metrics = Client::new().get(server.url.replace("/mcp", "/metrics")).send().await.unwrap().text().await.unwrap();
    let labels = format!("{{broker=\"mqtt://127.0.0.1:{}\",client_id=\"node-2\"}}", broker.port);
    for (name, value) in [("connected", 1), ("reconnects_total", 1), ("failed_writes_total", 0)] {
        let line = format!("tidegate_mqtt_{name}{labels} {value}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
}
