//! Errors when the API rejects a request, fails or cannot be reached.

use serde_json::json;

use super::test_server::{ResponseStep, TestServer, response};
use super::{ApiFixture, FakeResolver, SECRET};

/// What a caller reads when the API answers with `status`; the port is left out.
async fn error_for(status: &'static str, headers: &'static str, body: &'static str) -> String {
    let server = TestServer::respond_with(response(status, headers, body)).await;
    ApiFixture::for_server(&server).call(json!({})).await.replace(&format!(":{}", server.port), "")
}

const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test]
async fn status_classes_map_to_error_kinds() {
    insta::assert_snapshot!(error_for("400 Bad Request", JSON, r#"{"error": "limit is too large"}"#).await, @r#"
    invalid_arguments: the API rejects these arguments: 127.0.0.1 answers 400 Bad Request
    The API's message: {"error": "limit is too large"}
    "#);
    insta::assert_snapshot!(error_for("422 Unprocessable Entity", "Content-Type: text/plain\r\n", "no such day").await, @r"
    invalid_arguments: the API rejects these arguments: 127.0.0.1 answers 422 Unprocessable Entity
    The API's message: no such day
    ");
    insta::assert_snapshot!(error_for("404 Not Found", "Content-Type: text/html\r\n", "<h1>No</h1>").await, @"not_found: the requested item does not exist: 127.0.0.1 answers 404 Not Found");
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let expected = format!(
            "forbidden: 127.0.0.1 rejects this server's credentials ({status})\n\
             The owner of this server has to correct them; other arguments do not help."
        );
        assert_eq!(error_for(status, JSON, r#"{"user": "internal-name"}"#).await, expected);
    }
    insta::assert_snapshot!(error_for("408 Request Timeout", JSON, "{}").await, @"timed_out: 127.0.0.1 timed out (408 Request Timeout)");
    insta::assert_snapshot!(error_for("504 Gateway Timeout", JSON, "{}").await, @"timed_out: 127.0.0.1 timed out (504 Gateway Timeout)");
    insta::assert_snapshot!(error_for("413 Payload Too Large", "", "").await, @"too_large: the request is too large for the API: 127.0.0.1 answers 413 Payload Too Large");
    insta::assert_snapshot!(error_for("405 Method Not Allowed", "", "").await, @"unavailable: 127.0.0.1 does not accept the request of this tool (405 Method Not Allowed)");
    insta::assert_snapshot!(error_for("500 Internal Server Error", JSON, r#"{"trace": "at line 5"}"#).await, @"unavailable: 127.0.0.1 fails (500 Internal Server Error)");
    insta::assert_snapshot!(error_for("304 Not Modified", "", "").await, @"unavailable: 127.0.0.1 answers 304 Not Modified, which http tools do not support");
}

#[tokio::test]
async fn retry_after_becomes_a_hint() {
    insta::assert_snapshot!(error_for("429 Too Many Requests", "Retry-After: 30\r\n", "").await, @r"
    rate_limited: 127.0.0.1 limits the request rate (429 Too Many Requests)
    Try again in 30 seconds.
    ");
    insta::assert_snapshot!(error_for("503 Service Unavailable", "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", "").await, @r"
    unavailable: 127.0.0.1 fails (503 Service Unavailable)
    Try again after Wed, 21 Oct 2026 07:28:00 GMT.
    ");
    insta::assert_snapshot!(error_for("429 Too Many Requests", "Retry-After: <script>\r\n", "").await, @"rate_limited: 127.0.0.1 limits the request rate (429 Too Many Requests)");
}

#[tokio::test]
async fn api_messages_are_truncated() {
    let body = "x".repeat(100_000);
    let server = TestServer::respond_with(response("400 Bad Request", "Content-Type: text/plain\r\n", &body)).await;
    let answer = ApiFixture::for_server(&server).call(json!({})).await;
    assert_eq!(answer.matches('x').count(), 2_000);
    assert!(answer.ends_with("xx…"));
}

#[tokio::test]
async fn echoed_headers_are_redacted() {
    let server = TestServer::start(|request| {
        vec![ResponseStep::Bytes(response(
            "400 Bad Request",
            "Content-Type: text/plain\r\n",
            &format!("you sent {request}"),
        ))]
    })
    .await;
    // `ask` checks that no answer contains the secret.
    let answer = ApiFixture::for_server(&server).call(json!({})).await;
    assert!(answer.contains("authorization: ***") && answer.contains("x-api-key: ***"), "{answer}");
}

#[tokio::test]
async fn unreachable_hosts_have_plain_errors() {
    let server = TestServer::start(|_| Vec::new()).await;
    let host = server.host();
    let message = ApiFixture::for_server(&server).call(json!({})).await;
    assert_eq!(message, format!("unavailable: {host} closed the connection early, or did not answer with HTTP"));
    let server = TestServer::responding_first(b"SSH-2.0-OpenSSH_9.6\r\n").await;
    let tls = ApiFixture::get(format!("https://{}/?key={SECRET}", server.host()), [server.host()]);
    let expected = "could not be reached: the TLS connection failed, or its certificate is not trusted";
    assert_eq!(tls.call(json!({})).await, format!("unavailable: {} {expected}", server.host()));
    let message = ApiFixture::for_server(&server).call(json!({})).await;
    assert_eq!(
        message,
        format!("unavailable: {} closed the connection early, or did not answer with HTTP", server.host())
    );
    // A port without a listener.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    drop(listener);
    let message = ApiFixture::get(format!("http://{host}/?key={SECRET}"), [host.clone()]).call(json!({})).await;
    assert_eq!(message, format!("unavailable: {host} refused the connection"));
    let unknown = ApiFixture::get("http://api.example.com/".to_owned(), ["api.example.com".to_owned()]);
    assert_eq!(unknown.call(json!({})).await, "unavailable: api.example.com is an unknown host name");
}

#[tokio::test]
async fn log_messages_hold_no_secrets() {
    let host = "api.example.com".to_owned();
    let mut api = ApiFixture::get(format!("http://{host}/?key={SECRET}"), [host]);
    api.names = FakeResolver::one("api.example.com", "127.0.0.1");
    let registry = api.registry();
    let target = tidegate_core::CallTarget::Tool("api".to_owned());
    let reply = registry.call(crate::fake::call(target, json!({}))).unwrap();
    let error = crate::fake::collect_answer(reply).await.unwrap_err();
    assert!(error.detail().is_some_and(|detail| detail.contains("127.0.0.1")), "{error:?}");
    assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
}
