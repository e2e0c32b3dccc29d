//! SQL to a server that writes the answer down.

use serde_json::{Value, json};
use tidegate_fetch::{Bearer, FetchError, FetchOptions, Question, ResultAddress, Server as Address, ask};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::scene::hasty;
use super::server::{Answer, Asked, Server};

const ID: Uuid = Uuid::from_u128(0x2f1c_1f0e_9d1b_4c55_8a33_0d6a_3a1f_7c11);

async fn asked(server: &Server, database: Option<&str>, options: FetchOptions) -> Result<ResultAddress, FetchError> {
    let address = Address::parse(&format!("http://{}/mcp", server.address)).unwrap();
    let question = Question { sql: "SELECT 1".to_owned(), database: database.map(str::to_owned) };
    ask(&address, &question, options, &CancellationToken::new()).await
}

/// What is told of a server that answers so.
async fn told(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (String, usize) {
    let server = Server::start(answer).await;
    let error = asked(&server, None, hasty()).await.unwrap_err();
    (error.to_string().replace(&server.address.to_string(), "HOST"), server.asked().len())
}

#[tokio::test]
async fn a_question_is_asked_once_and_names_its_result() {
    let server = Server::start(|_| {
        Answer::json(&json!({"content": [], "structured": {"id": ID.to_string(), "status": "running"}}).to_string())
    })
    .await;
    let bearer = Some(Bearer::parse("tide_abc").unwrap());
    let address = asked(&server, Some("shop"), FetchOptions { bearer, ..hasty() }).await.unwrap();
    assert_eq!(address.to_string(), format!("http://{}/results/{ID}", server.address));
    let [request] = server.asked().try_into().unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/rest/sql"));
    assert_eq!(request.header("authorization"), Some("Bearer tide_abc"));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body, json!({"sql": "SELECT 1", "database": "shop", "delivery": "blocks"}));
}

#[tokio::test]
async fn a_question_that_may_have_been_heard_is_not_asked_again() {
    for status in ["503 Service Unavailable", ""] {
        let (told, requests) = told(move |_| match status {
            "" => Answer { bytes: Vec::new(), barrier: None },
            status => Answer::problem(status, "too much to do"),
        })
        .await;
        assert!(told.starts_with("http://HOST/: "), "{told}");
        assert!(told.ends_with("; the question may be running, and is not asked again by itself"), "{told}");
        assert_eq!(requests, 1);
    }
}

#[tokio::test]
async fn refusals_of_questions_are_told() {
    insta::assert_snapshot!(
        told(|_| Answer::problem("422 Unprocessable Content", "there is no table \"orders\"")).await.0,
        @r#"http://HOST/: the server refuses the request (422); the server says: there is no table "orders""#
    );
    insta::assert_snapshot!(
        told(|_| Answer::problem("404 Not Found", "there is no such path")).await.0,
        @"http://HOST/: there is no REST at this server (404), which takes SQL at /rest/sql; the server says: there is no such path"
    );
    insta::assert_snapshot!(
        told(|_| Answer::json(r#"{"Query":[]}"#)).await.0,
        @"http://HOST/: this is no answer of a server that keeps results: it names no stored result"
    );
}
