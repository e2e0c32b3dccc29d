//! Rejected callers receive the reason, the name of the server, and the next step; the bridge does not retry
//! repeatedly.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::BearerToken;
use tidegate_client::bridge::{BridgeNotice, BridgeOptions, ServerAddress};
use tidegate_mcp::Revision;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::scripted::{ScriptedServer, response};
use super::server::Server;
use super::{BridgeTransport, Client, handshake};
use tidegate_testkit::token_authenticator::RevocableKey;
use tidegate_transport::http::HttpOptions;

/// The error message of an answer after the address of its server.
fn message_of(answer: &Value) -> String {
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    message.split_once(": ").unwrap().1.to_owned()
}

#[tokio::test]
async fn missing_token_error_names_the_option() {
    let options = HttpOptions { authenticator: Arc::new(RevocableKey::default()), ..HttpOptions::default() };
    let server = Server::with(BridgeTransport::Http, options).await;
    let mut client = server.client();
    let modern = client.ask(1, "tools/list", json!({})).await;
    insta::assert_snapshot!(message_of(&modern), @r#"the server requires authentication (401); pass --bearer TOKEN, or set TIDEGATE_BEARER in the environment; the server reports: authentication is required: send Authorization: Bearer with an API key or a token"#);
    assert_eq!(modern["error"]["data"], json!({"kind": "unauthenticated", "mayHaveRun": false}));
    client.line(&handshake(Revision::NEWEST_LEGACY)).await;
    assert_eq!(message_of(&client.answer().await), message_of(&modern));
    assert!(client.close().await.is_empty());

    let mut client = server.client_with("wrong");
    insta::assert_snapshot!(message_of(&client.ask(1, "tools/list", json!({})).await), @r#"the server rejected the bearer token (401); check --bearer or TIDEGATE_BEARER; the server reports: the key or token is not valid"#);

    for is_legacy in [true, false] {
        server.client_with("key").of_era(is_legacy).await.lives().await;
    }
}

#[tokio::test]
async fn redacts_the_token_in_server_messages() {
    let words =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no \u001b[31m luck with secret-token"}}"#;
    let server =
        ScriptedServer::start(|_| response("403 Forbidden", &[("Content-Type", "application/json")], words)).await;
    let bearer = Some(BearerToken::parse("secret-token").unwrap());
    let mut client = Client::bridged(BridgeOptions { bearer, ..server.options() });
    let answer = client.ask(1, "tools/list", json!({})).await;
    insta::assert_snapshot!(message_of(&answer), @r#"the server denied access (403); pass a token that has access with --bearer TOKEN; the server reports: no  [31m luck with …"#);
    assert_eq!(answer["error"]["data"]["kind"], "forbidden");
    assert_eq!(server.methods().len(), 1);
    assert_eq!(server.requested.lock()[0].header("authorization"), Some("Bearer secret-token"));
}

#[tokio::test]
async fn each_status_has_its_error() {
    let mut message = String::new();
    for status in ["302 Found", "400 Bad Request", "404 Not Found", "429 Too Many Requests", "503 Service Unavailable"]
    {
        let answer = response(status, &[("Location", "http://elsewhere/mcp"), ("Content-Type", "text/html")], "<html>");
        let server = ScriptedServer::start(move |_| answer.clone()).await;
        let bearer = Some(BearerToken::parse("secret").unwrap());
        let mut client = Client::bridged(BridgeOptions { bearer, ..server.options() });
        message += &message_of(&client.ask(1, "tools/list", json!({})).await);
        message.push('\n');
        assert_eq!(server.methods().len(), 1, "{status}");
    }
    insta::assert_snapshot!(message, @r#"
    the server redirects (302), and redirects are not followed; use the target of the redirect
    the server rejected the call (400)
    there is no MCP endpoint at that URL (404); the usual path of Tidegate is /mcp
    the server rejected the call (429)
    the server failed (503); the call may have run
    "#);
}

#[tokio::test]
async fn a_refusal_that_names_no_request_is_about_the_only_one() {
    let words = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32077,"message":"not you","data":[1.0]}}"#;
    let server =
        ScriptedServer::start(|_| response("400 Bad Request", &[("Content-Type", "application/json")], words)).await;
    let mut client = server.client();
    client.send(json!("x"), "tools/list", json!({})).await;
    assert_eq!(client.hear().await, words.replace("null", "\"x\""));
}

/// A WebSocket server that rejects all connections.
async fn refusing(status: &'static str) -> (BridgeOptions, Arc<std::sync::atomic::AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (BridgeOptions::new(ServerAddress::parse(&format!("ws://{address}/mcp/ws")).unwrap()), count)
}

#[tokio::test]
async fn rejected_websocket_is_retried_on_the_next_call() {
    let mut message = String::new();
    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found", "301 Moved Permanently"] {
        let (options, count) = refusing(status).await;
        let mut client = Client::bridged(options);
        let answer = client.ask(1, "tools/list", json!({})).await;
        message += &message_of(&answer);
        message.push('\n');
        let requested = count.load(std::sync::atomic::Ordering::SeqCst);
        assert!(requested <= 2, "{requested}");
        // No condition shows that nothing happens: a bridge that retries by itself would try again in this time, which is
        // longer than the first delays between attempts.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(count.load(std::sync::atomic::Ordering::SeqCst) <= 2);
        assert!(client.notices.lock().iter().all(|notice| matches!(notice, BridgeNotice::Refused(_))));
    }
    insta::assert_snapshot!(message, @r#"
    the server requires authentication (401); pass --bearer TOKEN, or set TIDEGATE_BEARER in the environment
    the server denied access (403); pass a token that has access with --bearer TOKEN
    there is no MCP endpoint at that URL (404); the usual path of Tidegate is /mcp/ws
    the server redirects (301), and redirects are not followed; use the target of the redirect
    "#);
}
