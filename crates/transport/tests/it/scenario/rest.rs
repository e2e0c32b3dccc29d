//! REST: from a step to a request, and from its response to an outcome.

use std::net::SocketAddr;

use async_trait::async_trait;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::channel::Client;
use super::fixture::{TestServer, bearer};
use super::outcome::{Outcome, StepResult};
use super::step::{List, StepRequest};
use crate::http::wire::{Answer, Broken, Connection, request};

/// The connection of one user.
pub(super) struct Rest {
    address: SocketAddr,
    bearer: Option<String>,
    connection: Option<Connection>,
}

impl Rest {
    pub(super) fn new(world: &TestServer, by: Option<&str>) -> Self {
        Self { address: world.server.address, bearer: by.map(bearer), connection: None }
    }

    /// The response, or the received bytes if the connection broke.
    async fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Answer, Vec<u8>> {
        let mut headers: Vec<(&str, &str)> = Vec::new();
        if method == "POST" {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend(self.bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Connection::open(self.address).await),
        };
        connection.send(&request(method, path, &headers, body)).await;
        let head = connection.head().await;
        if !head.is_chunked() {
            return Ok(connection.rest_of(head).await);
        }
        let mut body = Vec::new();
        loop {
            match connection.chunk_or_break().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Answer { head, body }),
                Err(Broken) => {
                    self.connection = None;
                    return Err(body);
                }
            }
        }
    }
}

#[async_trait]
impl Client for Rest {
    async fn ask(&mut self, ask: &StepRequest) -> StepResult {
        let path = |tool: &str| format!("/rest/tools/{}/call", utf8_percent_encode(tool, NON_ALPHANUMERIC));
        let answer = match (ask.call(), ask.bytes()) {
            (Some(call), _) => {
                let body = Value::Object(call.arguments).to_string();
                self.send("POST", &path(&call.tool), body.as_bytes()).await
            }
            (None, Some(bytes)) => self.send("POST", &path("script"), &bytes).await,
            (None, None) => self.send("GET", "/rest/tools", b"").await,
        };
        match answer {
            Ok(answer) => outcome(ask, &answer).into(),
            Err(begun) => broken(&begun).into(),
        }
    }
}

fn outcome(ask: &StepRequest, answer: &Answer) -> Outcome {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()));
    if answer.header("content-type") == Some("application/problem+json") {
        assert_eq!(body["status"], answer.head.status);
        return refusal(&body);
    }
    assert_eq!((answer.head.status, answer.header("content-type")), (200, Some("application/json")));
    Outcome::Answered(match ask {
        StepRequest::List(_) => body["tools"].as_array().unwrap().iter().map(|tool| List::Tools.bare(tool)).collect(),
        _ => body,
    })
}

/// A call that failed after its response had begun: the status is already sent, so the last text contains the error,
/// and the connection breaks.
fn broken(begun: &[u8]) -> Outcome {
    let body: Value = serde_json::from_slice(begun).unwrap();
    Outcome::refused(None, body["error"].as_str().unwrap())
}

/// A problem as one text; further members are appended.
fn refusal(problem: &Value) -> Outcome {
    let name = problem["type"].as_str().unwrap().strip_prefix("tag:tidegate.dev,2026:problem/").unwrap();
    let kind = match name {
        "bad_request" | "body_too_large" => "unreadable",
        kind => kind,
    };
    let detail = problem["detail"].as_str().unwrap();
    let mut message = detail.strip_prefix("the body is not valid JSON: ").unwrap_or(detail).to_owned();
    if let Some(violations) = problem["violations"].as_array() {
        message.push(':');
        for violation in violations {
            let (path, subject) = (violation["path"].as_str().unwrap(), violation["message"].as_str().unwrap());
            let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
            message.push_str(&format!("\n- {place}{subject}"));
        }
    }
    if let Some(choices) = problem["choices"].as_array() {
        let choices: Vec<&str> = choices.iter().map(|choice| choice.as_str().unwrap()).collect();
        message.push_str(&format!("\nValid choices: {}", choices.join(", ")));
    }
    if let Some(hint) = problem["hint"].as_str() {
        message.push_str(&format!("\n{hint}"));
    }
    if let Some(id) = problem.get("id") {
        assert!(message.contains(id.as_str().unwrap()), "{problem}");
    }
    Outcome::refused(Some(kind), &message)
}

#[test]
fn a_problem_reads_as_its_error_does() {
    let violation = json!({"path": "a[0]", "message": "is wrong"});
    let problem = json!({
        "type": "tag:tidegate.dev,2026:problem/invalid_arguments",
        "detail": "the arguments are wrong",
        "violations": [violation],
        "choices": ["b", "c"],
        "hint": "Try b.",
    });
    let text = "the arguments are wrong:\n- a[0]: is wrong\nValid choices: b, c\nTry b.";
    assert_eq!(refusal(&problem), Outcome::refused(Some("invalid_arguments"), text));
}
