//! Requests of ours to legacy clients: what is asked in which revision, and what becomes of their answers.

use serde_json::{Value, json};
use tidegate_mcp::{IncomingMessage, ResponseFrame, ResponseStream, Revision, RpcAnswer, decode};

use crate::client::{Client, ClientResult, message, request};
use tidegate_testkit::host::Host;
use tidegate_testkit::schema::{check_notification, check_request, check_response};

fn capable_client(revision: Revision) -> Client {
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": true}});
    Client::with_capabilities(&Host::new(), revision, capabilities)
}

fn steps(steps: Value) -> Value {
    json!({"name": "script", "arguments": {"steps": steps}})
}

fn input_step(expected: Value) -> Value {
    steps(json!([["ask", expected]]))
}

fn roots_step() -> Value {
    input_step(json!({"folders": "roots"}))
}

/// Sends a request and lets `answer` say what comes back for each question, but for its id.
async fn converse(
    client: &Client,
    params: Value,
    answer: impl Fn(&Value) -> Option<Value>,
) -> (ClientResult, Vec<Value>) {
    let request = request(&message(1, "tools/call", params));
    let mut questions = Vec::new();
    let mut client_result = ClientResult::default();
    match client.service.answer(request, &client.context).await {
        RpcAnswer::NoResponse | RpcAnswer::Listen(_) => {}
        RpcAnswer::Whole(whole) => client_result.response = Some(serde_json::from_slice(&whole.bytes).unwrap()),
        RpcAnswer::Stream(mut stream) => {
            let mut response = Vec::new();
            while let Some(frame) = stream.next().await {
                match frame {
                    ResponseFrame::ResponseBytes(piece) => response.extend_from_slice(&piece),
                    ResponseFrame::Notification(bytes) => {
                        let text: Value = serde_json::from_slice(&bytes).unwrap();
                        if text.get("id").is_none() {
                            check_notification(client.revision, &text);
                            continue;
                        }
                        check_request(client.revision, &text);
                        if let Some(mut answer) = answer(&text) {
                            answer["jsonrpc"] = "2.0".into();
                            answer["id"] = text["id"].clone();
                            client.respond(&answer);
                        }
                        questions.push(text);
                    }
                }
            }
            client_result.response = stream.is_complete().then(|| serde_json::from_slice(&response).unwrap());
        }
    }
    if let Some(response) = &client_result.response {
        check_response(client.revision, "tools/call", response);
    }
    (client_result, questions)
}

/// A good answer to any question.
fn valid_answer(question: &Value) -> Option<Value> {
    let result = match question["method"].as_str().unwrap() {
        "elicitation/create" if question["params"]["mode"] == "url" => json!({"action": "accept"}),
        "elicitation/create" => json!({"action": "accept", "content": {"name": "Ann"}}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}})
        }
        _ => json!({"roots": [{"uri": "file:///a"}]}),
    };
    Some(json!({"result": result}))
}

fn text(client_result: ClientResult) -> String {
    client_result.result()["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn legacy_revisions_send_supported_requests() {
    let url = json!({"url": "https://example.test/pay"});
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        for (expected, message, since) in [
            (json!("roots"), r#"{"it":[{"uri":"file:///a"}]}"#, Revision::V2024_11_05),
            (json!({"sampling": "Greet."}), r#"{"it":"Hello"}"#, Revision::V2024_11_05),
            (json!({"form": "Who?"}), r#"{"it":{"name":"Ann"}}"#, Revision::V2025_06_18),
            (url.clone(), r#"{"it":{}}"#, Revision::V2025_11_25),
        ] {
            let (client_result, questions) =
                converse(&capable_client(revision), input_step(json!({"it": expected})), valid_answer).await;
            if revision >= since {
                assert_eq!((questions.len(), text(client_result).as_str()), (1, message), "{}", revision.name());
                continue;
            }
            assert_eq!(questions, Vec::<Value>::new());
            let response = client_result.response.unwrap();
            assert_eq!(response["result"]["isError"], true, "{response}");
            assert!(
                response.to_string().contains("the call needs client capabilities that your client did not declare"),
                "{response}"
            );
        }
    }
}

#[tokio::test]
async fn request_format_follows_revision() {
    let client = capable_client(Revision::V2025_11_25);
    let mut params = steps(json!([
        ["progress", 1],
        ["ask", {"who": {"form": "Who?"}}],
        ["progress", 2],
        ["ask", {"pay": {"url": "https://example.test/pay"}, "folders": "roots"}],
        ["text", "done"],
    ]));
    params["_meta"] = json!({"progressToken": 1});
    let (client_result, mut questions) = converse(&client, params, valid_answer).await;
    assert_eq!(text(client_result), r#"{"who":{"name":"Ann"}}{"folders":[{"uri":"file:///a"}],"pay":{}}done"#);
    // The name of an elicitation is made anew each time.
    let id = questions[1]["params"]["elicitationId"].take();
    assert_eq!(id.as_str().unwrap().len(), 36);
    let lines: String = questions.iter().map(|question| format!("{question}\n")).collect();
    insta::assert_snapshot!(lines, @r#"
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}
    {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"url","message":"Please go there.","url":"https://example.test/pay","elicitationId":null}}
    {"jsonrpc":"2.0","id":3,"method":"roots/list","params":{}}
    "#);
}

#[tokio::test]
async fn client_without_capabilities_gets_no_requests() {
    let client = Client::of(Revision::V2025_11_25);
    let (client_result, questions) = converse(&client, roots_step(), valid_answer).await;
    assert_eq!(questions.len(), 0);
    insta::assert_snapshot!(client_result.text(), @r#"result {"content":[{"type":"text","text":"the call needs client capabilities that your client did not declare: roots"}],"isError":true}"#);
    let message = client.send_request(
        "prompts/get",
        json!({"name": "decorated", "arguments": {"steps": "[[\"ask\",{\"a\":\"roots\"}]]"}}),
    );
    insta::assert_snapshot!(message.await.text(), @r#"error -31000: the call needs client capabilities that your client did not declare: roots {"kind":"incapable"}"#);
}

#[tokio::test]
async fn unreachable_client_gets_no_requests() {
    let mut client = capable_client(Revision::V2025_11_25);
    client.context.accepts_server_requests = false;
    let (client_result, questions) = converse(&client, roots_step(), valid_answer).await;
    assert_eq!(questions.len(), 0);
    assert!(text(client_result).starts_with("the call needs client capabilities that your client did not declare"));
    // The answers of a batch come together, so that nothing can be asked in between.
    let client = capable_client(Revision::V2025_03_26);
    let batch = json!([message(1, "tools/call", roots_step())]).to_string();
    let Ok(IncomingMessage::RpcBatch(messages)) = decode(batch.as_bytes()) else { panic!() };
    let answers: Value = serde_json::from_slice(&client.batch(messages).await.unwrap().unwrap()).unwrap();
    assert_eq!(answers[0]["result"]["isError"], true, "{answers}");
}

#[tokio::test]
async fn invalid_answers_are_reported_to_handler() {
    let client = capable_client(Revision::V2025_11_25);
    let nothing = "the client did not answer the input request \"it\"";
    for (answer, rendered) in [
        (json!({"error": {"code": -1, "message": "the user closed it"}}), nothing),
        (json!({"result": {}}), nothing),
        (json!({"result": {"action": "shout"}}), nothing),
        (json!({"result": {"roots": []}}), "invalid answer to \"it\": it answers a different kind of request"),
        (json!({"result": {"action": "accept"}}), "invalid answer to \"it\": name: is required"),
    ] {
        let (client_result, _) =
            converse(&client, input_step(json!({"it": {"form": "Who?"}})), |_| Some(answer.clone())).await;
        let response = client_result.response.unwrap();
        assert_eq!(response["result"]["isError"], true);
        assert_eq!(response["result"]["content"][0]["text"], rendered);
    }
    let (client_result, _) = converse(&client, input_step(json!({"it": {"form": "Who?"}})), |_| {
        Some(json!({"result": {"action": "decline"}}))
    })
    .await;
    assert_eq!(text(client_result), r#"{"it":"declined"}"#);
}

/// A call that has asked: the rest of its answer, and the question.
async fn begin_call(client: &Client, id: usize, params: Value) -> (ResponseStream, Value) {
    let request = request(&message(id, "tools/call", params));
    let RpcAnswer::Stream(mut stream) = client.service.answer(request, &client.context).await else {
        panic!("no stream")
    };
    let Some(ResponseFrame::Notification(question)) = stream.next().await else { panic!("no question") };
    (*stream, serde_json::from_slice(&question).unwrap())
}

async fn read_rest(mut stream: ResponseStream) -> String {
    let mut response = Vec::new();
    while let Some(frame) = stream.next().await {
        let ResponseFrame::ResponseBytes(piece) = frame else { panic!("another question") };
        response.extend_from_slice(&piece);
    }
    String::from_utf8(response).unwrap()
}

fn with_roots(id: &Value, folder: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"roots": [{"uri": format!("file:///{folder}")}]}})
}

#[tokio::test]
async fn concurrent_calls_get_own_answers() {
    let client = capable_client(Revision::V2025_11_25);
    let (one, first_requested) = begin_call(&client, 1, roots_step()).await;
    let (other, other_requested) = begin_call(&client, 2, roots_step()).await;
    assert_ne!(first_requested["id"], other_requested["id"]);
    client.respond(&with_roots(&other_requested["id"], "other"));
    client.respond(&with_roots(&first_requested["id"], "one"));
    assert!(read_rest(one).await.contains("file:///one"));
    assert!(read_rest(other).await.contains("file:///other"));
}

#[tokio::test]
async fn unexpected_answers_are_ignored() {
    let client = capable_client(Revision::V2025_11_25);
    let foreign = capable_client(Revision::V2025_11_25);
    let (stream, requested) = begin_call(&client, 1, roots_step()).await;
    let id = requested["id"].as_u64().unwrap();
    for wrong in [json!(id + 1), json!(id.to_string()), json!(-1), json!("tidegate"), json!(u64::MAX)] {
        client.respond(&with_roots(&wrong, "wrong"));
    }
    // The same id in another session is another question.
    foreign.respond(&with_roots(&requested["id"], "foreign"));
    client.respond(&with_roots(&requested["id"], "right"));
    // The first answer counts.
    client.respond(&with_roots(&requested["id"], "late"));
    let message = read_rest(stream).await;
    assert!(message.contains("file:///right"), "{message}");
}

#[tokio::test]
async fn cancelled_call_sends_no_requests() {
    let client = capable_client(Revision::V2025_11_25);
    let (mut stream, requested) = begin_call(&client, 1, roots_step()).await;
    client.notify("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(stream.next().await, None);
    assert!(!stream.is_complete());
    drop(stream);
    client.respond(&with_roots(&requested["id"], "late"));
    let (client_result, _) = converse(&client, roots_step(), valid_answer).await;
    assert_eq!(text(client_result), r#"{"folders":[{"uri":"file:///a"}]}"#);
}

#[tokio::test]
async fn no_request_after_response_begins() {
    let client = capable_client(Revision::V2025_11_25);
    let (client_result, questions) =
        converse(&client, steps(json!([["text", "rows"], ["ask", {"it": "roots"}]])), valid_answer).await;
    assert_eq!(questions.len(), 0);
    let result = client_result.result();
    assert_eq!(result["isError"], true, "{result}");
    // Nor does a modern call begin twice.
    let capabilities = json!({"roots": {}});
    let client = Client::with_capabilities(&Host::new(), Revision::V2026_07_28, capabilities);
    let client_result =
        client.send_request("tools/call", steps(json!([["text", "rows"], ["ask", {"it": "roots"}]]))).await;
    let result = client_result.result();
    assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!("rows")));
}

#[tokio::test]
async fn pending_requests_are_bounded() {
    let client = capable_client(Revision::V2025_11_25);
    let mut waiting = Vec::new();
    for id in 100..132 {
        waiting.push(begin_call(&client, id, roots_step()).await);
    }
    let (client_result, _) = converse(&client, roots_step(), valid_answer).await;
    let message = client_result.response.unwrap();
    assert_eq!(message["result"]["isError"], true, "{message}");
    // Those of calls that have ended make room.
    let (kept, requested) = waiting.pop().unwrap();
    drop(waiting);
    tokio::task::yield_now().await;
    let (client_result, _) = converse(&client, roots_step(), valid_answer).await;
    assert_eq!(text(client_result), r#"{"folders":[{"uri":"file:///a"}]}"#);
    client.respond(&with_roots(&requested["id"], "kept"));
    assert!(read_rest(kept).await.contains("file:///kept"));
}
