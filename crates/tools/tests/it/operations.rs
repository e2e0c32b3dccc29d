//! `list_jobs`, `cancel_job`, `node_status`, `server_info`.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{CallTarget, ErrorKind, Principal};
use tidegate_runtime::Registry;

use crate::fake::{call, call_tool, collect_answer, node, shop, unreachable, view_without_registry};

async fn jobs(registry: &Arc<Registry>) -> Vec<Value> {
    serde_json::from_str(&call_tool(registry, "list_jobs", json!({})).await).unwrap()
}

#[tokio::test]
async fn a_running_job_is_listed_and_can_be_cancelled() {
    let registry = node([shop()]);
    let endless = call(CallTarget::Tool("sql".into()), json!({"sql": "SELECT * FROM endless"}));
    let reply = registry.call(endless).unwrap();
    let id = reply.job().id().to_string();
    let running = tokio::spawn(collect_answer(reply));
    let job = loop {
        let job = jobs(&registry).await.into_iter().find(|job| job["id"] == id.as_str()).unwrap();
        if job["status"] == "running" {
            break job;
        }
    };
    assert_eq!((&job["kind"], &job["target"], &job["rows"]), (&json!("tool"), &json!("sql"), &json!(0)));
    let answer = call_tool(&registry, "cancel_job", json!({"id": id})).await;
    assert_eq!(answer, format!(r#"[{{"id":"{id}","status":"cancelling"}}]"#));
    assert_eq!(running.await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    let answer = call_tool(&registry, "cancel_job", json!({"id": id})).await;
    assert_eq!(answer, format!(r#"[{{"id":"{id}","status":"cancelled"}}]"#));
}

#[tokio::test]
async fn unknown_job_error_lists_running_jobs() {
    let registry = node([shop()]);
    insta::assert_snapshot!(call_tool(&registry, "cancel_job", json!({"id": "17"})).await, @r#"
    not_found: you have no job "17"
    None of your jobs is running.
    "#);
    let reply = registry.call(call(CallTarget::Tool("sql".into()), json!({"sql": "SELECT * FROM endless"}))).unwrap();
    let message = call_tool(&registry, "cancel_job", json!({"id": "17"})).await;
    assert!(message.contains(&format!("Valid choices: {}", reply.job().id())), "{message}");
}

#[tokio::test]
async fn one_job_is_listed_by_its_id() {
    let registry = node([shop()]);
    let endless =
        || registry.call(call(CallTarget::Tool("sql".into()), json!({"sql": "SELECT * FROM endless"}))).unwrap();
    let (one, _other) = (endless(), endless());
    let id = one.job().id().to_string();
    let listed: Vec<Value> = serde_json::from_str(&call_tool(&registry, "list_jobs", json!({"id": id})).await).unwrap();
    assert_eq!((listed.len(), &listed[0]["id"]), (1, &json!(id)));
    let message = call_tool(&registry, "list_jobs", json!({"id": "17"})).await;
    assert!(message.starts_with("not_found: you have no job \"17\""), "{message}");
}

#[tokio::test]
async fn jobs_of_others_stay_hidden() {
    let registry = node([shop()]);
    let reply = registry.call(call(CallTarget::Tool("sql".into()), json!({"sql": "SELECT * FROM endless"}))).unwrap();
    let id = reply.job().id().to_string();
    let ask_as_stranger = async |tool: &str, arguments: Value| {
        let mut call = call(CallTarget::Tool(tool.to_owned()), arguments);
        call.caller.principal = Principal::anonymous();
        collect_answer(registry.call(call).unwrap()).await.map(|answer| answer.texts.concat())
    };
    assert_eq!(ask_as_stranger("list_jobs", json!({})).await.unwrap(), "[]");
    let refused = ask_as_stranger("cancel_job", json!({"id": id})).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    assert!(!reply.job().is_cancelled());
    assert!(jobs(&registry).await.iter().any(|job| job["id"] == id.as_str()), "who runs the node sees them");
}

#[tokio::test]
async fn node_status_reports_state() {
    let registry = node([shop(), unreachable()]);
    let rows: Value = serde_json::from_str(&call_tool(&registry, "node_status", json!({})).await).unwrap();
    let status = &rows[0];
    assert_eq!(status["status"], "degraded; see list_databases");
    assert_eq!((&status["databases"], &status["databases_reachable"]), (&json!(2), &json!(1)));
    assert_eq!(status["open_calls"], 1);
    assert_eq!(status["transports"], Value::Null, "this process serves none");
    assert!(status["uptime_seconds"].is_u64());
    if cfg!(target_os = "linux") {
        assert!(status["memory_bytes"].as_u64().unwrap() > 100_000, "{status}");
    }
}

#[tokio::test]
async fn job_tools_need_a_registry() {
    let detached = view_without_registry();
    insta::assert_snapshot!(call_tool(&detached, "list_jobs", json!({})).await, @"unavailable: the server is starting or stopping; try again");
}

#[tokio::test]
async fn server_info_reports_identity_and_limits() {
    let registry = node([shop()]);
    insta::assert_snapshot!(call_tool(&registry, "server_info", json!({})).await, @r#"[{"name":"tidegate","title":"Tidegate","version":"1.2.3","sql":"PostgreSQL (embedded engine)","timeout_seconds":60,"inline_rows":null,"inline_bytes":40000}]"#);
}
