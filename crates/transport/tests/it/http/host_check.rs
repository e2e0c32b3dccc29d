//! Host and Origin: protection against DNS rebinding by web pages.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tidegate_core::{AuthenticationError, Authenticator, Credentials, Principal};
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
async fn pages_of_the_server_itself_may_call() {
    let server = server().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (host, origin, sites) in [
        ("data.example.com", "https://data.example.com", &["same-origin"][..]),
        ("data.example.com", "https://data.example.com", &["cross-site"]),
        ("data.example.com", "https://data.example.com", &[]),
        ("data.example.com", "https://data.example.com", &["same-origin", "cross-site"]),
        ("data.example.com:7070", "http://data.example.com:7070", &[]),
        ("data.example.com:7070", "http://data.example.com:7070", &["same-site"]),
        ("data.example.com:7070", "http://data.example.com", &[]),
        ("evil.example.com", "http://evil.example.com", &[]),
        ("evil.example.com", "https://evil.example.com", &["same-origin"]),
    ] {
        let mut post = Post::modern("server/discover", json!({})).with("Host", host).with("Origin", origin);
        for site in sites {
            post = post.and("Sec-Fetch-Site", site);
        }
        let status = connection.ask(&post.bytes()).await.head.status;
        table.push_str(&format!("{host:22} {origin:30} {:24} {status}\n", sites.join(", ")));
    }
    insta::assert_snapshot!(table, @r#"
    data.example.com       https://data.example.com       same-origin              200
    data.example.com       https://data.example.com       cross-site               403
    data.example.com       https://data.example.com                                403
    data.example.com       https://data.example.com       same-origin, cross-site  403
    data.example.com:7070  http://data.example.com:7070                            200
    data.example.com:7070  http://data.example.com:7070   same-site                403
    data.example.com:7070  http://data.example.com                                 403
    evil.example.com       http://evil.example.com                                 403
    evil.example.com       https://evil.example.com       same-origin              403
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

#[tokio::test]
async fn pages_of_other_origins_send_nothing_without_an_origin() {
    let server = server().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (site, name, value) in [
        ("none", "Sec-Fetch-Mode", "navigate"),
        ("same-origin", "Sec-Fetch-Mode", "cors"),
        ("cross-site", "Sec-Fetch-Mode", "no-cors"),
        ("cross-site", "Sec-Fetch-Mode", "navigate"),
        ("same-site", "Sec-Fetch-Mode", "no-cors"),
        ("cross-site", "Origin", "https://app.example.com"),
        ("cross-site", "Origin", "https://evil.example.com"),
        ("cross-site", "Referer", "https://app.example.com/page"),
        ("same-site", "Referer", "http://localhost:3000"),
        ("cross-site", "Referer", "https://evil.example.com/"),
        ("cross-site", "Referer", "https://evil.example.com/https://app.example.com"),
        ("cross-site", "Referer", "https://app.example.com.evil.com/"),
        ("cross-site", "Referer", "http://localhost@evil.example.com/"),
    ] {
        let request = wire::request("GET", "/rest/tools", &[("Sec-Fetch-Site", site), (name, value)], b"");
        let status = connection.ask(&request).await.head.status;
        table.push_str(&format!("{site} {name}: {value}: {status}\n"));
    }
    insta::assert_snapshot!(table, @r"
    none Sec-Fetch-Mode: navigate: 200
    same-origin Sec-Fetch-Mode: cors: 200
    cross-site Sec-Fetch-Mode: no-cors: 403
    cross-site Sec-Fetch-Mode: navigate: 403
    same-site Sec-Fetch-Mode: no-cors: 403
    cross-site Origin: https://app.example.com: 200
    cross-site Origin: https://evil.example.com: 403
    cross-site Referer: https://app.example.com/page: 200
    same-site Referer: http://localhost:3000: 200
    cross-site Referer: https://evil.example.com/: 403
    cross-site Referer: https://evil.example.com/https://app.example.com: 403
    cross-site Referer: https://app.example.com.evil.com/: 403
    cross-site Referer: http://localhost@evil.example.com/: 403
    ");
    // The page of REST runs nothing by itself, and a result link is a credential.
    for path in ["/rest/", "/results/0a1b2c3d-1111-4222-8333-444455556666?link=x"] {
        let mut statuses = Vec::new();
        for headers in [&[("Sec-Fetch-Site", "cross-site")][..], &[]] {
            statuses.push(connection.ask(&wire::request("GET", path, headers, b"")).await.head.status);
        }
        assert_eq!(statuses[0], statuses[1], "{path}");
    }
    let path = "/results/0a1b2c3d-1111-4222-8333-444455556666";
    let answer = connection.ask(&wire::request("GET", path, &[("Sec-Fetch-Site", "cross-site")], b"")).await;
    assert_eq!(answer.head.status, 403);
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_answers() {
    let server = server().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (method, path) in [("OPTIONS", "/mcp"), ("OPTIONS", "/rest/tools/x/call"), ("GET", "/health"), ("GET", "/mcp")]
    {
        for origin in ["https://app.example.com", "http://localhost:3000", "https://evil.example.com"] {
            let mut headers = vec![("Origin", origin)];
            if method == "OPTIONS" {
                headers.push(("Access-Control-Request-Method", "POST"));
                headers.push(("Access-Control-Request-Headers", "authorization,mcp-session-id"));
            }
            let answer = connection.ask(&wire::request(method, path, &headers, b"")).await;
            let fields = ["allow-origin", "allow-methods", "allow-headers", "expose-headers", "allow-credentials"];
            let fields =
                fields.map(|field| answer.header(&format!("access-control-{field}")).unwrap_or("-").to_owned());
            table.push_str(&format!("{method} {path} {origin}: {} {}\n", answer.head.status, fields.join(" | ")));
        }
    }
    insta::assert_snapshot!(table, @r"
    OPTIONS /mcp https://app.example.com: 204 https://app.example.com | GET, HEAD, POST, PUT, DELETE, OPTIONS | authorization,mcp-session-id | * | -
    OPTIONS /mcp http://localhost:3000: 204 http://localhost:3000 | GET, HEAD, POST, PUT, DELETE, OPTIONS | authorization,mcp-session-id | * | -
    OPTIONS /mcp https://evil.example.com: 403 - | - | - | - | -
    OPTIONS /rest/tools/x/call https://app.example.com: 204 https://app.example.com | GET, HEAD, POST, PUT, DELETE, OPTIONS | authorization,mcp-session-id | * | -
    OPTIONS /rest/tools/x/call http://localhost:3000: 204 http://localhost:3000 | GET, HEAD, POST, PUT, DELETE, OPTIONS | authorization,mcp-session-id | * | -
    OPTIONS /rest/tools/x/call https://evil.example.com: 403 - | - | - | - | -
    GET /health https://app.example.com: 200 https://app.example.com | - | - | * | -
    GET /health http://localhost:3000: 200 http://localhost:3000 | - | - | * | -
    GET /health https://evil.example.com: 403 - | - | - | - | -
    GET /mcp https://app.example.com: 406 https://app.example.com | - | - | * | -
    GET /mcp http://localhost:3000: 406 http://localhost:3000 | - | - | * | -
    GET /mcp https://evil.example.com: 403 - | - | - | - | -
    ");
    // Without a page, nothing changes.
    let answer = connection.ask(&wire::request("OPTIONS", "/rest/tools", &[], b"")).await;
    assert_eq!((answer.head.status, answer.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

/// Admits callers whose requests are direct.
struct DirectCallers;

#[async_trait]
impl Authenticator for DirectCallers {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        credentials.is_direct.then(Principal::anonymous).ok_or(AuthenticationError::Missing)
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn requests_through_a_proxy_or_of_other_machines_are_not_direct() {
    let server = Server::with(HttpOptions {
        authenticator: Arc::new(DirectCallers),
        allowed_hosts: vec!["data.example.com".to_owned()],
        allowed_origins: vec!["https://app.example.com".to_owned()],
        ..HttpOptions::default()
    })
    .await;
    let discover = || Post::modern("server/discover", json!({}));
    for post in [discover(), discover().with("Origin", "http://localhost:3000")] {
        assert_eq!(server.ask(&post).await.head.status, 200);
    }
    for (header, value) in [
        ("Host", "data.example.com"),
        ("Origin", "https://app.example.com"),
        ("Forwarded", "for=192.0.2.7"),
        ("Via", "1.1 proxy"),
        ("X-Forwarded-For", "192.0.2.7"),
        ("X-Real-IP", "192.0.2.7"),
    ] {
        assert_eq!(server.ask(&discover().with(header, value)).await.head.status, 401, "{header}");
    }
}
