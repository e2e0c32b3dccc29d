//! Callers that leave while something is prepared that others need, too. It is prepared all the same, and once.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use tidegate_testkit::connections::HeldProxy;
use tidegate_testkit::wait::within_timeout;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::super::postgres::{psql, shop};
use super::flight_server::FlightServer;
use super::sign;
use super::site_network::{Answer, ISSUER, KeyPair, call_by};

const STORMS: usize = 20;
const CALLERS: usize = 8;
/// Nothing can be prepared within this time.
const CALLER_TIMEOUT: Duration = Duration::from_millis(100);

const LAKE: &str = "
server: {listen: '127.0.0.1:0', flight: '127.0.0.1:0'}
databases: [{name: plant, files: data}]
roles: [{name: reader, toolsets: ['*'], databases: [plant]}]
auth: {keys: keys.json}
";
const NODE: &str = "
server: {listen: '127.0.0.1:0', flight: '127.0.0.1:0'}
databases:
  - {name: lake, flight_sql: 'grpc://LAKE', token: '${file:lake.token}', catalog: plant}
  - {name: shop, postgres: 'SHOP'}
roles: [{name: reader, toolsets: ['*'], databases: [lake, shop], claims: {groups: readers}}]
auth:
  keys: keys.json
  tokens: {issuer: 'https://uniting.example.com', audience: node, TOKENS}
";

/// Callers leave again and again, while `proxy` holds what they wait for. The next one is served.
async fn storms(subject: &str, proxy: &HeldProxy, connections_max: usize, call: impl AsyncFn() -> Answer) -> Value {
    proxy.hold();
    for _ in 0..STORMS {
        let callers = join_all((0..CALLERS).map(|_| call()));
        let answers = tokio::time::timeout(CALLER_TIMEOUT, callers).await;
        assert!(answers.is_err(), "{subject}: {answers:?}");
    }
    let (answer, ()) = tokio::join!(within_timeout(subject, call()), async { proxy.release() });
    let rows = answer.json();
    let held = proxy.held_connections();
    assert!((1..=connections_max).contains(&held), "{subject}: {held} connections were opened");
    rows
}

/// Answers each request of HTTP with `body`.
async fn start_issuer(body: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let body = body.clone();
            // A caller that is gone reads no answer.
            tokio::spawn(async move { answer_with(stream, &body).await.ok() });
        }
    });
    address
}

async fn answer_with(stream: TcpStream, body: &str) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).await? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length]).await?;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await
}

/// The address and the connection string of a database that is reached through a proxy.
async fn shop_behind_proxy() -> (HeldProxy, String) {
    let admin = shop("leaving");
    let (_, name) = admin.rsplit_once("dbname=").unwrap();
    psql(name, &format!("CREATE ROLE {name} LOGIN PASSWORD 'right'; GRANT SELECT ON orders TO {name}"));
    let server = std::env::var("TIDEGATE_TEST_POSTGRES_TCP").unwrap();
    let (_, port) = server.rsplit_once("port=").unwrap();
    let proxy = HeldProxy::start(SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap()))).await;
    let port = proxy.address.port();
    let target = format!("host=127.0.0.1 port={port} user={name} password=right dbname={name} sslmode=disable");
    (proxy, target)
}

fn claims() -> Value {
    let expiry = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 600;
    json!({"active": true, "iss": ISSUER, "aud": "node", "sub": "ann", "exp": expiry, "groups": "readers"})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_many_callers_need_does_not_depend_on_one() {
    let lake = FlightServer::start(LAKE, &[("data/readings.csv", "id\n1\n2\n3\n")], &[("service", "reader")]);
    let lake_proxy = HeldProxy::start(lake.flight.trim_start_matches("grpc://").parse().unwrap()).await;
    let (shop_proxy, shop) = shop_behind_proxy().await;
    let introspecting = HeldProxy::start(start_issuer(claims().to_string()).await).await;
    let key = KeyPair::generate();
    let publishing = HeldProxy::start(start_issuer(key_set(&key)).await).await;
    let start = |tokens: String| {
        let configuration =
            NODE.replace("LAKE", &lake_proxy.address.to_string()).replace("SHOP", &shop).replace("TOKENS", &tokens);
        FlightServer::start(&configuration, &[("lake.token", lake.key("service"))], &[("ann", "reader")])
    };
    let introspection =
        format!("{{url: 'http://{}/introspect', client_id: n, client_secret: s}}", introspecting.address);
    // What a node requests when it starts is held, too. It does not wait for other nodes.
    lake_proxy.hold();
    let node = start(format!("introspection: {introspection}"));
    let client = Client::new();
    let sql = async |node: &FlightServer, credential: &str, database: &str, sql: &str| {
        call_by(&client, (node.url(), credential), "sql", json!({"database": database, "sql": sql})).await
    };

    // The answer of an issuer about a token.
    let one = "SELECT 1 AS one";
    let databases = async |credential: &str, node: &FlightServer| {
        call_by(&client, (node.url(), credential), "list_databases", json!({"format": "mcp"})).await
    };
    let listed = storms("a token", &introspecting, 1, async || databases("opaque", &node).await).await;
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    // Connections, catalog, roles and functions of a PostgreSQL server.
    let rows = storms("a database", &shop_proxy, 16, async || sql(&node, node.key("ann"), "shop", one).await).await;
    assert_eq!(rows, json!([{"one": 1}]));
    // The program and the tables of another node.
    let count = "SELECT count(*) AS n FROM readings";
    let rows = storms("a node", &lake_proxy, 4, async || sql(&node, node.key("ann"), "lake", count).await).await;
    assert_eq!(rows, json!([{"n": 3}]));
    // The keys of an issuer, which are requested again after five seconds. Until then, tokens are refused.
    publishing.hold();
    let node = start(format!("algorithms: [EdDSA], jwks_url: 'http://{}/keys'", publishing.address));
    let token = sign(&key, &claims());
    let persistent = async || loop {
        let answer = databases(&token, &node).await;
        if !answer.is_error {
            break answer;
        }
        tokio::time::sleep(CALLER_TIMEOUT).await;
    };
    let listed = storms("the keys of an issuer", &publishing, 3, persistent).await;
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

/// The public key as a set of keys.
fn key_set(key: &KeyPair) -> String {
    let lines = key.public.lines().filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.collect::<String>()).unwrap();
    // The last part of its DER is the key itself.
    let x = URL_SAFE_NO_PAD.encode(&der[der.len() - 32..]);
    json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": x}]}).to_string()
}
