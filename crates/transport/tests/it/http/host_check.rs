//! Host and Origin: protection against DNS rebinding by web pages.

use serde_json::json;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::request::Post;
use super::wire;

async fn server() -> Server {
    Server::with(HttpOptions {
        allowed_hosts: vec!["data.example.com".to_owned()],
        allowed_origins: vec!["https://app.example.com".to_owned()],
        ..HttpOptions::default()
    })
    .await
}

#[tokio::test]
async fn accepts_only_local_and_allowed_hosts() {
    let server = server().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (host, origin) in [
        ("127.0.0.1:7070", ""),
        ("localhost", "http://localhost:3000"),
        ("[::1]:7070", "https://[::1]"),
        ("LOCALHOST:1", "http://127.0.0.1:1"),
        ("data.example.com:443", "https://app.example.com"),
        ("evil.example.com", ""),
        ("localhost.evil.example.com", ""),
        ("evil.example.com:127.0.0.1", ""),
        ("", ""),
        ("127.0.0.1:7070", "http://evil.example.com"),
        ("127.0.0.1:7070", "https://app.example.com.evil.com"),
        ("127.0.0.1:7070", "http://app.example.com"),
        ("127.0.0.1:7070", "https://data.example.com"),
        ("127.0.0.1:7070", "null"),
        ("127.0.0.1:7070", "file://localhost"),
        ("127.0.0.1:7070", "http://localhost@evil.example.com"),
        ("127.0.0.1:7070", "http://localhost:80.evil.example.com"),
    ] {
        let mut post = Post::modern("server/discover", json!({})).with("Host", host);
        if !origin.is_empty() {
            post = post.with("Origin", origin);
        }
        let answer = connection.ask(&post.bytes()).await;
        table.push_str(&format!("{host:30}{origin:40}{}\n", answer.summary()));
    }
    insta::assert_snapshot!(table, @r#"
    127.0.0.1:7070                                                        200
    localhost                     http://localhost:3000                   200
    [::1]:7070                    https://[::1]                           200
    LOCALHOST:1                   http://127.0.0.1:1                      200
    data.example.com:443          https://app.example.com                 200
    evil.example.com                                                      403 -32600 the host "evil.example.com" is not allowed; the server's option --allow-host adds it
    localhost.evil.example.com                                            403 -32600 the host "localhost.evil.example.com" is not allowed; the server's option --allow-host adds it
    evil.example.com:127.0.0.1                                            403 -32600 the host "evil.example.com:127.0.0.1" is not allowed; the server's option --allow-host adds it
                                                                          403 -32600 the host "" is not allowed; the server's option --allow-host adds it
    127.0.0.1:7070                http://evil.example.com                 403 -32600 the origin "http://evil.example.com" is not allowed; the server's option --allow-origin adds it
    127.0.0.1:7070                https://app.example.com.evil.com        403 -32600 the origin "https://app.example.com.evil.com" is not allowed; the server's option --allow-origin adds it
    127.0.0.1:7070                http://app.example.com                  403 -32600 the origin "http://app.example.com" is not allowed; the server's option --allow-origin adds it
    127.0.0.1:7070                https://data.example.com                403 -32600 the origin "https://data.example.com" is not allowed; the server's option --allow-origin adds it
    127.0.0.1:7070                null                                    403 -32600 the origin "null" is not allowed; the server's option --allow-origin adds it
    127.0.0.1:7070                file://localhost                        403 -32600 the origin "file://localhost" is not allowed; the server's option --allow-origin adds it
    127.0.0.1:7070                http://localhost@evil.example.com       403 -32600 the origin "http://localhost@evil.example.com" is not allowed; the server's option --allow-origin adds it
    127.0.0.1:7070                http://localhost:80.evil.example.com    403 -32600 the origin "http://localhost:80.evil.example.com" is not allowed; the server's option --allow-origin adds it
    "#);
}

#[tokio::test]
async fn every_path_checks_the_host() {
    let server = server().await;
    for (method, path) in
        [("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"), ("GET", "/x")]
    {
        let mut connection = server.connect().await;
        let evil = wire::request(method, path, &[("Host", "evil.example.com")], b"");
        assert_eq!(connection.ask(&evil).await.head.status, 403, "{method} {path}");
        let page = wire::request(method, path, &[("Origin", "http://evil.example.com")], b"");
        assert_eq!(connection.ask(&page).await.head.status, 403, "{method} {path}");
    }
}
