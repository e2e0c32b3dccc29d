//! The tutorials about logs, call by call, as a stock client follows them.
//!
//! A block of `json` is a call. Each line of the block of `text` after it is a part of the answer.

use std::path::{Path, PathBuf};
use std::process::Command;

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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the command `serve` of a tutorial in `folder`, and then its calls.
async fn follow(page: &str, folder: &Path, serve: &str) {
    let page = std::fs::read_to_string(root().join("docs/tutorials").join(page)).unwrap();
    assert!(page.contains(&format!("\ntidegate serve {serve}\n")), "the command that this test runs");
    let arguments = ["serve"].into_iter().chain(serve.split(' ')).chain(["--listen", "127.0.0.1:0", "--log", "warn"]);
    let server = Server::start(tidegate().current_dir(folder).args(arguments));
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

#[tokio::test(flavor = "multi_thread")]
async fn five_calls_lead_to_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    for name in LOGS {
        std::fs::copy(root().join("data/demo").join(name), folder.path().join("shop").join(name)).unwrap();
    }
    follow("find-a-fault-in-logs.md", folder.path(), "./shop").await;
}

/// Needs the program that writes journals, which `scripts/test` installs; without it, there is no machine to ask.
#[tokio::test(flavor = "multi_thread")]
async fn five_calls_lead_to_the_cause_on_a_machine_with_a_journal() {
    if !["/usr/lib", "/lib"].iter().any(|lib| Path::new(lib).join("systemd/systemd-journal-remote").exists()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(root().join("scripts/demo-machine")).arg(folder.path().join("machine")).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    follow("find-a-fault-on-a-machine.md", folder.path(), "machine=./machine/journal web=./machine/nginx").await;
}
