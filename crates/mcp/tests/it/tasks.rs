//! Calls that become tasks: when they do, their later notifications, and what a restart leaves.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::{ProptestConfig, any, proptest};
use serde_json::{Value, json};
use tidegate_core::{
    AuthMethod, CallOrigin, Caller, ClientCapabilities, Error, ErrorKind, InputAnswer, InputRequest, Principal,
    RowPolicyFingerprints, TransportKind,
};
use tidegate_mcp::{ListenStream, McpService, Revision, RpcAnswer, ServerDescription, TaskFolder};
use tidegate_runtime::{Answer, Registry, Snapshot, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, bytes, request};
use tidegate_testkit::schema::check_notification;
use tidegate_testkit::wait::pass_time;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A service with tools that take their time, and the token that releases `slow`.
struct TaskFixture {
    service: Arc<McpService>,
    release: CancellationToken,
}

fn entries(cancellation_token: &CancellationToken) -> Snapshot {
    let cancellation_token = cancellation_token.clone();
    let slow = handler_fn(move |call| {
        let cancellation_token = cancellation_token.clone();
        async move {
            call.progress(1.0, None, Some("half of it".to_owned())).await?;
            cancellation_token.cancelled().await;
            Ok(Answer::text("it took its time"))
        }
    });
    let at_once = handler_fn(|call| async move {
        if !call.request_task() {
            return Err(Error::missing_client_capability(ClientCapabilities {
                tasks: true,
                ..ClientCapabilities::default()
            }));
        }
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
        let both =
            [("one", InputRequest::form("First?", schema.clone())), ("two", InputRequest::form("Second?", schema))];
        let answers = call.ask_all(both).await?;
        let output = answers.values().filter(|answer| matches!(answer, InputAnswer::Accepted(_))).count();
        Ok(Answer::text(format!("{output} accepted")))
    });
    let failing = |kind| {
        handler_fn(move |call| async move {
            call.request_task();
            match kind {
                ErrorKind::Internal => Err(Error::internal("a secret")),
                kind => Err(Error::new(kind, "it cannot be done")),
            }
        })
    };
    let repeating = handler_fn(|call| async move {
        call.request_task();
        for key in ["again-2", "again", "again"] {
            call.ask(key, InputRequest::form("More?", json!({"type": "object", "properties": {}}))).await?;
        }
        Ok(Answer::content(Vec::new()))
    });
    SnapshotBuilder::new()
        .tool(Tool::new("repeating", "Asks again.", repeating))
        .tool(Tool::new("slow", "Waits.", slow))
        .tool(Tool::new("asking", "Asks.", at_once))
        .tool(Tool::new("refusing", "Fails.", failing(ErrorKind::Unavailable)))
        .tool(Tool::new("faulty", "Is wrong.", failing(ErrorKind::Internal)))
        .row_policies(RowPolicyFingerprints::new(region_of))
        .build()
}

/// A policy that applies to callers with a region.
fn region_of(principal: &Principal) -> u64 {
    principal.claims.get("region").and_then(Value::as_u64).unwrap_or_default()
}

/// Ann, with a token that says these claims.
fn client_as_ann(client: &Client, claims: &Value) -> Client {
    let mut ann = Principal::new("ann", AuthMethod::Token, Principal::process_user().grants.clone());
    ann.claims = claims.as_object().unwrap().clone();
    let mut client = client.clone();
    client.context.caller = Caller::new(Arc::new(ann), CallOrigin { transport: TransportKind::Stdio, peer: None });
    client
}

/// The task `id` for Ann with a token that has `claims`, or the error that she receives.
async fn get_as_ann(client: &Client, claims: &Value, id: &Value) -> Result<Value, Value> {
    let answer = client_as_ann(client, claims)
        .send_request_with(task_capabilities(), "tasks/get", json!({"taskId": id}))
        .await
        .response
        .unwrap();
    answer.get("result").cloned().ok_or_else(|| answer["error"].clone())
}

impl TaskFixture {
    fn new(folder: Option<TaskFolder>) -> Self {
        let release = CancellationToken::new();
        let about =
            ServerDescription { name: "test".to_owned(), title: None, version: "1".to_owned(), instructions: None };
        let registry = Registry::new(entries(&release), EventDispatcher::default());
        Self { service: McpService::with_task_folder(folder, registry, about), release }
    }

    fn client(&self) -> Client {
        Client::for_service(self.service.clone(), Revision::V2026_07_28)
    }
}

fn task_capabilities() -> Value {
    json!({"elicitation": {}, "extensions": {TASKS: {}}})
}

async fn call(client: &Client, tool: &str) -> Value {
    client.send_request_with(task_capabilities(), "tools/call", json!({"name": tool, "arguments": {}})).await.result()
}

async fn get(client: &Client, id: &Value) -> Value {
    client.send_request_with(task_capabilities(), "tasks/get", json!({"taskId": id})).await.result()
}

/// Asks until the task is in `status`; the paused clock makes it as long as it takes.
async fn wait_for_status(client: &Client, id: &Value, status: &str) -> Value {
    for _ in 0..1_000 {
        let task = get(client, id).await;
        if task["status"] == status {
            return task;
        }
        pass_time(Duration::from_millis(10)).await;
    }
    panic!("the task never was {status}: {}", get(client, id).await);
}

#[tokio::test(start_paused = true)]
async fn slow_call_becomes_task() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    let task = call(&client, "slow").await;
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
    assert!(task.get("result").is_none() && task["ttlMs"].as_u64() > Some(0), "{task}");
    let working = get(&client, &task["taskId"]).await;
    assert_eq!(working["resultType"], "complete");
    assert_eq!(wait_for_status(&client, &task["taskId"], "working").await["statusMessage"], "half of it");
    scene.release.cancel();
    let done = wait_for_status(&client, &task["taskId"], "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "it took its time");
    assert_eq!(done["result"]["isError"], false);
    assert!(done.get("pollIntervalMs").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_extension_waits() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    scene.release.cancel();
    let whole = client.send_request("tools/call", json!({"name": "slow", "arguments": {}})).await.result();
    assert_eq!((&whole["resultType"], whole.get("taskId")), (&json!("complete"), None));
    let refused = client.send_request("tools/call", json!({"name": "asking", "arguments": {}})).await.response.unwrap();
    assert_eq!(refused["error"]["code"], -32_021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({"extensions": {TASKS: {}}}));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": "x", "inputResponses": {}});
        assert_eq!(client.send_request(method, params).await.response.unwrap()["error"]["code"], -32_021, "{method}");
    }
    for method in ["tasks/list", "tasks/result"] {
        let answer =
            client.send_request_with(task_capabilities(), method, json!({"taskId": "x"})).await.response.unwrap();
        assert_eq!(answer["error"]["code"], -32_601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn task_accepts_answers_one_by_one() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    let id = call(&client, "asking").await["taskId"].clone();
    let asking = wait_for_status(&client, &id, "input_required").await;
    let keys: Vec<&String> = asking["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["one", "two"]);
    assert_eq!(asking["inputRequests"]["one"]["method"], "elicitation/create");
    let update = |responses: Value| {
        client.send_request_with(
            task_capabilities(),
            "tasks/update",
            json!({"taskId": id, "inputResponses": responses}),
        )
    };
    let accept = json!({"action": "accept", "content": {"ok": true}});

    let wrong = update(json!({"one": {"action": "accept", "content": {"ok": "yes"}}})).await.response.unwrap();
    assert_eq!(wrong["error"]["code"], -32_602);
    assert_eq!(update(json!({"never asked": 7, "one": accept})).await.result()["resultType"], "complete");
    let rest = get(&client, &id).await;
    assert_eq!((&rest["status"], rest["inputRequests"].as_object().unwrap().len()), (&json!("input_required"), 1));
    update(json!({"one": accept})).await.result();
    update(json!({"two": {"action": "decline"}})).await.result();
    let done = wait_for_status(&client, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "1 accepted");
    assert!(done.get("inputRequests").is_none());
    // Nothing waits any more, and that is no error.
    update(json!({"two": accept})).await.result();
}

#[tokio::test(start_paused = true)]
async fn input_keys_are_unique() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    let id = call(&client, "repeating").await["taskId"].clone();
    let mut keys = Vec::new();
    for _ in 0..3 {
        let task = wait_for_status(&client, &id, "input_required").await;
        let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let responses = json!({(key.as_str()): {"action": "decline"}});
        client
            .send_request_with(task_capabilities(), "tasks/update", json!({"taskId": id, "inputResponses": responses}))
            .await
            .result();
        keys.push(key);
    }
    wait_for_status(&client, &id, "completed").await;
    assert_eq!(keys, ["again-2", "again", "again-3"]);
}

#[tokio::test(start_paused = true)]
async fn ended_call_does_not_become_task() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    scene.release.cancel();
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": task_capabilities(), "progressToken": 1});
    let message = client.message(1, "tools/call", json!({"name": "slow", "_meta": meta}));
    let answer = client.service.answer(request(&message), &client.context).await;
    pass_time(Duration::from_secs(30)).await;
    let response: Value = serde_json::from_slice(&bytes(answer).await).unwrap();
    assert_eq!(response["result"]["resultType"], "complete", "{response}");
}

#[tokio::test(start_paused = true)]
async fn failed_task_distinguishes_error_kinds() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    let id = call(&client, "refusing").await["taskId"].clone();
    let refused = wait_for_status(&client, &id, "completed").await;
    assert_eq!(refused["result"]["isError"], true);
    let id = call(&client, "faulty").await["taskId"].clone();
    let failed = wait_for_status(&client, &id, "failed").await;
    assert_eq!((&failed["error"]["code"], failed.get("result")), (&json!(-32_603), None));
    assert!(!failed.to_string().contains("secret"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_ends_and_stays_so() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    let id = call(&client, "slow").await["taskId"].clone();
    for _ in 0..2 {
        let acknowledged =
            client.send_request_with(task_capabilities(), "tasks/cancel", json!({"taskId": id})).await.result();
        let members: Vec<&String> = acknowledged.as_object().unwrap().keys().collect();
        assert_eq!(members, ["resultType", "_meta"]);
        wait_for_status(&client, &id, "cancelled").await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_request_does_not_cancel_its_task() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    let id = call(&client, "slow").await["taskId"].clone();
    client.context.in_flight.as_ref().unwrap().cancel_all();
    scene.release.cancel();
    wait_for_status(&client, &id, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn task_of_another_caller_is_not_found() {
    let scene = TaskFixture::new(None);
    let mut client = scene.client();
    let id = call(&client, "slow").await["taskId"].clone();
    let absent = client
        .send_request_with(task_capabilities(), "tasks/get", json!({"taskId": "786512e2-9e0d-44bd-8f29-789f320fe840"}))
        .await;
    let absent = absent.response.unwrap()["error"].clone();
    assert_eq!(absent["code"], -32_602);
    let grants = Principal::process_user().grants.clone();
    let stranger = Arc::new(Principal::new("stranger", AuthMethod::Key, grants));
    client.context.caller = Caller::new(stranger, CallOrigin { transport: TransportKind::Stdio, peer: None });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": id, "inputResponses": {}});
        let refused = client.send_request_with(task_capabilities(), method, params).await.response.unwrap();
        assert_eq!(refused["error"], absent, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn losing_role_hides_its_tasks() {
    let scene = TaskFixture::new(None);
    let mut client = scene.client();
    let grants = Principal::process_user().grants.clone();
    let mut with_roles = |roles: &[&str]| {
        let mut ann = Principal::new("ann", AuthMethod::Token, grants.clone());
        ann.roles = roles.iter().map(|role| (*role).to_owned()).collect();
        client.context.caller = Caller::new(Arc::new(ann), CallOrigin { transport: TransportKind::Stdio, peer: None });
        client.clone()
    };
    let id = call(&with_roles(&["auditor", "reader"]), "slow").await["taskId"].clone();
    for (roles, is_seen) in [(&["reader"][..], false), (&["auditor", "reader", "writer"], true), (&[], false)] {
        let answer = with_roles(roles)
            .send_request_with(task_capabilities(), "tasks/get", json!({"taskId": id}))
            .await
            .response
            .unwrap();
        assert_eq!(answer.get("result").is_some(), is_seen, "{roles:?}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn changed_row_policy_hides_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = || Some(TaskFolder::open(folder.path()).unwrap());
    let scene = TaskFixture::new(tasks());
    let client = scene.client();
    let id = call(&client_as_ann(&client, &json!({"region": 7, "exp": 1})), "slow").await["taskId"].clone();
    let absent = get_as_ann(&client, &json!({}), &json!("00000000-0000-4000-8000-000000000000")).await;
    let others = [json!({"region": 8}), json!({}), json!({"exp": 1})];
    let same = [json!({"region": 7}), json!({"region": 7, "exp": 2})];
    for claims in &others {
        assert_eq!(get_as_ann(&client, claims, &id).await, absent, "while it goes on, {claims}");
        let cancel = client_as_ann(&client, claims)
            .send_request_with(task_capabilities(), "tasks/cancel", json!({"taskId": id}))
            .await
            .response
            .unwrap();
        assert_eq!(Err(cancel["error"].clone()), absent);
    }
    assert_eq!(get_as_ann(&client, &same[0], &id).await.unwrap()["status"], "working");
    scene.release.cancel();
    while get_as_ann(&client, &same[0], &id).await.unwrap()["status"] != "completed" {
        pass_time(Duration::from_millis(10)).await;
    }
    // And so it is in the next process.
    for client in [client, TaskFixture::new(tasks()).client()] {
        for claims in &same {
            assert_eq!(get_as_ann(&client, claims, &id).await.unwrap()["status"], "completed", "{claims}");
        }
        for claims in &others {
            assert_eq!(get_as_ann(&client, claims, &id).await, absent, "{claims}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn record_without_fingerprint_needs_no_row_policy() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = || Some(TaskFolder::open(folder.path()).unwrap());
    let scene = TaskFixture::new(tasks());
    let client = client_as_ann(&scene.client(), &json!({"region": 7}));
    let id = call(&client, "refusing").await["taskId"].clone();
    wait_for_status(&client, &id, "completed").await;
    let file = folder.path().join(format!("{}.json", id.as_str().unwrap()));
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(record["facts"].as_object_mut().unwrap().remove("row_policies"), Some(json!(7)));
    std::fs::write(&file, record.to_string()).unwrap();
    let client = TaskFixture::new(tasks()).client();
    assert!(get_as_ann(&client, &json!({"region": 7}), &id).await.is_err());
    assert_eq!(get_as_ann(&client, &json!({}), &id).await.unwrap()["status"], "completed");
}

#[tokio::test]
async fn restart_keeps_ended_tasks_and_fails_running_ones() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = || Some(TaskFolder::open(folder.path()).unwrap());
    let before = TaskFixture::new(tasks());
    let client = before.client();
    let ended = call(&client, "refusing").await["taskId"].clone();
    let message = loop {
        let task = get(&client, &ended).await;
        if task["status"] == "completed" {
            break task;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let going_on = call(&client, "asking").await["taskId"].clone();
    std::fs::write(folder.path().join("broken.json"), "{").unwrap();

    let after = TaskFixture::new(tasks());
    let client = after.client();
    assert_eq!(get(&client, &ended).await, message);
    let failed = get(&client, &going_on).await;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32_603)));
    assert!(!folder.path().join("broken.json").exists());
}

#[tokio::test]
async fn restart_removes_expired_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let before = TaskFixture::new(Some(TaskFolder::open(folder.path()).unwrap()));
    let client = before.client();
    let id = call(&client, "refusing").await["taskId"].clone();
    while get(&client, &id).await["status"] != "completed" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let file = folder.path().join(format!("{}.json", id.as_str().unwrap()));
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["facts"]["created"] = json!("2001-01-01T00:00:00Z");
    std::fs::write(&file, record.to_string()).unwrap();

    let after = TaskFixture::new(Some(TaskFolder::open(folder.path()).unwrap()));
    let absent = after
        .client()
        .send_request_with(task_capabilities(), "tasks/get", json!({"taskId": id}))
        .await
        .response
        .unwrap();
    assert!(absent["error"]["code"] == -32_602 && !file.exists(), "{absent}");
}

/// All that is written down.
fn read_records(folder: &std::path::Path) -> Vec<Value> {
    let files = std::fs::read_dir(folder).unwrap().filter_map(|entry| std::fs::read(entry.unwrap().path()).ok());
    files.filter_map(|text| serde_json::from_slice(&text).ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn disconnect_during_creation_cancels_task() {
    let folder = tempfile::tempdir().unwrap();
    let scene = TaskFixture::new(Some(TaskFolder::open(folder.path()).unwrap()));
    let client = scene.client();
    tokio::select! {
        biased;
        _ = call(&client, "slow") => panic!("it had not begun to be written down"),
        () = pass_time(Duration::from_secs(10)) => {}
    }
    for _ in 0..1_000 {
        if read_records(folder.path()).iter().any(|record| record["facts"]["status"] == "cancelled") {
            return;
        }
        pass_time(Duration::from_millis(10)).await;
    }
    panic!("{:?}", read_records(folder.path()));
}

#[tokio::test(start_paused = true)]
async fn missing_folder_keeps_call_synchronous() {
    let folder = tempfile::tempdir().unwrap();
    let scene = TaskFixture::new(Some(TaskFolder::open(folder.path().join("tasks")).unwrap()));
    std::fs::remove_dir_all(folder.path().join("tasks")).unwrap();
    let client = scene.client();
    let cancellation_token = scene.release.clone();
    tokio::spawn(async move {
        pass_time(Duration::from_secs(30)).await;
        cancellation_token.cancel();
    });
    let whole = call(&client, "slow").await;
    assert_eq!((&whole["resultType"], &whole["content"][0]["text"]), (&json!("complete"), &json!("it took its time")));
    let refused = client
        .send_request_with(task_capabilities(), "tools/call", json!({"name": "asking", "arguments": {}}))
        .await
        .response
        .unwrap();
    assert_eq!(refused["error"]["code"], -32_603);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the id is, it is the id of no task, or no id at all: the same refusal, and no fault.
    #[test]
    fn unknown_task_id_is_rejected(id in any::<String>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let code = runtime.block_on(async {
            let client = TaskFixture::new(None).client();
            client.send_request_with(task_capabilities(), "tasks/get", json!({"taskId": id})).await.response.unwrap()["error"]["code"].clone()
        });
        assert_eq!(code, -32_602);
    }
}

/// The next statuses of its tasks that a stream receives, up to a final one.
async fn statuses(stream: &mut ListenStream, client: &Client) -> Vec<String> {
    let mut statuses = Vec::new();
    loop {
        while let Some(message) = stream.feed().next_message() {
            let message: Value = serde_json::from_slice(&message).unwrap();
            check_notification(Revision::V2026_07_28, &message);
            let Some(status) = message["params"]["status"].as_str() else { continue };
            statuses.push(status.to_owned());
            if status == "completed" {
                assert_eq!(message["params"]["result"]["isError"], false);
                return statuses;
            }
        }
        stream.feed().changed().await;
        stream.feed().update_caller(&client.context.caller).await;
    }
}

#[tokio::test(start_paused = true)]
async fn task_listener_receives_status_changes() {
    let scene = TaskFixture::new(None);
    let client = scene.client();
    let id = call(&client, "slow").await["taskId"].clone();
    let expectation = json!({"notifications": {"taskIds": [id, "786512e2-9e0d-44bd-8f29-789f320fe840"]}});
    let unable = client.send_request("subscriptions/listen", expectation.clone()).await.response.unwrap();
    assert_eq!(unable["error"]["code"], -32_021);
    let mut params = expectation;
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": task_capabilities()});
    let message = client.message("s", "subscriptions/listen", params);
    let RpcAnswer::Listen(mut stream) = client.service.answer(request(&message), &client.context).await else {
        panic!()
    };
    let acknowledged: Value = serde_json::from_slice(&stream.feed().next_message().unwrap()).unwrap();
    assert_eq!(acknowledged["params"]["notifications"], json!({"taskIds": [id]}), "one that is nobody's is left out");
    stream.feed().update_caller(&client.context.caller).await;
    scene.release.cancel();
    let statuses = statuses(&mut stream, &client).await;
    assert_eq!((statuses.first().unwrap().as_str(), statuses.last().unwrap().as_str()), ("working", "completed"));
}
