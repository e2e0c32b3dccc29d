//! The headers of a modern request must agree with its body.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::request::Post;
use tidegate_testkit::host::Host;
use tidegate_testkit::schema::check_response;

/// The result of `post`; rejections have the status 400 and the code -32020.
async fn check(server: &Server, post: &Post) -> String {
    let answer = server.ask(post).await;
    check_response(post.revision, &post.method, &answer.message());
    let message = answer.summary();
    assert!(message == "200" || message.starts_with("400 -32020 "), "{message}");
    message.replace("400 -32020 ", "refused: ")
}

#[tokio::test]
async fn headers_must_match_the_body() {
    let server = Server::start().await;
    let call = || Post::modern("tools/call", json!({"name": "script"}));
    let posts = [
        ("as it should be", call()),
        ("no version", call().without("MCP-Protocol-Version")),
        ("another version", call().with("MCP-Protocol-Version", "2025-11-25")),
        ("two versions", call().and("MCP-Protocol-Version", "2026-07-28")),
        ("no method", call().without("Mcp-Method")),
        ("another method", call().with("Mcp-Method", "tools/list")),
        ("a method in capitals", call().with("Mcp-Method", "TOOLS/CALL")),
        ("two methods", call().and("Mcp-Method", "tools/list")),
        ("no name", call().without("Mcp-Name")),
        ("another name", call().with("Mcp-Name", "decorated")),
        ("a name in capitals", call().with("Mcp-Name", "Script")),
        ("an empty name", call().with("Mcp-Name", "")),
        ("a name between spaces", call().with("Mcp-Name", "  script  ")),
        ("a name beyond ASCII", call().with("Mcp-Name", "scrïpt")),
        ("a name in Base64", call().with("Mcp-Name", "=?base64?c2NyaXB0?=")),
        ("another name in Base64", call().with("Mcp-Name", "=?base64?U2NyaXB0?=")),
        ("header names in capitals", call().without("Mcp-Name").with("MCP-NAME", "script")),
    ];
    let mut table = String::new();
    for (subject, post) in &posts {
        table.push_str(&format!("{subject:26}{}\n", check(&server, post).await));
    }
    insta::assert_snapshot!(table, @r#"
    as it should be           200
    no version                refused: the header MCP-Protocol-Version is missing
    another version           refused: Header mismatch: MCP-Protocol-Version is "2025-11-25", but the body has "2026-07-28"
    two versions              refused: the header MCP-Protocol-Version is given more than once
    no method                 refused: the header Mcp-Method is missing
    another method            refused: Header mismatch: Mcp-Method is "tools/list", but the body has "tools/call"
    a method in capitals      refused: Header mismatch: Mcp-Method is "TOOLS/CALL", but the body has "tools/call"
    two methods               refused: the header Mcp-Method is given more than once
    no name                   refused: the header Mcp-Name is missing
    another name              refused: Header mismatch: Mcp-Name is "decorated", but the body has "script"
    a name in capitals        refused: Header mismatch: Mcp-Name is "Script", but the body has "script"
    an empty name             refused: Header mismatch: Mcp-Name is "", but the body has "script"
    a name between spaces     200
    a name beyond ASCII       refused: the header Mcp-Name contains non-ASCII characters
    a name in Base64          200
    another name in Base64    refused: Header mismatch: Mcp-Name is "Script", but the body has "script"
    header names in capitals  200
    "#);
}

#[tokio::test]
async fn mcp_name_depends_on_the_method() {
    let server = Server::start().await;
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({"name": "not mirrored"})),
        ("resources/read", json!({"uri": "test://plain"})),
        ("prompts/get", json!({"name": "plain"})),
    ] {
        assert_eq!(check(&server, &Post::modern(method, params)).await, "200", "{method}");
    }
    // A name next to the URI must not replace it.
    let both = Post::modern("resources/read", json!({"uri": "test://plain", "name": "harmless"}));
    assert!(check(&server, &both.with("Mcp-Name", "harmless")).await.starts_with("refused: "));
    let both = Post::modern("prompts/get", json!({"uri": "harmless", "name": "plain"}));
    assert!(check(&server, &both.with("Mcp-Name", "harmless")).await.starts_with("refused: "));
    let uri = "script://%5B%5B%22text%22%2C%22%C3%A4%22%5D%5D";
    assert_eq!(check(&server, &Post::modern("resources/read", json!({"uri": uri}))).await, "200");
}

#[tokio::test]
async fn a_name_beyond_ascii_comes_in_base64() {
    let server = Server::start().await;
    let answer = server.ask(&Post::modern("tools/call", json!({"name": "gewürz"}))).await;
    assert_eq!(answer.summary(), "200 -32602 there is no tool \"gewürz\"", "the headers agree");
}

/// A server with a tool that marks some of its parameters.
async fn marking() -> Server {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "rows": {"type": "integer", "x-mcp-header": "Rows"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "any": {"x-mcp-header": "Any"},
            "nested": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
            "plain": {"type": "string"},
        },
    });
    let handler = handler_fn(|_| async { Ok(Answer::content(Vec::new())) });
    let tool = Tool::new("marked", "", handler).with_input_schema(schema).unwrap();
    let host = Host::from_entries(SnapshotBuilder::new().tool(tool));
    Server::of(host, Arc::new(Metrics::new()), HttpOptions::default()).await
}

/// The result of a call with these arguments and parameter headers.
async fn check_parameters(server: &Server, arguments: Value, headers: &[(&str, &str)]) -> String {
    let mut post = Post::modern("tools/call", json!({"name": "marked", "arguments": arguments}));
    for (name, value) in headers {
        post = post.and(&format!("Mcp-Param-{name}"), value);
    }
    let message = check(server, &post).await;
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{arguments} [{}]\n    {message}\n", headers.join(", "))
}

#[tokio::test]
async fn marked_parameters_are_those_of_the_arguments() {
    let server = marking().await;
    let mut table = String::new();
    for (arguments, headers) in [
        (json!({}), &[][..]),
        (json!({"plain": "x"}), &[]),
        (json!({"region": "Hello"}), &[("Region", "Hello")]),
        (json!({"region": "Hello"}), &[("rEgIoN", "Hello")]),
        (json!({"region": "Hello"}), &[]),
        (json!({"region": "Hello"}), &[("Region", "hello")]),
        (json!({"region": "Hello"}), &[("Region", "Hello"), ("Region", "Hello")]),
        (json!({"region": null}), &[]),
        (json!({"region": null}), &[("Region", "")]),
        (json!({}), &[("Region", "Hello")]),
        (json!({"region": ""}), &[("Region", "")]),
        (json!({"region": ["Hello"]}), &[("Region", "Hello")]),
        (json!({"nested": {"deep": "x"}}), &[("Deep", "x")]),
        (json!({"nested": {"deep": "x"}}), &[]),
        (json!({"nested": "no object"}), &[]),
        (json!({"unmarked": 1}), &[("Unmarked", "2")]),
    ] {
        table.push_str(&check_parameters(&server, arguments, headers).await);
    }
    insta::assert_snapshot!(table, @r#"
    {} []
        200
    {"plain":"x"} []
        200
    {"region":"Hello"} [Region: Hello]
        200
    {"region":"Hello"} [rEgIoN: Hello]
        200
    {"region":"Hello"} []
        refused: the header Mcp-Param-Region is missing
    {"region":"Hello"} [Region: hello]
        refused: Header mismatch: Mcp-Param-Region is "hello", but the body has "Hello"
    {"region":"Hello"} [Region: Hello, Region: Hello]
        refused: the header Mcp-Param-Region is given more than once
    {"region":null} []
        200
    {"region":null} [Region: ]
        refused: Mcp-Param-Region is given, but the body has no such value
    {} [Region: Hello]
        refused: Mcp-Param-Region is given, but the body has no such value
    {"region":""} [Region: ]
        200
    {"region":["Hello"]} [Region: Hello]
        refused: Mcp-Param-Region is given, but the body has no such value
    {"nested":{"deep":"x"}} [Deep: x]
        200
    {"nested":{"deep":"x"}} []
        refused: the header Mcp-Param-Deep is missing
    {"nested":"no object"} []
        200
    {"unmarked":1} [Unmarked: 2]
        200
    "#);
}

#[tokio::test]
async fn compares_numbers_by_value() {
    let server = marking().await;
    let mut table = String::new();
    for (arguments, headers) in [
        (json!({"rows": 42}), &[("Rows", "42")][..]),
        (json!({"rows": 42}), &[("Rows", "42.0")]),
        (json!({"rows": 42.0}), &[("Rows", "42")]),
        (json!({"rows": -7}), &[("Rows", "-7")]),
        (json!({"rows": 42}), &[("Rows", "43")]),
        (json!({"rows": 42}), &[("Rows", "forty-two")]),
        (json!({"rows": 42}), &[("Rows", "")]),
        (json!({"rows": 9_007_199_254_740_993_u64}), &[("Rows", "9007199254740993")]),
        (json!({"rows": 9_007_199_254_740_993_u64}), &[("Rows", "9007199254740992")]),
        (json!({"region": "42"}), &[("Region", "42.0")]),
        (json!({"dry": true}), &[("Dry", "true")]),
        (json!({"dry": true}), &[("Dry", "True")]),
        (json!({"dry": true}), &[("Dry", "1")]),
        (json!({"any": 0.1}), &[("Any", "1e-1")]),
    ] {
        table.push_str(&check_parameters(&server, arguments, headers).await);
    }
    insta::assert_snapshot!(table, @r#"
    {"rows":42} [Rows: 42]
        200
    {"rows":42} [Rows: 42.0]
        200
    {"rows":42.0} [Rows: 42]
        200
    {"rows":-7} [Rows: -7]
        200
    {"rows":42} [Rows: 43]
        refused: Header mismatch: Mcp-Param-Rows is "43", but the body has "42"
    {"rows":42} [Rows: forty-two]
        refused: Header mismatch: Mcp-Param-Rows is "forty-two", but the body has "42"
    {"rows":42} [Rows: ]
        refused: Header mismatch: Mcp-Param-Rows is "", but the body has "42"
    {"rows":9007199254740993} [Rows: 9007199254740993]
        200
    {"rows":9007199254740993} [Rows: 9007199254740992]
        refused: Header mismatch: Mcp-Param-Rows is "9007199254740992", but the body has "9007199254740993"
    {"region":"42"} [Region: 42.0]
        refused: Header mismatch: Mcp-Param-Region is "42.0", but the body has "42"
    {"dry":true} [Dry: true]
        200
    {"dry":true} [Dry: True]
        refused: Header mismatch: Mcp-Param-Dry is "True", but the body has "true"
    {"dry":true} [Dry: 1]
        refused: Header mismatch: Mcp-Param-Dry is "1", but the body has "true"
    {"any":0.1} [Any: 1e-1]
        200
    "#);
}

#[tokio::test]
async fn base64_is_decoded_exactly_and_only_between_its_markers() {
    let server = marking().await;
    let mut table = String::new();
    for (value, header) in [
        ("Hello", "=?base64?SGVsbG8=?="),
        ("Hello", "=?base64?SGVsbG8?="),
        ("Hello", "=?base64?SGVs!!!bG8=?="),
        ("Hello", "=?BASE64?SGVsbG8=?="),
        ("Hello", "=?base64?SGVsbG9=?="),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?literal?=", "=?base64?literal?="),
        ("", "=?base64??="),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("Hello, 世界", "Hello, 世界"),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("\u{fffd}", "=?base64?/w==?="),
    ] {
        table.push_str(&check_parameters(&server, json!({"region": value}), &[("Region", header)]).await);
    }
    insta::assert_snapshot!(table, @r#"
    {"region":"Hello"} [Region: =?base64?SGVsbG8=?=]
        200
    {"region":"Hello"} [Region: =?base64?SGVsbG8?=]
        refused: the header Mcp-Param-Region is not Base64 of UTF-8
    {"region":"Hello"} [Region: =?base64?SGVs!!!bG8=?=]
        refused: the header Mcp-Param-Region is not Base64 of UTF-8
    {"region":"Hello"} [Region: =?BASE64?SGVsbG8=?=]
        refused: Header mismatch: Mcp-Param-Region is "=?BASE64?SGVsbG8=?=", but the body has "Hello"
    {"region":"Hello"} [Region: =?base64?SGVsbG9=?=]
        refused: the header Mcp-Param-Region is not Base64 of UTF-8
    {"region":"SGVsbG8="} [Region: SGVsbG8=]
        200
    {"region":"=?base64?SGVsbG8="} [Region: =?base64?SGVsbG8=]
        200
    {"region":"SGVsbG8=?="} [Region: SGVsbG8=?=]
        200
    {"region":"=?base64?literal?="} [Region: =?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=]
        200
    {"region":"=?base64?literal?="} [Region: =?base64?literal?=]
        refused: the header Mcp-Param-Region is not Base64 of UTF-8
    {"region":""} [Region: =?base64??=]
        200
    {"region":"Hello, 世界"} [Region: =?base64?SGVsbG8sIOS4lueVjA==?=]
        200
    {"region":"Hello, 世界"} [Region: Hello, 世界]
        refused: the header Mcp-Param-Region contains non-ASCII characters
    {"region":" padded "} [Region: =?base64?IHBhZGRlZCA=?=]
        200
    {"region":"line1\nline2"} [Region: =?base64?bGluZTEKbGluZTI=?=]
        200
    {"region":"�"} [Region: =?base64?/w==?=]
        refused: the header Mcp-Param-Region is not Base64 of UTF-8
    "#);
}
