//! What bounds a task: the rights of its owner, the time limit of its tool, how much is kept.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::{
    Allowed, CallLimits, Caller, Content, Grants, Metadata, Principal, SnapshotBuilder, Tool, handler_fn,
};
use tidegate_mcp::Revision;

use crate::client::Client;
use crate::host::Host;

fn client() -> Client {
    let relying = handler_fn(|job, reply| async move {
        job.relies_on("shop");
        reply.become_task();
        reply.block(Content::text("rows of the shop")).await?;
        Ok(Metadata::new())
    });
    let endless = handler_fn(|_job, reply| async move {
        reply.become_task();
        std::future::pending::<()>().await;
        Ok(Metadata::new())
    });
    let long = handler_fn(|_job, reply| async move {
        reply.become_task();
        reply.block(Content::text("x".repeat(900 * 1024))).await?;
        Ok(Metadata::new())
    });
    let second = CallLimits { timeout: Some(Duration::from_secs(1)), ..CallLimits::default() };
    let entries = SnapshotBuilder::new()
        .tool(Tool::new("relying", "Asks the shop.", relying))
        .tool(Tool::new("endless", "Waits a second at most.", endless).with_limits(second))
        .tool(Tool::new("long", "Says much.", long));
    Client::on(&Host::of(entries), Revision::V2026_07_28)
}

fn able() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn begun(client: &Client, tool: &str) -> Value {
    client.ask_as(able(), "tools/call", json!({"name": tool, "arguments": {}})).await.response.unwrap()
}

async fn about(client: &Client, id: &Value) -> Value {
    client.ask_as(able(), "tasks/get", json!({"taskId": id})).await.response.unwrap()
}

/// The task when it has ended.
async fn ended(client: &Client, id: &Value) -> Value {
    loop {
        let task = about(client, id).await["result"].clone();
        if task["status"] != "working" {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_ask_the_database_any_more_has_no_task_of_it() {
    let mut client = client();
    let id = begun(&client, "relying").await["result"]["taskId"].clone();
    assert_eq!(ended(&client, &id).await["status"], "completed");
    let owner = Principal::owner();
    let grants = Arc::new(Grants { databases: Allowed::matching(["other"]), ..Grants::everything() });
    let narrowed = Principal { grants, ..(*owner).clone() };
    client.peer.caller = Caller::new(Arc::new(narrowed), client.peer.caller.origin);
    assert_eq!(about(&client, &id).await["error"]["code"], -32_602);
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_tool_is_that_of_its_tasks() {
    let client = client();
    let began = tokio::time::Instant::now();
    let id = begun(&client, "endless").await["result"]["taskId"].clone();
    let task = ended(&client, &id).await;
    assert_eq!((&task["status"], &task["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn no_more_is_kept_in_memory_than_there_is_room_for() {
    let client = client();
    for _ in 0..100 {
        let answer = begun(&client, "long").await;
        let Some(id) = answer["result"].get("taskId") else {
            assert_eq!(answer["error"]["code"], -31_000, "{answer}");
            return;
        };
        ended(&client, id).await;
    }
    panic!("a hundred results of 900 KiB were kept");
}

#[tokio::test(start_paused = true)]
async fn the_principals_of_one_tenant_leave_room_for_the_tasks_of_another() {
    let client = client();
    let of = |tenant: &str, name: &str| {
        let (mut of, owner) = (client.clone(), Principal::owner());
        let principal = Principal { subject: name.to_owned(), tenant: Some(tenant.to_owned()), ..(*owner).clone() };
        of.peer.caller = Caller::new(Arc::new(principal), client.peer.caller.origin);
        of
    };
    let mut refusals = Vec::new();
    for name in ["ann", "bob", "carol", "dave"] {
        let client = of("north", name);
        loop {
            let answer = begun(&client, "long").await;
            let Some(id) = answer["result"].get("taskId") else {
                refusals.push(answer["error"]["message"].as_str().unwrap().to_owned());
                break;
            };
            ended(&client, id).await;
        }
    }
    insta::assert_debug_snapshot!(refusals, @r#"
    [
        "you have 10 tasks, as many as are kept; wait until some expire",
        "your tenant has 19 tasks, as many as are kept; wait until some expire",
        "your tenant has 19 tasks, as many as are kept; wait until some expire",
        "your tenant has 19 tasks, as many as are kept; wait until some expire",
    ]
    "#);
    let south = of("south", "eve");
    let id = begun(&south, "long").await["result"]["taskId"].clone();
    assert_eq!(ended(&south, &id).await["status"], "completed");
}
