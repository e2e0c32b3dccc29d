//! Access by links, which are never disclosed.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{AuthMethod, CallOrigin, Caller, Grants, LinkVerifier, Principal, TransportKind};
use tidegate_runtime::{
    SnapshotBuilder,
    event::{Event, Subscriber},
};
use tidegate_transport::http::HttpOptions;

use super::fixture::{ABSENT, COMPLETE, REQUESTED, RUNNING, data, request, with, with_subscriber};
use crate::http::identity::revocable_key;
use crate::http::rest::fixture::problem;

/// Accepts the links `made-by-bea`, and `made-by-nobody` of an anonymous creator, for one result.
struct TestLinks;

/// The address of the creator of a link.
const MAKERS_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

impl LinkVerifier for TestLinks {
    fn verify_link(&self, id: &str, link: &str) -> Option<Caller> {
        let principal = match link {
            "made-by-bea" => Arc::new(Principal::new("bea", AuthMethod::Key, Arc::new(Grants::everything()))),
            "made-by-nobody" => Principal::anonymous(),
            "made-by-one-whose-token-has-ended" => {
                let principal = Principal::new("bea", AuthMethod::Token, Arc::new(Grants::everything()));
                Arc::new(Principal { expires_at: Some(SystemTime::now()), ..principal })
            }
            _ => return None,
        };
        let origin = CallOrigin { transport: TransportKind::StreamableHttp, peer: Some(MAKERS_ADDRESS) };
        [REQUESTED, COMPLETE, RUNNING].contains(&id).then(|| Caller::new(principal, origin))
    }
}

/// Options of a server that requires authentication and accepts links.
pub(super) fn options() -> HttpOptions {
    HttpOptions { links: Some(Arc::new(TestLinks)), ..revocable_key().1 }
}

#[tokio::test]
async fn link_acts_as_its_maker() {
    let server = with(options()).await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (link, headers) in [
        ("made-by-bea", &[][..]),
        ("made%2Dby%2Dbea", &[]),
        ("made-by-bea", &[("Authorization", "Bearer key")]),
        ("made-by-bea", &[("Authorization", "Bearer other")]),
        ("made-by-nobody", &[]),
    ] {
        for path in ["", "/data", "/blocks/0"] {
            let path = format!("/results/{REQUESTED}{path}?link={link}");
            let answer = connection.ask(&request("GET", &path, headers)).await;
            assert_eq!((answer.head.status, answer.header("cache-control")), (200, Some("no-store")));
            let requested: Value = serde_json::from_slice(&answer.body).unwrap();
            assert!(requested["arguments"].as_object().unwrap().is_empty());
            assert_eq!(requested["by_link"], true, "so that it makes no others");
            let caller = format!("{} {} {}", requested["subject"], requested["transport"], requested["peer"]);
            if path.contains("/data") {
                table.push_str(&format!("{link:16} {caller}\n"));
            }
        }
    }
    insta::assert_snapshot!(table, @r#"
    made-by-bea      "bea" "rest" "127.0.0.1"
    made%2Dby%2Dbea  "bea" "rest" "127.0.0.1"
    made-by-bea      "bea" "rest" "127.0.0.1"
    made-by-bea      "bea" "rest" "127.0.0.1"
    made-by-nobody   "anonymous" "rest" "192.0.2.7"
    "#);
}

/// A configuration with a revoked key is applied.
#[tokio::test]
async fn reload_terminates_link_downloads() {
    let server = with(options()).await;
    let mut connection = server.connect().await;
    connection.send(&request("GET", &format!("{}?link=made-by-bea", data(RUNNING)), &[])).await;
    assert_eq!(connection.head().await.status, 200);
    connection.chunk().await.unwrap();
    server.host.service.registry().swap(SnapshotBuilder::new().generation(1).build());
    connection.until_broken().await;
    server.until_open_calls(0).await;
}

/// A key is revoked while a new configuration is invalid.
#[tokio::test]
async fn key_reload_invalidates_links() {
    let (one_key, _) = revocable_key();
    let server = with(HttpOptions { authenticator: one_key.clone(), ..options() }).await;
    let mut connection = server.connect().await;
    connection.send(&request("GET", &format!("{}?link=made-by-bea", data(RUNNING)), &[])).await;
    assert_eq!(connection.head().await.status, 200);
    connection.chunk().await.unwrap();
    let ask = async |link: &str| {
        let path = format!("/results/{REQUESTED}?link={link}");
        let answer = server.connect().await.ask(&request("GET", &path, &[])).await;
        (answer.head.status, answer.body)
    };
    assert_eq!(ask("made-by-bea").await.0, 200);
    one_key.version.store(1, Ordering::SeqCst);
    let refused = ask("made-by-bea").await;
    assert_eq!(refused.0, 401);
    assert_eq!(refused, ask("made-by-bea-long-ago").await, "the same as one that never was");
    connection.until_broken().await;
    server.until_open_calls(0).await;
}

#[tokio::test]
async fn invalid_link_hides_existence() {
    let server = with(options()).await;
    let mut connection = server.connect().await;
    let mut message = Vec::new();
    for (id, link) in [
        (COMPLETE, "expired"),
        (COMPLETE, ""),
        (COMPLETE, "made-by-one-whose-token-has-ended"),
        (ABSENT, "expired"),
        (ABSENT, "made-by-bea"),
        ("nothing", "made-by-bea"),
        ("nothing", "expired"),
    ] {
        for headers in [&[][..], &[("Authorization", "Bearer key")]] {
            let answer = connection.ask(&request("GET", &format!("/results/{id}?link={link}"), headers)).await;
            assert_eq!(answer.head.status, 401, "{id} {link}");
            assert!(answer.header("www-authenticate").is_some());
            message.push(answer.text().to_owned());
        }
    }
    assert!(message.iter().all(|answer| *answer == message[0]), "{message:?}");
    let body: Value = serde_json::from_str(&message[0]).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap(), @r#"
    {
      "type": "tag:tidegate.dev,2026:problem/unauthenticated",
      "title": "Authentication is required",
      "status": 401,
      "detail": "invalid result link: it belongs to another result, or it has expired",
      "hint": "A link is valid for a few minutes. Read the manifest of the result for a new one: GET /results/{id} with a key, or the resource tidegate://results/{id} over MCP."
    }
    "#);
    // A server without links accepts none.
    let server = with(HttpOptions::default()).await;
    let answer = server.download(&request("GET", "/results/ID?link=made-by-bea", &[])).await;
    assert_eq!(answer.text(), message[0]);
}

#[tokio::test]
async fn requires_a_key_without_link() {
    let server = with(options()).await;
    let mut connection = server.connect().await;
    for path in ["/results/ID", "/results/ID/data?format=csv", "/results/nothing", "/results/ID?colour=red"] {
        let answer = connection.ask(&request("GET", path, &[])).await;
        assert!(problem(&answer).starts_with("401 unauthenticated: authentication is required"), "{path}");
        let other = connection.ask(&request("GET", path, &[("Authorization", "Bearer other")])).await;
        assert_eq!(problem(&other), "401 unauthenticated: the key or token is not valid");
    }
    let visible = ("Authorization", "Bearer key");
    assert_eq!(connection.ask(&request("GET", "/results/ID", &[visible])).await.head.status, 200);
    let elsewhere = connection.ask(&request("GET", "/rest/tools?link=made-by-bea", &[])).await;
    assert_eq!(elsewhere.head.status, 401);
}

/// Records everything that a log could contain.
#[derive(Default)]
struct Log(Mutex<String>);

impl Subscriber for Log {
    fn on_event(&self, event: Event<'_>) {
        let line = match event {
            Event::CallStarted { job } | Event::CallEnded { job, .. } => {
                format!("call {} {:?}", job.target().name(), job.arguments())
            }
            Event::CallRefused { name, outcome, .. } => format!("refused {name} {outcome}"),
            Event::MessageRefused { reason, .. } => format!("message {reason}"),
            Event::ErrorDetail { detail, .. } => format!("fault {detail}"),
            _ => return,
        };
        self.0.lock().push_str(&format!("{line}\n"));
    }
}

#[tokio::test]
async fn link_is_never_logged() {
    let log = Arc::new(Log::default());
    let server = with_subscriber(options(), Some(log.clone())).await;
    let mut connection = server.connect().await;
    for (path, header) in [
        ("/results/ID?link=made-by-bea", ("X-A", "b")),
        ("/results/ID/data?link=made-by-bea&link=made-by-bea", ("X-A", "b")),
        ("/results/ID/data?link=made-by-bea&colour=red", ("X-A", "b")),
        ("/results/ID/data?link=made-by-bea&partial=perhaps", ("X-A", "b")),
        ("/results/ID/data?link=made-by-bea", ("Accept", "image/png")),
        ("/results/ID/data?link=made-by-bea", ("Range", "bytes=99999999-")),
        ("/results/ID/data?link=made-by-bea", ("Host", "evil.example.com")),
        ("/results/ID/rows?link=made-by-bea", ("X-A", "b")),
        ("/results/ID/data?link=made-by-bea-and-more", ("X-A", "b")),
        ("/results/ID&link=made-by-bea", ("Authorization", "Bearer key")),
        ("/results/ID/rows/link=made-by-bea", ("Authorization", "Bearer key")),
        ("/results/ID/blocks/x?link=made-by-bea", ("X-A", "b")),
    ] {
        connection.ask(&request("GET", path, &[header])).await;
        connection.ask(&request("DELETE", path, &[header])).await;
    }
    server.until_open_calls(0).await;
    let log = log.0.lock().clone();
    assert!(log.lines().count() >= 24, "{log}");
    assert!(!log.contains("made-by"), "{log}");
}
