//! SQL to a server that writes the answer down.

use serde_json::{Value, json};
use tidegate_client::BearerToken;
use tidegate_client::fetch::{
    FetchError, FetchOptions, RemoteQuery, ResultAddress, ResultServer as Address, start_query,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::fixture::short_delay_options;
use super::test_server::{RecordedRequest, TestResponse, TestServer};

const ID: Uuid = Uuid::from_u128(0x2f1c_1f0e_9d1b_4c55_8a33_0d6a_3a1f_7c11);

async fn start_query_on(
    server: &TestServer,
    database: Option<&str>,
    options: FetchOptions,
) -> Result<ResultAddress, FetchError> {
    let address = Address::parse(&format!("http://{}/mcp", server.address)).unwrap();
    let question = RemoteQuery { sql: "SELECT 1".to_owned(), database: database.map(str::to_owned) };
    start_query(&address, &question, options, &CancellationToken::new()).await
}

/// The error for a server with this answer.
async fn error_and_request_count(
    answer: impl Fn(&RecordedRequest) -> TestResponse + Send + Sync + 'static,
) -> (String, usize) {
    let server = TestServer::start(answer).await;
    let error = start_query_on(&server, None, short_delay_options()).await.unwrap_err();
    (error.to_string().replace(&server.address.to_string(), "HOST"), server.requests().len())
}

#[tokio::test]
async fn query_is_sent_once_and_returns_its_result() {
    let server = TestServer::start(|_| {
        TestResponse::json(
            &json!({"content": [], "structured": {"id": ID.to_string(), "status": "running"}}).to_string(),
        )
    })
    .await;
    let bearer = Some(BearerToken::parse("tide_abc").unwrap());
    let address =
        start_query_on(&server, Some("shop"), FetchOptions { bearer, ..short_delay_options() }).await.unwrap();
    assert_eq!(address.to_string(), format!("http://{}/results/{ID}", server.address));
    let [request] = server.requests().try_into().unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/rest/sql"));
    assert_eq!(request.header("authorization"), Some("Bearer tide_abc"));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body, json!({"sql": "SELECT 1", "database": "shop", "delivery": "blocks"}));
}

#[tokio::test]
async fn query_is_not_resent_after_a_lost_response() {
    for status in ["503 Service Unavailable", ""] {
        let (message, requests) = error_and_request_count(move |_| match status {
            "" => TestResponse { bytes: Vec::new(), barrier: None },
            status => TestResponse::problem(status, "too much to do"),
        })
        .await;
        assert!(message.starts_with("http://HOST/: "), "{message}");
        assert!(
            message.ends_with("; the query may still be running on the server and was not sent again"),
            "{message}"
        );
        assert_eq!(requests, 1);
    }
}

/// The problem of a call, as a server answers it.
fn call_problem(status: &str, name: &str, detail: &str) -> TestResponse {
    let problem = json!({"type": format!("tag:tidegate.dev,2026:problem/{name}"), "title": "No", "detail": detail,
        "choices": ["orders", "order_items"], "hint": "Call list_tables."});
    TestResponse::new(status, &[("Content-Type", "application/problem+json")], problem.to_string().as_bytes())
}

#[tokio::test]
async fn refused_calls_are_not_taken_for_lost_ones() {
    let absent = |_: &RecordedRequest| call_problem("404 Not Found", "not_found", "there is no table \"oders\"");
    let unready = |_: &RecordedRequest| {
        call_problem("503 Service Unavailable", "unavailable", "the table \"oders\" is not ready")
    };
    insta::assert_snapshot!(
        error_and_request_count(absent).await.0,
        @r#"http://HOST/: the server refuses the request (404); the server reports: there is no table "oders"; valid choices: orders, order_items; Call list_tables."#
    );
    let (message, requests) = error_and_request_count(unready).await;
    insta::assert_snapshot!(
        message,
        @r#"http://HOST/: the server refuses the request (503); the server reports: the table "oders" is not ready; valid choices: orders, order_items; Call list_tables."#
    );
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn server_with_tls_is_recognized() {
    // The alert that a server sends when the first record is none of TLS.
    let alert = |_: &RecordedRequest| TestResponse { bytes: vec![21, 3, 3, 0, 2, 2, 10], barrier: None };
    let (message, requests) = error_and_request_count(alert).await;
    insta::assert_snapshot!(message, @"http://HOST/: the server does not answer in HTTP at this address; if it uses TLS, its URL begins with https:// or wss://");
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn query_errors_are_reported() {
    insta::assert_snapshot!(
        error_and_request_count(|_| TestResponse::problem("422 Unprocessable Content", "there is no table \"orders\"")).await.0,
        @r#"http://HOST/: the server refuses the request (422); the server reports: there is no table "orders""#
    );
    insta::assert_snapshot!(
        error_and_request_count(|_| TestResponse::problem("404 Not Found", "there is no such path")).await.0,
        @"http://HOST/: this server has no REST endpoint at /rest/sql (404); the server reports: there is no such path"
    );
    insta::assert_snapshot!(
        error_and_request_count(|_| TestResponse::json(r#"{"Query":[]}"#)).await.0,
        @"http://HOST/: this is not a valid response of a server with stored results: it contains no stored result"
    );
}
