//! `tidegate stdio`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::server::Server;
use super::{CommandOutput, ConfiguredFolder, Shop, tidegate};

/// What one call of `list_tables` over a connection of its own came to.
fn call(shop: &Shop, log: &[&str], trace: bool) -> CommandOutput {
    let mut command = tidegate();
    command.args(["stdio", &shop.argument()]).args(log);
    run_call(&mut command, trace)
}

fn run_call(command: &mut std::process::Command, trace: bool) -> CommandOutput {
    run_call_of(command, trace, &json!({"name": "list_tables", "arguments": {"extract": "name"}}))
}

fn run_call_of(command: &mut std::process::Command, trace: bool, params: &Value) -> CommandOutput {
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "dev.tidegate/trace": trace,
    });
    let params = json!({"name": params["name"], "arguments": params["arguments"], "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    // Its end closes the input, and with it the connection.
    writeln!(child.stdin.take().unwrap(), "{call}").unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn serves_mcp_until_end_of_input() {
    let ran = call(&Shop::new(), &[], false);
    assert_eq!(ran.code, Some(0));
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["result"]["content"][0]["text"], r#"["2024","orders"]"#, "{answer}");
    assert!(ran.stderr.contains("call ended"), "the log goes to standard error: {}", ran.stderr);
}

#[test]
fn traced_call_is_logged_at_any_level() {
    let shop = Shop::new();
    assert_eq!(call(&shop, &["--log", "error"], false).stderr, "");
    let traced = call(&shop, &["--log", "error"], true).stderr;
    assert!(traced.contains("call started") && traced.contains("call ended"), "{traced}");
}

#[test]
fn tracing_needs_operator_access() {
    let configuration = |access: &str| {
        format!(
            "databases: [{{name: shop, files: shop}}]\n\
             roles: [{{name: clerk, toolsets: ['*'], databases: ['*'], access: [{access}]}}]\nauth: {{local: [clerk]}}\n"
        )
    };
    for (access, is_traced) in [("", false), ("operator", true)] {
        let configured = ConfiguredFolder::new(&configuration(access));
        let ran = run_call(tidegate().current_dir(configured.folder()).args(["stdio", "--log", "error"]), true);
        assert!(ran.stdout.contains("orders"), "{ran:?}");
        assert_eq!(ran.stderr.contains("call started"), is_traced, "{ran:?}");
    }
}

#[test]
fn full_temporary_folder_is_an_error_of_its_own() {
    let shop = Shop::new();
    // A limit for the size of files has the effect of a full disk.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tidegate"), "stdio", &shop.argument()]);
    command.args(["--inline-bytes", "unlimited", "--log", "warn"]);
    let long = json!({"name": "sql", "arguments": {"sql": "SELECT repeat('x', 400000) AS x"}});
    let ran = run_call_of(&mut command, false, &long);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    insta::assert_snapshot!(answer["error"]["message"].as_str().unwrap(), @r"
    the node cannot buffer the answer: its temporary folder has no space left
    Request less, try again later, or use Streamable HTTP, which sends answers without storing them.
    ");
    assert!(ran.stderr.contains("a component is unavailable") && ran.stderr.contains("os error"), "{}", ran.stderr);
}

#[test]
fn bridges_to_running_server() {
    let shop = Shop::new();
    let server = Server::start(tidegate().args(["serve", &shop.argument(), "--listen", "127.0.0.1:0"]));
    let http = format!("{}/mcp", server.url.trim_end_matches("/mcp"));
    let web_socket = format!("{}/ws", http.replacen("http", "ws", 1));
    for url in [http, web_socket] {
        let ran = run_call(tidegate().args(["stdio", "--connect", &url]), false);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], r#"["2024","orders"]"#, "{answer}");
    }
    let wrong = tidegate().args(["stdio", "--connect", "http://ann:secret@127.0.0.1/mcp"]).output().unwrap();
    let wrong = CommandOutput::from(wrong);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(!wrong.stderr.contains("secret"), "{wrong:?}");
}

#[test]
fn writes_json_log() {
    let ran = call(&Shop::new(), &["--log-format", "json"], false);
    let lines: Vec<Value> = ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["message"] == "call ended" && line["name"] == "list_tables"), "{lines:?}");
}
