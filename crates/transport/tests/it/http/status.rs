//! The status of each answer.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::identity::revocable_key;
use super::request::Post;
use super::{Server, wire};
use tidegate_testkit::schema::check_response;
use tidegate_transport::http::HttpOptions;

#[tokio::test]
async fn modern_errors_have_http_statuses() {
    let server = Server::start().await;
    let mut table = String::new();
    for (subject, post) in [
        ("a result", Post::modern("tools/list", json!({}))),
        ("a tool's failure", Post::script(json!([["fail", "gone"]]))),
        ("wrong arguments", Post::modern("tools/call", json!({"name": "script", "arguments": {"x": 1}}))),
        ("an unknown tool", Post::modern("tools/call", json!({"name": "none"}))),
        ("a missing resource", Post::modern("resources/read", json!({"uri": "test://none"}))),
        ("a bad cursor", Post::modern("tools/list", json!({"cursor": "x"}))),
        ("an unknown method", Post::modern("unknown/method", json!({}))),
        ("initialize", Post::modern("initialize", json!({"protocolVersion": "2025-11-25"}))),
        ("ping", Post::modern("ping", json!({}))),
        ("setLevel", Post::modern("logging/setLevel", json!({"level": "info"}))),
        ("subscribe", Post::modern("resources/subscribe", json!({"uri": "test://plain"}))),
    ] {
        let answer = server.ask(&post).await;
        check_response(post.revision, &post.method, &answer.message());
        table.push_str(&format!("{subject:20}{}\n", answer.summary()));
    }
    insta::assert_snapshot!(table, @r#"
    a result            200
    a tool's failure    200
    wrong arguments     200
    an unknown tool     200 -32602 there is no tool "none"
    a missing resource  200 -32602 there is no resource "test://none"
    a bad cursor        200 -32602 the cursor "x" is unknown or no longer valid; begin again without one
    an unknown method   404 -32601 there is no method "unknown/method" in this revision
    initialize          404 -32601 there is no method "initialize" in this revision
    ping                404 -32601 there is no method "ping" in this revision
    setLevel            404 -32601 there is no method "logging/setLevel" in this revision
    subscribe           404 -32601 there is no method "resources/subscribe" in this revision
    "#);
}

#[tokio::test]
async fn what_a_modern_request_must_say_is_checked_in_order() {
    let server = Server::start().await;
    let with_meta = |header: &str, meta: Value| {
        Post::message("server/discover", json!({"_meta": meta}))
            .with("Mcp-Method", "server/discover")
            .with("MCP-Protocol-Version", header)
            .in_revision(Revision::V2026_07_28)
    };
    let meta = |version: &str| json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}});
    let mut without = meta("2026-07-28");
    without.as_object_mut().unwrap().shift_remove("io.modelcontextprotocol/clientCapabilities");
    let bare = Post::message("server/discover", json!({})).with("Mcp-Method", "server/discover");
    let mut table = String::new();
    for (subject, post) in [
        ("all is well", with_meta("2026-07-28", meta("2026-07-28"))),
        ("no _meta", bare.with("MCP-Protocol-Version", "2026-07-28").in_revision(Revision::V2026_07_28)),
        ("an empty _meta", with_meta("2026-07-28", json!({}))),
        ("no capabilities", with_meta("2026-07-28", without)),
        ("header and body differ", with_meta("2026-07-28", meta("v999.0.0"))),
        ("the other way round", with_meta("v999.0.0", meta("2026-07-28"))),
        ("an unsupported version", with_meta("v999.0.0", meta("v999.0.0"))),
        ("a legacy version", with_meta("2025-11-25", meta("2025-11-25"))),
    ] {
        let answer = server.ask(&post).await;
        let message = answer.message();
        check_response(post.revision, &post.method, &message);
        table.push_str(&format!("{subject:24}{}\n", answer.summary()));
    }
    insta::assert_snapshot!(table, @r#"
    all is well             200
    no _meta                400 -32602 params._meta lacks "io.modelcontextprotocol/protocolVersion" and "io.modelcontextprotocol/clientCapabilities"; a client of 2025-11-25 or older begins with initialize
    an empty _meta          400 -32602 params._meta lacks "io.modelcontextprotocol/protocolVersion" and "io.modelcontextprotocol/clientCapabilities"; a client of 2025-11-25 or older begins with initialize
    no capabilities         400 -32602 params._meta lacks "io.modelcontextprotocol/clientCapabilities"
    header and body differ  400 -32020 Header mismatch: MCP-Protocol-Version is "2026-07-28", but the body has "v999.0.0"
    the other way round     400 -32020 Header mismatch: MCP-Protocol-Version is "v999.0.0", but the body has "2026-07-28"
    an unsupported version  400 -32022 Unsupported protocol version
    a legacy version        400 -32022 Unsupported protocol version
    "#);
}

#[tokio::test]
async fn legacy_errors_are_200() {
    let server = Server::start().await;
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let session = server.session(revision).await;
        for (method, params, code) in [
            ("ping", json!({}), None),
            ("unknown/method", json!({}), Some(-32_601)),
            ("tools/call", json!({"name": "none"}), Some(-32_602)),
            ("resources/read", json!({"uri": "test://none"}), Some(-32_002)),
        ] {
            let answer = server.ask(&session.post(method, params)).await;
            check_response(revision, method, &answer.message());
            assert_eq!(answer.head.status, 200);
            assert_eq!(answer.message()["error"]["code"].as_i64(), code);
        }
    }
}

#[tokio::test]
async fn what_is_not_answered_is_202_without_a_body() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_06_18).await;
    let id = &session.id;
    for post in [
        Post::notification("notifications/initialized", json!({})).with("Mcp-Session-Id", id),
        Post::notification("notifications/cancelled", json!({"requestId": 9})).with("Mcp-Session-Id", id),
        Post::notification("notifications/unknown", json!({})),
        Post::notification("notifications/cancelled", json!({})).with("MCP-Protocol-Version", "2026-07-28"),
        Post::raw(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    ] {
        let answer = server.ask(&post).await;
        assert_eq!((answer.head.status, answer.text()), (202, ""));
    }
    let lost = Post::notification("notifications/initialized", json!({})).with("Mcp-Session-Id", "none");
    assert_eq!(server.ask(&lost).await.head.status, 404);
}

#[tokio::test]
async fn batches_exist_in_2025_03_26() {
    let server = Server::start().await;
    let batch =
        || Post::raw(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]"#);
    let notes = Post::raw(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#);
    let session = server.session(Revision::V2025_03_26).await;
    let answer = server.ask(&batch().with("Mcp-Session-Id", &session.id)).await;
    insta::assert_snapshot!(answer.message(), @r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"b","result":{}}]"#);
    assert_eq!(server.ask(&notes.with("Mcp-Session-Id", &session.id)).await.head.status, 202);
    let newer = server.session(Revision::V2025_06_18).await;
    let refused = server.ask(&batch().with("Mcp-Session-Id", &newer.id)).await;
    assert_eq!(refused.summary(), "400 -32600 batches exist only in revision 2025-03-26");
    assert_eq!(server.ask(&batch()).await.summary(), "400 -32600 batches exist only in revision 2025-03-26");
    assert_eq!(server.ask(&batch().with("Mcp-Session-Id", "none")).await.head.status, 404);
}

#[tokio::test]
async fn a_slash_at_the_end_changes_nothing() {
    let server = Server::start().await;
    let post = Post::modern("tools/list", json!({}));
    let headers: Vec<_> = post.headers().collect();
    let mut connection = server.connect().await;
    let mut summaries = Vec::new();
    for path in ["/mcp", "/mcp/", "/mcp/no-such-toolset", "/mcp/no-such-toolset/"] {
        summaries.push(connection.ask(&wire::request("POST", path, &headers, &post.body)).await.summary());
    }
    assert_eq!((summaries[0].as_str(), &summaries[0]), ("200", &summaries[1]));
    assert_eq!(summaries[2], summaries[3]);
}

#[tokio::test]
async fn browsers_receive_a_page_that_says_where_to_go() {
    let (_, options) = revocable_key();
    let server = Server::with(HttpOptions { has_sse: false, ..options }).await;
    let mut connection = server.connect().await;
    let browser = [("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];
    for (path, status) in
        [("/mcp", 200), ("/mcp/", 200), ("/mcp/sales", 200), ("/x", 404), ("/mcp/sse", 404), ("/favicon.ico", 404)]
    {
        let answer = connection.ask(&wire::request("GET", path, &browser, b"")).await;
        assert_eq!((answer.head.status, answer.header("content-type")), (status, Some("text/html; charset=utf-8")));
        assert!(answer.text().contains("<code>/mcp</code>") && answer.text().contains("\"/rest/\""), "{path}");
        assert_eq!(answer.text().contains("nothing at this path"), status == 404, "{path}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
    }
    // Clients of MCP accept events, and everything else is as for callers without credentials.
    let events = [("Accept", "text/event-stream, text/html")];
    assert_eq!(connection.ask(&wire::request("GET", "/mcp", &events, b"")).await.head.status, 401);
    assert_eq!(connection.ask(&wire::request("GET", "/nothing", &[], b"")).await.text(), "");
}

#[tokio::test]
async fn other_methods_and_paths_do_not_exist() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    for (method, path, status) in
        [("PUT", "/mcp", 405), ("PATCH", "/mcp", 405), ("GET", "/", 404), ("POST", "/health", 405)]
    {
        let answer = connection.ask(&wire::request(method, path, &[], b"")).await;
        assert_eq!(answer.head.status, status, "{method} {path}");
    }
}
