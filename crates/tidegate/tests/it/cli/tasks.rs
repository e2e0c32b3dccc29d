//! Long calls as tasks, through a real server that is killed in the middle.

use serde_json::{Value, json};

use super::results::{ENDLESS, MANY, Node};

/// An answer that is stored, as a task.
async fn export(node: &Node, sql: &str) -> Value {
    let arguments = json!({"sql": sql, "delivery": "blocks"});
    let task = node.mcp("tools/call", "sql", json!({"name": "sql", "arguments": arguments}), able()).await;
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    task["result"]["taskId"].clone()
}

fn able() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn about(node: &Node, method: &str, id: &Value) -> Value {
    node.mcp(method, id.as_str().unwrap(), json!({"taskId": id}), able()).await["result"].clone()
}

/// The task when it has ended.
async fn ended(node: &Node, id: &Value) -> Value {
    loop {
        let task = about(node, "tasks/get", id).await;
        if task["status"] != "working" {
            return task;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_export_is_a_task_that_ends_with_the_link_to_all_rows() {
    let node = Node::start();
    let id = export(&node, MANY).await;
    let done = ended(&node, &id).await;
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
    let id = export(&node, ENDLESS).await;
    about(&node, "tasks/cancel", &id).await;
    assert_eq!(ended(&node, &id).await["status"], "cancelled");
}

#[tokio::test]
async fn a_killed_server_keeps_tasks_that_ended_and_fails_those_that_went_on() {
    let node = Node::start();
    let first = export(&node, MANY).await;
    let told = ended(&node, &first).await;
    let second = export(&node, ENDLESS).await;
    let node = node.killed_and_restarted();
    assert_eq!(about(&node, "tasks/get", &first).await, told);
    let failed = about(&node, "tasks/get", &second).await;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32_603)), "{failed}");
}
