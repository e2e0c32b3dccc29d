//! The tutorial about logs, call by call, as a stock client follows it.
//!
//! A block of `json` is a call. Each line of the block of `text` after it is a part of the answer.

use std::path::Path;

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::Value;

use super::server::Server;
use super::tidegate;

const LOGS: [&str; 2] = ["shop_access.log.gz", "shop_app.log.gz"];

/// The calls of the page, each with the parts of its answer.
fn calls(page: &str) -> Vec<(Value, Vec<String>)> {
    let mut calls: Vec<(Value, Vec<String>)> = Vec::new();
    for block in page.split("\n```").collect::<Vec<_>>().iter().skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').unwrap();
        match (kind, calls.last_mut()) {
            ("json", _) => calls.push((serde_json::from_str(text).unwrap(), Vec::new())),
            ("text", Some((_, parts))) => parts.extend(text.lines().map(str::to_owned)),
            _ => {}
        }
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn five_calls_lead_to_the_cause() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    for name in LOGS {
        std::fs::copy(root.join("data/demo").join(name), folder.path().join("shop").join(name)).unwrap();
    }
    let page = std::fs::read_to_string(root.join("docs/tutorials/find-a-fault-in-logs.md")).unwrap();
    assert!(page.contains("\ntidegate serve ./shop\n"), "the command that this test runs");
    let arguments = ["serve", "./shop", "--listen", "127.0.0.1:0", "--log", "warn"];
    let server = Server::start(tidegate().current_dir(folder.path()).args(arguments));
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let calls = calls(&page);
    assert_eq!(calls.len(), 5);
    for (call, parts) in calls {
        let name = call["name"].as_str().unwrap().to_owned();
        let arguments = call["arguments"].as_object().unwrap().clone();
        let answer = client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await.unwrap();
        let text = &answer.content[0].as_text().unwrap().text;
        assert!(!parts.is_empty(), "{call}");
        for part in parts {
            assert!(text.contains(&part), "{call}: {part} is not in {text}");
        }
    }
    let prompts = client.list_all_prompts().await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "investigate"), "{prompts:?}");
    client.cancel().await.unwrap();
}
