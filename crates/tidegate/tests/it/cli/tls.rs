//! TLS as `server.tls` says it: what is taken and what is refused, whom certificates of clients prove, and what becomes
//! of both when their files change.

mod authority;
mod client_hello;

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use reqwest::tls::Version;
use reqwest::{Certificate, Client, ClientBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::server::{Server, wait_until};
use super::{ConfiguredFolder, tidegate};
use authority::{Authority, Identity};
use client_hello::{PROTOCOL_VERSION, TlsReply, V1_1, V1_2, send_client_hello};

/// What stands behind it belongs to `server.tls`.
const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}, {name: north_shop, files: shop, tenants: [north]}]
tools:
  - {name: load_all, description: L, database: shop, sql: SELECT 1 AS one}
  - {name: read_all, description: R, database: shop, sql: SELECT 1 AS one}
  - {name: read_north, description: N, database: north_shop, sql: SELECT 1 AS one}
toolsets: {loading: [load_*], reading: [read_*]}
roles: [{name: loader, toolsets: [loading]}, {name: reader, toolsets: [reading]}]
auth:
  keys: keys.json
  certificates:
    - {name: etl, subject: 'CN=etl,O=Example', roles: [loader]}
    - {name: robot, alternative_name: 'uri:spiffe://example/robot', roles: [reader], tenant: north}
audit: {file: audit.jsonl}
server: {tls: {certificate: tls/cert.pem, key: tls/key.pem";

/// How often a request is sent again to get an open connection.
const SENT_AGAIN_MAX: usize = 100;

/// A node that speaks TLS.
struct Node {
    server: Server,
    configured: ConfiguredFolder,
    /// Of a reader of no tenant.
    key: String,
}

impl Node {
    /// A node with the certificate of `server`, and with the keys `further` in `server.tls`, which names `files`.
    fn start(server: &Identity, further: &str, files: &[(&str, &str)]) -> Self {
        Self::start_with_log_level("error", server, further, files)
    }

    fn start_with_log_level(level: &str, server: &Identity, further: &str, files: &[(&str, &str)]) -> Self {
        let configured = ConfiguredFolder::new(&format!("{CONFIGURATION}{further}}}}}\n"));
        fs::create_dir(configured.folder().join("tls")).unwrap();
        let own = [("cert.pem", server.certificate.as_str()), ("key.pem", server.key.as_str())];
        for (name, text) in own.iter().chain(files) {
            put(&configured, name, text);
        }
        let ran = configured.run(&["key", "add", "ann", "--role", "reader"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let key = ran.stdout.trim().to_owned();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", level];
        let server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        assert!(server.url.starts_with("https://"), "{}", server.url);
        Self { server, configured, key }
    }

    fn put(&self, name: &str, text: &str) {
        put(&self.configured, name, text);
    }

    /// Whether the server accepts `client`. With TLS 1.3, the client learns of a rejection only when it reads.
    async fn wait_for_log(&self, client: &Client) -> bool {
        let health = self.server.url.replace("/mcp", "/health");
        match client.get(health).send().await {
            Ok(answer) => {
                assert_eq!(answer.status(), StatusCode::OK);
                assert_eq!(answer.headers()["strict-transport-security"], "max-age=31536000");
                answer.text().await.unwrap().trim_end() == "ok"
            }
            Err(_) => false,
        }
    }

    /// Status and answer of a request.
    async fn request(
        &self,
        client: &Client,
        key: Option<&str>,
        method: &str,
        mut params: Value,
    ) -> (StatusCode, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = client
            .post(&self.server.url)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", params["name"].as_str().unwrap_or_default())
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
        let mut sent = request.try_clone().unwrap().send().await;
        // A connection returns to the pool of its client a moment after the answer. Until then, a client whose certificate
        // was revoked opens another one in vain.
        for _ in 0..SENT_AGAIN_MAX {
            let Err(error) = &sent else { break };
            assert!(format!("{error:?}").contains("CertificateRevoked"), "{error:?}");
            tokio::task::yield_now().await;
            sent = request.try_clone().unwrap().send().await;
        }
        let answer = sent.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    /// The tools for a client with these credentials, or the status of the refusal.
    async fn tools(&self, client: &Client, key: Option<&str>) -> Result<Vec<String>, u16> {
        let (status, answer) = self.request(client, key, "tools/list", json!({})).await;
        if status != StatusCode::OK {
            return Err(status.as_u16());
        }
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        Ok(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
    }
}

/// Writes a file as somebody does who renews a certificate: there is the old one, and then the new one.
fn put(configured: &ConfiguredFolder, name: &str, text: &str) {
    let file = configured.folder().join("tls").join(name);
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, text).unwrap();
    fs::rename(unfinished, file).unwrap();
}

/// A client that trusts the servers of `authority` alone.
fn client_trusting(authority: &Authority) -> ClientBuilder {
    let root = Certificate::from_pem(authority.pem.as_bytes()).unwrap();
    Client::builder().no_proxy().tls_certs_only([root])
}

/// The same, which shows a certificate.
fn client_with_certificate(authority: &Authority, visible: &Identity) -> Client {
    let identity = format!("{}{}", visible.certificate, visible.key);
    client_trusting(authority).identity(reqwest::Identity::from_pem(identity.as_bytes()).unwrap()).build().unwrap()
}

fn expected_tools(names: &[&str]) -> Result<Vec<String>, u16> {
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_node_rejects_plain_http() {
    let roots = Authority::new("roots");
    let mut node = Node::start_with_log_level("info", &roots.server(), "", &[]);
    let client = client_trusting(&roots).build().unwrap();
    assert!(node.wait_for_log(&client).await);
    assert_eq!(node.tools(&client, None).await, Err(401));
    assert_eq!(node.tools(&client, Some(&node.key)).await, expected_tools(&["read_all"]));
    assert!(
        !node.wait_for_log(&client_trusting(&Authority::new("roots")).build().unwrap()).await,
        "who trusts others is not fooled"
    );

    let mut plain = TcpStream::connect(node.server.address()).await.unwrap();
    let request = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", node.key);
    plain.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // However the connection ends, this is all that came.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(matches!(answer[..], [21, _, _, 0, 2, 2, _]), "an alert, and nothing of HTTP: {answer:?}");
    let text =
        node.server.wait_for_log("TLS handshake failed: the client did not send TLS; it may have used plain HTTP");
    assert!(text.contains("peer=127.0.0.1") && !text.contains(&node.key), "{text}");
    assert!(node.wait_for_log(&client).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn minimum_tls_version_applies() {
    let roots = Authority::new("roots");
    let speaking = |version| client_trusting(&roots).tls_version_min(version).tls_version_max(version).build().unwrap();
    let node = Node::start(&roots.server(), "", &[]);
    assert_eq!(send_client_hello(node.server.address(), V1_1).await, PROTOCOL_VERSION);
    assert_eq!(send_client_hello(node.server.address(), V1_2).await, TlsReply::Hello);
    assert!(
        node.wait_for_log(&speaking(Version::TLS_1_2)).await && node.wait_for_log(&speaking(Version::TLS_1_3)).await
    );

    let strict = Node::start(&roots.server(), ", min_version: '1.3'", &[]);
    assert_eq!(send_client_hello(strict.server.address(), V1_1).await, PROTOCOL_VERSION);
    assert_eq!(send_client_hello(strict.server.address(), V1_2).await, PROTOCOL_VERSION);
    assert!(
        !strict.wait_for_log(&speaking(Version::TLS_1_2)).await
            && strict.wait_for_log(&speaking(Version::TLS_1_3)).await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_certificate_applies_to_new_connections() {
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    let node = Node::start(&before.server(), "", &[]);
    let open = client_trusting(&before).pool_max_idle_per_host(1).build().unwrap();
    assert!(node.wait_for_log(&open).await);
    let next = after.server();
    node.put("cert.pem", &next.certificate);
    node.put("key.pem", &next.key);
    wait_until(async || {
        // Nobody who is connected notices. This keeps the connection from being taken for idle, too.
        assert!(node.wait_for_log(&open).await);
        node.wait_for_log(&client_trusting(&after).build().unwrap()).await
    })
    .await;
    assert!(
        !node.wait_for_log(&client_trusting(&before).build().unwrap()).await,
        "the old certificate is shown to nobody new"
    );
    // So this one goes over the connection from before.
    assert!(node.wait_for_log(&open).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_certificate_keeps_the_old_one() {
    let (roots, after) = (Authority::new("roots"), Authority::new("after"));
    let mut node = Node::start(&roots.server(), "", &[]);
    let next = after.server();
    let cases = [
        ("cert.pem", "hunter2", "cert.pem does not contain a certificate in PEM format (-----BEGIN CERTIFICATE-----)"),
        // Half of a change is none.
        ("cert.pem", next.certificate.as_str(), "does not match the private key"),
        ("key.pem", "hunter2", "key.pem does not contain a key in PEM format (-----BEGIN PRIVATE KEY-----)"),
    ];
    for (name, text, complaint) in cases {
        node.put(name, text);
        node.server.signal("HUP");
        // What changed is seen, and asked for as well, so that it may be said twice.
        let mut output = String::new();
        while !output.contains(complaint) {
            output = node.server.wait_for_log("the certificates stay as they were");
            assert!(!output.contains("hunter2"), "{output}");
        }
        assert!(node.wait_for_log(&client_trusting(&roots).build().unwrap()).await, "{complaint}");
    }
    node.put("key.pem", &next.key);
    node.server.signal("HUP");
    wait_until(async || node.wait_for_log(&client_trusting(&after).build().unwrap()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificate_identifies_the_caller() {
    let (roots, clients, others) = (Authority::new("roots"), Authority::new("clients"), Authority::new("clients"));
    let node = Node::start(&roots.server(), ", client_ca: tls/clients.pem", &[("clients.pem", clients.pem.as_str())]);
    let none = client_trusting(&roots).build().unwrap();
    let [etl, robot, unnamed] = [("etl", 1), ("robot", 2), ("stranger", 3)]
        .map(|(name, serial)| client_with_certificate(&roots, &clients.client(name, serial)));
    assert_eq!(node.tools(&none, None).await, Err(401));
    assert_eq!(node.tools(&none, Some(&node.key)).await, expected_tools(&["read_all"]), "who has none may show a key");
    assert_eq!(node.tools(&etl, None).await, expected_tools(&["load_all"]), "by its subject");
    assert_eq!(node.tools(&robot, None).await, expected_tools(&["read_all", "read_north"]), "by its other name");
    assert_eq!(node.tools(&unnamed, None).await, Err(401), "a certificate that nothing names is nobody's");
    assert_eq!(node.tools(&etl, Some(&node.key)).await, expected_tools(&["read_all"]), "a bearer comes first");
    assert_eq!(node.tools(&etl, Some("tg_0123456789")).await, Err(401), "and is refused where it is wrong");
    assert!(
        !node.wait_for_log(&client_with_certificate(&roots, &others.client("etl", 1))).await,
        "of another authority, whatever its name"
    );

    for (client, tool) in [(&etl, "load_all"), (&robot, "read_north")] {
        let (_, answer) = node.request(client, None, "tools/call", json!({"name": tool, "arguments": {}})).await;
        assert_eq!(answer["result"]["content"][0]["text"], r#"[{"one":1}]"#, "{answer}");
    }
    node.server.signal("TERM");
    assert_eq!(node.server.wait_for_exit().0.code(), Some(0));
    let log = fs::read_to_string(node.configured.folder().join("audit.jsonl")).unwrap();
    let calls = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls = calls.filter(|line| line["kind"] == "call");
    let callers: Vec<Value> = calls.map(|line| json!([line["subject"], line["tenant"], line["proof"]])).collect();
    assert_eq!(callers, [json!(["etl", null, "certificate"]), json!(["robot", "north", "certificate"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn required_client_certificate_rejects_others() {
    let (roots, clients) = (Authority::new("roots"), Authority::new("clients"));
    let required = ", client_ca: tls/clients.pem, client_certificates: required";
    let node = Node::start(&roots.server(), required, &[("clients.pem", clients.pem.as_str())]);
    assert!(!node.wait_for_log(&client_trusting(&roots).build().unwrap()).await);
    let etl = client_with_certificate(&roots, &clients.client("etl", 1));
    assert_eq!(node.tools(&etl, None).await, expected_tools(&["load_all"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_certificate_is_rejected_on_open_connections() {
    let (roots, clients) = (Authority::new("roots"), Authority::new("clients"));
    let further = ", client_ca: tls/clients.pem, client_crl: tls/revoked.pem";
    let nothing = clients.revoked(&[]);
    let files = [("clients.pem", clients.pem.as_str()), ("revoked.pem", nothing.as_str())];
    let mut node = Node::start(&roots.server(), further, &files);
    let identity = clients.client("etl", 1);
    let (etl, robot) =
        (client_with_certificate(&roots, &identity), client_with_certificate(&roots, &clients.client("robot", 2)));
    assert_eq!(node.tools(&etl, None).await, expected_tools(&["load_all"]));
    node.put("revoked.pem", &clients.revoked(&[1]));
    // A new connection would be rejected, so an answer comes over the earlier one.
    wait_until(async || node.tools(&etl, None).await == Err(401)).await;
    assert_eq!(node.tools(&etl, Some(&node.key)).await, Err(401), "whatever else it shows");
    assert!(!node.wait_for_log(&client_with_certificate(&roots, &identity)).await);
    assert_eq!(node.tools(&robot, None).await, expected_tools(&["read_all", "read_north"]));

    node.put("revoked.pem", "no list");
    node.server.wait_for_log("the certificates stay as they were");
    assert!(
        !node.wait_for_log(&client_with_certificate(&roots, &identity)).await,
        "a list that cannot be read takes nothing back"
    );
    node.put("revoked.pem", &clients.revoked(&[2]));
    wait_until(async || node.tools(&robot, None).await == Err(401)).await;
    assert_eq!(node.tools(&client_with_certificate(&roots, &identity), None).await, expected_tools(&["load_all"]));
}

/// A server whose certificate is its own authority, with `is_ca` in it, and the folder with `cert.pem`.
fn serve_self_signed(is_ca: rcgen::IsCa) -> (Server, ConfiguredFolder) {
    let configured = ConfiguredFolder::new(
        "server: {tls: {certificate: cert.pem, key: key.pem}}\ndatabases: [{name: shop, files: shop}]\n",
    );
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    params.is_ca = is_ca;
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    fs::write(configured.folder().join("cert.pem"), certificate).unwrap();
    fs::write(configured.folder().join("key.pem"), key.serialize_pem()).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
    (Server::start(tidegate().current_dir(configured.folder()).args(serve)), configured)
}

/// What our clients print: of a query, and of the bridge over HTTP and over WebSocket.
fn run_clients(server: &Server, configured: &ConfiguredFolder, more: &[&str]) -> Vec<String> {
    run_clients_at(&server.url, configured, more)
}

/// The same at another URL of its MCP endpoint.
fn run_clients_at(url: &str, configured: &ConfiguredFolder, more: &[&str]) -> Vec<String> {
    let base = url.strip_suffix("/mcp").unwrap();
    let web_socket = format!("{}/mcp/ws", base.replacen("http", "ws", 1));
    let commands: [&[&str]; 3] = [
        &["export", "SELECT 6 * 7 AS answer", "-o", "out.csv", "--force", "--connect", base],
        &["stdio", "--connect", url],
        &["stdio", "--connect", &web_socket],
    ];
    let run = |command: &&[&str]| {
        let mut program = tidegate();
        program.current_dir(configured.folder()).args(*command).args(more);
        let streams = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        // A command that reads no input may have ended.
        let _ = writeln!(child.stdin.take().unwrap(), "{initialize}");
        let ran = child.wait_with_output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
    };
    commands.iter().map(run).collect()
}

#[test]
fn our_clients_trust_the_certificate_that_they_are_given() {
    let (server, configured) = serve_self_signed(rcgen::IsCa::ExplicitNoCa);
    let outputs = run_clients(&server, &configured, &["--ca", "cert.pem"]);
    assert!(outputs[0].starts_with("out.csv: 1 rows"), "{outputs:?}");
    assert!(outputs[1..].iter().all(|output| output.contains("serverInfo")), "{outputs:?}");
    for output in run_clients(&server, &configured, &[]) {
        assert!(output.contains("signed by no known authority; --ca FILE"), "{output}");
        assert!(!output.contains("attempts") && !output.contains("could not be reached"), "{output}");
    }
    for output in run_clients_at(&server.url.replacen("https", "http", 1), &configured, &[]) {
        assert!(output.contains("its URL begins with https:// or wss://"), "{output}");
        assert!(!output.contains("attempts"), "{output}");
    }
    let wrong = run_clients(&server, &configured, &["--ca", "key.pem"]);
    assert!(wrong.iter().all(|output| output.contains("it contains no certificate in PEM format")), "{wrong:?}");
}

#[test]
fn a_certificate_of_an_authority_is_no_certificate_of_a_server() {
    let (server, configured) = serve_self_signed(rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
    for output in run_clients(&server, &configured, &["--ca", "cert.pem"]) {
        assert!(output.contains("create it with basicConstraints=critical,CA:FALSE"), "{output}");
    }
}
