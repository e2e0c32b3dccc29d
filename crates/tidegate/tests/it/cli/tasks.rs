//! Long calls as tasks, through a real server that is killed in the middle.

use serde_json::{Value, json};

use super::results::{ENDLESS_QUERY, LARGE_QUERY, Node};

/// An answer that is stored, as a task.
async fn export(node: &Node, sql: &str) -> Value {
    let arguments = json!({"sql": sql, "delivery": "blocks"});
    let task = node.mcp("tools/call", "sql", json!({"name": "sql", "arguments": arguments}), task_capabilities()).await;
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    task["result"]["taskId"].clone()
}

fn task_capabilities() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn call_task_method(node: &Node, method: &str, id: &Value) -> Value {
    node.mcp(method, id.as_str().unwrap(), json!({"taskId": id}), task_capabilities()).await["result"].clone()
}

/// The task when it has ended.
async fn wait_until_ended(node: &Node, id: &Value) -> Value {
    loop {
        let task = call_task_method(node, "tasks/get", id).await;
        if task["status"] != "working" {
            return task;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_export_is_a_task_that_ends_with_the_link_to_all_rows() {
    let node = Node::start();
    let id = export(&node, LARGE_QUERY).await;
    let done = wait_until_ended(&node, &id).await;
    assert_eq!(done["status"], "completed", "{done}");
    let content = done["result"]["content"].as_array().unwrap();
    let link = content.iter().find(|block| block["type"] == "resource_link").unwrap()["uri"].as_str().unwrap();
    let text: String = content.iter().filter_map(|block| block["text"].as_str()).collect();
    assert!(text.contains("Stored: 300000 rows so far, which are all"), "{text}");
    let manifest = node.mcp("resources/read", link, json!({"uri": link}), json!({})).await;
    let manifest: Value = serde_json::from_str(manifest["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&manifest["status"], &manifest["rows"]), (&json!("complete"), &json!(300_000)));
}

#[tokio::test]
async fn a_cancelled_export_ends() {
    let node = Node::start();
    let id = export(&node, ENDLESS_QUERY).await;
    call_task_method(&node, "tasks/cancel", &id).await;
    assert_eq!(wait_until_ended(&node, &id).await["status"], "cancelled");
}

#[tokio::test]
async fn restart_keeps_ended_tasks_and_fails_running_ones() {
    let node = Node::start();
    let first = export(&node, LARGE_QUERY).await;
    let message = wait_until_ended(&node, &first).await;
    let second = export(&node, ENDLESS_QUERY).await;
    let node = node.kill_and_restart();
    assert_eq!(call_task_method(&node, "tasks/get", &first).await, message);
    let failed = call_task_method(&node, "tasks/get", &second).await;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32_603)), "{failed}");
}
