//! Allowed and rejected targets of requests.

use serde_json::json;

use super::test_server::{ResponseStep, TestServer, json_response, normalize_request, response};
use super::{ApiFixture, FakeResolver};

/// A server that redirects to `location` with `status`.
async fn redirect_server(status: &'static str, location: String) -> TestServer {
    TestServer::respond_with(response(status, &format!("Location: {location}\r\n"), "")).await
}

#[tokio::test]
async fn a_redirect_to_a_host_that_is_not_listed_is_refused() {
    let mut target = TestServer::respond_with(json_response("{}")).await;
    let server = redirect_server("302 Found", target.url("/")).await;
    let message = ApiFixture::for_server(&server).call(json!({})).await;
    let expected = format!(
        "unavailable: {} redirects to {}, which is not among the hosts that http tools may reach\n\
         The owner of this server can add it to http.allow_hosts.",
        server.host(),
        target.host()
    );
    assert_eq!(message, expected);
    assert!(target.received_requests().is_empty());
    for location in ["http://169.254.169.254/latest/meta-data", "//evil.example/x", "file:///etc/passwd"] {
        let server = redirect_server("302 Found", location.to_owned()).await;
        assert!(ApiFixture::for_server(&server).call(json!({})).await.contains("not among the hosts"), "{location}");
    }
    let server = redirect_server("302 Found", "http://user:pass@127.0.0.1/".to_owned()).await;
    assert!(ApiFixture::for_server(&server).call(json!({})).await.ends_with("redirects to an invalid address"));
}

#[tokio::test]
async fn cross_origin_redirect_drops_secret_headers() {
    let mut target = TestServer::respond_with(json_response("[1]")).await;
    let server = redirect_server("307 Temporary Redirect", target.url("/there")).await;
    let api = ApiFixture::get(server.url("/"), [server.host(), target.host()]);
    assert_eq!(api.call(json!({})).await, "[1]");
    let expected = format!(
        "GET /there HTTP/1.1\naccept: application/json, text/*;q=0.5\nhost: {}\nuser-agent: tidegate/1.2.3",
        target.host()
    );
    assert_eq!(
        target.received_requests().iter().map(|request| normalize_request(request)).collect::<Vec<_>>(),
        [expected]
    );
}

#[tokio::test]
async fn same_origin_redirect_keeps_headers_and_body() {
    let mut server = TestServer::start(|request| {
        let rewritten = response("308 Permanent Redirect", "Location: /new\r\n", "");
        vec![ResponseStep::Bytes(if request.contains(" /new ") { json_response("{}") } else { rewritten })]
    })
    .await;
    let api = ApiFixture::for_server(&server).with(|definition| {
        definition.method = "PUT".to_owned();
        definition.body = Some(json!({"a": 1}));
    });
    assert_eq!(api.call(json!({})).await, "{}");
    let seen: Vec<String> = server.received_requests().iter().map(|request| normalize_request(request)).collect();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].replace("PUT / ", "PUT /new "), seen[1]);
    assert!(seen[1].contains("authorization: bearer s3cr3t-token") && seen[1].ends_with(r#"{"a":1}"#), "{}", seen[1]);
}

#[tokio::test]
async fn cross_origin_redirect_never_sends_a_body() {
    let mut target = TestServer::respond_with(json_response("{}")).await;
    let post = |server: &TestServer, target: &TestServer| {
        ApiFixture::get(server.url("/"), [server.host(), target.host()]).with(|definition| {
            definition.method = "POST".to_owned();
            definition.body = Some(json!({"a": 1}));
        })
    };
    let server = redirect_server("307 Temporary Redirect", target.url("/")).await;
    let message = post(&server, &target).call(json!({})).await;
    assert!(message.ends_with("only a GET is followed to another origin"), "{message}");
    assert!(target.received_requests().is_empty());
    let server = redirect_server("303 See Other", target.url("/done")).await;
    assert_eq!(post(&server, &target).call(json!({})).await, "{}");
    let seen = target.received_requests().remove(0);
    assert!(seen.starts_with("GET /done ") && seen.ends_with("\r\n\r\n") && !seen.contains("content-"), "{seen}");
}

#[tokio::test]
async fn redirect_limit_applies() {
    let mut server = TestServer::respond_with(response("302 Found", "Location: /again\r\n", "")).await;
    let message = ApiFixture::for_server(&server).call(json!({})).await;
    assert_eq!(message, format!("unavailable: {} redirects more than 5 times", server.host()));
    assert_eq!(server.received_requests().len(), 6);
}

#[tokio::test]
async fn argument_cannot_inject_a_header() {
    let mut server = TestServer::respond_with(json_response("{}")).await;
    let api = || {
        ApiFixture::for_server(&server).with_argument("trace").with(|definition| {
            definition.headers.push(("X-Trace".to_owned(), "t {{trace}}".to_owned()));
        })
    };
    for value in ["a\r\nX-Admin: 1", "a\nX-Admin: 1", "a\rX", "a\0", "ä"] {
        let message = api().call(json!({"trace": value})).await;
        assert!(
            message.starts_with("invalid_arguments: ") && message.contains("- trace: is sent in a header"),
            "{message}"
        );
    }
    assert_eq!(api().call(json!({"trace": "a: b"})).await, "{}");
    let seen = server.received_requests();
    assert_eq!(seen.len(), 1);
    assert!(normalize_request(&seen[0]).ends_with("\nx-trace: t a: b"), "{}", seen[0]);
}

#[tokio::test]
async fn dns_rebinding_to_loopback_is_blocked() {
    let mut server = TestServer::respond_with(json_response("{}")).await;
    let port = server.port;
    let api = |address: &str, hosts: &[&str]| {
        let mut api = ApiFixture::get(format!("http://api.example.com:{port}/"), []);
        api.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        api.names = FakeResolver::one("api.example.com", address);
        api
    };
    let refused = format!("unavailable: api.example.com:{port} has no address that http tools may reach");
    for address in ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "10.0.0.1", "169.254.169.254"] {
        // A listed address may be called only as an address, not through a name.
        let api = api(address, &["api.example.com", "127.0.0.1", "localhost"]);
        assert_eq!(api.call(json!({})).await, refused, "{address}");
    }
    assert!(server.received_requests().is_empty());
    assert_eq!(api("127.0.0.1", &["api.example.com", "127.0.0.0/8"]).call(json!({})).await, "{}");
    let mut local = ApiFixture::get(format!("http://localhost:{port}/"), ["localhost".to_owned()]);
    local.names = FakeResolver::one("localhost", "127.0.0.1");
    assert_eq!(local.call(json!({})).await, "{}");
    assert!(server.received_requests()[0].contains(&format!("host: api.example.com:{port}\r\n")));
}
