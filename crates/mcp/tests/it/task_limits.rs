//! What bounds a task: the rights of its owner, the time limit of its tool, how much is kept.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::{AllowedNames, CallLimits, Caller, Grants, Principal};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};

use crate::client::Client;
use tidegate_testkit::host::Host;
use tidegate_testkit::wait::pass_time;

fn client() -> Client {
    let relying = handler_fn(|call| async move {
        call.record_database("shop");
        call.request_task();
        Ok(Answer::text("rows of the shop"))
    });
    let endless = handler_fn(|call| async move {
        call.request_task();
        std::future::pending().await
    });
    let long = handler_fn(|call| async move {
        call.request_task();
        Ok(Answer::text("x".repeat(900 * 1024)))
    });
    let second = CallLimits { timeout: Some(Duration::from_secs(1)), ..CallLimits::default() };
    let entries = SnapshotBuilder::new()
        .tool(Tool::new("relying", "Asks the shop.", relying))
        .tool(Tool::new("endless", "Waits a second at most.", endless).with_limits(second))
        .tool(Tool::new("long", "Says much.", long));
    Client::for_host(&Host::from_entries(entries), Revision::V2026_07_28)
}

fn task_capabilities() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn begin_task(client: &Client, tool: &str) -> Value {
    client
        .send_request_with(task_capabilities(), "tools/call", json!({"name": tool, "arguments": {}}))
        .await
        .response
        .unwrap()
}

async fn get_task(client: &Client, id: &Value) -> Value {
    client.send_request_with(task_capabilities(), "tasks/get", json!({"taskId": id})).await.response.unwrap()
}

/// The task when it has ended.
async fn wait_for_end(client: &Client, id: &Value) -> Value {
    loop {
        let task = get_task(client, id).await["result"].clone();
        if task["status"] != "working" {
            return task;
        }
        pass_time(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn losing_database_access_hides_its_tasks() {
    let mut client = client();
    let id = begin_task(&client, "relying").await["result"]["taskId"].clone();
    assert_eq!(wait_for_end(&client, &id).await["status"], "completed");
    let owner = Principal::process_user();
    let grants = Arc::new(Grants { databases: AllowedNames::matching(["other"]), ..Grants::everything() });
    let narrowed = Principal { grants, ..(*owner).clone() };
    client.context.caller = Caller::new(Arc::new(narrowed), client.context.caller.origin);
    assert_eq!(get_task(&client, &id).await["error"]["code"], -32_602);
}

#[tokio::test(start_paused = true)]
async fn tool_timeout_applies_to_its_tasks() {
    let client = client();
    let began = tokio::time::Instant::now();
    let id = begin_task(&client, "endless").await["result"]["taskId"].clone();
    let task = wait_for_end(&client, &id).await;
    assert_eq!((&task["status"], &task["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn tasks_in_memory_are_bounded() {
    let client = client();
    for _ in 0..100 {
        let answer = begin_task(&client, "long").await;
        let Some(id) = answer["result"].get("taskId") else {
            assert_eq!(answer["error"]["code"], -31_000, "{answer}");
            return;
        };
        wait_for_end(&client, id).await;
    }
    panic!("a hundred results of 900 KiB were kept");
}

#[tokio::test(start_paused = true)]
async fn tenant_has_half_of_tasks() {
    let client = client();
    let of = |tenant: &str, name: &str| {
        let (mut of, owner) = (client.clone(), Principal::process_user());
        let principal = Principal { subject: name.to_owned(), tenant: Some(tenant.to_owned()), ..(*owner).clone() };
        of.context.caller = Caller::new(Arc::new(principal), client.context.caller.origin);
        of
    };
    let mut refusals = Vec::new();
    for name in ["ann", "bob", "carol", "dave"] {
        let client = of("north", name);
        loop {
            let answer = begin_task(&client, "long").await;
            let Some(id) = answer["result"].get("taskId") else {
                refusals.push(answer["error"]["message"].as_str().unwrap().to_owned());
                break;
            };
            wait_for_end(&client, id).await;
        }
    }
    insta::assert_debug_snapshot!(refusals, @r#"
    [
        "you have reached your limit of stored tasks (10); wait until some expire",
        "your tenant has reached its limit of stored tasks (19); wait until some expire",
        "your tenant has reached its limit of stored tasks (19); wait until some expire",
        "your tenant has reached its limit of stored tasks (19); wait until some expire",
    ]
    "#);
    let south = of("south", "eve");
    let id = begin_task(&south, "long").await["result"]["taskId"].clone();
    assert_eq!(wait_for_end(&south, &id).await["status"], "completed");
}
