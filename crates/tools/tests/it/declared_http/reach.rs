//! Where requests go, and where they do not.

use serde_json::json;

use super::server::{Part, Server, json_response, response, tidy};
use super::{Api, FakeNames};

/// A server that redirects to `location` with `status`.
async fn redirecting(status: &'static str, location: String) -> Server {
    Server::answering(response(status, &format!("Location: {location}\r\n"), "")).await
}

#[tokio::test]
async fn a_redirect_to_a_host_that_is_not_listed_is_refused() {
    let mut target = Server::answering(json_response("{}")).await;
    let server = redirecting("302 Found", target.url("/")).await;
    let told = Api::of(&server).ask(json!({})).await;
    let wanted = format!(
        "unavailable: {} redirects to {}, which is not among the hosts that http tools may reach\n\
         Who runs the server can add it to http.allow_hosts.",
        server.host(),
        target.host()
    );
    assert_eq!(told, wanted);
    assert!(target.seen().is_empty());
    for location in ["http://169.254.169.254/latest/meta-data", "//evil.example/x", "file:///etc/passwd"] {
        let server = redirecting("302 Found", location.to_owned()).await;
        assert!(Api::of(&server).ask(json!({})).await.contains("not among the hosts"), "{location}");
    }
    let server = redirecting("302 Found", "http://user:pass@127.0.0.1/".to_owned()).await;
    assert!(Api::of(&server).ask(json!({})).await.ends_with("redirects to no valid address"));
}

#[tokio::test]
async fn another_listed_origin_gets_no_secret_headers() {
    let mut target = Server::answering(json_response("[1]")).await;
    let server = redirecting("307 Temporary Redirect", target.url("/there")).await;
    let api = Api::get(server.url("/"), [server.host(), target.host()]);
    assert_eq!(api.ask(json!({})).await, "[1]");
    let wanted = format!(
        "GET /there HTTP/1.1\naccept: application/json, text/*;q=0.5\nhost: {}\nuser-agent: tidegate/1.2.3",
        target.host()
    );
    assert_eq!(target.seen().iter().map(|request| tidy(request)).collect::<Vec<_>>(), [wanted]);
}

#[tokio::test]
async fn the_same_origin_gets_the_same_headers_and_body() {
    let mut server = Server::start(|request| {
        let moved = response("308 Permanent Redirect", "Location: /new\r\n", "");
        vec![Part::Bytes(if request.contains(" /new ") { json_response("{}") } else { moved })]
    })
    .await;
    let api = Api::of(&server).with(|definition| {
        definition.method = "PUT".to_owned();
        definition.body = Some(json!({"a": 1}));
    });
    assert_eq!(api.ask(json!({})).await, "{}");
    let seen: Vec<String> = server.seen().iter().map(|request| tidy(request)).collect();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].replace("PUT / ", "PUT /new "), seen[1]);
    assert!(seen[1].contains("authorization: bearer s3cr3t-token") && seen[1].ends_with(r#"{"a":1}"#), "{}", seen[1]);
}

#[tokio::test]
async fn a_body_goes_to_no_other_origin_and_is_read_back_with_get() {
    let mut target = Server::answering(json_response("{}")).await;
    let post = |server: &Server, target: &Server| {
        Api::get(server.url("/"), [server.host(), target.host()]).with(|definition| {
            definition.method = "POST".to_owned();
            definition.body = Some(json!({"a": 1}));
        })
    };
    let server = redirecting("307 Temporary Redirect", target.url("/")).await;
    let told = post(&server, &target).ask(json!({})).await;
    assert!(told.ends_with("only a GET is followed to another origin"), "{told}");
    assert!(target.seen().is_empty());
    let server = redirecting("303 See Other", target.url("/done")).await;
    assert_eq!(post(&server, &target).ask(json!({})).await, "{}");
    let seen = target.seen().remove(0);
    assert!(seen.starts_with("GET /done ") && seen.ends_with("\r\n\r\n") && !seen.contains("content-"), "{seen}");
}

#[tokio::test]
async fn redirects_end() {
    let mut server = Server::answering(response("302 Found", "Location: /again\r\n", "")).await;
    let told = Api::of(&server).ask(json!({})).await;
    assert_eq!(told, format!("unavailable: {} redirects more than 5 times", server.host()));
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn a_value_cannot_begin_a_header() {
    let mut server = Server::answering(json_response("{}")).await;
    let api = || {
        Api::of(&server).taking("trace").with(|definition| {
            definition.headers.push(("X-Trace".to_owned(), "t {trace}".to_owned()));
        })
    };
    for value in ["a\r\nX-Admin: 1", "a\nX-Admin: 1", "a\rX", "a\0", "ä"] {
        let told = api().ask(json!({"trace": value})).await;
        assert!(told.starts_with("invalid_arguments: ") && told.contains("- trace: stands in a header"), "{told}");
    }
    assert_eq!(api().ask(json!({"trace": "a: b"})).await, "{}");
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert!(tidy(&seen[0]).ends_with("\nx-trace: t a: b"), "{}", seen[0]);
}

#[tokio::test]
async fn a_name_aimed_at_this_machine_reaches_nothing_on_it() {
    let mut server = Server::answering(json_response("{}")).await;
    let port = server.port;
    let api = |address: &str, hosts: &[&str]| {
        let mut api = Api::get(format!("http://api.example.com:{port}/"), []);
        api.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        api.names = FakeNames::one("api.example.com", address);
        api
    };
    let refused = format!("unavailable: api.example.com:{port} has no address that http tools may reach");
    for address in ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "10.0.0.1", "169.254.169.254"] {
        // That the address itself is listed lets it be called by number only.
        let api = api(address, &["api.example.com", "127.0.0.1", "localhost"]);
        assert_eq!(api.ask(json!({})).await, refused, "{address}");
    }
    assert!(server.seen().is_empty());
    assert_eq!(api("127.0.0.1", &["api.example.com", "127.0.0.0/8"]).ask(json!({})).await, "{}");
    let mut local = Api::get(format!("http://localhost:{port}/"), ["localhost".to_owned()]);
    local.names = FakeNames::one("localhost", "127.0.0.1");
    assert_eq!(local.ask(json!({})).await, "{}");
    assert!(server.seen()[0].contains(&format!("host: api.example.com:{port}\r\n")));
}
