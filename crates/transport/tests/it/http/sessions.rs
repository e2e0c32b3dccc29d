//! Legacy sessions: created at `initialize`, identified by a header, ended by DELETE or after an idle time.

use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use tidegate_mcp::Revision;
use tidegate_transport::http::HttpOptions;

use super::in_process::InProcessRouter;
use super::request::Post;
use super::{Server, Session, wire};
use tidegate_testkit::wait::{pass_time, wait_until};

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    let server = Server::start().await;
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let session = server.session(revision).await;
        let list = session.post("tools/list", json!({}));
        assert_eq!(server.ask(&list).await.summary(), "200");
        let mut connection = server.connect().await;
        assert_eq!(connection.ask(&session.head("DELETE", &[])).await.head.status, 204);
        let ended = "404 -32600 the session does not exist or has ended; open a new one with initialize";
        assert_eq!(server.ask(&list).await.summary(), ended);
        assert_eq!(connection.ask(&session.head("DELETE", &[])).await.summary(), ended);
        assert_eq!(connection.ask(&session.head("GET", &[])).await.summary(), ended);
    }
}

#[tokio::test]
async fn sessions_do_not_share_their_state() {
    let server = Server::start().await;
    let (old, new) = (server.session(Revision::V2024_11_05).await, server.session(Revision::V2025_11_25).await);
    assert_ne!(old.id, new.id);
    let has_titles =
        async |session: &Session| server.ask(&session.post("tools/list", json!({}))).await.text().contains("\"title\"");
    assert!(!has_titles(&old).await);
    assert!(has_titles(&new).await);
}

#[tokio::test]
async fn a_request_without_its_session_is_refused() {
    let server = Server::start().await;
    let mut table = String::new();
    for (subject, request) in [
        ("POST without", Post::message("logging/setLevel", json!({"level": "info"})).bytes()),
        ("POST unknown", Post::message("tools/list", json!({})).with("Mcp-Session-Id", "0123").bytes()),
        ("POST beyond ASCII", Post::message("tools/list", json!({})).with("Mcp-Session-Id", "ä").bytes()),
        ("GET without", wire::request("GET", "/mcp", &[("Accept", "text/event-stream")], b"")),
        ("GET unknown", wire::request("GET", "/mcp", &[("Accept", "*/*"), ("Mcp-Session-Id", "x")], b"")),
        ("DELETE without", wire::request("DELETE", "/mcp", &[], b"")),
        ("DELETE unknown", wire::request("DELETE", "/mcp", &[("Mcp-Session-Id", "x")], b"")),
        ("POST of an unknown version", {
            Post::message("tools/list", json!({})).with("MCP-Protocol-Version", "1999-01-01").bytes()
        }),
    ] {
        table.push_str(&format!("{subject:28}{}\n", server.connect().await.ask(&request).await.summary()));
    }
    insta::assert_snapshot!(table, @r"
    POST without                400 -32600 the header Mcp-Session-Id is missing: clients of 2025-11-25 or older start with initialize; clients of 2026-07-28 declare their version in params._meta
    POST unknown                404 -32600 the session does not exist or has ended; open a new one with initialize
    POST beyond ASCII           400 -32600 the header Mcp-Session-Id is missing: clients of 2025-11-25 or older start with initialize; clients of 2026-07-28 declare their version in params._meta
    GET without                 400 -32600 the header Mcp-Session-Id is missing: clients of 2025-11-25 or older start with initialize; clients of 2026-07-28 declare their version in params._meta
    GET unknown                 404 -32600 the session does not exist or has ended; open a new one with initialize
    DELETE without              400 -32600 the header Mcp-Session-Id is missing: clients of 2025-11-25 or older start with initialize; clients of 2026-07-28 declare their version in params._meta
    DELETE unknown              404 -32600 the session does not exist or has ended; open a new one with initialize
    POST of an unknown version  400 -32022 Unsupported protocol version
    ");
}

#[tokio::test]
async fn legacy_requests_that_need_no_state_need_no_session() {
    let server = Server::start().await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        ("ping", json!({})),
    ] {
        let answer = server.ask(&Post::message(method, params)).await;
        assert_eq!(answer.summary(), "200", "{method}");
        assert!(answer.header("mcp-session-id").is_none(), "{method}");
    }
    let named = Post::message("tools/list", json!({})).with("MCP-Protocol-Version", "2025-11-25");
    assert!(server.ask(&named).await.text().contains("\"title\""));
    assert!(!server.ask(&Post::message("tools/list", json!({}))).await.text().contains("\"title\""));
    let call = Post::message("tools/call", json!({"name": "unknown", "arguments": {}}));
    assert!(server.ask(&call).await.summary().starts_with("200 -32602 there is no tool"));
    for method in ["resources/subscribe", "resources/unsubscribe", "logging/setLevel", "server/discover"] {
        let answer = server.ask(&Post::message(method, json!({"uri": "a:b", "level": "info"}))).await;
        assert_eq!(answer.head.status, 400, "{method}: {}", answer.summary());
    }
}

#[tokio::test]
async fn a_modern_request_needs_no_session_and_ignores_one() {
    let server = Server::start().await;
    let post = Post::modern("tools/list", json!({}));
    assert_eq!(server.ask(&post.clone().with("Mcp-Session-Id", "none")).await.summary(), "200");
    assert!(server.ask(&post).await.header("mcp-session-id").is_none());
}

#[tokio::test]
async fn a_handshake_that_fails_opens_no_session() {
    let server = Server::start().await;
    let answer = server.ask(&Post::message("initialize", json!({}))).await;
    assert!(answer.summary().starts_with("200 -32602 the params of initialize are wrong"), "{}", answer.summary());
    assert!(answer.header("mcp-session-id").is_none());
}

#[tokio::test]
async fn a_handshake_may_carry_headers_of_its_revision() {
    let server = Server::start().await;
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let post =
        Post::message("initialize", params).with("MCP-Protocol-Version", "2025-11-25").with("Mcp-Method", "initialize");
    assert!(server.ask(&post).await.header("mcp-session-id").is_some());
}

#[tokio::test]
async fn the_session_that_is_unused_for_longest_makes_room() {
    let server = Server::with(HttpOptions { sessions_max: 2, ..HttpOptions::default() }).await;
    let (first, second) = (server.session(Revision::V2025_11_25).await, server.session(Revision::V2025_11_25).await);
    let ping = async |session: &Session| server.ask(&session.post("ping", json!({}))).await.head.status;
    assert_eq!(ping(&first).await, 200);
    let third = server.session(Revision::V2025_11_25).await;
    assert_eq!([ping(&first).await, ping(&second).await, ping(&third).await], [200, 404, 200]);
}

#[tokio::test]
async fn a_session_in_use_never_makes_room() {
    let server = Server::with(HttpOptions { sessions_max: 2, ..HttpOptions::default() }).await;
    let listening = server.session(Revision::V2025_11_25).await;
    let mut stream = server.connect().await;
    stream.send(&listening.head("GET", &[])).await;
    assert_eq!(stream.head().await.status, 200);
    let calling = server.session(Revision::V2025_11_25).await;
    let mut call = server.connect().await;
    let params = json!({"name": "script", "arguments": {"steps": [["cancelled"]]}});
    call.send(&calling.post("tools/call", params).bytes()).await;
    server.until_open_calls(1).await;
    let third = Post::message("initialize", json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(server.ask(&third).await.summary(), "503 -32603 there are too many open sessions; try again later");
    drop(stream);
    wait_until("room for a session", async || server.ask(&third).await.head.status == 200).await;
    assert_eq!(server.ask(&listening.post("ping", json!({}))).await.head.status, 404);
    assert_eq!(server.ask(&calling.post("ping", json!({})).of_id(2)).await.head.status, 200);
}

#[tokio::test]
async fn ending_a_session_ends_what_it_has_running() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let mut whole = server.connect().await;
    let params = json!({"name": "script", "arguments": {"steps": [["cancelled"]]}});
    whole.send(&session.post("tools/call", params).bytes()).await;
    server.until_open_calls(1).await;
    server.connect().await.ask(&session.head("DELETE", &[])).await;
    assert_eq!(whole.answer().await.head.status, 202, "a cancelled request is not answered");
    server.until_open_calls(0).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends() {
    let router =
        InProcessRouter::new(HttpOptions { session_idle_max: Duration::from_secs(60), ..HttpOptions::default() });
    let (used, idle) = (router.session().await, router.session().await);
    let ping = async |session: &Session| router.ask(&session.post("ping", json!({}))).await.status();
    for _ in 0..3 {
        pass_time(Duration::from_secs(50)).await;
        assert_eq!(ping(&used).await, 200);
    }
    // Idle sessions are ended when a new one opens, and periodically by the server.
    router.session().await;
    assert_eq!(ping(&used).await, 200);
    assert_eq!(ping(&idle).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_for_an_answer_is_not_idle() {
    let router =
        InProcessRouter::new(HttpOptions { session_idle_max: Duration::from_secs(10), ..HttpOptions::default() });
    let session = router.session().await;
    let response = router.ask(&session.call(json!([["progress", 1], ["wait"]]))).await;
    pass_time(Duration::from_secs(40)).await;
    router.session().await;
    assert_eq!(router.ask(&session.post("ping", json!({})).of_id(2)).await.status(), 200);
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_listens_is_not_idle() {
    let router =
        InProcessRouter::new(HttpOptions { session_idle_max: Duration::from_secs(60), ..HttpOptions::default() });
    let session = router.session().await;
    let mut stream = router.listen(&session).await.into_body().into_data_stream();
    let mut comments = 0;
    let listening = async {
        while stream.next().await.is_some() {
            comments += 1;
        }
    };
    tokio::time::timeout(Duration::from_secs(600), listening).await.unwrap_err();
    assert!(comments > 30, "{comments}");
    router.session().await;
    assert_eq!(router.ask(&session.post("ping", json!({}))).await.status(), 200);
}
